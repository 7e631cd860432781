"""Zipf-Mandelbrot with a cut-off towards the vocabulary."""

import numpy as np

from rbpx.laws.arrays import Floats
from rbpx.laws.rank_form import Places, RankForm, Shares


def _shares(theta: Floats, places: Places) -> Shares:
    beta, ln_shift, ln_rate = np.moveaxis(theta, -1, 0)[..., None]
    moved = np.log(places.x_Q - 1 + np.exp(ln_shift))
    return places.one(-beta * moved - np.exp(ln_rate) * places.x_Q / places.V)


FORM = RankForm(
    label="Zipf-M., cut off",
    equation="(x + q)^(-b) exp(-r x / V)",
    parameters=("b", "ln 1+q", "ln r"),
    starts=((0.9, 0.0, 1.0), (1.0, -0.8, 1.0)),
    shares=_shares,
)
