"""Pass@k against k: how often k attempts at an item succeed, from probabilities or counts.

Shows pass@k by the unbiased estimator, 1 - C(n - c, k) / C(n, k), with its interval over items and their samples and
both local slopes at each k; the exponent by least squares over the k that were measured, and a by the left tail of a
beta, a Kumaraswamy and a discretised distribution of p, with goodness of fit; what pass@k is to be at a hundred times
the samples, backtested by hiding all but a hundredth of them; laws in S of a and of pass@k; what ten attempts are worth
in size, beside what a tenfold rank is; and how ranks bound pass@k. k= are numbers of attempts; those beyond the samples
are foretold. A terminal shows pass@k at the first and the last k, or at those of k=; --details has the rest.

Each item fails in k independent attempts with probability (1 - p)^k; over items whose p reach down to 0 as p^(a-1) the
share that fails falls as k^-a, a power law that no single item has (arXiv 2502.17578). Items come from the store: the
probability of the exact reference answer at temperature 1, exp of the sum of its log-probabilities, which is a lower
bound of being right where several answers are; T= is for another temperature, once the verb temperature has measured
it. Or they are imported as counts: item, n_samples and n_correct.
"""

from rbpx.questions.registry import Analysis

ANALYSIS = Analysis(
    after="items",
    theme="tasks",
    examples=(
        "python -m rbpx attempts dataset=python_identifiers",
        "python -m rbpx attempts source=NAME k='[1,100,10000]'",
        "python -m rbpx attempts axis=D family=ladder --format csv",
    ),
    title="Attempts",
    draws=True,
    small=True,
    keys=("k", "T", "ties", "resamples", "seed", "axis"),
    lacking="attempts looks at items, and store={store} has none; measure some, as of dataset=python_identifiers, "
    "or import counts: python -m rbpx import FILE.csv source=NAME, with columns item, n_samples and n_correct",
)
