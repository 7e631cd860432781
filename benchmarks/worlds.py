"""Counts what statuses say: how often they doubt laws that are true, and whether predictions without one hold.

A world (`tests/support/worlds.py`) is where ladders are drawn from, and one more model ten times as large. In some the
law is one of the forms of a prediction (`combined`), in others it fails along the axis. Beside the statuses stand the
tests that they replaced, each cut where it rejects 5 % of the true laws of its row that it rejects most often, and an
oracle, who knows what departs.

    python benchmarks/worlds.py [DRAWS, default 200]
"""

import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rbpx.status import Status
from tests.support.judged import OLD, ROWS, TESTS, Judged, cut_of, ladders, share
from tests.support.worlds import FAILING, TRUE


def print_false_alarms(draws: int) -> dict[tuple[int, float], dict[str, list[list[Judged]]]]:
    """Print how often true laws are doubted; return those ladders, by sizes and scatter and by row."""
    print(f"| true law, {draws} draws a cell | sizes | row | scatter .003 | .01 | .03 |\n|" + 6 * "---|")
    found: dict[tuple[int, float], dict[str, list[list[Judged]]]] = {}
    for world, n in product(TRUE, (4, 5, 7, 10)):
        drawn = {scatter: ladders(world, n, scatter, draws) for scatter in (0.003, 0.01, 0.03)}
        for row in ROWS if world is TRUE[0] else ROWS[1:]:
            for scatter, of in drawn.items():
                found.setdefault((n, scatter), {each: [] for each in ROWS})[row].append(of)
            shares = " | ".join(f"{share(each.is_doubted(row) for each in of):.3f}" for of in drawn.values())
            print(f"| {world.name} | {n} | {row} | {shares} |", flush=True)
    return found


def print_worlds(draws: int, true: dict[tuple[int, float], dict[str, list[list[Judged]]]]) -> list[Judged]:
    """Print what is said in worlds where an axis fails; return all ladders."""
    columns = ["coverage", "no status", "its coverage", "oracle", "law", *(f"old {name}" for name in OLD["law"])]
    columns += ["combined", *(f"old {name}" for name in OLD["combined"])]
    print("\n| world | sizes | scatter | " + " | ".join(columns) + " |\n|" + (3 + len(columns)) * "---|")
    everything: list[Judged] = []
    for world, n, scatter in product(FAILING, (5, 7, 10), (0.003, 0.01)):
        for knows_tokens in (False, True) if world.tokens != (1.0, 1.0) else (False,):
            drawn = ladders(world, n, scatter, draws, knows_tokens)
            everything += drawn
            clear = [each for each in drawn if not _doubts(each)]
            numbers = [share(each.is_inside for each in drawn), len(clear) / draws, share(o.is_inside for o in clear)]
            numbers.append(world.oracle(n, scatter, np.random.default_rng(0)))
            for row in ROWS:
                numbers.append(share(each.is_doubted(row) for each in drawn))
                for name in OLD[row]:
                    cut = cut_of(true[n, scatter][row], row, name)
                    numbers.append(share(each.old[row][name] > cut for each in drawn))
            name = world.name + (", tokens known" if knows_tokens else "")
            print(
                f"| {name} | {n} | {scatter} | " + " | ".join(f"{number:.2f}" for number in numbers) + " |", flush=True
            )
    return everything


def _doubts(ladder: Judged) -> bool:
    return ladder.is_doubted("combined") or Status.undertrained in ladder.statuses["combined"]


def print_statuses(everything: Sequence[Judged]) -> None:
    """Print what each status of a prediction foretells."""
    print("\n| status of combined | ladders | coverage with | without | median error with | without |\n|" + 6 * "---|")
    for status in sorted(TESTS | {Status.undertrained}):
        with_it = [each for each in everything if status in each.statuses["combined"]]
        without = [each for each in everything if status not in each.statuses["combined"]]
        numbers = [f"{share(each.is_inside for each in of):.2f}" for of in (with_it, without)]
        numbers += [f"{np.median([each.error for each in of]):.3f}" if of else "" for of in (with_it, without)]
        print(f"| {status} | {len(with_it)} | " + " | ".join(numbers) + " |")


def main(draws: int) -> None:
    """Print the three tables."""
    true = print_false_alarms(draws)
    everything = print_worlds(draws, true)
    print_statuses(everything + [each for rows in true.values() for of in rows["combined"] for each in of])


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
