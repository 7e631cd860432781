"""What protocol, BOS, dtype and tie rule do to RBP_k, cross-entropy, alpha.

Compares every way in which a family was measured on a text (protocol, window, BOS, dtype), under every tie rule, with
the reference: the paper's protocol in float32 with pessimistic ties. Gives the differences from the reference at the
same sizes: of RBP_k and cross-entropy of the largest size, and of alpha over all sizes. Their intervals are from
documents resampled on both sides together; those of alpha also include the scatter of the models.
Measure the ways first, for example: measure dtype=bfloat16.
"""

from rbpx.analyses.registry import Analysis

ANALYSIS = Analysis(
    after="pooled",
    theme="measure",
    examples=("python -m rbpx choices dataset=pydoc", "python -m rbpx choices k='[1,100]' --format csv"),
    title="Ways of measuring",
    tokens=True,
    across=True,
    keys=("k", "ties", "resamples", "seed"),
)
