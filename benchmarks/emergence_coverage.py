"""Measures how often the interval of the pooled law of emergence covers the exponent that windows were drawn from.

There are five, seven and ten sizes over three decades, and six window lengths. ln(-ln p) scatters by `models` from
model to model, and a share `shared` of that variance is common to all windows of a model; between documents it scatters
by 0.4 %. Windows are counted, so small sizes have no long ones. Beside it stands the joint law C N S^-alpha, for
windows of lengths 1, 2 and 5 that follow it.

    .venv/bin/python benchmarks/emergence_coverage.py [DRAWS, default 1000]
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rbpx.questions.emergence.laws import fit_joint
from rbpx.questions.emergence.pooled import fit_pooled
from rbpx.status import Status
from tests.support.windows import ALPHA, LENGTHS, draw, sizes

CELLS = [(n, models, shared) for n in (5, 7, 10) for models in (0.005, 0.02) for shared in (0.0, 0.5, 1.0)]


def main(draws: int) -> None:
    """Print a row for each cell."""
    print("| sizes | models | shared | pooled: coverage | half-width | bends | joint: coverage | half-width |")
    print("|---|---|---|---|---|---|---|---|")
    for n, models, shared in CELLS:
        rng, bends, holds, half = np.random.default_rng([n, int(1000 * models), int(10 * shared)]), 0, [], []
        for _ in range(draws):
            drawn = draw(rng, n, models, shared)
            pooled = fit_pooled(sizes(n), LENGTHS, drawn.p_MN, drawn.windows_MN, drawn.p_BMN)
            strict = draw(rng, n, models, shared, constants=[0.5, 1.0, 2.5], counted=False)
            fits = (pooled, fit_joint(sizes(n), [1, 2, 5], strict.p_MN, strict.p_BMN))
            ends = np.array([(law.fit.alpha.lo, law.fit.alpha.hi) for law in fits], dtype=np.float64)
            holds.append((ends[:, 0] <= ALPHA) & (ends[:, 1] >= ALPHA))
            half.append((ends[:, 1] - ends[:, 0]) / 2)
            bends += Status.bends in pooled.reasons
        (covered, joint), (width, joint_width) = np.mean(holds, axis=0), np.median(half, axis=0)
        print(
            f"| {n} | {models:.1%} | {shared:.1f} | {covered:.3f} | {width:.4f} | {bends / draws:.3f} | "
            f"{joint:.3f} | {joint_width:.4f} |",
            flush=True,
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
