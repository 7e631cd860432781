"""What protocol, BOS, dtype and tie rule do, and what float32 would change.

First, from the store alone, every way in which a family was measured on a text (protocol, window, BOS, dtype), under
every tie rule, beside the reference: the paper's protocol in float32 with pessimistic ties. Shown are the differences
at the same sizes: of RBP_k and cross-entropy (CE, nats) of the largest size, and of alpha over all sizes. To have
another way, measure it, for example: measure dtype=bfloat16. limit=0 stops here, and loads no model.

Then measures 50 documents (limit=) of each run again in float32, the same documents for every size, and compares
them with what is stored: how many ranks moved and how far, how many tokens crossed k, and how much RBP_k,
cross-entropy and the exponents of their laws change. Model, tokenizer and text must be those of the run; device= and
tokens_per_batch= may differ. Nothing is written. Intervals are from documents resampled on both sides together; those
of alpha also include the scatter of the models.

A run of another engine (engine=vllm) is compared with rbpx's float32 on the same tokens. It is refused, with exit
status 1, where the share of tokens whose rank differs, or the largest difference of a log-probability, is more than
tolerance=2 times what rbpx's own run in that dtype has (in float32: what two runs of rbpx may have).

engine=vllm engine.url=... asks the engine itself again about runs that it measured, in an order drawn by seed= and in
batches of tokens_per_batch=. What moves then is its own noise. It must have the version and the model of each run.

A run that was measured in float32 by the same versions on the same kind of device would give the same numbers again,
so it is left out. dtype=float32 measures such runs anyway, and the table says whether they agree up to rounding.
dtype= and engine= say of which runs documents are measured again; ways are compared whatever they say.
"""

from rbpx.questions.registry import Analysis

ANALYSIS = Analysis(
    after="outcomes",
    theme="measure",
    examples=(
        "python -m rbpx audit dataset=pydoc limit=0",
        "python -m rbpx audit dtype=bfloat16 limit=20 k='[1,10,100,1000]' --format json",
        "python -m rbpx audit dataset=pydoc engine=vllm engine.url=http://host:8000/v1",
    ),
    title="Audit of precision",
    tokens=True,
    across=True,
    primary="audit",
    keys=("k", "ties", "limit", "dtype", "device", "engine", "tokens_per_batch", "tolerance", "resamples", "seed"),
)
