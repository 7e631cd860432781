"""Divides a request into its grid of cells, each one model, dataset and protocol with the key of its measurement."""

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from glob import glob
from pathlib import Path
from typing import Any, Final

from rbpx.config.keys.key import names_of
from rbpx.config.keys.runs import GridKeys
from rbpx.config.model.adapter import base_of, is_adapter, variants_of
from rbpx.config.model.family import GGUF, Member, ModelConfig, is_gguf
from rbpx.config.model.placement import EngineConfig
from rbpx.config.model.training import UNKNOWN, TrainingFacts
from rbpx.config.options import Bos, Joined, Padding
from rbpx.config.text.dataset import DatasetConfig, ProtocolConfig
from rbpx.errors import RbpxError
from rbpx.files.digest import digest

_UNLIMITED = 2048  # tokens per window of a model without a maximum length, as in lm-eval
INCOMPLETE = "a measurement needs model=FAMILY and dataset=NAME; see python -m rbpx --help"
_OF_NO_KEY: Final = ("non_embedding_params", "stored_as", "pickled", "training")
_BY_NAME: Final = {
    "": ("dtype", "limit", "seed", "deterministic"),
    "model": ("bos", "chat", "system", "quantise", "pickled"),
    "dataset": ("joined",),
    "protocol": ("window", "whole", "stride", "padding", "prefix"),
}  # keys of a request, and of its groups, that are fields of a cell


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One measurement as requested; its fields are keys of the request, by their names there.

    Options at the default of versions that lacked them do not change its key, nor do S and the last three fields.

    Attributes:
        model_hash: checksum of a local model; a hub id is identified by its revision.
        revision: as requested; None is the hub's default.
        non_embedding_params: S as published.
        text_hash: of the drawn documents; None if they are not on this machine, so that `key` finds no run.
        engine_version: as requested; None accepts the engine's.
        stored_as: type of the weights in a GGUF file, such as Q4_1; the file's checksum is in the key.
    """

    family: str
    size: str
    model: str
    model_hash: str | None
    revision: str | None
    non_embedding_params: int | None
    dataset: str
    text_hash: str | None
    protocol: str
    window: int | None
    whole: bool = False
    stride: int | None = None
    padding: str = Padding.counted.value
    bos: str = Bos.tokenizer.value
    prefix: str | None = None
    chat: bool = False
    system: str | None = None
    joined: str = Joined.skip.value
    dtype: str
    limit: int
    seed: int
    deterministic: bool = False
    quantise: str | None = None
    adapter: str | None = None
    adapter_hash: str | None = None
    engine: str | None = None
    engine_version: str | None = None
    stored_as: str | None = None
    pickled: bool = False
    training: TrainingFacts = UNKNOWN

    @property
    def key(self) -> str:
        """Hash of the request, by which a finished measurement is found."""
        hashes = {"model": self.model_hash, "adapter": self.adapter_hash}  # a folder that moved holds the same
        return self._digest_without(*(name for name, known in hashes.items() if known is not None))

    def cut_for(self, context: int | None) -> tuple[int, int | None]:
        """Window and stride in tokens for a model's context; no stride if there is one window."""
        window = min(filter(None, (self.window, context)), default=_UNLIMITED)
        return window, (self.stride or window // 2) if self.whole else None

    @property
    def rounded_to(self) -> str | None:
        """The type to which weights are rounded, in their file or on loading: Q4_1, int8; None for none."""
        return self.stored_as or self.quantise

    @property
    def precision(self) -> str:
        """Its dtype, and the type to which weights are rounded: float32, or float32-int8."""
        return self.dtype if self.rounded_to is None else f"{self.dtype}-{self.rounded_to}"

    @property
    def failure_key(self) -> str:
        """Hash of the names alone, so that a model repaired in place is the same cell."""
        return self._digest_without("model_hash", "adapter_hash")

    def _digest_without(self, *names: str) -> str:
        """Digests what distinguishes measurements, without options at their implied defaults and these names."""
        plain = {each.name: each.default for each in fields(self)}
        asked = ((name, value) for name, value in asdict(self).items() if value != plain[name])
        return digest({name: value for name, value in asked if name not in (*_OF_NO_KEY, *names)})

    def __str__(self) -> str:
        at = "" if self.revision is None else f"@{self.revision}"
        by = "" if self.engine is None else f" by {self.engine}"
        return f"{self.family} {self.size}{at}{self.adapted} on {self.dataset}{by}"

    @property
    def adapted(self) -> str:
        """Suffix of the size for an adapter; empty without one."""
        return "" if self.adapter is None else f" with {self.training.variant}"

    def names(self) -> dict[str, Any]:
        """The names that distinguish the cell for people and in records."""
        named = {name: getattr(self, name) for name in ("family", "size", "dataset", "protocol", "revision")}
        return {"cell_key": self.key, **named, "dtype": self.precision}


def members(model: ModelConfig, wanted: Sequence[str] | None) -> tuple[str, list[Member]]:
    """The family's name and its models of the wanted sizes, in the order of its file; raises RbpxError."""
    model.rounding()
    there = _with_adapters(model, model.members_by_size() if model.id is None else _members_by_id(model))
    if not there:
        raise RbpxError("model=hub needs model.id=ORG/NAME, a folder, a GGUF file, or a list of them")
    if model.id is not None and model.family is None and len({member.model for member in there}) > 1:
        raise RbpxError("model.id lists several models; name the family they make with model.family=NAME")
    family = model.family or ("unnamed" if model.id is None else there[0].size)
    sizes = list(dict.fromkeys(member.size for member in there))
    unknown = [size for size in wanted or [] if size not in sizes]
    if unknown:
        at = "" if model.revision is None else f" at model.revision={model.revision}"
        raise RbpxError(f"size={unknown[0]} is unknown in family {family}{at}; known: {', '.join(sizes)}, or size=all")
    return family, [member for member in there if wanted is None or member.size in wanted]


def _members_by_id(model: ModelConfig) -> list[Member]:
    names = [each for name in names_of("model.id", model.id) or [] for each in _matching(name)]
    if model.gguf is not None:
        files = names_of("model.gguf", model.gguf) or []
        if len(names) != 1 or not files or not all(map(is_gguf, files)):
            raise RbpxError(f"model.gguf={model.gguf} names GGUF files in one folder, model.id; got {model.id}")
        names = [f"{names[0].rstrip('/')}/{file}" for file in files]
    bases = {name: base_of(name) if is_adapter(name) else (name, None) for name in names}
    labelled = {base: _label(Path(base).name) for base, _ in bases.values()}
    if len(set(labelled.values())) < len(labelled):
        labelled = {base: (base, "") for base in labelled}
    return [
        Member(
            labelled[base][0],
            base,
            None,
            revision or of_adapter,
            model.training_of(None, at, len(names), revision),
            name if is_adapter(name) else None,
        )
        for revision in model.revisions()
        for at, (name, (base, of_adapter)) in enumerate(bases.items())
    ]


def _matching(name: str) -> list[str]:
    """The folders and files of a glob, shorter names first, so that 2b is before 10b; any other name as it is."""
    found = sorted(glob(os.path.expanduser(name)), key=lambda each: (len(each), each)) if "*" in name else [name]
    if not found:
        raise RbpxError(f"model.id={name} matches no folder and no file; give another glob, or a list of names")
    return found


def _with_adapters(model: ModelConfig, there: Sequence[Member]) -> list[Member]:
    """Each model with each adapter asked for (null is none), and the resulting variant."""
    asked: list[str | None] = [*(names_of("model.adapter", model.adapter) or [])]
    given = [member.adapter for member in there if member.adapter is not None]
    if asked and given:
        raise RbpxError(
            f"model.id={given[0]} is an adapter itself, and model.adapter={asked[0]} another; give one of them, or "
            "merge them with peft"
        )
    variants = variants_of(asked or given)
    found = [replace(member, adapter=each) for each in asked for member in there] if asked else there
    return [
        member
        if member.adapter is None or model.variant is not None
        else replace(member, training=replace(member.training, variant=variants[member.adapter]))
        for member in found
    ]


_ROUNDED: Final = re.compile(r"[._-]((?:UD-)?I?Q\d\w*|TQ\d_\d|BF16|FP?16|FP?32|MXFP4\w*)$", re.IGNORECASE)


def _label(name: str) -> tuple[str, str]:
    """The size and the quantisation in a file's name; MODEL-Q8_0.gguf and MODEL.Q4_K_M.gguf are one size."""
    if not is_gguf(name):
        return name, ""
    rounded = _ROUNDED.search(name[: -len(GGUF)])
    return (name[: -len(GGUF)], "") if rounded is None else (name[: rounded.start()], rounded[1])


def cells(
    request: GridKeys,
    text_hash: str | None,
    model_hashes: Mapping[str, str | None],
    beside: Mapping[str, TrainingFacts] | None = None,
    stored_as: Mapping[str, str | None] | None = None,
    adapter_hashes: Mapping[str, str] | None = None,
) -> list[Cell]:
    """A cell for each model of the family; `beside` has facts of training from files beside local models."""
    model, dataset, protocol, engine = request.model, request.dataset, request.protocol, request.engine
    if model is None or dataset is None or protocol is None:
        raise RbpxError(INCOMPLETE)
    if request.dtype is None:
        at = "" if engine is None else f", which engine={engine.name} does not tell"
        raise RbpxError(f"dtype=null is not a precision{at}; give the one of the weights, as in dtype=bfloat16")
    family, chosen = members(model, request.size)
    _check_texts(model, dataset, protocol)
    if engine is not None:
        _check_engine(engine, chosen)
    sources = {"": request, "model": model, "dataset": dataset, "protocol": protocol}
    named = {name: getattr(sources[of], name) for of, names in _BY_NAME.items() for name in names}
    cell = partial(
        Cell,
        family=family,
        dataset=dataset.name,
        text_hash=text_hash,
        protocol=protocol.name,
        engine=None if engine is None else engine.name,
        engine_version=None if engine is None else engine.version,
        **{name: getattr(value, "value", value) for name, value in named.items()},
    )
    grid = [
        cell(
            size=member.size,
            model=member.model,
            model_hash=model_hashes[member.model],
            revision=member.revision if model.lists_checkpoints or model_hashes[member.model] is None else None,
            non_embedding_params=member.non_embedding_params,
            adapter=member.adapter,
            adapter_hash=None if member.adapter is None else (adapter_hashes or {})[member.adapter],
            stored_as=(stored_as or {}).get(member.model),
            training=member.training.over((beside or {}).get(member.model, UNKNOWN)),
        )
        for member in chosen
    ]
    twice = [name for name, n in Counter(f"{each} in {each.precision}" for each in grid).items() if n > 1]
    if twice:
        raise RbpxError(
            f"{twice[0]} is asked for twice; of two models of one size and precision measure each as a family, or give "
            "one another file name; a folder has no model.revision, and model.variant= is no name for two adapters"
        )
    return grid


def _check_texts(model: ModelConfig, dataset: DatasetConfig, protocol: ProtocolConfig) -> None:
    if protocol.prefix is not None and model.bos is not Bos.tokenizer:
        raise RbpxError(
            f"protocol.prefix={protocol.prefix} and model.bos={model.bos.value} both say what begins a text; drop one"
        )
    if model.chat and not dataset.has_items:
        raise RbpxError(
            f"model.chat=true renders conversations, and dataset {dataset.name} has plain texts; name its column of "
            "messages, as in dataset.messages=messages, or dataset.context= and dataset.target=, or drop model.chat"
        )
    for name, value in (("model.system", model.system), ("dataset.messages", dataset.messages)):
        if value is not None and not model.chat:
            raise RbpxError(f"{name}={value} is for a chat template; add model.chat=true, or drop it")


def _check_engine(engine: EngineConfig, chosen: Sequence[Member]) -> None:
    if engine.model is not None and len(chosen) > 1:
        raise RbpxError(
            f"engine.model={engine.model} is one model, and {len(chosen)} are asked for; give one of them with size="
        )
    adapted = next((member.adapter for member in chosen if member.adapter is not None), None)
    if adapted is not None:
        raise RbpxError(
            f"engine={engine.name} measures what it serves, not model.adapter={adapted}; drop it, and name the adapter "
            "as the server does: engine.model=NAME"
        )
