"""Summarises all laws: main numbers of each group, a table and figures of all, the paper's two tables, and the runs.

Source of tables 1 and 2: RBP paper (arXiv 2510.20387); slope = -alpha.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from rbpx.display.chart.colours import MOST_SERIES
from rbpx.display.chart.figure import Chart, Figure, Origin, Scale, bars, drawn, line, points, scale_of
from rbpx.display.section import Fact
from rbpx.display.table import Column, Table, interval, table_of
from rbpx.display.vocabulary import UNKNOWN, amount, decimals, law_title, number, percent, short, spoken, whole
from rbpx.laws.names import Axis
from rbpx.questions.fit.sentences import headline, largest
from rbpx.questions.multiplier.ask import WORTH
from rbpx.questions.result import Result
from rbpx.runs.group import Group, titles_of
from rbpx.runs.origin import from_fits
from rbpx.runs.run import Run, labels_of
from rbpx.status import Status
from rbpx.store.store import Record

__all__ = ["facts", "figures_across", "glance", "runs_sheet", "table_1", "table_2"]


_IN_THREE: Final = decimals(3)


def facts(name: str, result: Result) -> tuple[Fact, ...]:
    """Returns the main numbers of a question's result; none if its answer is in words or missing."""
    return tuple(_FACTS[name](result)) if name in _FACTS and result.rows else ()


def _of_laws(result: Result) -> Iterator[Fact]:
    """Returns exponents of RBP and cross-entropy, and the error of their backtest."""
    laws = [law for law in headline(result.rows) if law is not None]
    for law in laws:
        beside = f"{_between(law['alpha_lo'], law['alpha_hi'])}\nR² {number(law['r2'], 3)}{_doubt(law)}"
        yield f"α of {law_title(law['law'], law['k'])}", number(law["alpha"], 3), beside
    for law in [law for law in laws if law["backtest_error"] is not None][:1]:
        beside = f"of {law_title(law['law'], law['k'])} at {largest(result.groups[0])}, from the smaller ones"
        yield "error of the prediction", percent(law["backtest_error"]), beside


def _of_regimes(result: Result) -> Iterator[Fact]:
    supported, last = supported_k(result.rows), result.rows[-1]["k"]
    of = "the largest k of the grid" if supported == last else f"of k up to {last:,}"
    yield "largest k at which the law holds", UNKNOWN if supported is None else f"{supported:,}", of


def _of_best(result: Result) -> Iterator[Fact]:
    """Returns size, tokens and loss of the best run of the first budget."""
    for row in [row for row in result.rows if row["kind"] == "best" and row["S"] is not None][:1]:
        yield "parameters", spoken(row["S"], 3), _between(row["S_lo"], row["S_hi"], spoken)
        yield "training tokens", spoken(row["D"], 3), _between(row["D_lo"], row["D_hi"], spoken)
        loss = f"{law_title(row['law'], row['k'])} of such a run"
        yield loss, number(row["y"], 3), _between(row["y_lo"], row["y_hi"]) + _doubt(row)
        yield "compute, FLOPs", short(row["C"]), "6 × parameters × tokens"


def _of_worth(result: Result) -> Iterator[Fact]:
    """Returns what the variant is worth by each quantity, with the first choice of E."""
    overall = [row for row in result.rows if row["kind"] == "overall" and row["multiplier"] is not None]
    for row in [row for row in overall if row["offset"] == overall[0]["offset"]]:
        label = f"times the {WORTH[row['axis']]}, by {law_title(row['law'], row['k'])}"
        beside = _between(row["multiplier_lo"], row["multiplier_hi"]) + _doubt(row)
        yield label, number(row["multiplier"], 3), beside


def _of_predictions(result: Result) -> Iterator[Fact]:
    """Returns RBP and cross-entropy at the first size asked for."""
    told = [row for row in result.rows if row["kind"] == "prediction" and row["method"] == "combined"]
    for name in ("rbp", "cross_entropy"):
        for row in [row for row in told if row["law"] == name and row["y"] is not None][:1]:
            label = f"{law_title(name, row['k'])} at S = {spoken(row['S'], 3)}"
            yield label, number(row["y"], 3), _between(row["lo"], row["hi"]) + _doubt(row)


def _between(lo: float | None, hi: float | None, how: Callable[[float | None], str] = _IN_THREE) -> str:
    return "no interval" if lo is None and hi is None else f"95 %: {how(lo)} to {how(hi)}"


def _doubt(row: Record) -> str:
    status = Status(row["status"] or Status.ok)
    return "" if status is Status.ok else f"; {status.label}"


_FACTS: Final[Mapping[str, Callable[[Result], Iterator[Fact]]]] = {
    "decide": _of_best, "fit": _of_laws, "multiplier": _of_worth, "predict": _of_predictions, "regimes": _of_regimes
}  # fmt: skip


def title_of_rbp(laws: Sequence[tuple[Record | None, Record | None]]) -> str:
    """Returns the title of -ln RBP, with the laws' k, or the letter k if they differ."""
    ks = {rbp["k"] for rbp, _ in laws if rbp is not None}
    return law_title("rbp", *ks) if len(ks) == 1 else "−ln RBP_k"


def supported_k(regimes: Sequence[Record]) -> int | None:
    """Returns the largest k of `regimes` up to which the law holds; None if none does or none is known."""
    return regimes[0]["params"]["regime"]["supported_up_to_k"] if regimes else None


def glance(fits: Sequence[Result], regimes: Mapping[Hashable, Sequence[Record]]) -> Table:
    """Returns a table of the main laws, a row for each group, with the range in which they hold."""
    groups, laws = [each.groups[0] for each in fits], [headline(each.rows) for each in fits]
    rows = []
    for title, group, both in zip(titles_of(groups), groups, laws, strict=True):
        row: Record = {"group": title, "n_sizes": len(group.runs)}
        for name, law in zip(("rbp", "ce"), both, strict=True):
            row |= {f"{key}_{name}{end}": law and law[f"{key}{end}"] for key, end in _NUMBERS}
            row.setdefault("backtest_error", law and law["backtest_error"])
        rows.append(row | {"supported_k": supported_k(regimes.get(group.key, ()))})
    columns = (
        ("models and text", "group"), ("points", "n_sizes", whole),
        *interval(f"α, {title_of_rbp(laws)}", "alpha_rbp", ".3f"), ("R²", "r2_rbp", ".3f"),
        *interval("α, CE", "alpha_ce", ".3f"), ("R²", "r2_ce", ".3f"),
        ("backtest", "backtest_error", percent, "of RBP at the largest point"),
        ("up to k", "supported_k", whole, "where the law holds"),
    )  # fmt: skip
    return table_of("glance", *columns).of("All laws at a glance", rows)


_NUMBERS: Final = (("alpha", ""), ("alpha", "_lo"), ("alpha", "_hi"), ("r2", ""))


def _paired(
    name: str, title: str, names: Sequence[tuple[str, str]], rows: Sequence[Record], over: Sequence[str]
) -> Table:
    """Returns a table of laws, with R2 and slope of each in a pair of columns."""
    pairs = ((f"{of}: {what}", key) for of in over for what, key in zip(("R²", "slope"), _keys(of), strict=True))
    return table_of(name, *names, *((of, key, ".3f") for of, key in pairs)).of(
        title, rows, note="Slope: −α of the line through logarithms."
    )


def _keys(of: str) -> tuple[str, str]:
    name = of.replace(" ", "_")
    return f"{name}:r2", f"{name}:slope"


def _pair(of: str, law: Record) -> Record:
    slope = None if law["alpha"] is None else -law["alpha"]
    return dict(zip(_keys(of), (law["r2"], slope), strict=True))


def table_1(results: Sequence[Result]) -> Table:
    """Returns R2 and slope of -ln RBP_k against k: rows by model, pairs of columns by text."""
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
    """Returns R2 and slope of cross-entropy and -ln RBP_k against S: rows by text and quantity, pairs by family."""
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


RUNS: Final = table_of(
    "runs", ("run", "run_id"),
    *((name, name) for name in ("family", "variant", "model", "size", "revision")),
    ("S", "non_embedding_params", whole), ("D", "training_tokens", amount), ("text", "dataset"),
    ("of hash", "text_hash"),
    *((name, name) for name in ("protocol", "dtype", "source")),
    ("documents", "n_documents", whole), ("tokens", "n_tokens", whole), ("CE, nats", "cross_entropy_nats", ".4f"),
    first="run_id family size non_embedding_params dataset source",
)  # fmt: skip


def runs_sheet(runs: Sequence[Run]) -> Table:
    """Returns a table of the runs that the numbers come from."""
    note = "python -m rbpx show RUN prints all that is known about one."
    rows = [vars(run) | {"run_id": " ".join(run.run_ids), "size": run.label} for run in runs]
    return RUNS.of("Runs", rows, note=note).without_empty()


_HUE: Final = "series"
_NAMED: Final = (Column("colour", _HUE), Column("group", "group"))


def figures_across(fits: Sequence[Result]) -> Iterator[Figure]:
    """Draws the laws of all groups against size, and each exponent of cross-entropy against that of RBP.

    Args:
        fits: answers of `fit`, one for each group.
    """
    groups = [each.groups[0] for each in fits]
    firsts = [headline(each.rows) for each in fits]
    origin = from_fits([str(law["fit_id"]) for both in firsts for law in both if law is not None], *groups)
    names = zip(_hue(groups), titles_of(groups), strict=True)
    known = [({_HUE: hue, "group": title}, *both) for (hue, title), both in zip(names, firsts, strict=True)]
    of_rbp = [(of, rbp) for of, rbp, _ in known if rbp is not None]
    of_both = [(of, rbp, ce) for of, rbp, ce in known if rbp is not None and ce is not None]
    if of_rbp:
        yield _laws(of_rbp, title_of_rbp(firsts), groups[0].axis, origin)
    if of_both:
        yield _exponents(of_both, title_of_rbp(firsts), origin)


def _hue(groups: Sequence[Group]) -> list[str]:
    """Returns what colour distinguishes: texts, else families, else nothing."""
    firsts = [group.first for group in groups]
    for names in ([first.dataset for first in firsts], [first.family for first in firsts]):
        if len(set(names)) <= MOST_SERIES:
            return names
    return ["all"] * len(groups)


def _laws(named: Sequence[tuple[Record, Record]], of: str, axis: Axis, origin: Origin) -> Figure:
    name, title = "laws-across", "The laws of all groups"
    rows = [names | {"S": S, "y": y} for names, law in named for S, y in _curve(law)]
    columns = (*_NAMED, Column("{x}", "S", short), Column(of, "y", ".5f"))
    one_colour = line(by="group", look={"strokeWidth": 1.2, "opacity": 0.7, "strokeDash": [1, 0]})
    return drawn(
        table_of(name, *columns).of(title, rows, axis=axis),
        Chart(scale_of(axis, "S"), Scale("y", of, log=True), (one_colour,), _HUE, height=340),
        f"Logarithmic plot of {len({row['group'] for row in rows})} laws of {of} against {axis.value}, one a group.",
        f"A line for each group: its law of {of}, between its smallest and its largest point.",
        origin,
    )


def _curve(law: Record) -> list[tuple[float, float]]:
    """Returns points along a law from its smallest to its largest observation."""
    places = np.geomspace(min(law["params"]["S"]), max(law["params"]["S"]), _ALONG)
    values = (law["params"]["E"] or 0.0) + law["C"] * places ** -law["alpha"]
    return list(zip(places.tolist(), values.tolist(), strict=True))


def _exponents(named: Sequence[tuple[Record, Record, Record]], of: str, origin: Origin) -> Figure:
    name, title = "exponents-across", "The exponents of all groups"
    rows = [
        names | {f"alpha_{its}{end}": law[f"alpha{end}"] for its, law in (("rbp", rbp), ("ce", ce)) for end in _ENDS}
        for names, rbp, ce in named
    ]
    (least, of_least), (most, of_most) = (end((row["alpha_rbp"], row["group"]) for row in rows) for end in (min, max))
    thin = {"opacity": 0.3}
    marks = (
        bars("alpha_rbp_lo", "alpha_rbp_hi", along="x", look=thin),
        bars("alpha_ce_lo", "alpha_ce_hi", look=thin),
        points(),
    )
    columns = (*_NAMED, *interval(f"α of {of}", "alpha_rbp"), *interval("α of cross-entropy", "alpha_ce"))
    return drawn(
        table_of(name, *columns).of(title, rows),
        Chart(Scale("alpha_rbp", f"α of {of}"), Scale("alpha_ce", "α of cross-entropy"), marks, _HUE, height=340),
        f"Exponents of {len(rows)} groups; that of {of} goes from {least:.3f} ({of_least}) to {most:.3f} ({of_most}).",
        "A point for each group. Bars: 95 % intervals over documents and models.",
        origin,
    )


_ALONG: Final = 12  # points of a curve
_ENDS: Final = ("", "_lo", "_hi")
