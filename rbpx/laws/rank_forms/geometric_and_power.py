"""Easy and hard tokens: geometric ranks of the ones, a cut-off power law of those of the others."""

import numpy as np
from scipy.special import log_expit

from rbpx.laws.arrays import Floats
from rbpx.laws.rank_form import Places, RankForm, Shares


def _shares(theta: Floats, places: Places) -> Shares:
    odds, ln_fall, beta, ln_rate = np.moveaxis(theta, -1, 0)[..., None]
    easy = places.normalised(-np.exp(ln_fall) * (places.x_Q - 1))
    hard = places.normalised(-beta * places.ln_x_Q - np.exp(ln_rate) * places.x_Q / places.V)
    return np.concatenate([log_expit(odds), log_expit(-odds)], axis=-1), np.stack([easy, hard], axis=-2)


FORM = RankForm(
    label="geometric, power",
    equation="w exp(-h (x-1)) / Z1 + (1 - w) x^(-b) exp(-r x / V) / Z2",
    parameters=("ln w/(1-w)", "ln h", "b", "ln r"),
    starts=((-2.0, 0.5, 0.9, 1.0),),
    shares=_shares,
)
