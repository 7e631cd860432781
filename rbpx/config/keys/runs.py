"""Keys that say which cells make a grid, and which runs of a store a question looks at."""

from collections.abc import Mapping
from typing import Any, Final

from rbpx.config.keys.key import Asked, Key, as_typed, name_of, names_of, whole
from rbpx.config.model.family import ModelConfig
from rbpx.config.options import Dtype
from rbpx.config.shard import Shard, read_shard
from rbpx.config.text.dataset import DatasetConfig
from rbpx.config.text.protocol import ProtocolConfig

__all__ = ["GRID", "IN_GROUPS", "LARGEST_SAMPLE", "SEED", "RunKeys"]

SEED: Final = 42
LARGEST_SAMPLE: Final = 1000  # documents, as in the RBP paper


def _models(key: str, value: ModelConfig | None) -> ModelConfig | None:
    if value is not None:
        value.revisions()
    return value


def _sizes(key: str, value: Any) -> list[str] | None:
    sizes = names_of(key, value) or []
    return None if "all" in sizes else sizes


def _part(key: str, value: Any) -> Shard | None:
    return read_shard(value)


IN_GROUPS: Final[Mapping[str, tuple[str, str]]] = {
    "model.pickled": (
        "true",
        "take weights from pytorch_model.bin where there are no safetensors; tensors only, no code is run",
    ),
    "model.quantise": (
        "KIND",
        "weights of linear layers rounded to int8, int4 or nf4 by torchao (pip install 'rbpx[quantise]')",
    ),
    "model.bos": (
        "RULE",
        "tokenizer (default): special tokens as the tokenizer adds them; add: exactly one BOS; none",
    ),
    "dataset.fields": (
        "",
        "columns that make a document, '[question,answer]'; dataset.where='{column: value}' and "
        "dataset.longer_than=N choose rows, dataset.articles=true joins lines into articles",
    ),
    "dataset.chunk": (
        "none",
        "or paragraph, line: what of a text on this machine makes a document; dataset.name=NAME names it",
    ),
    "dataset.target": (
        "COLUMN",
        "rows are items, and only what follows dataset.context='[question]' is scored, or follows "
        "'dataset.template=\"Q: {question}\\nA:\"'; or dataset.choices=COLUMN dataset.right=COLUMN, of which `items` "
        "shows accuracies; dataset.fewshot=5 puts examples in front",
    ),
    "dataset.draw": (
        "HOW",
        "whole: load, shuffle, take the first; parts, stream: the same documents, with less loaded; first: the first "
        "rows, shuffled. What was drawn stays in the store, in samples/",
    ),
    "protocol.padding": ("counted", "or masked: rows of the vocabulary without a token (Pythia has 27 or more)"),
}
"""Keys of groups that help explains: what stands behind the name, and what it means."""

GRID: Final = (
    *("model", "model.bos", "model.pickled", "model.quantise", "size", "dataset", "dataset.fields", "dataset.chunk"),
    *("dataset.target", "dataset.draw", "protocol", "protocol.padding", "limit", "seed", "dtype", "device", "memory"),
    *("parallel", "engine", "tokens_per_batch", "deterministic"),
)
"""The keys that say which cells make a grid, and how they are measured."""


class RunKeys(Asked):
    """Which runs; lists are None where all are meant."""

    model: Key[ModelConfig | None] = Key(ModelConfig | None, None, _models, "FAMILY").says(
        "{models}; model=hub model.id=ORG/NAME or a folder; model.revision=step1000, a list, all or log: checkpoints",
        "narrows to a family that the store holds, model.revision=step1000 to a revision of it",
    )
    size: Key[list[str] | None] = Key(Any, "all", _sizes, "SIZE", values=("all",)).says(
        "all (default), one, or a list: size='[3k,25k]'",
        "narrows to sizes: all (default), one, or a list: size='[3k,25k]'",
    )
    dataset: Key[DatasetConfig | None] = Key(DatasetConfig | None, None, as_typed, "NAME").says(
        "{datasets}; dataset=file dataset.path=FILE for your own text; dataset.path= beside a known dataset reads "
        "that from a file; dataset=hub dataset.hub=ORG/NAME dataset.split=test, also subset=, revision=",
        "narrows to a text, measured or imported",
    )
    protocol: Key[ProtocolConfig | None] = Key(ProtocolConfig | None, None, as_typed, "NAME").says(
        "paper (default): documents cut to 512 tokens or the model's context; official: as the authors' code; "
        "rolling: whole documents, protocol.window=1024 protocol.stride=512; harness: as lm-eval-harness",
        "narrows to texts that were read so: paper, official, rolling, harness",
    )
    family: Key[list[str] | None] = Key(Any, None, names_of, "NAME").says(
        "narrows to families by name, one or a list, also those without a file in conf/model"
    )
    source: Key[str | None] = Key(Any, None, name_of, "NAME").says(
        "narrows to measured, or to what was imported under a name"
    )
    variant: Key[list[str] | None] = Key(Any, None, names_of, "NAME").says(
        "narrows to models that were trained in one way, as the column variant has it; one or a list"
    )
    limit: Key[int] = Key(int, LARGEST_SAMPLE, whole(1), "N").says(
        "documents at most, default 1000 (audit: 50 of each run), drawn with seed=42"
    )
    seed: Key[int] = Key(int, SEED, whole(0, 2**63 - 1), "42").says("of the documents that are drawn, and of resamples")
    dtype: Key[Dtype | None] = Key(Dtype | None, Dtype.float32, as_typed, "float32").says(
        "or bfloat16, float16; logits are float32 in each"
    )
    shard: Key[Shard | None] = Key(Any, None, _part, "3/16").says(
        "the third of 16 parts of the grid: measure, plan, status; plan ... --format jobs prints the lines"
    )
