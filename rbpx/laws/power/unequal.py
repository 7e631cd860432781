"""Fits power laws of runs with weights, or with a lower weight above the law than below it (`over`).

A run scatters by 1 / sqrt(weight) times the scatter of weight 1. With `over`, squared residuals above the line count
`over` times less, and the line is raised to the level of well-tuned runs (`rbpx.laws.tuning`), whose scatter it has.
The uncertainty of its constants comes from resampled runs and documents.

Shapes: N sizes, B bootstrap replicates, P parameters.
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
class RunWeights:
    """Weights of the runs; those above the law count `over` times less."""

    weight_N: Floats
    over: float = 1.0

    def only(self, keep_N: NDArray[np.int64] | slice) -> "RunWeights":
        """Returns the weights of some of the runs."""
        return replace(self, weight_N=self.weight_N[keep_N])

    def scaled(self) -> "RunWeights":
        """Returns the weights, scaled to a mean of 1."""
        return replace(self, weight_N=self.weight_N / self.weight_N.mean())


def bootstrap_weights(n_runs: int, n_replicates: int, seed: int) -> Floats:
    """Returns exponential bootstrap weights of the runs, [n_replicates, n_runs]; each row sums to n_runs.

    Drawing 16 to 24 runs with replacement misses a third of them, and with them the design that a surface needs. With
    exponential weights, intervals of simulated surfaces are a sixth narrower and keep their coverage
    (benchmarks/README.md).

    Source:
        D. B. Rubin, The Bayesian Bootstrap, Annals of Statistics 9, 1981.
    """
    return np.random.default_rng(seed).dirichlet(np.ones(n_runs), n_replicates) * n_runs


def regress_weighted(x_N: Floats, ln_y_N: Floats, run_weights: RunWeights) -> Regression:
    """Fits the line of ln y on x."""
    if run_weights.over == 1:
        return regress(x_N, ln_y_N, Method.ols, run_weights.weight_N)
    regression, about = _lowest(x_N, ln_y_N, run_weights)
    raised_P = regression.theta_P + np.array([float(about.level_B[0]), 0.0])
    return replace(regression, theta_P=raised_P, residual_N=regression.residual_N - about.level_B[0])


def uncertainty_over(
    x_N: Floats, ln_y_N: Floats, run_weights: RunWeights, replicates: Replicates | None
) -> Uncertainty:
    """Returns the uncertainty of a line of well-tuned runs, for `over` above 1."""
    _, about = _lowest(x_N, ln_y_N, run_weights)
    n, P = len(x_N), 2
    weight_BN = bootstrap_weights(n, _REPLICATES, 0) * run_weights.weight_N
    ln_y_BN = np.broadcast_to(ln_y_N, weight_BN.shape)
    if replicates is not None:
        ln_y_BN = replicates.ln_y_BN[np.random.default_rng(0).integers(len(replicates.ln_y_BN), size=_REPLICATES)]
    theta_BP = _lines(x_N, ln_y_BN, weight_BN, run_weights.over)
    theta_BP[:, 0] += fit_tuned_level(ln_y_BN - ln_law(x_N, theta_BP), weight_BN).level_B
    sd, dof = about.sd_freed(n, P), max(n * (1 - float(about.share_B[0])) - P - 1, 1.0)
    spread_PP = np.cov(theta_BP.T) * (n + 1) / (n - 1) / max(sd, 1e-300) ** 2
    return Uncertainty(np.zeros((P, P)), np.zeros(P), spread_PP, sd, 0.0, dof, knows_text=False)


def _lowest(x_N: Floats, ln_y_N: Floats, run_weights: RunWeights) -> tuple[Regression, TunedLevel]:
    """The line with `over`, and the distribution of well-tuned runs about it."""
    theta_P = _lines(x_N, ln_y_N[None], run_weights.weight_N[None], run_weights.over)[0]
    counts_N = np.where(ln_y_N > ln_law(x_N, theta_P), 1 / run_weights.over, 1.0)
    regression = replace(regression_at(x_N, ln_y_N, theta_P, run_weights.weight_N * counts_N), weighs_variances=True)
    return regression, fit_tuned_level(regression.residual_N[None], run_weights.weight_N[None])


def _lines(x_N: Floats, ln_y_BN: Floats, weight_BN: Floats, over: float) -> Floats:
    """Ln C and alpha of each replicate: weighted lines until no point changes its side."""
    is_above_BN = np.zeros(ln_y_BN.shape, bool)
    for _ in range(_STEPS):
        theta_BP = weighted_lines(x_N, ln_y_BN, weight_BN * np.where(is_above_BN, 1 / over, 1.0))
        was_BN, is_above_BN = is_above_BN, ln_y_BN > ln_law(x_N, theta_BP)
        if (was_BN == is_above_BN).all():
            break
    return theta_BP
