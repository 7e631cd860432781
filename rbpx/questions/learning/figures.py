"""Draws the spectrum of times, the slope rebuilt, misses beside what is not learned, and who carries the slope."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from rbpx.display.chart.figure import (
    Chart,
    Figure,
    Mark,
    Origin,
    Scale,
    Undrawn,
    bars,
    drawn,
    line,
    points,
    scale_of,
)
from rbpx.display.view import View, magnitude, share, text, with_ends
from rbpx.display.vocabulary import decimals, short
from rbpx.laws.learning.curves import FEWEST
from rbpx.questions.learning import columns
from rbpx.questions.learning.found import Found
from rbpx.runs.origin import from_shares, spelled
from rbpx.store.store import Record

_SLOPE: Final = View[Record](
    "slope",
    text("slope", "series"),
    magnitude("{x}", "x"),
    with_ends("nats per unit of ln {x}", "slope", None, decimals(3)),
)
_SPECTRUM: Final = View[Record]("spectrum", text("time", "time"), columns.NATS)
_LEFT: Final = View[Record]("left", text("share", "series"), magnitude("{x}", "x"), share("of tokens", "share"))
_ORDER: Final = View[Record](
    "order", text("ρ", "series"), text("trainings", "pair"), with_ends("of times", "rho", None, decimals(3))
)
_MOST_PAIRS: Final = 12
_WHEN: Final = "When cross-entropy falls, by the time of each token"


def figures(parts: Sequence[Found]) -> Iterator[Figure | Undrawn]:
    """The figures of each group, and of the orders on each text; where there are several, each says whose it is."""
    for at, found in enumerate(parts):
        for each in _figures(found):
            named = replace(each, name=f"{each.name}-{at}", title=f"{each.title}: {found.about}")
            yield named if len(parts) > 1 else each


def _figures(found: Found) -> Iterator[Figure | Undrawn]:
    if found.of("pair"):
        yield _order(found)
    elif found.of("bin"):
        yield _spectrum(found)
        yield _slopes(found)
    else:
        why = f"Sigmoids need {FEWEST} points, and there are {len(found.runs)}: measure more (model.revision=all)."
        yield Undrawn(_SPECTRUM.name, _WHEN, why)
    if found.of("point"):
        yield _left(found)
        yield _carriers(found)


def _tokens(found: Found) -> Origin:
    """The tokens of the last run, with their losses."""
    runs = found.runs or found.group.runs
    sql = spelled("learning_tokens", run_id=runs[-1].run_ids[0], ties=found.group.ties.value)
    return Origin(sql, tuple(run.run_id for run in found.runs) or tuple(found.group.run_ids))


def _with_bars(value: str) -> tuple[Mark, Mark]:
    """A large point for each name, and its interval."""
    return bars(f"{value}_lo", f"{value}_hi"), points(look={"size": 90})


def _spectrum(found: Found) -> Figure:
    rows = [row | {"time": _between(row)} for row in found.of("bin")]
    largest = max(rows, key=lambda row: row["nats"] or 0.0)
    x, names = found.group.axis.value, tuple(row["time"] for row in rows)
    return drawn(
        _SPECTRUM.table(_WHEN, rows, axis=found.group.axis),
        Chart(Scale("nats", "nats a token", zero=True), Scale("time", x, names=names), _with_bars("nats")),
        f"Most of the fall of cross-entropy of {found.about} is of tokens whose time is {largest['time']}.",
        f"What the sigmoids of tokens fall, by the {x} at which half of that is done; bars: 95 %, documents.",
        _tokens(found),
    )


def _between(row: Record) -> str:
    if row["lo"] is None:
        return f"before {short(row['hi'])}"
    return f"after {short(row['lo'])}" if row["hi"] is None else f"{short(row['lo'])} to {short(row['hi'])}"


def _slopes(found: Found) -> Figure:
    gaps = sorted(found.of("slope"), key=_middle)
    measured = {_middle(row): {f"slope{end}": row[f"measured{end}"] for end in ("", "_lo", "_hi")} for row in gaps}
    rows: list[Record] = [{"series": "measured", "x": x, **slope} for x, slope in measured.items()]
    for side, series in (("hi", "sigmoids, to the point left out"), ("lo", "sigmoids, from the point left out")):
        rows += [{"series": series, "x": _middle(row), **_of_sigmoids(row)} for row in gaps if row["out"] == row[side]]
    r2 = [row["r2_sigmoid"] for row in found.of("world")]
    told = " and ".join("–" if each is None else f"{each:.2f}" for each in r2)
    axis = found.group.axis
    y = Scale("slope", f"nats per unit of ln {axis.value}", zero=True)
    return drawn(
        _SLOPE.table("The slope of cross-entropy, rebuilt at points left out", rows, axis=axis),
        Chart(scale_of(axis, "x"), y, (line(), bars("slope_lo", "slope_hi"), points()), "series", "slope"),
        f"The slope of cross-entropy of {found.about}, and that of single sigmoids at points they were not fitted to: "
        f"R² = {told}, measured and in a drawn world without steps.",
        f"Slopes between neighbouring {axis.value}, one of which the fits left out; bars: 95 %, documents, of the "
        "sigmoids' error.",
        _tokens(found),
    )


def _middle(row: Record) -> float:
    return float((row["lo"] * row["hi"]) ** 0.5)


def _of_sigmoids(row: Record) -> Record:
    """Their slope, with the interval of its error about what is measured."""
    measured, ends = row["measured"], {"slope_lo": row["error_lo"], "slope_hi": row["error_hi"]}
    around = {key: None if None in (measured, end) else measured + end for key, end in ends.items()}
    return {"slope": row["rebuilt_sigmoid"], **around}


def _left(found: Found) -> Figure:
    grid = [row["k"] for row in found.of("tokens")]
    k, axis = grid[len(grid) // 2], found.group.axis
    by_point = found.of("point", k=k)
    rows = [
        {"series": series, "x": row["x"], "share": 1 - (row[name] or 0.0)}
        for series, name in (("misses, 1 − RBP", "rbp"), ("not learned yet", "learned"), ("may change yet", "settled"))
        for row in by_point
        if name != "settled" or row[name] < 1
    ]
    y = Scale("share", "share of tokens", log=True, form="%")
    return drawn(
        _LEFT.table(f"Misses, and what is not learned yet, k = {k}", rows, axis=axis),
        Chart(scale_of(axis, "x"), y, (line(), points()), "series", "share"),
        f"The misses of {found.about} at k = {k}, tokens that are not hits for good, and that change yet.",
        "Between the first two: hits that are lost again later. At the last point nothing comes later, so they meet.",
        from_shares(found.group, [k]),
    )


def _carriers(found: Found) -> Figure:
    classes = [*found.of("carrier", by="history"), *found.of("carrier", by="position")]
    rows = [row | {"name": f"{row['by']} {row['name']}"} for row in classes]
    largest = max(rows, key=lambda row: row["share"] or 0.0)
    (slope,) = found.of("slope_now")
    x = Scale("share", "share of the slope", zero=True, form="%")
    y = Scale("name", "tokens", names=tuple(row["name"] for row in rows))
    return drawn(
        columns.CARRIERS.table("Who carries the slope", rows, axis=found.group.axis),
        Chart(x, y, _with_bars("share")),
        f"Of {found.about}, {largest['name']} carries most of the slope between the last two points.",
        "Points: share of the slope between the last two points; bars: 95 %, documents. History: hits before both.",
        Origin(slope["sql"], tuple(run.run_id for run in found.runs[-2:])),
    )


def _order(found: Found) -> Figure:
    pairs = sorted(found.of("pair"), key=lambda row: -(row["rho"] or 0.0))[:_MOST_PAIRS]
    rows = [row | {"series": "measured", "pair": row["name"]} for row in pairs]
    noise = {"series": "one order, seen with noise", "rho_lo": None, "rho_hi": None}
    rows += [row | noise | {"rho": row["ceiling"]} for row in rows if row["ceiling"]]
    names = tuple(row["name"] for row in pairs)
    x, y = Scale("rho", "ρ of times", zero=True), Scale("pair", "trainings", names=names)
    return drawn(
        _ORDER.table("Whether trainings learn in the same order", rows, axis=found.group.axis),
        Chart(x, y, _with_bars("rho"), "series", "ρ", height=120 + 36 * len(names)),
        f"Correlations of the times of tokens on {found.group.first.dataset} between trainings, and what noise would "
        "leave.",
        "Spearman's ρ of the times of the same tokens; bars: 95 %, documents. Noise: by every other point of each.",
        _tokens(found),
    )
