"""What protocol, BOS, dtype and tie rule do to RBP_k, cross-entropy, alpha.

For each text that a family was measured on in more than one way (protocol, window, BOS, dtype), compares every
way under every tie rule with the reference: the paper's protocol in float32 with pessimistic ties. RBP_k and
cross-entropy of the largest size, and alpha over all sizes, are given as differences from the reference at the
same sizes, with intervals from documents resampled on both sides together, and for alpha from the models too.
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
