"""What is said of drawn ladders, by the statuses of today and by the tests that they replaced."""

import math
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np

from rbpx.laws.forms.candidates import Shape
from rbpx.laws.intervals.lack_of_fit import curvature, runs_p
from rbpx.laws.power.law import fit_power_law
from rbpx.laws.prediction.prediction import average_forms
from rbpx.laws.prediction.verdict import Backtest, backtest, backtest_over_forms, judge, judge_over_forms
from rbpx.status import Status
from tests.support.worlds import LEVEL, World

ROWS: Final = ("law", "combined")
TESTS: Final = {
    *(Status.not_monotone, Status.bends, Status.backtest_failed, Status.intervals_missed),
    *(Status.one_run, Status.uneven_scatter),
}
OLD: Final = {  # by row
    "law": ("curvature", "runs", "backtest", "intervals"),
    "combined": ("weight of a bend", "backtest", "intervals"),
}


@dataclass(frozen=True)
class Judged:
    """What is said of one ladder.

    Attributes:
        is_inside: whether the interval of the prediction over forms holds the new model.
        error: of its median, |ln y|.
        statuses: of each row.
        old: the statistics of the tests before, of each row; the larger, the worse.
    """

    is_inside: bool
    error: float
    statuses: dict[str, tuple[Status, ...]]
    old: dict[str, dict[str, float]]

    def is_doubted(self, row: str) -> bool:
        """Whether a test of the row found something."""
        return not TESTS.isdisjoint(self.statuses[row])


def judged(world: World, n: int, scatter: float, rng: np.random.Generator, knows_tokens: bool = False) -> Judged:
    """Draw a ladder; fit, predict and judge it as a group of runs is."""
    drawn_S, drawn_y = (column.tolist() for column in world.draw(n, scatter, rng))
    S, y, S_new, y_new = drawn_S[:-1], drawn_y[:-1], drawn_S[-1], drawn_y[-1]
    of_law = backtest(lambda m: fit_power_law(S[:m], y[:m]), S, y)
    answers, over = average_forms(S, y, [S_new]), backtest_over_forms(S, y)
    assert answers is not None
    answer = answers[0]
    reasons = judge(fit_power_law(S, y), of_law, None, world.tokens_of(n) if knows_tokens else None)
    bent = curvature(np.log(S), np.log(y))
    assert bent.value is not None
    assert bent.hi is not None
    own = {"curvature": abs(bent.value) / (bent.hi - bent.value), "runs": 1 - (runs_p(np.log(S), np.log(y)) or 1.0)}
    return Judged(
        is_inside=answer.lo is not None and answer.hi is not None and answer.lo <= y_new <= answer.hi,
        error=abs(math.log(answer.y / y_new)),
        statuses={"law": reasons, "combined": judge_over_forms(reasons, answer, S, y, over)},
        old={
            "law": own | _old_backtests(y, of_law),
            "combined": {"weight of a bend": answer.weights[Shape.bend]} | _old_backtests(y, over),
        },
    )


def _old_backtests(y: Sequence[float], tests: Sequence[Backtest]) -> dict[str, float]:
    """The error of the largest size where it is no less than the next smaller one's; the share of intervals missed."""
    off = abs(tests[-1].predicted.y - y[-1])
    missed = [test.is_inside is False for test in tests]
    return {"backtest": off / y[-1] * (off >= abs(y[-2] - y[-1])), "intervals": sum(missed) / len(missed) + missed[-1]}


@cache
def ladders(world: World, n: int, scatter: float, draws: int, knows_tokens: bool = False) -> list[Judged]:
    """Draw and judge ladders, always the same ones."""
    rng = np.random.default_rng([zlib.crc32(world.name.encode()), n, round(1000 * scatter)])
    return [judged(world, n, scatter, rng, knows_tokens) for _ in range(draws)]


def share(of: Iterable[bool]) -> float:
    """The share that holds; NaN without any."""
    values = list(of)
    return sum(values) / len(values) if values else math.nan


def cut_of(true: Sequence[Sequence[Judged]], row: str, name: str) -> float:
    """Where a test of before rejects 5 % of the true laws that it rejects most often."""
    return max(float(np.quantile([each.old[row][name] for each in of], 1 - LEVEL)) for of in true)
