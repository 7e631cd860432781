"""Shows forecasts: a table for each registration, of what was predicted and what came; how often intervals held."""

from collections.abc import Iterator, Sequence
from typing import Final

from rbpx.display.section import interval_of
from rbpx.display.view import Table, View, decimal, error, magnitude, text, with_ends, written
from rbpx.display.vocabulary import law_title, short, signed
from rbpx.errors import number_of
from rbpx.laws.intervals.estimate import Estimate
from rbpx.questions.forecasts.analysis import Forecast, Forecasts, Outcome, analyse, keep
from rbpx.questions.question import of_parts, one_by_one
from rbpx.runs.select.sizes import select_alike
from rbpx.store.store import Record


def tables(results: Sequence[Forecasts]) -> list[Table]:
    """The forecasts, a table for each registration."""
    registered: dict[str, list[Forecast]] = {}
    for forecast in (forecast for result in results for forecast in result.forecasts):
        said = forecast.said
        about = f"{said['forecast_id']}, {_when(said)}: {said['family']} on {said['dataset']}"
        registered.setdefault(about, []).append(forecast)
    note = "The id stands for all that was predicted."
    return [FORECASTS.table("Forecasts", own, about, note=note) for about, own in registered.items()]


def _when(said: Record) -> str:
    """When a forecast says that it was registered; those of early versions do not say it."""
    at = said["registered_at"]
    return "at a time that it does not say" if at is None else f"{at:%Y-%m-%d %H:%M}"


@one_by_one
def sentences(result: Forecasts) -> Iterator[str]:
    """How many intervals held, of how many models."""
    scored = result.scored
    if not scored:
        yield "No model that was forecast has been measured yet."
        return
    held = sum(forecast.outcome is Outcome.inside for forecast, _ in scored)
    yield (
        f"{held} of {number_of(len(scored), 'interval')} of {number_of(result.n_models, 'model')} held: "
        f"{interval_of(result.coverage, 2)}, where 0.95 is meant and each model counts once, as its quantities err "
        f"together. The mean interval score is {short(result.mean_score)} in ln y."
    )


FORECASTS: Final = View[Forecast](
    "forecasts",
    text("quantity", "law", lambda each: law_title(each.said["law"], each.said["k"])),
    magnitude("S", "S", lambda each: each.said["S"]),
    magnitude("D", "D", lambda each: each.said["D"], spare=2),
    with_ends("predicted", "y", lambda each: Estimate(each.said["y"], each.said["lo"], each.said["hi"])),
    decimal("measured", "measured", lambda each: each.measured),
    error("error", "error", lambda each: None if each.score is None else each.score.error, spare=1),
    written(
        "in sd", "in_sd", lambda each: None if each.score is None else each.score.in_sd,
        lambda value: signed(value, 2), "(ln measured − ln predicted) over the sd that the interval stands for",
    ),
    text(
        "outcome", "outcome", lambda each: each.outcome.value.replace("_", " "),
        "where the measured value lies; too late: it was measured before the registration, so it does not count",
    ),
)  # fmt: skip
QUESTION = of_parts(analyse, keep, tables, sentences, together="all", select=select_alike)
