"""Predictions of many series at once, by the forms that `predict` averages."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rbpx.laws.prediction.prediction import TAILS, fit_batch


def predict_batch(S: ArrayLike, y_BN: ArrayLike, S_new: float) -> NDArray[np.float64]:
    """Predicts B positive series, [B, N], at S_new as `average_forms` does: median, lower and upper end, [B, 3]."""
    with np.errstate(over="ignore"):  # ends beyond any float are infinite
        return np.asarray(np.exp(fit_batch(S, y_BN).at(np.log([S_new])).quantiles(TAILS)))[:, 0]
