"""How RBP_k grows with k, and what a larger k is worth in size.

Fits -ln RBP_k = C k^-alpha_k to each model at its fixed size (arXiv 2510.20387, appendix B, table 1), at the paper's k
= 1 to 100 unless k= says otherwise. With the law in S this gives an exchange rate: how many times larger a model must
be to score at k = 1 what this one scores at k = 10. The interval is over documents, resampled at all k together; where
the points curve significantly, the law is marked `bends` and the exchange rate is local. Also fits one law for all k
and sizes, C k^-kappa S^-alpha: shows the range of k over which it is not rejected, and compares it with its rivals
(alpha that drifts with ln k, a constant for each k, a law for each k) by AIC, BIC and backtest.
"""

from rbpx.questions.registry import Analysis

ANALYSIS = Analysis(
    after="exponents",
    examples=("python -m rbpx klaw", "python -m rbpx klaw dataset=stdlib k='[1,2,5,10]' --format csv"),
    title="The law in k",
    draws=True,
    keys=("k", "ties", "resamples", "seed", "method", "axis"),
)
