"""A common law with an exponent of each token's own: power laws with one cut-off, exponents normal over tokens."""

import numpy as np

from rbpx.laws.arrays import Floats
from rbpx.laws.rank_form import Places, RankForm, Shares

_AT_C, _WEIGHT_C = np.polynomial.hermite_e.hermegauss(15)
_LN_WEIGHT_C = np.log(_WEIGHT_C / _WEIGHT_C.sum())


def _shares(theta: Floats, places: Places) -> Shares:
    mean, ln_sd, ln_rate = np.moveaxis(theta, -1, 0)[..., None, None]
    beta_C1 = mean + np.exp(ln_sd) * _AT_C[:, None]
    ln_p_CQ = places.normalised(-beta_C1 * places.ln_x_Q - np.exp(ln_rate) * places.x_Q / places.V)
    return np.broadcast_to(_LN_WEIGHT_C, (*theta.shape[:-1], len(_LN_WEIGHT_C))), ln_p_CQ


FORM = RankForm(
    label="spread exponents",
    equation="mean over b ~ N(m, s^2) of x^(-b) exp(-r x / V) / Z(b)",
    parameters=("m", "ln s", "ln r"),
    starts=((0.95, -1.2, 1.0),),
    shares=_shares,
)
