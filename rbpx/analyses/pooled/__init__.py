"""One exponent for several families on one text, and whether it misfits or they scatter.

Takes the families that were measured alike on one text (protocol, dtype, source) and fits each law with an
exponent that they share and constants of their own, y = C_f S^-alpha, and y = E + C_f S^-alpha with a shared E.
Beside it stand the families' own exponents and the test that they are equal.

Families that were trained alike err alike at the same size. `rho` is the mean correlation of their residuals,
`worth` the number of independent families that they amount to; the interval counts what they share at a size once.
Where two families have the same sizes (two trainings of one shape, seeds, reruns), their difference is pure scatter,
and the law is tested against it: misfit that all trainings share is not scatter, and more models do not average it
out. Elsewhere the curvature and the runs of the residuals are tested. Narrow with family= or source= to the families
that belong together. Kept in `fits` as law pooled, the quantity in params.loss.
"""

from rbpx.analyses.registry import Analysis

ANALYSIS = Analysis(
    after="gaps",
    examples=(
        "python -m rbpx pooled dataset=wikipedia",
        "python -m rbpx pooled family='[pythia,pythia-deduped]' k=1",
        "python -m rbpx pooled source=them ties=optimistic --format json",
    ),
    title="One exponent for several families",
    sizes=3,
    draws=True,
    across=True,
    keys=("k", "ties", "resamples", "seed", "laws"),
    lacking="no two families in store={store} were measured on one text alike at 3 sizes each; measure another family "
    "on it, or import one: python -m rbpx import FILE source=NAME ties=RULE family=NAME dataset=TEXT",
)
