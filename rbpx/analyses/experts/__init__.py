"""Which size foretells larger models with experts: the parameters that a token uses, or all of them.

Fits ln y to ln N, to ln S, and to ln N, ln(S/N) and their product, N the parameters that a token uses (active_params)
and S all of them; ln(S/N) stands for the number of experts (arXiv 2202.01169). The largest two N are held out, and
foretold by each law from the smaller ones; the difference of their errors has an interval over models of other S/N.
Models must have seen equally many tokens, and those within 5 % of one N are one size. Choose models of one router with
source= or variant=; dense models belong to the same variant.
"""

from rbpx.analyses.registry import Analysis

ANALYSIS = Analysis(
    after="multiplier",
    theme="compare",
    examples=(
        "python -m rbpx experts source=theirs",
        "python -m rbpx experts laws='[cross_entropy]' dataset=c4 --format json",
    ),
    title="Active or all parameters",
    across=True,
    of_any_runs=True,
    keys=("k", "ties", "resamples", "seed", "laws"),
    lacking="experts needs models with active_params below S, of five sizes and equally many tokens; store={store} has "
    "none; import them with a column active_params beside S",
)
