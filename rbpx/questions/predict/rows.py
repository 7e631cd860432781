"""Rows of predictions, and the columns and words that are made of them, whatever is predicted from."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from rbpx.display.view import Cell, Column, Table, View, magnitude, share, state, text, with_ends, written
from rbpx.display.vocabulary import UNKNOWN, headline, law_title, percent, rough, short, significant, spoken
from rbpx.laws.intervals.estimate import LEVEL, Estimate, by_name
from rbpx.laws.power.parameters import FixedParameter
from rbpx.laws.prediction.influence import Influence
from rbpx.laws.prediction.verdict import Backtest
from rbpx.status import Status, first_of
from rbpx.store.store import Record

_VALUES: Final = ("y", "lo", "hi")
_HELD: Final = ("n_inside", "n_intervals")
_WIDENED: Final = 1.05  # times as wide: what is less is not said
_OF_ANSWERS: Final = ("widened", "remarks", "moved", "moved_by", "weights")


def prediction(told: Record, reasons: Iterable[Status], **own: Any) -> Record:
    """One prediction: what a new model would show, and every status that holds for it.

    Of the combined answer alone (`own`) it is known by what factor backtests widened the interval, in ln y; what
    holds that is no reason to doubt it but says why its interval is wide; how far the answer moves at most with one run
    left out, and which; the weights of the forms; and of how many answers the intervals hold at once, if that is asked.

    Args:
        told: where, the factor by which that lies outside what was measured, and the value with the 95 % interval of
            one new model (`values`).
        reasons: the statuses, in order.
        own: what is known of this one beside.
    """
    of = list(reasons)
    row = {"kind": "prediction", **told, **dict.fromkeys(_OF_ANSWERS), **own}
    return row | {"status": first_of(of), "reasons": of}


def backtest(test: Backtest) -> Record:
    """One backtest: a model, predicted from others, and whether the interval of that contains what was measured."""
    row = {"kind": "backtest", "n_fitted": test.n_fitted, **test.predicted.record()}
    return row | {"measured": test.measured, "error": test.error, "held": test.is_inside}


def values(y: Estimate) -> Record:
    """A value and its interval, as rows have them."""
    return dict(zip(_VALUES, (y.value, y.lo, y.hi), strict=True))


def left_out(n_targets: int, joint: bool) -> float:
    """How much each interval leaves out; joint ones hold at once in 95 %, whatever goes together (Bonferroni)."""
    return (1 - LEVEL) / (n_targets if joint else 1)


def value_in(row: Record) -> Estimate:
    """The value of a row with its interval."""
    return Estimate(*(row.get(name) for name in _VALUES))


def moves(moved: Influence | None, labels: Sequence[str], sign: int = 1) -> Record:
    """How far an answer moves at most with one run left out, and which run that is."""
    return {} if moved is None else {"moved": sign * moved.share, "moved_by": labels[moved.by]}


def constants(
    pinned: Sequence[FixedParameter],
    now: Sequence[Record],
    smallest: float,
    refit: Callable[[dict[str, float]], Sequence[Record] | None],
) -> Iterator[Record]:
    """For each given constant the answer with it, without any, and at the ends of the interval that the points give.

    There is no answer with an E above the smallest y, which no law can have.

    Args:
        pinned: the constants.
        now: the answers with them.
        smallest: the smallest |y|.
        refit: the answers with other constants given; None where there are none.
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


def tested(backtests: Iterable[Record]) -> Record:
    """The mean of |error| over backtests, and how many of how many intervals held; None of none."""
    rows = list(backtests)
    held = [row["held"] for row in rows if row["held"] is not None]
    inside = dict(zip(_HELD, (sum(held), len(held)) if held else (None, None), strict=True))
    errors = [abs(row["error"]) for row in rows if row["error"] is not None]
    return {"mean_error": float(np.mean(errors)) if errors else None, **inside}


def said_of_moves(answers: Iterable[Sequence[Record]]) -> Iterator[str]:
    """How far the answers of each law move with one run left out, where they are farthest out."""
    farthest = [max(rows, key=lambda row: float(row["beyond"])) for rows in answers if rows]
    moving = [row for row in farthest if row["moved"]]
    if moving:
        said = (f"{title_of(row)} {percent(row['moved'])} (without {row['moved_by']})" for row in moving)
        at = max(row["S"] for row in moving)
        yield f"With one run left out the predictions at {at:.3g} move by at most: {', '.join(said)}."


def title_of(row: Record) -> str:
    """The name of the law of a row."""
    return law_title(row["law"], row["k"])


def said_of_answer(answers: Iterable[Record], subject: Callable[[Record], str] | None = None) -> Iterator[str]:
    """The first prediction of cross-entropy, else of another law: how far to trust it, and how its backtests did.

    Args:
        answers: rows of answers, each with what was `tested`.
        subject: what is predicted where; the law at its size, and its tokens where it has these.
    """
    rows = sorted(answers, key=lambda row: (row.get("y") is None, *headline(row["law"], row["k"])))
    if not rows:
        return
    row, status = rows[0], Status(rows[0]["status"])
    word, of = status.label, row["n_intervals"]
    if row["kind"] == "none":
        yield f"No law of {title_of(row)} here ({word}), so nothing is predicted."
        return
    what = (subject or _at_size)(row)
    if row["y"] is None:
        yield f"{what} cannot be predicted ({word})."
        return
    trust = "no check objects" if status is Status.ok else f"not to be relied on ({word})"
    if status is Status.beyond:
        trust = f"too far out to rely on, {short(row['beyond'])} times beyond what was measured"
    tests = "too few runs for a backtest"
    if row["mean_error"] is not None:
        held = f", {row['n_inside']} of {of} intervals held" if of else ""
        tests = f"backtests were off by {row['mean_error']:.1%} on average{held}"
    yield f"{what} will be {_between(row)}; {trust}; {tests}."


def said_without(rows: Iterable[Record], n: int) -> str:
    """What the first of the answers is without n largest runs, the end of a sentence; empty where there is none."""
    row = next((row for row in rows if row["y"] is not None), None)
    them = "it" if n == 1 else "them"
    return "" if row is None else f"; without {them} a{_at_size(row)[1:]} will be {_between(row)}"


def _between(row: Record) -> str:
    at_once = f" for all {row['n_joint']} points at once" if row.get("n_joint") else ""
    if (times := row.get("widened") or 1.0) >= _WIDENED:
        at_once += f", widened {rough(times)} times by its backtests"
    between = "no interval" if row["lo"] is None else f"95 %{at_once}: {short(row['lo'])} to {short(row['hi'])}"
    return f"{short(row['y'])} ({between})"


def _at_size(row: Record) -> str:
    tokens = f" and {spoken(row['D'], 3)} tokens" if row.get("D") else ""
    return f"At {spoken(row['S'], 3)} parameters{tokens} {title_of(row)}"


def _inside(row: Record) -> Cell:
    n, of = (row[name] for name in _HELD)
    return Cell((UNKNOWN if of is None else f"{n}/{of}",), (n, of))


LAW: Final[Column[Record]] = text("law", "law", title_of)
TESTED: Final[Sequence[Column[Record]]] = (
    share("backtests", "mean_error", means="mean |error| of predictions of measured models from smaller ones"),
    Column("inside", _HELD, _inside, "how many 95 % intervals of backtests contain the measured value", 1),
)
S: Final[Column[Record]] = magnitude("S", "S")


def predicted(how: Callable[[float | None], str], key: str = "y") -> Sequence[Column[Record]]:
    """What a model would show."""
    return with_ends("predicted", key, value_in, how)


def prediction_tables(
    title: str, rows: Iterable[Record], answers: Sequence[Record], about: str, forms: Sequence[str]
) -> Iterator[Table]:
    """The answers, each with how its backtests did; then what they are made of, and what methods say beside them.

    Args:
        title: of the answers.
        rows: predictions, the answers among them.
        answers: those of them that are the answer, with what was `tested`.
        about: the group.
        forms: those that have weights.
    """

    def weighted(row: Record) -> str | None:
        known = row.get("weights") or {}
        return "/".join(f"{100 * known[form]:.0f}" for form in forms if form in known) or None

    D: Column[Record] = magnitude("D", "D")
    at = (S, D) if any(row.get("D") for row in answers) else (S,)
    yield View("predictions", LAW, at, predicted(short), TESTED, STATUS).table(title, answers, about)
    yield View(
        "methods",
        LAW,
        text("by", "method"),
        at,
        predicted(short),
        magnitude("outside", "beyond", means="how many times outside what was measured", spare=3),
        text("weights", "weights", weighted, f"of {', '.join(forms)}, in percent", spare=2),
        STATUS,
    ).table("Predictions by each method", rows, about, brief=False)


STATUS: Final[Column[Record]] = state(lambda row: Status(row["status"]))  # the others are those of many rows
GIVEN: Final = View[Record](
    "given",
    text("law", "law", title_of, spare=1),
    text("constant", "constant"),
    text(
        "is", "given", means="as typed, free, or an end of its interval where free; none with an E above the smallest y"
    ),
    with_ends("value", "at", None, partial(significant, digits=4), ends_spare=2),
    written(
        "p", "p", None, partial(significant, digits=2), "of the given value; below 0.05 the points speak against it"
    ),
    S,
    magnitude("D", "D", spare=3),
    predicted(short),
)


def given_table(rows: Sequence[Record], about: str) -> list[Table]:
    """What the given constants do, where any are given."""
    return [GIVEN.table("What the given constants do", rows, about)] if rows else []
