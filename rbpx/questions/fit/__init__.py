"""Fit scaling laws to what the store holds.

Fits -ln RBP_k at k = 1, 10 and 100, cross-entropy (nats), and what was imported in their place; laws=all adds what
derives from a lognormal of the ranks, the terms of cross-entropy and more k. Laws are kept in `fits`. A law is fitted
to one run per size, all alike in text, protocol, dtype and revision. method= chooses least squares (ols, the paper's),
weights by the variance over documents (weighted), an irreducible term y = E + C S^-alpha (offset), Huber's loss
(robust), or all. 95 % intervals include document sampling and the scatter of the models; --format json gives each
separately. `form` says whether the data call for an offset, or `either`. --details has what each model scores.
axis=D, C or step fits laws in training tokens, FLOPs or steps: along D and step a law for each size, through its
checkpoints and runs; along C one law, through the best model of each budget.

axis=QUANTITY@TEXT, as axis=cross_entropy@stdlib, fits loss to loss: what models show on this text against what
they show on that one, whatever their size, y = E_y + K (x - E_x)^kappa, by errors in variables; x of rbp is -ln RBP
at the k of k=. Several families are tested for one curve.
Of sweeps (several runs of one size and as many tokens) frontier=true takes the best of each, the minimum of a quadratic
in what they vary, and along C the best of those. over=10 gives the law of well-tuned runs: squares above it count a
tenth, and its level and intervals are those of runs that are not badly tuned. A column `weight` of an import weighs
runs. Both take method=ols, without a choice of form.

Of models with experts size_by='[active,total]' says which size foretells larger ones: it fits ln y to ln N, to ln S,
and to ln N, ln(S/N) and their product, N the parameters that a token uses (active_params) and S all of them; ln(S/N)
stands for the number of experts (arXiv 2202.01169). The largest two N are held out, and foretold by each law from the
smaller ones; the differences of their errors and of their exponents have intervals over models of other S/N. Models
must have seen equally many tokens, and those within 5 % of one N are one size. Choose models of one router with source=
or variant=; dense models belong to the same variant.
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
