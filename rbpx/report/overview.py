"""Sums up all laws: the first numbers of each group, a glance at all groups, the paper's two tables, and the runs.

Source of tables 1 and 2: RBP paper (arXiv 2510.20387); slope = -alpha.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rbpx.display.view import Column, Table, View, decimal, error, magnitude, text, whole, with_ends
from rbpx.display.vocabulary import AXES, UNKNOWN, decimals, number, percent
from rbpx.display.vocabulary import span as spanned
from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.names import Axis
from rbpx.laws.power.law import PowerLawFit
from rbpx.questions.fit.analysis import Laws
from rbpx.questions.fit.words import largest
from rbpx.questions.klaw.analysis import KLaws
from rbpx.questions.regimes.analysis import Regimes
from rbpx.runs.group import Run, labels_of, titles_of
from rbpx.status import Status

__all__ = ["Fact", "alpha_of", "facts", "glance", "runs_sheet", "table_1", "table_2"]


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


def facts(laws: Laws, regimes: Regimes | None) -> tuple[Fact, ...]:
    """Exponents of RBP and cross-entropy, their backtest, and the largest k; none where there is no law."""
    entries = []
    for law in filter(None, laws.headline):
        label = "α of cross-entropy" if law.k is None else f"α of −ln RBP_{law.k}"
        ends = spanned(law.fit.alpha_lo, law.fit.alpha_hi, 3).replace("..", " to ")
        doubt = "" if law.fit.status is Status.ok else f"; {law.fit.status.label}"
        entries.append(Fact(label, number(law.fit.alpha, 3), f"95 %: {ends}\nR² {number(law.fit.r2, 3)}{doubt}"))
    first = laws.headline[0]
    if first is not None and first.fit.backtest_error is not None:
        others = f"{len(laws.group.runs) - 1} smaller {AXES[laws.group.axis].point}s"
        beside = f"of −ln RBP_{first.k} at {largest(laws.group)},\npredicted from {others}"
        entries.append(Fact("error of the prediction", percent(first.fit.backtest_error), beside))
    if regimes is not None and regimes.regimes:
        reach, last = UNKNOWN if regimes.supported is None else f"{regimes.supported:,}", regimes.regimes[-1].k
        of = "the largest k of the grid" if regimes.supported == last else f"of k up to {last:,}"
        entries.append(Fact("largest k at which the law holds", reach, of))
    return tuple(entries)


_Glance = tuple[str, Laws, Regimes | None]


def alpha_of(laws: Laws, at: int) -> Estimate | None:
    """The exponent of the RBP law (at 0) or the cross-entropy law (at 1) of the headline; None where it is missing."""
    law = laws.headline[at]
    return None if law is None else law.fit.exponent


def _of(at: int, number: Callable[[PowerLawFit], float | None]) -> Callable[[_Glance], float | None]:
    """How to get a number of a law of the headline."""

    def value(row: _Glance) -> float | None:
        law = row[1].headline[at]
        return None if law is None else number(law.fit)

    return value


GLANCE: Final = View[_Glance](
    "glance",
    text("models and text", "group", lambda row: row[0]),
    whole("points", "n_sizes", lambda row: len(row[1].group.runs)),
    with_ends("α, RBP", "alpha_rbp", lambda row: alpha_of(row[1], 0), decimals(3)),
    decimal("R²", "r2_rbp", _of(0, lambda fit: fit.r2), 3),
    with_ends("α, CE", "alpha_ce", lambda row: alpha_of(row[1], 1), decimals(3)),
    decimal("R²", "r2_ce", _of(1, lambda fit: fit.r2), 3),
    error("backtest", "backtest_error", _of(0, lambda fit: fit.backtest_error), "of RBP at the largest point"),
    whole("up to k", "supported_k", lambda row: None if row[2] is None else row[2].supported, "where the law holds"),
)


def glance(laws: Sequence[Laws], regimes: Sequence[Regimes | None]) -> Table:
    """The main laws, a row for each group, with what is known of where they hold."""
    rows = zip(titles_of([each.group for each in laws]), laws, regimes, strict=True)
    return GLANCE.table("All laws at a glance", rows, note="RBP at the smallest k, 1 by default.")


_Paired = tuple[str, str, Mapping[str, PowerLawFit]]  # two names, and laws by what stands over their pair of columns


def _paired(
    name: str, title: str, names: Sequence[tuple[str, str]], rows: Sequence[_Paired], over: Sequence[str]
) -> Table:
    """A table of laws, with R2 and slope of each in a pair of columns."""

    def value(of: str, number: Callable[[PowerLawFit], float | None]) -> Callable[[_Paired], float | None]:
        return lambda row: number(row[2][of]) if of in row[2] else None

    columns: list[Column[_Paired]] = [text(*names[0], lambda row: row[0]), text(*names[1], lambda row: row[1])]
    for of in over:
        slope = value(of, lambda fit: None if fit.alpha is None else -fit.alpha)
        columns.append(decimal(f"{of}: R²", f"{of}:r2", value(of, lambda fit: fit.r2), 3))
        columns.append(decimal(f"{of}: slope", f"{of}:slope", slope, 3))
    return View(name, columns).table(title, rows, note="Slope: −α of the line through logarithms.")


def table_1(results: Sequence[KLaws]) -> Table:
    """R2 and slope of -ln RBP_k against k, with a row for each model and a pair of columns for each text."""
    texts = titles_of([each.group for each in results], [each.group.title_of_text for each in results])
    models: dict[str, dict[Hashable, Run]] = {}
    known: dict[tuple[str, Hashable], dict[str, PowerLawFit]] = {}
    for each, on in zip(results, texts, strict=True):
        family = each.group.first.family
        for law in each.laws:
            models.setdefault(family, {}).setdefault(law.run.training, law.run)
            known.setdefault((family, law.run.training), {})[on] = law.fit
    rows = [
        (family, label, known[family, training])
        for family, runs in models.items()
        for training, label in zip(runs, labels_of(list(runs.values())), strict=True)
    ]
    names = ("family", "family"), ("size", "size")
    return _paired("table1", "Table 1: −ln RBP_k against k", names, rows, list(dict.fromkeys(texts)))


def table_2(results: Sequence[Laws]) -> Table:
    """R2 and slope of cross-entropy and -ln RBP_k against S: rows by text and quantity, pairs of columns by family."""
    fitted = [each for each in results if each.group.n_sizes >= 3]
    groups = [each.group for each in fitted]
    texts = titles_of(groups, [group.title.removeprefix(f"{group.first.family} on ") for group in groups])
    known: dict[tuple[str, int], dict[str, PowerLawFit]] = {}
    for each, on in zip(fitted, texts, strict=True):
        for law in each.laws:
            if law.law in ("rbp", "cross_entropy") and law.method is each.laws[0].method:
                known.setdefault((on, law.k or 0), {})[each.group.first.family] = law.fit
    places = list(dict.fromkeys(texts))
    ordered = sorted(known.items(), key=lambda item: (places.index(item[0][0]), item[0][1]))
    rows = [(on, f"k = {k}" if k else "CE", fits) for (on, k), fits in ordered]
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
