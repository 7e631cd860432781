"""Forecasts on a terminal: what was predicted, what came, and how often the intervals held."""

from collections.abc import Sequence
from datetime import timedelta

from rbpx.analyses.forecasts.analysis import Forecast, Forecasts, Outcome
from rbpx.counts import number_of
from rbpx.display.names import law_name
from rbpx.display.numbers import UNKNOWN, number, percent, short, span
from rbpx.display.tables import console, grid, put
from rbpx.store.store import Record

_WORDS = {
    Outcome.waiting: "waits",
    Outcome.inside: "held",
    Outcome.outside: "missed",
    Outcome.too_late: "too late",
    Outcome.not_known: "not known",
}


def show(results: Sequence[Forecasts]) -> None:
    """Print the forecasts, a part for each registration, and their coverage."""
    screen = console()
    for each in results:
        columns = ["quantity", "S", "D", "predicted", "95 %", "measured", "error", "in sd", "interval"]
        table = grid("Forecasts", columns, spare=("error", "D"))
        ids = list(dict.fromkeys(forecast.said["forecast_id"] for forecast in each.forecasts))
        for forecast_id in ids:
            own = [forecast for forecast in each.forecasts if forecast.said["forecast_id"] == forecast_id]
            said = own[0].said
            heading = f"{forecast_id}, {_when(said)}: {said['family']} on {said['dataset']}"
            table.add_part(heading, [_row(forecast) for forecast in own])
        put(screen, table)
        screen.print(_coverage(each), soft_wrap=True)
    screen.print(
        "In sd: (ln measured - ln predicted) over the sd that the interval stands for. Too late: measured before the "
        "forecast was registered, so it does not count. The id stands for all that was predicted.",
        soft_wrap=True,
    )


def _when(said: Record) -> str:
    """When a forecast says that it was registered, and since when it is here where that is a day later or more."""
    registered, seen = said["registered_at"], said["seen_at"]
    is_old = seen is None or seen - registered < timedelta(days=1)
    return f"{registered:%Y-%m-%d %H:%M}" + ("" if is_old else f" by its own word, here since {seen:%Y-%m-%d}")


def _row(forecast: Forecast) -> list[str]:
    said, score = forecast.said, forecast.score
    return [
        f" {law_name(said['law'], said['k'])}",
        short(said["S"]),
        UNKNOWN if said["D"] is None else short(said["D"]),
        number(said["y"]),
        span(said["lo"], said["hi"]),
        number(forecast.measured),
        percent(None if score is None else score.error),
        UNKNOWN if score is None else f"{score.in_sd:+.2f}",
        _WORDS[forecast.outcome],
    ]


def _coverage(results: Forecasts) -> str:
    scored = results.scored
    if not scored:
        return "No model that was forecast has been measured yet."
    held = sum(forecast.outcome is Outcome.inside for forecast, _ in scored)
    ends = span(results.coverage.lo, results.coverage.hi, 2)
    mean = sum(score.interval_score for _, score in scored) / len(scored)
    return (
        f"Held: {held} of {number_of(len(scored), 'interval')} of {number_of(results.n_models, 'model')}, "
        f"{number(results.coverage.value, 2)} ({ends}, each model once, as its quantities err together); meant: 0.95. "
        f"Mean interval score {short(mean)} in ln y."
    )
