"""Keys that choose the cells of a grid, how they are measured, and which runs of a store a question reads."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from rbpx.config.keys.key import key, name_of, names_of, positive, whole
from rbpx.config.model.family import ModelConfig
from rbpx.config.model.placement import EngineConfig, MemoryLimits, ParallelConfig, read_limits
from rbpx.config.options import Device, Dtype
from rbpx.config.text.dataset import DatasetConfig, ProtocolConfig
from rbpx.errors import RbpxError

SEED: Final = 42
LARGEST_SAMPLE: Final = 1000  # documents, as in the RBP paper
N_BEST: Final = 5  # tokens kept at each position, where best= asks for them
_MOST_SHARDS: Final = 100_000


def _sizes(key: str, value: Any) -> list[str] | None:
    sizes = names_of(key, value) or []
    return None if "all" in sizes else sizes


@dataclass(frozen=True)
class Shard:
    """One part of a grid that is divided among machines: `shard=3/16`; `shard=16` is the number of parts.

    Attributes:
        number: the part, from 1; None for all parts.
        n_shards: number of parts.
    """

    number: int | None
    n_shards: int

    def __str__(self) -> str:
        """Returns the shard as typed."""
        return str(self.n_shards) if self.number is None else f"{self.number}/{self.n_shards}"


def _shard(key: str, value: Any) -> Shard | None:
    if value is None:
        return None
    written = re.fullmatch(r"(?:(\d+)/)?(\d+)", "" if isinstance(value, bool) else str(value))
    if written is not None:
        shard = Shard(int(written[1]) if written[1] else None, int(written[2]))
        if 1 <= (1 if shard.number is None else shard.number) <= shard.n_shards <= _MOST_SHARDS:
            return shard
    raise RbpxError(f"shard={value} is not a part of a grid of at most {_MOST_SHARDS:,}; the third of 16 is shard=3/16")


IN_GROUPS: Final[Mapping[str, tuple[str, str]]] = {
    "model.gguf": ("FILE", "GGUF files in the folder model.id, one or a list (pip install 'rbpx[gguf]')"),
    "model.pickled": (
        "true",
        "take weights from pytorch_model.bin where there are no safetensors; tensors only, no code is run",
    ),
    "model.quantise": (
        "KIND",
        "weights of linear layers rounded to int8, int4 or nf4 by torchao (pip install 'rbpx[quantise]')",
    ),
    "model.adapter": (
        "FOLDER",
        "an adapter of peft on the model, or a list of variants (pip install 'rbpx[adapters]')",
    ),
    "model.bos": (
        "RULE",
        "tokenizer (default): special tokens as the tokenizer adds them; add: exactly one BOS; none",
    ),
    "model.chat": (
        "true",
        "the tokenizer's chat template renders conversations of dataset.messages=COLUMN, or context and target as user "
        "and assistant; model.system=TEXT is the system's message",
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
    "dataset.joined": (
        "skip",
        "or refuse: items whose target the tokenizer joins to the context are left out and counted",
    ),
    "protocol.prefix": (
        "TOKEN",
        "begins each window of protocol=rolling: bos, eos, the text of a token, or its id; by default the first window "
        "alone begins with what the tokenizer puts before a text",
    ),
    "protocol.padding": ("counted", "or masked: rows of the vocabulary without a token (Pythia has 27 or more)"),
}
"""Keys of groups that help explains: what stands behind the name, and what it means."""

GRID: Final = (
    *(
        "model",
        "model.gguf",
        "model.bos",
        "model.chat",
        "model.pickled",
        "model.quantise",
        "model.adapter",
        "size",
        "dataset",
    ),
    *("dataset.fields", "dataset.chunk", "dataset.target", "dataset.joined", "dataset.draw", "protocol"),
    *("protocol.prefix", "protocol.padding", "limit", "seed", "dtype", "device", "memory", "parallel", "engine"),
    *("tokens_per_batch", "deterministic"),
)
"""The keys that say which cells make a grid, and how they are measured."""


@dataclass(kw_only=True)
class RunKeys:
    """Keys that choose runs; None chooses all."""

    model: ModelConfig | None = key(
        None,
        "{models}; model=hub model.id=ORG/NAME, a folder or FILE.gguf; model.revision=step1000, a list, all, log",
        shown="FAMILY",
        narrows="a family that the store holds; model.revision=R, model.quantise=Q4_1: its weights so",
    )
    size: list[str] | None = key(
        "all", "all (default), one size, or a list: {example}", _sizes, "SIZE", values=("all",), text=True,
        example=["3k", "25k"],
    )  # fmt: skip
    dataset: DatasetConfig | None = key(
        None,
        "{datasets}; dataset=file dataset.path=FILE, a folder or a glob, for your own text; dataset.path= beside a "
        "known one reads it from there; dataset=hub dataset.hub=ORG/NAME dataset.split=test, also subset=, revision=",
        shown="NAME",
        narrows="a text, measured or imported",
    )
    protocol: ProtocolConfig | None = key(
        None,
        "paper (default): documents cut to 512 tokens or the model's context; official: as the authors' code; "
        "rolling: whole documents, protocol.window=1024 protocol.stride=512; harness: as lm-eval-harness",
        shown="NAME",
        narrows="texts that were read so: paper, official, rolling, harness",
    )
    family: list[str] | None = key(None, "families by name, one or a list", names_of, "NAME")
    source: str | None = key(None, "measured, or the name under which results were imported", name_of, "NAME")
    variant: list[str] | None = key(
        None, "models that were trained in one way, as the column variant has it; one or a list", names_of, "NAME"
    )
    limit: int = key(LARGEST_SAMPLE, "documents at most (audit: 50 of each run), drawn by seed=", whole(0), "1000")
    seed: int = key(SEED, "decides which documents are drawn, and the bootstrap replicates", whole(0, 2**63 - 1), "42")
    dtype: Dtype | None = key(
        Dtype.float32, "precision of weights and activations; logits are float32 in each", shown="float32"
    )
    shard: Shard | None = key(
        None, "one part of the grid, here the third of 16; plan format=jobs prints the lines", _shard, "3/16"
    )


def _best(key: str, value: int) -> int:
    if value not in (0, N_BEST):
        raise RbpxError(f"best={value} is not kept; give best={N_BEST} for the five best tokens, or leave it out")
    return value


def _limits(key: str, value: Any) -> MemoryLimits | None:
    return None if value is None else read_limits(value)


@dataclass(kw_only=True)
class MeasuringKeys:
    """Keys that say how and on which device to measure."""

    device: Device = key(
        Device.auto, "cpu or cuda; split: a model larger than one GPU, over all GPUs, memory and disk", shown="auto"
    )
    memory: MemoryLimits | None = key(
        None, "limits of device=split, {example}; devices not named hold nothing", _limits,
        example={0: "20GiB", "cpu": "60GiB"},
    )  # fmt: skip
    tokens_per_batch: int | None = key(
        None,
        "padded tokens of a batch (GPU: 32768); changes speed, and logprobs by rounding (1e-5)",
        whole(1),
        shown="4096",
    )
    deterministic: bool = key(
        False, "the same bits for any tokens_per_batch (not for any number of processes); a window a pass", shown="true"
    )
    parallel: ParallelConfig = key(
        ParallelConfig(),
        "tensor: one model over all processes of torchrun; parallel.tensor=4: over groups of four",
        shown="data",
    )
    engine: EngineConfig | None = key(
        None,
        "a running server measures: engine.url=http://host:8000/v1 dtype=bfloat16, its own",
        shown="vllm",
        narrows="the server that measured the runs is asked again: engine.url=http://host:8000/v1",
    )
    best: int = key(
        0, "5 keeps the five best tokens of each place, for view; reads the model twice, 25 bytes a token", _best, "0"
    )
    calibrate: bool = key(False, "whether plan measures how fast this machine is", shown="true")
    tolerance: float = key(
        2.0, "how many times as far as rounding explains another engine may be from float32", positive("times"), "2"
    )
