"""Rows of predictions and backtests, and what is shown of them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from rbpx.display.table import STATUS, Column, Table, interval, table_of
from rbpx.display.vocabulary import (
    UNKNOWN,
    amount,
    in_digits,
    law_order,
    law_title,
    percent,
    said_of_widening,
    short,
    spoken,
    told_apart,
    widening,
    with_interval,
)
from rbpx.laws.intervals.estimate import LEVEL, Estimate, by_name
from rbpx.laws.power.law import FixedParameter
from rbpx.laws.prediction.influence import Influence
from rbpx.laws.prediction.verdict import Backtest
from rbpx.status import Status, status_keys
from rbpx.store.store import Record

_VALUES: Final = ("y", "lo", "hi")
_HELD: Final = ("n_inside", "n_intervals")
_LOWER: Final = 8.0  # times outside, from where larger runs were lower (docs/explanation/uncertainty.md)
_OF_ANSWERS: Final = ("widened", "remarks", "moved", "moved_by", "weights")


def prediction(at: Record, reasons: Iterable[Status], **own: Any) -> Record:
    """The row of one prediction with its statuses.

    `at` has its place, `beyond` (the factor outside of the measured range) and `values`. Only the averaged one has
    `own` values: `widened`, the factor by which backtests widened its interval in ln y; `remarks`, statuses that are no
    warning; `moved` and `moved_by`, the largest change if one run is left out; `weights` of the forms; and `n_joint`
    intervals that hold together.
    """
    return {"kind": "prediction", **at, **dict.fromkeys(_OF_ANSWERS), **own, **status_keys(reasons)}


def backtest(test: Backtest) -> Record:
    """The row of one backtest."""
    row = {"kind": "backtest", "n_fitted": test.n_fitted, **test.predicted.record()}
    return row | {"measured": test.measured, "error": test.error, "held": test.is_inside}


def values(y: Estimate) -> Record:
    """A value and its interval under the keys y, lo and hi."""
    return dict(zip(_VALUES, (y.value, y.lo, y.hi), strict=True))


def tail_probability(n_targets: int, joint: bool) -> float:
    """The probability outside of each interval; joint ones hold together with 95 % (Bonferroni)."""
    return (1 - LEVEL) / (n_targets if joint else 1)


def value_in(row: Record) -> Estimate:
    """The y of a row with its interval."""
    return Estimate(*(row.get(name) for name in _VALUES))


def influence_keys(moved: Influence | None, labels: Sequence[str], sign: int = 1) -> Record:
    """How far an answer moves at most with one run left out, and which run that is."""
    return {} if moved is None else {"moved": sign * moved.share, "moved_by": labels[moved.by]}


def fixed_parameter_rows(
    pinned: Sequence[FixedParameter],
    now: Sequence[Record],
    smallest: float,
    refit: Callable[[dict[str, float]], Sequence[Record] | None],
) -> Iterator[Record]:
    """For each fixed parameter the predictions with it, without it, and at the ends of its interval if free.

    None is made with an E above the smallest |y|, since no law can have it.
    """
    for each in pinned:
        ends = {"lower end": Estimate(each.free.lo), "upper end": Estimate(each.free.hi)}
        for given, value in ({"given": each.now, "free": each.free} | ends).items():
            if given in ends and value.value is None:
                continue
            held = {each.name: value.value or 0.0} if given in ends else {}
            found = now if given == "given" else None if held.get("E", -np.inf) >= smallest else refit(held)
            about = {"constant": each.name, "given": given, "p": each.p if given == "given" else None}
            for row, y in zip(now, found or [values(Estimate())] * len(now), strict=True):
                at = {"S": row["S"], "D": row.get("D"), "beyond": row["beyond"]} | {name: y[name] for name in _VALUES}
                yield {"kind": "constant", **at, **about, **by_name(at=value)}


def backtest_summary(backtests: Iterable[Record]) -> Record:
    """The mean |error| of backtests, and how many of how many intervals held."""
    rows = list(backtests)
    held = [row["held"] for row in rows if row["held"] is not None]
    inside = dict(zip(_HELD, (sum(held), len(held)) if held else (None, None), strict=True))
    errors = [abs(row["error"]) for row in rows if row["error"] is not None]
    return {"mean_error": float(np.mean(errors)) if errors else None, **inside}


def influence_sentence(answers: Iterable[Sequence[Record]]) -> Iterator[str]:
    """Says for each law how far its farthest prediction moves if one run is left out."""
    farthest = [max(rows, key=lambda row: float(row["beyond"])) for rows in answers if rows]
    moving = [row for row in farthest if row["moved"]]
    if moving:
        said = (f"{title_of(row)} {percent(row['moved'])} (without {row['moved_by']})" for row in moving)
        at = max(row["S"] for row in moving)
        yield f"With one run left out the predictions at {at:.3g} move by at most: {', '.join(said)}."


def title_of(row: Record) -> str:
    """The title of the law of a row."""
    return law_title(row["law"], row["k"])


def answer_sentence(answers: Iterable[Record], subject: Callable[[Record], str] | None = None) -> Iterator[str]:
    """A sentence about the first prediction of cross-entropy, else of another law, and how far to trust it."""
    rows = sorted(answers, key=lambda row: (row.get("y") is None, *law_order(row["law"], row["k"])))
    if not rows:
        return
    row, status = rows[0], Status(rows[0]["status"])
    of = row["n_intervals"]
    if row["kind"] == "none":
        yield f"Nothing is predicted, as {title_of(row)} has no law here. {status.remedy}"
        return
    what = (subject or _at_size)(row)
    if row["y"] is None:
        yield f"{what} cannot be predicted. {status.remedy}"
        return
    doubt = "the points turn round, as no form does" if status is Status.bends else status.finding
    trust = "" if status is Status.ok else f"; do not rely on it: {doubt}"
    if status is Status.ok and of and row["n_inside"] >= 0.8 * of:
        trust = f"; every check passes{' at that width' if said_of_widening(row) else ''}"
    if status is Status.beyond:
        trust = f"; too far out to rely on, {short(row['beyond'])} times beyond what was measured"
    tests = "too few runs for a backtest"
    if row["mean_error"] is not None:
        held = f", {row['n_inside']} of {of} intervals held" if of else ""
        tests = f"backtests were off by {row['mean_error']:.1%} on average{held}"
    lower = row.get("D") and row["law"] == "cross_entropy" and row["beyond"] > _LOWER
    said = "; larger runs have come out some 1 % lower than such predictions" if lower else ""
    yield f"{what} will be {_between(row)}{trust}; {tests}{said}."


def without_largest_clause(rows: Iterable[Record], n: int) -> str:
    """Ends a sentence with the first prediction without the n largest runs; empty where there is none."""
    row = next((row for row in rows if row["y"] is not None), None)
    them = "it" if n == 1 else "them"
    return "" if row is None else f"; without {them} a{_at_size(row)[1:]} will be {_between(row)}"


def _between(row: Record) -> str:
    at_once = f" for all {row['n_joint']} points at once" if row.get("n_joint") else ""
    at_once += said_of_widening(row)
    if row["lo"] is None:
        return f"{short(row['y'])} (no interval)"
    y, lo, hi = told_apart(row["y"], row["lo"], row["hi"])
    return f"{y} (95 %{at_once}: {lo} to {hi})"


def _at_size(row: Record) -> str:
    tokens = f" and {spoken(row['D'], 3)} tokens" if row.get("D") else ""
    tokens += f", {spoken(row['unique_tokens'], 3)} of them unique," if row.get("unique_tokens") else ""
    return f"At {spoken(row['S'], 3)} parameters{tokens} {title_of(row)}"


LAW: Final = Column("law", "law")
TESTED: Final = (
    Column("backtests", "mean_error", ".1%", "mean |error| of predictions of measured models from smaller ones"),
    Column(
        "inside", "inside n_inside n_intervals", "", "how many 95 % intervals of backtests contain the measured value"
    ),
)


def _times(widened: float) -> str:
    return widening(widened) or UNKNOWN


WIDENED: Final = Column(
    "widened", "widened", _times, "times, as backtests missed the intervals without; the status is of the wider one"
)
S: Final = Column("S", "S", amount)
D: Final = Column("D", "D", amount)


def shown(row: Record) -> Record:
    """A row as tables have it: with its title, and of its statuses the first."""
    n, of = (row.get(name) for name in _HELD)
    ends = {"y_lo": row.get("lo"), "y_hi": row.get("hi"), "inside": None if of is None else f"{n}/{of}"}
    return row | ends | {"law": title_of(row), "reasons": None}


def prediction_tables(
    title: str,
    rows: Iterable[Record],
    answers: Sequence[Record],
    about: str,
    forms: Sequence[str],
    asks_method: bool = False,
) -> Iterator[Table]:
    """The averaged predictions (`answers`) with their backtests, then those of forms and methods."""

    def weighted(row: Record) -> Record:
        known = row.get("weights") or {}
        weights = "/".join(f"{100 * known[form]:.0f}" for form in forms if form in known)
        return shown(row) | {"weights": weights or None}

    at = (S, D) if any(row.get("D") for row in answers) else (S,)
    wider = (WIDENED,) if any(map(said_of_widening, answers)) else ()
    columns, first = (LAW, *at, *_PREDICTED, *wider, *TESTED, STATUS), "law S D y widened mean_error status"
    yield table_of("predictions", *columns, first=first).of(title, map(shown, answers), about)
    methods = table_of(
        "methods", LAW, ("by", "method"), *at, *_PREDICTED,
        ("outside", "beyond", short, "how many times outside what was measured"),
        ("weights", "weights", str, f"of {', '.join(forms)}, in percent"), STATUS,
        first="law method S D y status, weights",
    )  # fmt: skip
    yield methods.of("Predictions by each method", map(weighted, rows), about, brief=asks_method)


_PREDICTED: Final = interval("predicted", "y", with_interval)
GIVEN: Final = table_of(
    "given", LAW, ("constant", "constant"),
    ("is", "given", str, "as typed, free, or an end of its interval where free; none with an E above the smallest y"),
    *interval("value", "at", in_digits(4)),
    ("p", "p", in_digits(2), "of the given value; below 0.05 the points speak against it"),
    S, D, *_PREDICTED,
    first="constant given at p S y, law, at_lo, D",
)  # fmt: skip


def fixed_parameter_table(rows: Sequence[Record], about: str) -> list[Table]:
    """The table of fixed parameters, if there are any."""
    return [GIVEN.of("What the given constants do", map(shown, rows), about)] if rows else []
