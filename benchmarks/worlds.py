"""Counts what statuses say: how often they doubt laws that are true, and whether predictions without one hold.

A world (`drawn_worlds.py`) is where ladders are drawn from, and one more model ten times as large. In some the
law is one of the forms of a prediction (`combined`), in others it fails along the axis. Beside the statuses stands an
oracle, who knows what departs. Then what each status of a prediction predicts: on those ladders and others, over 1.2
and 2 decades, with a new model .5 and 1.5 decades larger, and on the public series of `public_series.py`.

    python benchmarks/worlds.py [DRAWS, default 200]
"""

import math
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Final

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.drawn_worlds import FAILING, TRUE, World
from benchmarks.public_series import FEWEST, REFERENCE, series
from rbpx.laws.power.law import fit_power_law
from rbpx.laws.prediction.prediction import average_forms, score
from rbpx.laws.prediction.verdict import backtest, backtest_averaged, judge, judge_averaged
from rbpx.status import Status, in_order

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


def print_false_alarms(draws: int) -> list[Judged]:
    """Print how often true laws are doubted; return those ladders."""
    print(f"| true law, {draws} draws a cell | sizes | row | scatter .003 | .01 | .03 |\n|" + 6 * "---|")
    found: list[Judged] = []
    for world, n in product(TRUE, (4, 5, 7, 10)):
        drawn = [ladders(world, n, scatter, draws) for scatter in (0.003, 0.01, 0.03)]
        found += [each for of in drawn for each in of]
        for row in ROWS if world is TRUE[0] else ROWS[1:]:
            shares = " | ".join(f"{share(each.is_doubted(row) for each in of):.3f}" for of in drawn)
            print(f"| {world.name} | {n} | {row} | {shares} |", flush=True)
    return found


def print_worlds(draws: int) -> list[Judged]:
    """Print what is said in worlds where an axis fails; return all ladders."""
    columns = ["coverage", "no status", "its coverage", "oracle", *ROWS]
    print("\n| world | sizes | scatter | " + " | ".join(columns) + " |\n|" + (3 + len(columns)) * "---|")
    everything: list[Judged] = []
    for world, n, scatter in product(FAILING, (5, 7, 10), (0.003, 0.01)):
        for knows_tokens in (False, True) if world.tokens != (1.0, 1.0) else (False,):
            drawn = ladders(world, n, scatter, draws, knows_tokens)
            everything += drawn
            clear = [each for each in drawn if not _doubts(each)]
            numbers = [share(each.is_inside for each in drawn), len(clear) / draws, share(o.is_inside for o in clear)]
            numbers.append(world.oracle(n, scatter, np.random.default_rng(0)))
            numbers += [share(each.is_doubted(row) for each in drawn) for row in ROWS]
            name = world.name + (", tokens known" if knows_tokens else "")
            print(
                f"| {name} | {n} | {scatter} | " + " | ".join(f"{number:.2f}" for number in numbers) + " |", flush=True
            )
    return everything


def _doubts(ladder: Judged) -> bool:
    return ladder.is_doubted("combined") or Status.tokens in ladder.statuses["combined"]


def varied(worlds: Sequence[World], draws: int) -> list[Judged]:
    """Ladders that span more and less, with new models that are nearer and farther."""
    cells = product(worlds, (5, 7, 10), (0.003, 0.01), (1.2, 2.0), (0.5, 1.5))
    return [
        each
        for world, n, scatter, decades, reach in cells
        for each in ladders(replace(world, decades=decades, reach=reach), n, scatter, draws, world.tokens != (1.0, 1.0))
    ]


def public() -> Iterator[Judged]:
    """Every larger place of every public series, predicted from the smallest ones."""
    for each in series() if REFERENCE.is_dir() else ():
        if len(each.x) >= FEWEST and len(set(each.x)) == len(each.x):
            for m in range(3, len(each.x)):
                for x, y in zip(each.x[m:], each.y[m:], strict=True):
                    yield judged_ladder(each.x[:m], each.y[:m], x, y)


def print_statuses(ladders: dict[str, Sequence[Judged]]) -> None:
    """Print what each status of a prediction predicts: of those with it, then of those without."""
    print("\n| ladders | status | with it | coverage | without | median error | without | Winkler | without |")
    print("|---" * 9 + "|")
    for name, of in ladders.items():
        for status in in_order({status for each in of for status in each.statuses["combined"]}):
            parts = [[each for each in of if (status in each.statuses["combined"]) == has] for has in (True, False)]
            numbers = [f"{share(each.is_inside for each in part):.3f}" for part in parts]
            numbers += [f"{np.median([each.error for each in part]):.4f}" if part else "" for part in parts]
            numbers += [f"{np.nanmean([each.interval_score for each in part]):.3f}" if part else "" for part in parts]
            print(f"| {name} | {status} | {len(parts[0])} | " + " | ".join(numbers) + " |", flush=True)


def main(draws: int) -> None:
    """Print the three tables."""
    true = print_false_alarms(draws)
    failing = print_worlds(draws)
    of = {"the law holds": true + varied(TRUE, draws // 8), "it fails": failing + varied(FAILING, draws // 8)}
    print_statuses({**of, "public": list(public())})


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
