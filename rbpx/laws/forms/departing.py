"""The forms with scatter that departs: the largest sizes lie off the law, another one does, or scatter grows with size.

A ladder rarely says whether its last run went wrong, its two largest were undertrained or its largest sizes are
noisier, and then a form that bends or ends in an offset explains them as well. So each departure of
`rbpx.laws.intervals.misfit` has a small prior weight beside the forms with even scatter: where the points cannot rule
it out the interval of a new model, which is taken to be undisturbed, holds what would follow.

Shapes: N models, G components, F of them with one scatter, A departures.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Final

import numpy as np

from rbpx.laws.forms.candidates import Constants, FormGrid, form_grid
from rbpx.laws.intervals.misfit import Departure, departures
from rbpx.laws.numeric import Floats

_PRIOR: Final = {Departure.end: 0.2, Departure.scatter: 0.1}
FEWEST: Final = 4  # sizes; of three, no departure can be told
_MOST: Final = 32  # models; among more, the last two or their scatter hardly move a law


@lru_cache(maxsize=64)
def predicting_grid(ln_S: tuple[float, ...], given: tuple[Constants, ...] = (Constants(),)) -> FormGrid:
    """The components that a prediction is over, departures included; arguments of `form_grid`."""
    grid = form_grid(ln_S, given)
    return grid if len(set(ln_S)) < FEWEST or len(ln_S) > _MOST else with_departures(grid, _PRIOR)


def with_departures(grid: FormGrid, prior: Mapping[Departure, float]) -> FormGrid:
    """A grid, followed by the same forms with the scatter of each departure.

    Args:
        grid: without departures, of at least 3 different sizes.
        prior: weight of each kind, together less than 1.
    """
    of = tuple(each for each in departures(grid.x_N) if each.kind in prior)
    n_forms = grid.n_forms
    R_ANN, kinds = np.array([each.R_NN for each in of]), [each.kind for each in of]
    whiten_ANN, ln_det_A = np.linalg.cholesky(np.linalg.inv(R_ANN)), np.linalg.slogdet(R_ANN)[1]
    prior_A = [prior[kind] / kinds.count(kind) for kind in kinds]
    prior_F = grid.prior_G.reshape(-1, n_forms).sum(axis=0)  # over the scatters

    def again(column_G: Floats) -> Floats:
        return np.concatenate([column_G, *[column_G[:n_forms]] * len(of)])

    return replace(
        grid,
        departs=of,
        shape_G=np.concatenate([grid.shape_G, *[grid.shape_G[:n_forms]] * len(of)]),
        offset_G=again(grid.offset_G),
        prior_G=np.concatenate([(1 - sum(prior_A)) * grid.prior_G, np.outer(prior_A, prior_F).ravel()]),
        bend_G=again(grid.bend_G),
        ratio_G=again(grid.ratio_G),
        rounding_G=again(grid.rounding_G),
        middle_G=again(grid.middle_G),
        u_GN=again(grid.u_GN),
        rho_G=np.concatenate([grid.rho_G, np.zeros(n_forms * len(of))]),
        whiten_GNN=np.concatenate([grid.whiten_GNN, np.repeat(whiten_ANN, n_forms, axis=0)]),
        ln_det_G=np.concatenate([grid.ln_det_G, np.repeat(ln_det_A, n_forms)]),
        held_GH2=again(grid.held_GH2),
        held_GH=again(grid.held_GH),
    )
