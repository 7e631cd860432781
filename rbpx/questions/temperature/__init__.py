"""The temperature that a text prefers for each model, and the law at it.

A temperature T divides the logits before the softmax: it changes every probability and no rank. T* minimises the mean
cross-entropy of softmax(z / T) over the scored tokens of a run; above 1 the model is overconfident on this text. Shows
T*, cross-entropy at T = 1 and at T*, and both laws in S with the difference of their exponents, the part of the law
that is calibration. Intervals are over documents, with T* found anew for each bootstrap replicate.

A store holds no logits, so each run is measured once more, in its own precision, on the same documents with the same
protocol, checked by hash. The losses stay in the store (relation temperatures), so a second call, other resamples= and
the report need no model; a call that was stopped continues with the next run. device= and tokens_per_batch= change only
the speed. T is searched from 0.5 to 8; where T* lies outside, CE at T* is that at the nearer end.
"""

from rbpx.questions.registry import Analysis

ANALYSIS = Analysis(
    after="entropy",
    examples=(
        "python -m rbpx temperature dataset=pydoc",
        "python -m rbpx temperature model=ladder dataset=stdlib",
    ),
    title="Temperature",
    draws=True,
    tokens=True,
    keys=("device", "tokens_per_batch", "resamples", "seed"),
)
