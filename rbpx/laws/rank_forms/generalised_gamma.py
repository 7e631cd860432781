"""A generalised gamma with extra mass at rank 1: a power law that ends in a stretched exponential."""

import numpy as np

from rbpx.laws.arrays import Floats
from rbpx.laws.rank_form import Places, RankForm, Shares


def _shares(theta: Floats, places: Places) -> Shares:
    odds, beta, ln_rate, ln_stretch = np.moveaxis(theta, -1, 0)[..., None]
    first = np.where(places.x_Q == 1, odds, 0.0)
    tail = np.exp(ln_rate) * np.exp(np.exp(ln_stretch) * np.log(places.x_Q / places.V))
    return places.one(first - beta * places.ln_x_Q - tail)


FORM = RankForm(
    label="gen. gamma",
    equation="share_1 at x = 1, x^(-b) exp(-r (x/V)^s) beyond",
    parameters=("odds", "b", "ln r", "ln s"),
    starts=((0.2, 0.9, 1.0, 0.0),),
    shares=_shares,
)
