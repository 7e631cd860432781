"""Fits power laws of runs with weights: a run scatters by 1 / sqrt(weight) times the scatter of weight 1.

Shapes: N sizes.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rbpx.laws.names import Method
from rbpx.laws.numeric import Floats
from rbpx.laws.power.regression import Regression, regress


@dataclass(frozen=True, eq=False)
class RunWeights:
    """Weights of the runs."""

    weight_N: Floats

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
    return regress(x_N, ln_y_N, Method.ols, run_weights.weight_N)
