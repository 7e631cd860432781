"""The temperature that a text prefers for each model, and the law at it.

A temperature T divides the logits before the softmax and moves no rank. T* minimises the mean cross-entropy of
softmax(z / T) over the scored tokens of a run. Shows T*, cross-entropy at T = 1 and at T*, and both laws in S with the
difference of their exponents, which says how much of a law is calibration. T is searched from 0.5 to 8.

A store holds no logits, so each run is measured once more, on the same documents (checked by hash) in its own protocol
and precision. The relation temperatures keeps the result; a call that was stopped continues with the next run. device=
and tokens_per_batch= change only the speed.
"""

from rbpx.questions.registry import Analysis

ANALYSIS = Analysis(
    examples=(
        "python -m rbpx temperature dataset=pydoc",
        "python -m rbpx temperature model=ladder dataset=stdlib",
    ),
    title="Temperature",
    draws=True,
    tokens=True,
    keys=("device", "tokens_per_batch", "resamples", "seed"),
)
