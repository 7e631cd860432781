"""Sums up all laws: the first numbers of each group, a glance at all groups, the paper's two tables, and the runs.

Source of tables 1 and 2: RBP paper (arXiv 2510.20387); slope = -alpha.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rbpx.display.view import Column, Table, View, decimal, error, magnitude, text, whole, with_ends
from rbpx.display.vocabulary import AXES, UNKNOWN, decimals, number, percent
from rbpx.display.vocabulary import span as spanned
from rbpx.laws.names import Axis
from rbpx.questions.fit.words import headline, largest
from rbpx.questions.result import Result
from rbpx.runs.group import Group, Run, labels_of, titles_of
from rbpx.status import Status
from rbpx.store.store import Record

__all__ = ["Fact", "facts", "glance", "runs_sheet", "table_1", "table_2"]


@dataclass(frozen=True)
class Fact:
    """One number at the top of a group.

    Attributes:
        label: what the number is.
        value: the number as people read it.
        beside: its interval, or what it means.
    """

    label: str
    value: str
    beside: str


def facts(group: Group, laws: Sequence[Record], regimes: Sequence[Record]) -> tuple[Fact, ...]:
    """Exponents of RBP and cross-entropy, their backtest, and the largest k; none where there is no law."""
    entries = []
    for law in filter(None, headline(laws)):
        label = "α of cross-entropy" if law["k"] is None else f"α of −ln RBP_{law['k']}"
        ends = spanned(law["alpha_lo"], law["alpha_hi"], 3).replace("..", " to ")
        status = Status(law["status"] or Status.ok)
        doubt = "" if status is Status.ok else f"; {status.label}"
        entries.append(Fact(label, number(law["alpha"], 3), f"95 %: {ends}\nR² {number(law['r2'], 3)}{doubt}"))
    first = headline(laws)[0]
    if first is not None and first["backtest_error"] is not None:
        others = f"{len(group.runs) - 1} smaller {AXES[group.axis].point}s"
        beside = f"of −ln RBP_{first['k']} at {largest(group)},\npredicted from {others}"
        entries.append(Fact("error of the prediction", percent(first["backtest_error"]), beside))
    if regimes:
        supported, last = supported_k(regimes), regimes[-1]["k"]
        of = "the largest k of the grid" if supported == last else f"of k up to {last:,}"
        reach = UNKNOWN if supported is None else f"{supported:,}"
        entries.append(Fact("largest k at which the law holds", reach, of))
    return tuple(entries)


def supported_k(regimes: Sequence[Record]) -> int | None:
    """Of rows of `regimes`: the largest k up to which the law holds; None where it holds at none, or none is known."""
    return regimes[0]["params"]["regime"]["supported_up_to_k"] if regimes else None


GLANCE: Final = View[Record](
    "glance",
    text("models and text", "group"),
    whole("points", "n_sizes"),
    with_ends("α, RBP", "alpha_rbp", None, decimals(3)),
    decimal("R²", "r2_rbp", digits=3),
    with_ends("α, CE", "alpha_ce", None, decimals(3)),
    decimal("R²", "r2_ce", digits=3),
    error("backtest", "backtest_error", means="of RBP at the largest point"),
    whole("up to k", "supported_k", means="where the law holds"),
)


def glance(fits: Sequence[Result], regimes: Mapping[Hashable, Sequence[Record]]) -> Table:
    """The main laws, a row for each group, with what is known of where they hold."""
    groups = [each.groups[0] for each in fits]
    rows = []
    for title, group, each in zip(titles_of(groups), groups, fits, strict=True):
        row: Record = {"group": title, "n_sizes": len(group.runs)}
        for name, law in zip(("rbp", "ce"), headline(each.rows), strict=True):
            row |= {f"{key}_{name}{end}": law and law[f"{key}{end}"] for key, end in _NUMBERS}
            row.setdefault("backtest_error", law and law["backtest_error"])
        rows.append(row | {"supported_k": supported_k(regimes.get(group.key, ()))})
    return GLANCE.table("All laws at a glance", rows, note="RBP at the smallest k, 1 by default.")


_NUMBERS: Final = (("alpha", ""), ("alpha", "_lo"), ("alpha", "_hi"), ("r2", ""))


def _paired(
    name: str, title: str, names: Sequence[tuple[str, str]], rows: Sequence[Record], over: Sequence[str]
) -> Table:
    """A table of laws, with R2 and slope of each in a pair of columns."""
    columns: list[Column[Record]] = [text(*names[0]), text(*names[1])]
    for of in over:
        columns.append(decimal(f"{of}: R²", f"{of}:r2", digits=3))
        columns.append(decimal(f"{of}: slope", f"{of}:slope", digits=3))
    return View(name, columns).table(title, rows, note="Slope: −α of the line through logarithms.")


def _pair(of: str, law: Record) -> Record:
    return {f"{of}:r2": law["r2"], f"{of}:slope": None if law["alpha"] is None else -law["alpha"]}


def table_1(results: Sequence[Result]) -> Table:
    """R2 and slope of -ln RBP_k against k, with a row for each model and a pair of columns for each text."""
    groups = [each.groups[0] for each in results]
    texts = titles_of(groups, [group.title_of_text for group in groups])
    models: dict[str, dict[Hashable, Run]] = {}
    known: dict[tuple[str, Hashable], Record] = {}
    for each, group, on in zip(results, groups, texts, strict=True):
        for run, law in zip(group.runs, each.rows, strict=False):
            models.setdefault(group.first.family, {}).setdefault(run.training, run)
            known.setdefault((group.first.family, run.training), {}).update(_pair(on, law))
    rows = [
        {"family": family, "size": label, **known[family, training]}
        for family, runs in models.items()
        for training, label in zip(runs, labels_of(list(runs.values())), strict=True)
    ]
    names = ("family", "family"), ("size", "size")
    return _paired("table1", "Table 1: −ln RBP_k against k", names, rows, list(dict.fromkeys(texts)))


def table_2(results: Sequence[Result]) -> Table:
    """R2 and slope of cross-entropy and -ln RBP_k against S: rows by text and quantity, pairs of columns by family."""
    fitted = [each for each in results if each.groups[0].n_sizes >= 3]
    groups = [each.groups[0] for each in fitted]
    texts = titles_of(groups, [group.title.removeprefix(f"{group.first.family} on ") for group in groups])
    known: dict[tuple[str, int], Record] = {}
    for each, group, on in zip(fitted, groups, texts, strict=True):
        for law in each.rows:
            if law["law"] in ("rbp", "cross_entropy") and law["method"] == each.rows[0]["method"]:
                known.setdefault((on, law["k"] or 0), {}).update(_pair(group.first.family, law))
    places = list(dict.fromkeys(texts))
    ordered = sorted(known.items(), key=lambda item: (places.index(item[0][0]), item[0][1]))
    rows = [{"dataset": on, "quantity": f"k = {k}" if k else "CE", **pairs} for (on, k), pairs in ordered]
    names = ("text", "dataset"), ("quantity", "quantity")
    families = list(dict.fromkeys(group.first.family for group in groups))
    x = groups[0].axis.value if groups else Axis.S.value
    return _paired("table2", f"Table 2: cross-entropy and −ln RBP_k against {x}", names, rows, families)


RUNS: Final = View[Run](
    "runs",
    text("run", "run_id", lambda run: " ".join(run.run_ids)),
    text("family", "family", lambda run: run.family),
    text("variant", "variant", lambda run: run.variant, spare=1),
    text("model", "model", lambda run: run.model, spare=1),
    text("size", "size", lambda run: run.size),
    text("revision", "revision", lambda run: run.revision, spare=1),
    whole("S", "non_embedding_params", lambda run: run.non_embedding_params),
    magnitude("D", "training_tokens", lambda run: run.training_tokens, spare=1),
    text("text", "dataset", lambda run: run.dataset),
    text("of hash", "text_hash", lambda run: run.text_hash, spare=1),
    text("protocol", "protocol", lambda run: run.protocol, spare=1),
    text("dtype", "dtype", lambda run: run.dtype, spare=1),
    text("source", "source", lambda run: run.source),
    whole("documents", "n_documents", lambda run: run.n_documents, spare=1),
    whole("tokens", "n_tokens", lambda run: run.n_tokens, spare=1),
    decimal("CE, nats", "cross_entropy_nats", lambda run: run.cross_entropy_nats, spare=1),
)


def runs_sheet(runs: Sequence[Run]) -> Table:
    """The runs that the numbers come from, with what is known of any."""
    note = "python -m rbpx show RUN prints all that is known about one."
    return RUNS.table("Runs", runs, note=note).without_empty()
