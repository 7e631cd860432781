"""Quantities as surfaces in size and training tokens, and the best model for a budget.

Fits y(S, D) to all trainings of a family on a text whose tokens D are known, measured or imported: -ln RBP_k at any k,
cross-entropy, error-entropy, or what laws= names. form= chooses y = E + A S^-alpha + B D^-beta (chinchilla), kaplan,
data_constrained, or all, which are compared by AIC, BIC and their errors on held-out largest runs. alpha is the
exponent of size, beta that of tokens. A terminal shows -ln RBP_k and cross-entropy, --details every quantity.

Intervals are over trainings, each with all its checkpoints, and over documents where those are known. The tables have
the constants; the best S and D for each of budgets=, C = 6 S D; the same with the head counted; and IsoFLOP and
envelope estimates. The fits are stored in `fits`.

Whether the effects of size and tokens can be separated is judged by the spread of S and D: the range of D/S, the
residual standard deviation of ln D on ln S (0 where tokens are a power of size), and the condition number of the
surface's derivatives. Where they vary together, as at a fixed D/S, the status is collinear, and a surface predicts only
near their line; `decide next=3` says which runs would help.

For sweeps (several runs of one size and as many tokens, imported with vary_lr and the like, or seeds) frontier=true
takes the best of each, the minimum of a quadratic in what they vary, and lists the best settings. over=10 fits the law
of well-tuned runs: squared residuals above it count a tenth, and its level and intervals are those of well-tuned runs.
A column `weight` of an import weights runs.

An outlier, such as a run that diverged, is named and left out, as in decide and in predict at S and D; outliers=keep
keeps it. By chance one of a hundred sets of runs has an outlier. With over= outliers are not tested.
"""

from rbpx.questions.registry import Analysis

ANALYSIS = Analysis(
    after="predict",
    examples=(
        "python -m rbpx surface",
        "python -m rbpx surface laws='[cross_entropy]' form=all budgets='[1e18,1e20]'",
        "python -m rbpx surface pin='{E: 1.69, alpha: 0.34 +- 0.02}'",
        "python -m rbpx surface source=them checkpoints=last delta=1e-4 --format json",
        "python -m rbpx surface source=sweep frontier=true",
    ),
    title="Size and tokens",
    sizes=3,
    draws=True,
    trainings=True,
    keys=(
        *("k", "ties", "resamples", "seed", "laws", "size_by", "form", "objective", "delta", "budgets"),
        *("unique_tokens", "last", "E", "pin", "frontier", "outliers", "over"),
    ),
    lacking="no family in store={store} has 3 trainings with known tokens on one text; import a table with a column D "
    "(python -m rbpx import FILE source=NAME), or measure with model.tokens=N",
)
