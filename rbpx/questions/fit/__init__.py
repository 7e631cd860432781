"""Fit scaling laws to what the store holds.

Fits laws to -ln RBP_k at k = 1, 10 and 100, to cross-entropy (nats), and to imported quantities; laws=all adds those
derived from a lognormal of the ranks, the terms of cross-entropy, and more k. A law is fitted to one run per size, all
with the same text, protocol, dtype and revision, and is stored in `fits`. method= chooses least squares (ols, the
paper's), weights by the variance over documents (weighted), an irreducible term y = E + C S^-alpha (offset), Huber's
loss (robust), or all. 95 % intervals include document sampling and the scatter of the models; --format json gives each
separately. `form` says whether the data need an offset, or `either`. --details lists the scores of each model.

axis=D, C or step fits laws in training tokens, FLOPs or steps: along D and step one law for each size, through its
checkpoints and runs; along C one law, through the best model of each budget.

axis=QUANTITY@TEXT, as in axis=cross_entropy@stdlib, fits loss to loss: the quantity on this text against the one on
that text, y = E_y + K (x - E_x)^kappa, whatever the sizes, by errors in variables; with rbp, x is -ln RBP at the k of
k=. With several families it tests whether they share one curve.

For sweeps (several runs of one size and as many tokens) frontier=true takes the best of each, the minimum of a
quadratic in what they vary, and along C the best of those. over=10 fits the law of well-tuned runs: squared residuals
above it count a tenth, and its level and intervals are those of well-tuned runs. A column `weight` of an import weights
runs. Both need method=ols, and make no choice of form.

For models with experts size_by='[active,total]' compares which size predicts larger models better. It fits ln y to ln
N, to ln S, and to ln N, ln(S/N) and their product; N is the number of parameters that a token uses (active_params), S
all of them, and ln(S/N) stands for the number of experts (arXiv 2202.01169). The largest two N are held out, and each
law predicts them from the smaller ones; the differences of errors and of exponents have intervals over models of other
S/N. The models must have seen equally many tokens; those within 5 % of one N are one size. Choose models of one router
with source= or variant=; dense models belong to the same variant.
"""

from rbpx.questions.registry import Analysis

ANALYSIS = Analysis(
    after="",
    examples=(
        "python -m rbpx fit",
        "python -m rbpx fit model=ladder dataset=stdlib k='[1,2,5]' ties=mid",
        "python -m rbpx fit k=log laws='[rbp]' --format csv",
        "python -m rbpx fit laws='[rbp,cross_entropy]' method=all",
        "python -m rbpx fit laws=all",
        "python -m rbpx fit axis=D size=25k",
        "python -m rbpx fit axis=C source=sweep frontier=true",
        "python -m rbpx fit laws='[cross_entropy]' E='1.7 +- .05'",
        "python -m rbpx fit dataset=pydoc axis=cross_entropy@stdlib",
        "python -m rbpx fit source=theirs laws='[cross_entropy]' size_by='[active,total]'",
    ),
    title="Scaling laws",
    sizes=3,
    draws=True,
    small=True,
    keys=("k", "ties", "resamples", "seed", "laws", "axis", "size_by", "method", "E", "pin", "frontier", "over"),
)
