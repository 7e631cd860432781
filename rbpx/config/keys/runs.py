"""Keys that choose the cells of a grid, how they are measured, and which runs of a store a question reads."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, cast

from rbpx.config.keys.key import Files, Keys, Stored, key, name_of, names_of, positive, whole
from rbpx.config.model.family import ModelConfig
from rbpx.config.model.placement import EngineConfig, MemoryLimits, ParallelConfig, read_limits
from rbpx.config.options import Bos, Checkpoints, Device, Dtype, Padding
from rbpx.config.text.dataset import DatasetConfig, ProtocolConfig
from rbpx.errors import RbpxError
from rbpx.laws.names import Axis, OnText, SizeBy
from rbpx.laws.priors import Prior
from rbpx.ties import OFFICIAL, Ties

SEED: Final = 42
LARGEST_SAMPLE: Final = 1000  # documents, as in the RBP paper
N_BEST: Final = 5  # tokens kept at each position, where best= asks for them
_MOST_SHARDS: Final = 100_000


def _sizes(key: str, value: Any) -> list[str] | None:
    sizes = names_of(key, value) or []
    return None if "all" in sizes else sizes


@dataclass(frozen=True)
class Shard:
    """A part of a grid that is divided among machines, from 1: `shard=3/16`; `shard=16` is the number of parts."""

    number: int | None
    n_shards: int

    def __str__(self) -> str:
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


def _best(key: str, value: int) -> int:
    if value not in (0, N_BEST):
        raise RbpxError(f"best={value} is not kept; give best={N_BEST} for the five best tokens, or leave it out")
    return value


class Chosen(Stored):
    """Models, texts and how they are read."""

    model: ModelConfig | None = key(
        None,
        "{models}; model=hub model.id=ORG/NAME, folder, glob or FILE.gguf; model.revision=step1000, a list, all, log",
        shown="FAMILY",
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
    )
    protocol: ProtocolConfig | None = key(
        None,
        "paper (default): documents cut to 512 tokens or the model's context; official: as the authors' code; "
        "rolling: whole documents, protocol.window=1024 protocol.stride=512; harness: as lm-eval-harness",
        shown="NAME",
    )

    def check(self) -> None:
        """Checks names and what protocol=official fixes; a dataset of items has their protocol."""
        super().check()
        if self.model is not None:
            self.model.revisions()
            name_of("model.quantise", self.model.quantise)
            names_of("model.adapter", self.model.adapter)
            names_of("model.variant", self.model.variant)
        if self.protocol is not None and self.dataset is not None and self.dataset.has_items:
            self.protocol = self.typed["protocol"] = self.protocol.of_items()
        if self.protocol is not None and self.protocol.name == OFFICIAL and self.model is not None:
            limit, seed = self.typed.get("limit", LARGEST_SAMPLE), self.typed.get("seed", SEED)
            fixed: dict[str, tuple[object, object]] = {
                "seed": (seed, SEED),
                "model.bos": (self.model.bos.value, Bos.tokenizer.value),
                "protocol.window": (self.protocol.window, ProtocolConfig.window),
                "limit": (limit, min(limit, LARGEST_SAMPLE)),
            }
            for name, (value, theirs) in fixed.items():
                if value != theirs:
                    how = "drop it, or use protocol=paper"
                    raise RbpxError(f"{name}={value} is not what the authors used, which is {theirs}; {how}")


class Narrowing(Chosen):
    """Which runs of a store a question reads; None means all."""

    FILES: ClassVar[Files] = Stored.FILES
    model: ModelConfig | None = key(
        None, "a family that the store holds; model.revision=R, model.quantise=Q4_1: its weights so", shown="FAMILY"
    )
    dataset: DatasetConfig | None = key(None, "a text, measured or imported; one or a list", shown="NAME")
    protocol: ProtocolConfig | None = key(
        None, "texts that were read so: paper, official, rolling, harness", shown="NAME"
    )
    family: list[str] | None = key(None, "families by name, one or a list", names_of, "NAME")
    source: list[str] | None = key(None, "measured, or an import's name; one or a list", names_of, "NAME")
    variant: list[str] | None = key(
        None, "models that were trained in one way, as the column variant has it; one or a list", names_of, "NAME"
    )
    checkpoints: Checkpoints = key(
        Checkpoints.all, "all, or last: of each training only its last checkpoint counts", shown="all"
    )
    axis = cast("Axis | OnText", Axis.S)
    base = cast("str | None", None)
    E = cast("Prior | None", None)
    frontier = False
    last = cast("int | None", None)
    size_by = SizeBy.total
    slices = cast("str | dict[str, str] | None", None)
    ties = cast("Ties | None", None)

    @property
    def along(self) -> Axis:
        """The axis of laws; none for a quantity on another text."""
        assert isinstance(self.axis, Axis)
        return self.axis

    @property
    def variants(self) -> list[str] | None:
        """The variants to which a question is narrowed, which one that is compared with a base does not."""
        return self.variant if self.base is None else None

    def is_about(self, family: str) -> bool:
        """Whether a family is one of the two compared, if any."""
        names = [name for name in (self.base, *(self.variant or ())) if name is not None]
        return self.base is None or family in (*names, *(name.partition(":")[0] for name in names))


class Seeded(Keys):
    """The seed of draws."""

    seed: int = key(SEED, "decides which documents are drawn, and the bootstrap replicates", whole(0, 2**63 - 1), "42")


class GridKeys(Seeded, Chosen):
    """Which cells make a grid, and how they are measured."""

    FILES: ClassVar[Files] = dict(model="ladder", dataset="stdlib", protocol="paper", parallel="data", engine=None)
    limit: int = key(LARGEST_SAMPLE, "documents at most (audit: 50 of each run), drawn by seed=", whole(0), "1000")
    dtype: Dtype | None = key(
        Dtype.float32, "precision of weights and activations; logits are float32 in each", shown="float32"
    )
    device: Device = key(
        Device.auto, "cpu or cuda; split: a model larger than one GPU, over all GPUs, memory and disk", shown="auto"
    )
    tokens_per_batch: int | None = key(
        None,
        "padded tokens of a batch (GPU: 32768); changes speed, and logprobs by rounding (1e-5)",
        whole(1),
        shown="4096",
    )
    memory: MemoryLimits | None = key(
        None, "limits of device=split, {example}; devices not named hold nothing", read_limits,
        example={0: "20GiB", "cpu": "60GiB"},
    )  # fmt: skip
    parallel: ParallelConfig = key(
        ParallelConfig(),
        "tensor: one model over all processes of torchrun; parallel.tensor=4: over groups of four",
        shown="data",
    )
    engine: EngineConfig | None = key(
        None, "a running server measures: engine.url=http://host:8000/v1 dtype=bfloat16, its own", shown="vllm"
    )
    deterministic: bool = key(
        False, "the same bits for any tokens_per_batch (not for any number of processes); a window a pass", shown="true"
    )
    best: int = key(
        0, "5 keeps the five best tokens of each place, for view; reads the model twice, 25 bytes a token", _best, "0"
    )
    shard: Shard | None = key(
        None, "one part of the grid, here the third of 16; plan format=jobs prints the lines", _shard, "3/16"
    )
    download: str | None = None  # the command that fetches what is missing from the hub

    def check(self) -> None:
        """Refuses keys that the device or the engine does not have."""
        super().check()
        if self.best and self.parallel.n_processes() != 1:
            raise RbpxError(f"best={self.best} needs all logits in one process; drop it, or parallel=")
        if self.memory is not None and self.device is not Device.split:
            raise RbpxError(
                f"memory={self.typed['memory']} limits a model that is split; add device=split, or drop memory="
            )
        self._check_engine()

    def _check_engine(self) -> None:
        if self.engine is None:
            return
        ours: dict[str, tuple[object, Sequence[object]]] = {
            "best": (self.best, (0,)),
            "device": (self.device, (Device.auto,)),
            "deterministic": (self.deterministic, (False,)),
            "parallel.tensor": (self.parallel.tensor, (1,)),
            "model.quantise": (self.model and self.model.quantise, (None,)),
            "protocol.padding": (self.protocol and self.protocol.padding, (None, Padding.counted)),
        }
        for name, (value, plain) in ours.items():
            if value not in plain:
                value = getattr(value, "value", value)
                raise RbpxError(f"{name}={value} is of rbpx's own measuring, not of engine={self.engine.name}; drop it")

    def tokens_in_batch(self, device: str) -> int:
        """Padded tokens of a batch; 1 makes each window a batch, independent of the others."""
        return 1 if self.deterministic else self.tokens_per_batch or (4096 if device == "cpu" else 32_768)


class Planning(GridKeys):
    """Keys of a plan."""

    calibrate: bool = key(False, "whether plan measures how fast this machine is", shown="true")


class Auditing(GridKeys):
    """Keys of an audit."""

    tolerance: float = key(
        2.0, "how many times as far as rounding explains another engine may be from float32", positive("times"), "2"
    )
