"""What float32 would change: ranks that move, RBP_k, nats and exponents.

Measures 50 documents (limit=) of each run again in float32 and writes nothing: how many ranks moved and how far, how
many tokens crossed k, and how much RBP_k, cross-entropy and the exponents change.

A run measured in float32 by the same versions on the same kind of device is left out; dtype=float32 measures it anyway.
A run of another engine is refused, with exit status 1, where the share of tokens whose rank differs, or the largest
difference of a log-probability, is more than tolerance= times that of rbpx's own run in that dtype (in float32: of two
runs of rbpx). engine=vllm engine.url=... asks the engine again about runs that it measured, which shows its own noise;
it must have the version and the model of each.
"""

from typing import ClassVar

from rbpx.config.keys.key import Files, key, whole
from rbpx.config.keys.laws import Counted
from rbpx.config.keys.output import QuestionKeys
from rbpx.config.keys.runs import Auditing
from rbpx.config.model.placement import EngineConfig
from rbpx.config.options import Dtype
from rbpx.questions.registry import Analysis


class AuditKeys(Counted, QuestionKeys, Auditing):
    """Keys of audit."""

    WITHOUT = ("memory", "parallel", "deterministic", "best", "shard")

    limit: int = key(50, "documents at most (audit: 50 of each run), drawn by seed=", whole(0), "1000")
    dtype: Dtype | None = key(None, "precision of weights and activations; logits are float32 in each", shown="float32")
    engine: EngineConfig | None = key(
        None,
        "the server that measured the runs is asked again: engine.url=http://host:8000/v1",
        shown="vllm",
    )
    FILES: ClassVar[Files] = {**QuestionKeys.FILES, "engine": None}


ANALYSIS = Analysis(
    place=230,
    theme="measure",
    examples=(
        "python -m rbpx audit dataset=pydoc limit=10",
        "python -m rbpx audit dtype=bfloat16 limit=20 k='[1,10,100,1000]' --format json",
        "python -m rbpx audit dataset=pydoc engine=vllm engine.url=http://host:8000/v1",
    ),
    plain=(
        *("kind", "family", "dataset", "protocol", "dtype", "size", "variant", "S", "law", "k", "stored", "again"),
        *("difference", "difference_lo", "difference_hi", "n_lost", "n_gained", "is_same", "against", "n_documents"),
        *("largest_logprob_move", "status", "run_id", "ties"),
    ),
    title="Audit of precision",
    tokens=True,
    across=True,
)
