"""Bits per byte and rank/V, to compare families with different tokenizers.

Shows for each model nats per token, bits per byte, tokens per byte, quantiles of the rank and of rank/V, and RBP at k =
V/1000 and V/100.

Bits per byte are nats of the scored tokens / ln 2 / bytes that they stand for. Intervals are over documents. Nats per
token and ranks can be compared under one tokenizer only, the others across tokenizers.
"""

from rbpx.config.keys.laws import Counted
from rbpx.config.keys.output import QuestionKeys
from rbpx.questions.registry import Analysis


class UnitsKeys(Counted, QuestionKeys):
    """Keys of units."""


ANALYSIS = Analysis(
    place=170,
    theme="compare",
    examples=("python -m rbpx units dataset=pydoc", "python -m rbpx units family='[ladder]' ties=mid --format csv"),
    plain=(
        *("source", "family", "dataset", "variant", "revision", "size", "non_embedding_params"),
        *("training_tokens", "vocab_size", "nats_per_token", "nats_per_token_lo"),
        *("nats_per_token_hi", "bits_per_byte", "bits_per_byte_lo", "bits_per_byte_hi"),
        *("tokens_per_byte", "rank_50", "rank_90", "rank_99", "relative_rank_50"),
        *("relative_rank_90", "relative_rank_99", "ties", "run_id"),
    ),
    title="Units across tokenizers",
    tokens=True,
)
