"""Measures whether multipliers over a surface hold what was drawn, at each place and in their slope.

A baseline and a variant of 40 runs each (8 sizes, 5 to 160 tokens for a parameter), ln y scattering by .003, in the
worlds of `tests/support/shifts.py`. The truth is the drawn multiplier at that point, found by a search along the true
surface of the baseline. Beside it the share of draws in which shared constants are refused.

    python benchmarks/multiplier.py [DRAWS, default 100] [WORLD ...]
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rbpx.laws.names import Axis
from tests.support.shifts import WORLDS, draw_pair, judged

FIRST = 1000  # seed: prior weights were chosen on draws below it
COLUMNS = ("least C", "middle C", "most C", "10 times", "slope", "refused")


def main() -> None:
    """Print a row for each world and axis."""
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    print(f"{draws} draws a row\n\n| world | axis | {' | '.join(COLUMNS)} |\n|{(2 + len(COLUMNS)) * '---|'}")
    for world in sys.argv[2:] or WORLDS:
        for axis in (Axis.S, Axis.D, Axis.C):
            told = [judged(draw_pair(world, axis, seed)) for seed in range(FIRST, FIRST + draws)]
            cells = []
            for name in COLUMNS:
                known = [each[name] for each in told if each.get(name) is not None]
                cells.append(f"{sum(known) / len(known):.2f}" if known else "none")
            print(f"| {world} | {axis.value} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
