"""Quantities as surfaces in size and training tokens, and the best model for a budget.

Fits y(S, D) to all trainings of a family on a text whose tokens D are known: -ln RBP_k, cross-entropy, error-entropy,
or what laws= names. form= is chinchilla (y = E + A S^-alpha + B D^-beta), kaplan, data_constrained, or all, which AIC,
BIC and errors on held-out largest runs compare. Intervals are over trainings, each with all its checkpoints, and over
documents where known. flops= adds the best S and D of each (C = 6 S D), averaged over forms as in `decide`; where
form= is typed, they are that form's own, and tell how they move if the head counts. --details shows every quantity.
Kept in `fits`.

The spread of S and D says whether their effects can be told apart. Where both vary together, as at a fixed D/S, the
status is collinear and a surface predicts only near their line; `decide next=3` says which runs would help.

In sweeps (several runs of one size and as many tokens, imported with vary_lr and the like, or seeds) frontier=true
takes the minimum of a quadratic in what they vary, and lists it with the best settings. A column
`weight` of an import weighs runs.

A run outside what the others allow, such as one that diverged, is named and left out, also by `decide` and `predict`;
outliers=keep counts it. Of a hundred sets of runs that scatter alike one has such a run.
"""

from rbpx.questions.registry import Analysis

ANALYSIS = Analysis(
    examples=(
        "python -m rbpx surface",
        "python -m rbpx surface laws='[cross_entropy]' form=all flops='[1e18,1e20]'",
        "python -m rbpx surface pin='{E: 1.69, alpha: 0.34 +- 0.02}'",
        "python -m rbpx surface source=them checkpoints=last delta=1e-4 --format json",
        "python -m rbpx surface source=sweep frontier=true",
    ),
    title="Size and tokens",
    sizes=3,
    draws=True,
    trainings=True,
    keys=(
        *("k", "ties", "resamples", "seed", "laws", "size_by", "form", "objective", "delta", "flops"),
        *("unique_tokens", "last", "E", "pin", "frontier", "outliers"),
    ),
    lacking="no family in store={store} has 3 trainings with known tokens on one text; import a table with a column D "
    "(python -m rbpx import FILE source=NAME), or measure with model.tokens=N",
)
