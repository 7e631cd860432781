"""Measures whether multipliers over a surface hold what was drawn, at each place and in their slope.

A baseline and a variant of 40 runs each (8 sizes, 5 to 160 tokens for a parameter), ln y scattering by .003, in the
worlds of `tests/support/shifts.py`. The truth is the drawn multiplier at that point, found by a search along the true
surface of the baseline. Beside it the share of draws in which shared constants are refused.

    python benchmarks/multiplier.py [DRAWS, default 100] [WORLD ...]
"""

import math
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rbpx.laws.families.shift import Shift, fit_shift
from rbpx.laws.names import Axis
from tests.support.shifts import WORLDS, Pair, draw_pair

FIRST = 1000  # seed: prior weights were chosen on draws below it
COLUMNS = ("least C", "middle C", "most C", "10 times", "slope", "refused")


def judged(pair: Pair, found: Shift | None = None) -> dict[str, bool | None]:
    """Whether each interval holds the truth, and whether sharing is refused; None where there is no number."""
    found = fit_shift(pair.base, pair.variant, pair.axis) if found is None else found
    true = [pair.true_ln_m(at.S, at.D) for at in found.at]
    held: dict[str, bool | None] = {}
    for name, at, ln_m in zip(("least C", "middle C", "most C", "10 times"), found.at, true, strict=False):
        ends = at.value.ends
        held[name] = None if ends is None else ends[0] <= math.exp(ln_m) <= ends[1]
    ends = found.slope.ends
    if ends is not None:
        slope = (true[2] - true[0]) / math.log(found.at[2].C / found.at[0].C)
        held["slope"] = ends[0] <= slope <= ends[1]
    held["refused"] = None if found.p is None else found.p < 0.05
    return held


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
