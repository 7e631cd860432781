"""Compares power laws of mixture-of-experts models in active parameters N, in all parameters S, and in both.

With E how many times more experts there are than a token uses,

    active:   ln y = a + b ln N
    total:    ln y = a + b ln S
    bilinear: ln y = a + b ln N + c ln E + d ln N ln E

by least squares. The last is the law of arXiv 2202.01169 without its saturation in E; where d > 0 and c < 0, experts
help less the larger a model is. All models saw equally many tokens. Models within 5 % of one N count as one size.

Shapes: R models, H of them held out, B replicates, P constants.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rbpx.laws.intervals.estimate import Estimate, Recipe, estimate
from rbpx.laws.numeric import Floats

_ONE_SIZE: Final = 1.05
_FEWEST: Final = 3  # sizes that laws are fitted to


def sizes_of(N: ArrayLike) -> NDArray[np.int64]:
    """Returns the index of each model's size, from the smallest, [R]."""
    N_R = np.asarray(N, np.float64)
    order = np.argsort(N_R, kind="stable")
    is_new_R = np.concatenate([[False], N_R[order][1:] > _ONE_SIZE * N_R[order][:-1]])
    size_R = np.empty(len(N_R), np.int64)
    size_R[order] = np.cumsum(is_new_R)
    return size_R


def compare_sizes(
    N: ArrayLike, S: ArrayLike, E: ArrayLike, y: ArrayLike, n_held_out: int = 2, n_replicates: int = 1000, seed: int = 0
) -> dict[str, Any] | None:
    """Fits each form to the models of the smaller sizes and predicts those of the `n_held_out` largest.

    N, S, E (1 for a dense model) and the loss y are of each model, shape [R]. Intervals are over bootstrap replicates
    of E, each power of two with its models of all sizes; sizes are not resampled.

    Returns:
        laws: each form, active, total and bilinear, with its `error`, the mean of |ln y - prediction| over the held-out
            models, and its `constants` a, b and so on, fitted to all models.
        held_out: the sizes N that are held out.
        n_fitted: number of models fitted.
        n_held_out: number of models predicted.
        difference: error of the law in S minus that of the law in N; above 0, N predicts better.
        alpha_difference: exponent of the law in S minus that of the law in N, alpha = -b, over all models.
        better: `active` or `total`, whichever predicts better; None where the interval of the difference contains 0.

        None where fewer than three sizes are left to fit, or all models have one E.
    """
    N_R, size_R = np.asarray(N, np.float64), sizes_of(N)
    ln_N_R, ln_S_R, ln_E_R, ln_y_R = (np.log(np.asarray(each, np.float64)) for each in (N, S, E, y))
    is_held_R = size_R > size_R.max(initial=-1) - n_held_out
    if len(set(size_R[~is_held_R].tolist())) < _FEWEST or np.ptp(ln_E_R) == 0:
        return None
    power_R = np.unique(np.rint(ln_E_R / np.log(2)), return_inverse=True)[1]
    n = int(power_R.max()) + 1
    drawn_BE = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=n_replicates)
    weights_BR = np.vstack([np.ones(len(N_R)), drawn_BE[:, power_R]])  # the models themselves first
    held_BR = weights_BR * is_held_R
    laws, error_B, b_B = [], dict[str, Floats](), dict[str, Floats]()
    columns = {"active": [ln_N_R], "total": [ln_S_R], "bilinear": [ln_N_R, ln_E_R, ln_N_R * ln_E_R]}
    for form, terms in columns.items():
        X_RP = np.column_stack([np.ones(len(N_R)), *terms])
        fitted_BP, constants_BP = (_fits(X_RP, ln_y_R, each_BR) for each_BR in (weights_BR - held_BR, weights_BR))
        with np.errstate(invalid="ignore"):  # a replicate without a model that is held out
            error_B[form] = (np.abs(ln_y_R - fitted_BP @ X_RP.T) * held_BR).sum(axis=1) / held_BR.sum(axis=1)
        constants = {name: _estimate(value_B) for name, value_B in zip("abcd", constants_BP.T, strict=False)}
        b_B[form] = constants_BP[:, 1]
        laws.append({"form": form, "error": _estimate(error_B[form]), "constants": constants})
    difference = _estimate(error_B["total"] - error_B["active"])
    return {
        "laws": laws,
        "held_out": [float(N_R[size_R == size].min()) for size in np.unique(size_R[is_held_R])],
        "n_fitted": int(np.sum(~is_held_R)),
        "n_held_out": int(np.sum(is_held_R)),
        "difference": difference,
        "alpha_difference": _estimate(b_B["active"] - b_B["total"]),
        "better": {1.0: "active", -1.0: "total"}.get(float(np.sign(difference.value or 0.0)) * difference.leaves_out_0),
    }


def _fits(X_RP: Floats, ln_y_R: Floats, weights_BR: Floats) -> Floats:
    """Weighted least squares, of least norm where a replicate leaves constants undetermined, [B, P]."""
    return np.array([np.linalg.lstsq(X_RP * root[:, None], ln_y_R * root)[0] for root in np.sqrt(weights_BR)])


def _estimate(value_B: Floats) -> Estimate:
    """The first value, with the interval of the others."""
    return estimate(float(value_B[0]), value_B[1:], None, Recipe.expanded)
