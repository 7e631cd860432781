"""The checkpoints that a family's file lists for a size: their names, and which of them a request means.

They lie in folders beside the size's own model, which is the finished one that stands for the size and is meant where
nothing is asked for. A name that begins with `raw-` is of a checkpoint on the way, whose learning rate had not decayed:
its loss lies above that of a finished model of as many tokens, so the two never stand in one group.
"""

import fnmatch
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rbpx.errors import RbpxError

__all__ = ["Checkpoint", "checkpoints", "named_revisions"]

_RAW: Final = "raw-"
_WORDS: Final[
    Mapping[str, Callable[[str], bool]]
] = {  # which of the names, the size's own among them, a word stands for
    "all": lambda name: True,
    "finished": lambda name: not name.startswith(_RAW),
    "raw": lambda name: name.startswith(_RAW),
    "log": lambda name: name.startswith(_RAW),  # they are log-spaced
}


@dataclass(frozen=True)
class Checkpoint:
    """One checkpoint of a size; the revision is None where it is the one that stands for the size."""

    revision: str | None
    id: str


def named_revisions(revision: Any) -> list[str]:
    """What a request names: nothing, one name, word or pattern, or several.

    Raises:
        RbpxError: a name is none.
    """
    names = [] if revision is None else revision if isinstance(revision, list) else [revision]
    for name in names:
        if not isinstance(name, str) or not name:
            raise RbpxError(f"model.revision={name} was read as no name; quote it: 'model.revision=\"...\"'")
    return list(names)


def checkpoints(
    entries: Mapping[str, tuple[str, Sequence[str]]], wanted: Any, family: str
) -> dict[str, list[Checkpoint]]:
    """The checkpoints of each size that a request means, in the order in which the family lists them.

    Args:
        entries: size -> the id of the model that stands for it, and the names of the others.
        wanted: `model.revision`: a name, a pattern such as `raw-*`, one of all, finished, raw and log, or a list; None
            for the model that stands for its size, which has the name of its folder too.
        family: for errors.

    Raises:
        RbpxError: no size has a checkpoint of that name.
    """
    names = named_revisions(wanted)
    used: set[str] = set()
    found: dict[str, list[Checkpoint]] = {}
    for size, (own_id, others) in entries.items():
        folder, _, own = own_id.rpartition("/")
        found[size] = [] if names else [Checkpoint(None, own_id)]
        for name in [own, *others] if names else []:
            matching = {each for each in names if _means(each, name)}
            used |= matching
            if matching:
                revision = None if name == own else name
                found[size].append(Checkpoint(revision, own_id if revision is None else f"{folder}/{name}"))
    unknown = [name for name in names if name not in used]
    if unknown:
        known = "; ".join(f"{size} has {', '.join(others)}" for size, (_, others) in entries.items() if others)
        raise RbpxError(f"model.revision={unknown[0]} names no checkpoint of {family}: {known}; or all, finished, raw")
    return {size: chosen for size, chosen in found.items() if chosen}


def _means(wanted: str, name: str) -> bool:
    return _WORDS[wanted](name) if wanted in _WORDS else fnmatch.fnmatchcase(name, wanted)
