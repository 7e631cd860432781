"""A zeta head, shifted, joined to a stretched exponential tail."""

import numpy as np

from rbpx.laws.arrays import Floats
from rbpx.laws.rank_form import Places, RankForm, Shares


def _shares(theta: Floats, places: Places) -> Shares:
    beta, ln_shift, ln_rate, ln_stretch = np.moveaxis(theta, -1, 0)[..., None]
    moved = np.log(places.x_Q - 1 + np.exp(ln_shift))
    tail = np.exp(ln_rate) * np.exp(np.exp(ln_stretch) * np.log(places.x_Q / places.V))
    return places.one(-beta * moved - tail)


FORM = RankForm(
    label="zeta, stretched",
    equation="(x + q)^(-b) exp(-r (x/V)^s)",
    parameters=("b", "ln 1+q", "ln r", "ln s"),
    starts=((0.9, 0.0, 1.0, 0.0), (1.0, -0.8, 1.2, 0.2)),
    shares=_shares,
)
