"""Easy and hard tokens: a steep power law of the ranks of the ones, a cut-off power law of those of the others."""

import numpy as np
from scipy.special import log_expit

from rbpx.laws.arrays import Floats
from rbpx.laws.rank_form import Places, RankForm, Shares


def _shares(theta: Floats, places: Places) -> Shares:
    odds, ln_steep, beta, ln_rate = np.moveaxis(theta, -1, 0)[..., None]
    easy = places.normalised(-np.exp(ln_steep) * places.ln_x_Q)
    hard = places.normalised(-beta * places.ln_x_Q - np.exp(ln_rate) * places.x_Q / places.V)
    return np.concatenate([log_expit(odds), log_expit(-odds)], axis=-1), np.stack([easy, hard], axis=-2)


FORM = RankForm(
    label="two power laws",
    equation="w x^(-b1) / Z1 + (1 - w) x^(-b2) exp(-r x / V) / Z2",
    parameters=("ln w/(1-w)", "ln b1", "b2", "ln r"),
    starts=((-1.0, 0.7, 0.9, 1.0), (-3.0, 1.0, 0.9, 1.0)),
    shares=_shares,
)
