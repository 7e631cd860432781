"""Power laws of runs that do not count alike: by weights, or less above the law than below (`over`).

With weights a run scatters by 1 / sqrt(weight) times what one of weight 1 does. With `over` the squares of ln y above
the line count that many times less, and the line is raised to the level of well-tuned runs (`rbpx.laws.tuning`). The
scatter is theirs; the constants vary as over resampled runs, and documents where those are known.

Shapes: N sizes, B replicates, P parameters.
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rbpx.laws.intervals.estimate import Replicates
from rbpx.laws.names import Method
from rbpx.laws.numeric import Floats
from rbpx.laws.power.regression import Regression, ln_law, regress, regression_at, weighted_lines
from rbpx.laws.power.uncertainty import Uncertainty
from rbpx.laws.tuning import TunedLevel, fit_tuned_level

_REPLICATES: Final = 400
_STEPS: Final = 100


@dataclass(frozen=True, eq=False)
class Unequal:
    """How runs count.

    Attributes:
        weight_N: of each.
        over: how many times less one above the law counts.
    """

    weight_N: Floats
    over: float = 1.0

    def only(self, keep_N: NDArray[np.int64] | slice) -> "Unequal":
        """The same of some of the runs."""
        return replace(self, weight_N=self.weight_N[keep_N])

    def scaled(self) -> "Unequal":
        """The same with weights of mean 1."""
        return replace(self, weight_N=self.weight_N / self.weight_N.mean())


def run_weights(n_runs: int, n_replicates: int, seed: int) -> Floats:
    """How much each run counts when runs are resampled smoothly: exponential weights, scaled to a mean of 1.

    A surface needs several sizes and several numbers of tokens, and of 16 to 24 runs drawn with replacement a third are
    missing, so that some replicates have lost the design. Here each run keeps some weight, with the same variance:
    the intervals of drawn surfaces are a sixth narrower and hold the truth at their rate (benchmarks/README.md).

    Args:
        n_runs: number of runs; the checkpoints of one have its weight.
        n_replicates: number of replicates B.
        seed: of numpy's PCG64 generator.

    Returns:
        Shape [n_replicates, n_runs]; each row sums to n_runs.

    Source:
        D. B. Rubin, The Bayesian Bootstrap, Annals of Statistics 9, 1981.
    """
    return np.random.default_rng(seed).dirichlet(np.ones(n_runs), n_replicates) * n_runs


def regress_unequal(x_N: Floats, ln_y_N: Floats, unequal: Unequal) -> Regression:
    """The line of ln y on x, centred or not."""
    if unequal.over == 1:
        return regress(x_N, ln_y_N, Method.ols, unequal.weight_N)
    regression, about = _lowest(x_N, ln_y_N, unequal)
    raised_P = regression.theta_P + np.array([float(about.level_B[0]), 0.0])
    return replace(regression, theta_P=raised_P, residual_N=regression.residual_N - about.level_B[0])


def uncertainty_over(x_N: Floats, ln_y_N: Floats, unequal: Unequal, replicates: Replicates | None) -> Uncertainty:
    """The uncertainty of a line of well-tuned runs, for `over` above 1."""
    _, about = _lowest(x_N, ln_y_N, unequal)
    n, P = len(x_N), 2
    weight_BN = run_weights(n, _REPLICATES, 0) * unequal.weight_N
    ln_y_BN = np.broadcast_to(ln_y_N, weight_BN.shape)
    if replicates is not None:
        ln_y_BN = replicates.ln_y_BN[np.random.default_rng(0).integers(len(replicates.ln_y_BN), size=_REPLICATES)]
    theta_BP = _lines(x_N, ln_y_BN, weight_BN, unequal.over)
    theta_BP[:, 0] += fit_tuned_level(ln_y_BN - ln_law(x_N, theta_BP), weight_BN).level_B
    sd, dof = about.sd_freed(n, P), max(n * (1 - float(about.share_B[0])) - P - 1, 1.0)
    spread_PP = np.cov(theta_BP.T) * (n + 1) / (n - 1) / max(sd, 1e-300) ** 2
    return Uncertainty(np.zeros((P, P)), np.zeros(P), spread_PP, sd, 0.0, dof, knows_text=False)


def _lowest(x_N: Floats, ln_y_N: Floats, unequal: Unequal) -> tuple[Regression, TunedLevel]:
    """The line above which points count less, and what it says of well-tuned runs."""
    theta_P = _lines(x_N, ln_y_N[None], unequal.weight_N[None], unequal.over)[0]
    counts_N = np.where(ln_y_N > ln_law(x_N, theta_P), 1 / unequal.over, 1.0)
    regression = replace(regression_at(x_N, ln_y_N, theta_P, unequal.weight_N * counts_N), weighs_variances=True)
    return regression, fit_tuned_level(regression.residual_N[None], unequal.weight_N[None])


def _lines(x_N: Floats, ln_y_BN: Floats, weight_BN: Floats, over: float) -> Floats:
    """Ln C and alpha of each, [B, 2]: weighted lines until no point changes its side."""
    is_above_BN = np.zeros(ln_y_BN.shape, bool)
    for _ in range(_STEPS):
        theta_BP = weighted_lines(x_N, ln_y_BN, weight_BN * np.where(is_above_BN, 1 / over, 1.0))
        was_BN, is_above_BN = is_above_BN, ln_y_BN > ln_law(x_N, theta_BP)
        if (was_BN == is_above_BN).all():
            break
    return theta_BP
