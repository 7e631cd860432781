"""The rows for programs: one for each number that was found; nothing is a law, so nothing enters `fits`."""

from collections.abc import Iterator
from typing import Any

from rbpx.laws.intervals.estimate import by_name, flat
from rbpx.laws.trajectory import History
from rbpx.questions.learning.analysis import Learning, Result
from rbpx.questions.learning.forecast import Forecast
from rbpx.questions.learning.hits import HitTimes
from rbpx.questions.learning.improvements import Improvements
from rbpx.questions.learning.losses import Losses
from rbpx.questions.learning.orders import Orders
from rbpx.runs.fits import alike
from rbpx.store.store import Record, Store


def keep(store: Store, result: Result) -> list[Record]:
    """A row for each group, token id, kind, bin, slope, world, point, tail, carrier, forecast, pair, factor."""
    of = result if isinstance(result, Orders) else result.group
    names = {**of.names(), "axis": result.group.axis.value}
    rows = _orders(result) if isinstance(result, Orders) else _learning(result)
    return alike([{"kind": kind, **names, **row} for kind, row in rows])


_Rows = Iterator[tuple[str, dict[str, Any]]]


def _learning(result: Learning) -> _Rows:
    yield (
        "group",
        {
            "n_points": len(result.runs),
            "n_tokens": len(result.tokens.doc_M),
            "n_left_out": result.tokens.n_left_out,
            "status": result.status.value,
            "run_ids": result.group.run_ids,
        },
    )
    if result.improvements is not None:
        yield from _improvements(result.improvements)
    if result.losses is not None:
        yield from _losses(result.losses)
    for times in result.times:
        yield from _times(result, times)
    if result.carriers is not None:
        carried = result.carriers
        about = {"lo": carried.lo, "hi": carried.hi, **by_name(slope=carried.slope), "sql": result.sql}
        yield "slope_now", about
        for each in carried.classes:
            of_token = {"text": result.texts.get(each.number or 0)} if each.by == "token" else {}
            yield "carrier", {**flat(vars(each)), **of_token}
        for chosen in carried.chosen:
            yield "chosen", vars(chosen)
    if result.forecast is not None:
        yield from _forecast(result, result.forecast)


def _improvements(of: Improvements) -> _Rows:
    """A row for each token id, and one for all rarer ones, so that shares add up to 1."""
    for token in of.tokens:
        yield "token", {"k": of.k, **flat(vars(token)), "trend": token.trend.value, "n_types": 1}
    if of.n_rarer:
        yield "rarer", {"k": of.k, "share": of.rarer_share, "n_types": of.n_rarer}


def _losses(losses: Losses) -> _Rows:
    for share in losses.kinds:
        yield (
            "kind",
            {**{name: each for name, each in flat(vars(share)).items() if name != "kind"}, "name": share.kind.name},
        )
    for each in losses.bins:
        yield "bin", flat(vars(each))
    for gap in losses.gaps:
        rebuilt = {f"rebuilt_{curve}": value for curve, value in gap.rebuilt.items()}
        around = {"lo": gap.lo, "hi": gap.hi, "out": gap.out}
        yield "slope", {**around, **by_name(measured=gap.measured), **rebuilt, **by_name(error=gap.error)}
    for world in losses.worlds:
        of_curves = {f"r2_{curve}": found for curve, found in world.r2.items()}
        of_curves |= {f"mse_{curve}": found for curve, found in world.mse.items()}
        yield "world", {"name": world.name, "in_fit_r2": world.in_fit_r2, **by_name(**of_curves, beats=world.beats)}


def _times(result: Learning, times: HitTimes) -> _Rows:
    for point in times.points:
        yield "point", {"k": times.k, **flat(vars(point))}
    shares = {each.name: times.shares[each] for each in History}
    yield "tokens", {"k": times.k, "n_tokens": len(times.cell_M), **shares, "half_settled_at": times.half_settled}
    for token in times.ids:
        own = {**vars(token), "history": token.history.name, "text": result.texts.get(token.token_id)}
        yield "history", {"k": times.k, **own}
    yield "tail", {"k": times.k, **shares, **flat(vars(times.tail)), "status": times.tail.status.value}


def _forecast(result: Learning, found: Forecast) -> _Rows:
    ends = {"taught_lo": found.taught[0], "taught_hi": found.taught[1], "judged_lo": found.judged[0]}
    ends |= {"judged_hi": found.judged[1], "n_misses": found.n_misses, "became": found.became}
    yield "forecast", {"k": found.k, **ends, "best": found.best, "expected": found.expected}
    for each in found.learners:
        scores = by_name(**each.judgement, brier=each.brier, gain=each.gain)
        yield "learner", {"k": found.k, "name": each.name, **scores, "found": each.found, "status": each.status.value}
    for reached in found.reached:
        yield "reached", {"k": found.k, **flat(vars(reached))}
    for token in found.next:
        yield "next", {"k": found.k, **flat(vars(token)), "text": result.texts.get(token.token_id)}


def _orders(result: Orders) -> _Rows:
    for pair in result.pairs:
        row = {name: each for name, each in flat(vars(pair)).items() if name != "frequency"}
        one, other = pair.frequency
        yield "pair", {"k": result.k, **row, "frequency_one": one, "frequency_other": other}
    if result.factors is not None:
        for at, share in enumerate(result.factors.share_F.tolist()):
            yield "factor", {"k": result.k, "n": at + 1, "share": share, "n_tokens": result.n_tokens}
        for title, loading_F in zip(result.titles, result.factors.loading_NF.tolist(), strict=True):
            yield "loading", {"k": result.k, "one": title, "loadings": loading_F}
