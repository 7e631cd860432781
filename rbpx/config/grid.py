"""A request in, the cells of its grid out: one family, size and dataset each, with the key by which they are found."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rbpx.config.model import ModelConfig
from rbpx.config.options import Bos, Padding
from rbpx.config.request import Request
from rbpx.errors import RbpxError
from rbpx.files.digest import digest

INCOMPLETE = "a measurement needs model=FAMILY and dataset=NAME; see python -m rbpx --help"
_PLAIN = {"bos": Bos.tokenizer.value, "whole": False, "stride": None, "padding": Padding.counted.value}


@dataclass(frozen=True)
class Cell:
    """One measurement as asked for.

    Attributes:
        family: name of the family.
        size: label of the size.
        model: hub id, folder or bundled name.
        model_hash: of a local model's contents; None for a hub id, whose revision is asked instead.
        revision: as asked; None is the hub's default.
        non_embedding_params: S as published, None where nothing is.
        dataset: name of the dataset.
        text_hash: of the drawn documents; None where they are not here, then nothing can be looked up by `key`.
        protocol: name of the protocol.
        window: tokens of a window at most.
        whole: whether documents are read to their end.
        stride: tokens from one window to the next, None for half a window.
        padding: `counted` or `masked`, rows of the vocabulary without a token.
        bos: which special tokens begin a document: `tokenizer`, `add` or `none`.
        dtype: precision of the model.
        limit: documents at most.
        seed: of the draw.
        pickled: whether weights may come from a pickle; no other measurement, only another way to the same weights.
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
    window: int
    whole: bool
    stride: int | None
    padding: str
    bos: str
    dtype: str
    limit: int
    seed: int
    pickled: bool = False

    @property
    def key(self) -> str:
        """Hash of the request: what is done is looked up by it, without loading anything."""
        asked = self._asked()
        if self.model_hash is not None:
            del asked["model"]  # a folder that moved holds the same model
        return digest(asked)

    def cut_for(self, context: int | None) -> tuple[int, int | None]:
        """Tokens that a model of that context reads at once, and from one window to the next (None: none follows)."""
        window = min(self.window, context or self.window)
        return window, (self.stride or window // 2) if self.whole else None

    @property
    def failure_key(self) -> str:
        """Hash of the names alone: a model that failed and was repaired in place is the same cell to people."""
        asked = self._asked()
        del asked["model_hash"]
        return digest(asked)

    def _asked(self) -> dict[str, Any]:
        """What makes it another measurement: not S, and no choice that leaves things as they were before it existed."""
        asked = asdict(self)
        del asked["non_embedding_params"], asked["pickled"]
        for name, plain in _PLAIN.items():
            if asked[name] == plain:
                del asked[name]
        return asked

    def __str__(self) -> str:
        """As people name it."""
        return f"{self.family} {self.size} on {self.dataset}"

    def names(self) -> dict[str, Any]:
        """What people and records tell it from others by."""
        told = ("family", "size", "dataset", "protocol", "dtype", "revision")
        return {"cell_key": self.key, **{name: getattr(self, name) for name in told}}

    def facts(self) -> dict[str, Any]:
        """The request as a record."""
        return asdict(self)


@dataclass(frozen=True)
class Member:
    """One model of a family."""

    size: str
    model: str
    non_embedding_params: int | None


def members(model: ModelConfig, wanted: Sequence[str] | None) -> tuple[str, list[Member]]:
    """Family name and its models, those of the wanted sizes, in the order of the family's file.

    Raises:
        RbpxError: the family has no such size, or nothing says which model is meant.
    """
    if model.id is None and not model.sizes:
        raise RbpxError("model=hub needs model.id=ORG/NAME, a folder, or a list of them")
    if model.id is not None:
        found = _members_by_id(model.id)
        family = model.family or (found[0].size if len(found) == 1 else None)
        if family is None:
            raise RbpxError(f"model.id lists {len(found)} models; name the family they make with model.family=NAME")
    else:
        found = [Member(size, s.id, s.non_embedding_params) for size, s in model.sizes.items()]
        family = model.family or "unnamed"
    known = [m.size for m in found]
    unknown = [size for size in wanted or [] if size not in known]
    if unknown:
        raise RbpxError(f"size={unknown[0]} is unknown in family {family}; known: {', '.join(known)}, or size=all")
    return family, [m for m in found if wanted is None or m.size in wanted]


def _members_by_id(ids: Any) -> list[Member]:
    names = ids if isinstance(ids, list) else [ids]
    for name in names:
        if not isinstance(name, str) or not name:
            raise RbpxError(f"model.id={name} is no hub id ORG/NAME and no folder; quote it if it looks like a number")
    if len(set(names)) < len(names):
        raise RbpxError("model.id names a model twice; a family has each model once")
    labels = [Path(name).name for name in names]
    if len(set(labels)) < len(labels):
        labels = names
    return [Member(label, name, None) for label, name in zip(labels, names, strict=True)]


def cells(request: Request, text_hash: str | None, model_hashes: dict[str, str | None]) -> list[Cell]:
    """The grid of a request: one cell for each model of the family.

    Args:
        request: what the user asked, with model, dataset and protocol chosen.
        text_hash: of the drawn documents, None where they are not here.
        model_hashes: of each model that lies in a folder; None for hub ids.
    """
    model, dataset, protocol = request.model, request.dataset, request.protocol
    if model is None or dataset is None or protocol is None:
        raise RbpxError(INCOMPLETE)
    if request.dtype is None:
        raise RbpxError("dtype=null is no precision to measure in; give dtype=float32, bfloat16 or float16")
    family, chosen = members(model, request.sizes())
    return [
        Cell(
            family=family,
            size=member.size,
            model=member.model,
            model_hash=model_hashes[member.model],
            revision=None if model_hashes[member.model] is not None else model.revision,
            non_embedding_params=member.non_embedding_params,
            dataset=dataset.name,
            text_hash=text_hash,
            protocol=protocol.name,
            window=protocol.window,
            whole=protocol.whole,
            stride=protocol.stride,
            padding=protocol.padding.value,
            bos=model.bos.value,
            dtype=request.dtype.value,
            limit=request.limit,
            seed=request.seed,
            pickled=model.pickled,
        )
        for member in chosen
    ]
