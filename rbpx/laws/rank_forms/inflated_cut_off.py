"""A cut-off power law with extra mass at rank 1."""

import numpy as np

from rbpx.laws.arrays import Floats
from rbpx.laws.rank_form import Places, RankForm, Shares


def _shares(theta: Floats, places: Places) -> Shares:
    odds, beta, ln_rate = np.moveaxis(theta, -1, 0)[..., None]
    first = np.where(places.x_Q == 1, odds, 0.0)
    return places.one(first - beta * places.ln_x_Q - np.exp(ln_rate) * places.x_Q / places.V)


FORM = RankForm(
    label="cut off, rank 1",
    equation="share_1 at x = 1, x^(-b) exp(-r x / V) beyond",
    parameters=("odds", "b", "ln r"),
    starts=((0.2, 0.9, 1.0),),
    shares=_shares,
)
