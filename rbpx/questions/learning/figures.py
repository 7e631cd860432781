"""Draws the spectrum of times, the slope rebuilt, misses beside what is not learned, and who carries the slope."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from rbpx.display.chart.figure import Chart, Figure, Origin, Scale, Undrawn, bars, drawn, line, points, scale_of
from rbpx.display.view import View, magnitude, share, text, with_ends
from rbpx.display.vocabulary import decimals, short
from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.learning.curves import FEWEST
from rbpx.questions.learning import columns
from rbpx.questions.learning.analysis import Learning, Result
from rbpx.questions.learning.losses import Bin, Gap, Losses
from rbpx.questions.learning.orders import Orders
from rbpx.runs.origin import from_shares, spelled

_Slope = tuple[str, float, Estimate]
_Left = tuple[str, float, float]
_SLOPE: Final = View[_Slope](
    "slope",
    text("slope", "series", lambda row: row[0]),
    magnitude("{x}", "x", lambda row: row[1]),
    with_ends("nats per unit of ln {x}", "slope", lambda row: row[2], decimals(3)),
)
_SPECTRUM: Final = View[tuple[str, Bin]](
    "spectrum",
    text("time", "time", lambda row: row[0]),
    with_ends("nats", "nats", lambda row: row[1].nats, decimals(4)),
)
_LEFT: Final = View[_Left](
    "left",
    text("share", "series", lambda row: row[0]),
    magnitude("{x}", "x", lambda row: row[1]),
    share("of tokens", "share", lambda row: row[2]),
)
_ORDER: Final = View[tuple[str, str, Estimate]](
    "order",
    text("ρ", "series", lambda row: row[0]),
    text("trainings", "pair", lambda row: row[1]),
    with_ends("of times", "rho", lambda row: row[2], decimals(3)),
)
_MOST_PAIRS: Final = 12


def figures(results: Sequence[Result], fit_ids: Sequence[str]) -> list[Figure | Undrawn]:
    """The figures of each group, and of the orders on each text; where there are several, each says whose it is."""
    if len(results) == 1:
        return list(_figures(results[0]))
    return [
        replace(each, name=f"{each.name}-{at}", title=f"{each.title}: {_about(result)}")
        for at, result in enumerate(results)
        for each in _figures(result)
    ]


def _about(result: Result) -> str:
    return result.about if isinstance(result, Orders) else result.group.title


def _figures(result: Result) -> Iterator[Figure | Undrawn]:
    if isinstance(result, Orders):
        yield _order(result)
        return
    if result.losses is None:
        why = f"Sigmoids need {FEWEST} points, and there are {len(result.runs)}: measure more (model.revision=all)."
        yield Undrawn(_SPECTRUM.name, _TITLES[_SPECTRUM.name], why)
    else:
        yield _spectrum(result, result.losses)
        yield _slopes(result, result.losses)
    if result.times:
        yield _left(result)
    if result.carriers is not None:
        yield _carriers(result)


_TITLES: Final = {
    "spectrum": "When cross-entropy falls, by the time of each token",
    "slope": "The slope of cross-entropy, rebuilt at points left out",
    "left": "Misses, and what is not learned yet",
    "carriers": "Who carries the slope",
    "order": "Whether trainings learn in the same order",
}


def _origin(result: Learning) -> Origin:
    """The tokens of the last run, with their losses."""
    sql = spelled("learning_tokens", run_id=result.runs[-1].run_id, ties=result.group.ties.value)
    return Origin(sql, tuple(run.run_id for run in result.runs))


def _spectrum(result: Learning, losses: Losses) -> Figure:
    rows = [(_between(each), each) for each in losses.bins]
    names = tuple(name for name, _ in rows)
    largest = max(losses.bins, key=lambda each: each.nats.value or 0.0)
    x = result.axis.value
    return drawn(
        _SPECTRUM.table(_TITLES["spectrum"], rows, axis=result.axis),
        Chart(Scale("nats", "nats a token", zero=True), Scale("time", x, names=names),
              (bars("nats_lo", "nats_hi"), points(look={"size": 90}))),
        f"Most of the fall of cross-entropy of {result.group.title} is of tokens whose time is {_between(largest)}.",
        f"What the sigmoids of tokens fall, by the {x} at which half of that is done; bars: 95 %, documents.",
        _origin(result),
    )  # fmt: skip


def _between(each: Bin) -> str:
    if each.lo is None:
        return f"before {short(each.hi)}"
    return f"after {short(each.lo)}" if each.hi is None else f"{short(each.lo)} to {short(each.hi)}"


def _slopes(result: Learning, losses: Losses) -> Figure:
    measured = {(gap.lo * gap.hi) ** 0.5: gap.measured for gap in losses.gaps}
    rows: list[_Slope] = [("measured", middle, slope) for middle, slope in sorted(measured.items())]
    for side, name in (("hi", "sigmoids, to the point left out"), ("lo", "sigmoids, from the point left out")):
        rows += [
            (name, (gap.lo * gap.hi) ** 0.5, _of_sigmoids(gap)) for gap in losses.gaps if gap.out == vars(gap)[side]
        ]
    r2 = [world.r2["sigmoid"].value for world in losses.worlds]
    told = " and ".join("–" if each is None else f"{each:.2f}" for each in r2)
    x = result.axis.value
    return drawn(
        _SLOPE.table(_TITLES["slope"], rows, axis=result.axis),
        Chart(
            scale_of(result.axis, "x"),
            Scale("slope", f"nats per unit of ln {x}", zero=True),
            (line(), bars("slope_lo", "slope_hi"), points()),
            "series",
            "slope",
        ),
        f"The slope of cross-entropy of {result.group.title}, and that of single sigmoids at points they were not "
        f"fitted to: R² = {told}, measured and in a drawn world without steps.",
        f"Slopes between neighbouring {x}, one of which the fits left out; bars: 95 %, documents, of the sigmoids' "
        "error.",
        _origin(result),
    )


def _of_sigmoids(gap: Gap) -> Estimate:
    """Their slope, with the interval of its error about what is measured."""
    rebuilt, measured, error = gap.rebuilt["sigmoid"], gap.measured.value, gap.error
    if measured is None or error.ends is None:
        return Estimate(rebuilt)
    return Estimate(rebuilt, measured + error.ends[0], measured + error.ends[1])


def _left(result: Learning) -> Figure:
    times = result.times[len(result.times) // 2]
    rows: list[_Left] = [("misses, 1 − RBP", at.x, 1 - at.rbp) for at in times.points]
    rows += [("not learned yet", at.x, 1 - (at.learned.value or 0.0)) for at in times.points]
    rows += [("may change yet", at.x, 1 - at.settled) for at in times.points if at.settled < 1]
    chart = Chart(
        scale_of(result.axis, "x"), Scale("share", "share of tokens", log=True, form="%"), (line(), points()), "series",
        "share",
    )  # fmt: skip
    return drawn(
        _LEFT.table(f"{_TITLES['left']}, k = {times.k}", rows, axis=result.axis),
        chart,
        f"The misses of {result.group.title} at k = {times.k}, tokens that are not hits for good, and that change yet.",
        "Between the first two: hits that are lost again later. At the last point nothing comes later, so they meet.",
        from_shares(result.group, [times.k]),
    )


def _carriers(result: Learning) -> Figure:
    assert result.carriers is not None
    chosen = [each for each in result.carriers.classes if each.by in ("history", "position")]
    rows = [columns.Named(each, f"{each.by} {each.name}") for each in chosen]
    names = tuple(row.name for row in rows)
    largest = max(rows, key=lambda row: row.of.share.value or 0.0)
    return drawn(
        columns.CARRIERS.table(_TITLES["carriers"], rows, axis=result.axis),
        Chart(Scale("share", "share of the slope", zero=True, form="%"), Scale("name", "tokens", names=names),
              (bars("share_lo", "share_hi"), points(look={"size": 90}))),
        f"Of {result.group.title}, {largest.name} carries most of the slope between the last two points.",
        "Points: share of the slope between the last two points; bars: 95 %, documents. History: hits before both.",
        Origin(result.sql, tuple(run.run_id for run in result.runs[-2:])),
    )  # fmt: skip


def _order(result: Orders) -> Figure:
    pairs = sorted(result.pairs, key=lambda pair: -(pair.rho.value or 0.0))[:_MOST_PAIRS]
    rows = [("measured", pair.name, pair.rho) for pair in pairs]
    rows += [("one order, seen with noise", pair.name, Estimate(pair.ceiling)) for pair in pairs if pair.ceiling]
    group, names = result.group, tuple(pair.name for pair in pairs)
    return drawn(
        _ORDER.table(_TITLES["order"], rows, axis=group.axis),
        Chart(
            Scale("rho", "ρ of times", zero=True),
            Scale("pair", "trainings", names=names),
            (bars("rho_lo", "rho_hi"), points(look={"size": 90})),
            "series",
            "ρ",
            height=120 + 36 * len(names),
        ),
        f"Correlations of the times of tokens on {group.first.dataset} between trainings, and what noise would leave.",
        "Spearman's ρ of the times of the same tokens; bars: 95 %, documents. Noise: by every other point of each.",
        Origin(
            spelled("learning_tokens", run_id=group.runs[-1].run_ids[0], ties=group.ties.value), tuple(group.run_ids)
        ),
    )
