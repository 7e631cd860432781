"""Two models on one text: bits per byte by kind, position, slice, document; hits gained and lost.

Compares two runs, `compare A B`, on every text that both were measured on: the whole text, the kinds of its words, your
slices. Differences are b - a in bits per byte: below 0, b is better.

Intervals are over documents. The nats of a token are spread over its bytes, so that models with different tokenizers
compare byte by byte. --details adds places in bytes, the documents that differ most, and under one tokenizer the hits
gained and lost at k and how ranks move.
"""

from rbpx.config.keys.laws import K, TieRule
from rbpx.config.keys.output import Queried, QuestionKeys
from rbpx.config.keys.tasks import Slices, TwoModels
from rbpx.questions.registry import Analysis


class CompareKeys(TwoModels, K, TieRule, Slices, Queried, QuestionKeys):
    """Keys of compare."""


ANALYSIS = Analysis(
    place=180,
    theme="compare",
    examples=(
        "python -m rbpx compare a=ladder/25k b=ladder/200k dataset=pydoc",
        "python -m rbpx compare ladder/3.2m:float32 ladder/3.2m:bfloat16 k=1",
        "python -m rbpx compare ladder/25k ladder/200k slices='{early: \"first_byte < 64\"}' --format json",
    ),
    plain=(
        *("kind", "a", "b", "dataset", "by", "name", "k", "bits_a", "bits_b", "change", "change_lo", "change_hi"),
        *("share", "n_bytes", "rbp_a", "rbp_b", "gained", "lost", "same", "better", "equal", "worse", "protocol"),
        "ties",
    ),
    title="Two models on one text",
    tokens=True,
    across=True,
    words=("a", "b"),
    lacking="compare needs two models that were measured on the same text; store={store} has none",
)
