"""Quantities as surfaces in size and training tokens, and the best model for a budget.

Fits y(S, D), Chinchilla's y = E + A S^-alpha + B D^-beta or another form=, to all trainings of a family on a text, and
says whether the effects of S and D can be told apart. flops= adds the best S and D of each budget.

The best of a budget (C = 6 S D) is averaged over forms as in `decide`. Intervals are over trainings, each with all its
checkpoints, and over documents where known. Fits are kept in `fits`. --details shows every quantity. Where S and D vary
together, as at a fixed D/S, the status is collinear and a surface predicts only near their line; `decide next=3` says
which runs would help.

form=all compares the forms by AIC, BIC and errors on held-out largest runs; the best S and D of a typed form are that
form's own, and tell how they move if the head counts. In sweeps (several runs of one size and as many tokens)
frontier=true lists the best settings. A column `weight` of an import weighs runs. A run outside what the others allow,
such as one that diverged, is named and left out, also by `decide` and `predict`: of a hundred sets of runs that scatter
alike one has such a run.
"""

from rbpx.config.keys.laws import Pinned
from rbpx.config.keys.output import Drawn
from rbpx.config.keys.predictions import Budgets, Forms, Repeated, Surfaces
from rbpx.questions.registry import Analysis


class SurfaceKeys(Repeated, Budgets, Forms, Pinned, Surfaces, Drawn):
    """Keys of surface."""


ANALYSIS = Analysis(
    place=80,
    examples=(
        "python -m rbpx surface",
        "python -m rbpx surface laws='[cross_entropy]' form=all flops='[1e18,1e20]'",
        "python -m rbpx surface pin='{E: 1.69, alpha: 0.34 +- 0.02}'",
        "python -m rbpx surface source=them checkpoints=last delta=1e-4 --format json",
        "python -m rbpx surface source=sweep frontier=true",
    ),
    plain=(
        *("law", "k", "source", "family", "dataset", "variant", "form", "n_points", "n_runs", "A", "B", "E"),
        *("E_lo", "E_hi", "alpha", "alpha_lo", "alpha_hi", "beta", "beta_lo", "beta_hi"),
        *("held_out_error", "aic", "status", "fit_id"),
    ),
    title="Size and tokens",
    sizes=3,
    draws=True,
    trainings=True,
    lacking="no family in store={store} has 3 trainings with known tokens on one text; import a table with a column D "
    "(python -m rbpx import FILE source=NAME), or measure with model.tokens=N",
)
