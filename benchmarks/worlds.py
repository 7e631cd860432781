"""Counts what statuses say: how often they doubt laws that are true, and whether predictions without one hold.

A world (`tests/support/worlds.py`) is where ladders are drawn from, and one more model ten times as large. In some the
law is one of the forms of a prediction (`combined`), in others it fails along the axis. Beside the statuses stands an
oracle, who knows what departs. Then what each status of a prediction predicts: on those ladders and others, over 1.2
and 2 decades, with a new model .5 and 1.5 decades larger, and on the public series of `public_series.py`.

    python benchmarks/worlds.py [DRAWS, default 200]
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.public_series import FEWEST, REFERENCE, series
from rbpx.status import Status, in_order
from tests.support.judged import ROWS, Judged, judged_ladder, ladders, share
from tests.support.worlds import FAILING, TRUE, World


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
