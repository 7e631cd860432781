"""Fit scaling laws to what the store holds.

Fits -ln RBP_k at k = 1, 10 and 100, cross-entropy (nats) and imported quantities to one run per size, all alike in
text, protocol, dtype and revision.

95 % intervals include document sampling and the scatter of the models. laws=all adds the terms of cross-entropy, what a
lognormal of the ranks derives, and more k. Fits are kept in `fits`. `form` says whether the points call for an offset,
or `either`. --details shows the scores of each model. Along axis=D and step there is one law for each size, through its
checkpoints and runs; along C one through the best model of each budget. A column `weight` of an import weighs runs; it
needs method=ols and chooses no form.
"""

from rbpx.config.keys.laws import Fitting
from rbpx.config.keys.output import Drawn
from rbpx.questions.registry import Analysis


class FitKeys(Fitting, Drawn):
    """Keys of fit."""


ANALYSIS = Analysis(
    place=10,
    examples=(
        "python -m rbpx fit",
        "python -m rbpx fit model=ladder dataset=stdlib k='[1,2,5]' ties=mid",
        "python -m rbpx fit laws='[rbp,cross_entropy]' method=all",
        "python -m rbpx fit axis=D size=25k",
        "python -m rbpx fit axis=C source=sweep frontier=true",
        "python -m rbpx fit laws='[cross_entropy]' E='1.7 +- .05'",
        "python -m rbpx fit source=theirs laws='[cross_entropy]' size_by=active",
    ),
    title="Scaling laws",
    on_card=True,
    sizes=3,
    draws=True,
    small=True,
    plain=(
        *("law", "k", "source", "family", "dataset", "size", "variant", "revision", "method", "n_points"),
        *("C", "alpha", "alpha_lo", "alpha_hi", "E", "r2", "backtest_error", "status", "ties", "axis", "fit_id"),
    ),
)
