"""What is said of ladders, and whether it holds a new model."""

import math
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np

from rbpx.laws.power.law import fit_power_law
from rbpx.laws.prediction.prediction import average_forms, score
from rbpx.laws.prediction.verdict import backtest, backtest_averaged, judge, judge_averaged
from rbpx.status import Status
from tests.support.worlds import World

ROWS: Final = ("law", "combined")
TESTS: Final = {
    *(Status.bends, Status.backtest_failed, Status.intervals_missed),
    *(Status.one_run, Status.uneven_scatter),
}


@dataclass(frozen=True)
class Judged:
    """What is said of one ladder.

    Attributes:
        is_inside: whether the interval of the prediction over forms holds the new model.
        error: of its median, |ln y|.
        interval_score: of the interval (`rbpx.laws.prediction.prediction.score`); NaN where it is open.
        statuses: of each row.
    """

    is_inside: bool
    error: float
    interval_score: float
    statuses: dict[str, tuple[Status, ...]]

    def is_doubted(self, row: str) -> bool:
        """Whether a test of the row found something."""
        return not TESTS.isdisjoint(self.statuses[row])


def judged(world: World, n: int, scatter: float, rng: np.random.Generator, knows_tokens: bool = False) -> Judged:
    """Draw a ladder; fit, predict and judge it as a group of runs is."""
    S, y = (column.tolist() for column in world.draw(n, scatter, rng))
    return judged_ladder(S[:-1], y[:-1], S[-1], y[-1], world.tokens_of(n) if knows_tokens else None)


def judged_ladder(
    S: Sequence[float], y: Sequence[float], S_new: float, y_new: float, tokens: Sequence[float] | None = None
) -> Judged:
    """Fit, predict and judge a ladder as a group of runs is, and compare with a new model."""
    of_law = backtest(lambda m: fit_power_law(S[:m], y[:m]), S, y)
    answers, over = average_forms(S, y, [S_new]), backtest_averaged(S, y)
    answer = answers[0]
    reasons = judge(fit_power_law(S, y), of_law, None, tokens)
    scored = score(answer.y, answer.lo or math.nan, answer.hi or math.nan, y_new)
    return Judged(
        is_inside=answer.lo is not None and answer.hi is not None and answer.lo <= y_new <= answer.hi,
        error=abs(math.log(answer.y / y_new)),
        interval_score=math.nan if scored is None else scored.interval_score,
        statuses={"law": reasons, "combined": judge_averaged(reasons, answer, S, y, over)},
    )


@cache
def ladders(world: World, n: int, scatter: float, draws: int, knows_tokens: bool = False) -> list[Judged]:
    """Draw and judge ladders, always the same ones."""
    rng = np.random.default_rng([zlib.crc32(world.name.encode()), n, round(1000 * scatter)])
    return [judged(world, n, scatter, rng, knows_tokens) for _ in range(draws)]


def share(of: Iterable[bool]) -> float:
    """The share that holds; NaN without any."""
    values = list(of)
    return sum(values) / len(values) if values else math.nan
