"""The names of a store's objects in a bucket: what each is, whether it is kept on this machine, how long it may be.

Names that no store has, and objects far too long, are ignored and reported.
"""

import logging
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from rbpx.errors import number_of
from rbpx.files.digest import RECORD_MIB
from rbpx.files.entries import MIB
from rbpx.store.files.inside import FOLDERS, KINDS, RUNNING, TABLES, is_harmless, is_ours, is_plain
from rbpx.store.messages import warn_damage
from rbpx.store.remote.bucket import Bucket, Entry, StrangeNameError

LAZY: Final = ("temperatures", "best", "samples")  # tables that are brought when they are read
_BROUGHT_MIB: Final = 1024  # of a vocabulary or an import
_HASHED: Final = 16  # digits of a sha256 in a name
_OF_RUN: Final = re.compile(
    rf"runs/[^./][^/]*/(manifest\.json|(tokens|rank_counts|documents)(-[0-9a-f]{{{_HASHED}}})?\.parquet)"
)


def name_of_table(path: Path, sha256: str) -> str:
    """The name in the bucket of a table with these contents."""
    return f"runs/{path.parent.name}/{path.stem}-{sha256[:_HASHED]}{path.suffix}"


def is_of_run(name: str) -> bool:
    """Whether an object is one that a run has."""
    return _OF_RUN.fullmatch(name) is not None


def is_brought(name: str) -> bool:
    """Whether an object is kept on this machine from the start: records, vocabularies and imports."""
    kind, *rest = name.split("/")
    if not all(map(is_plain, rest)):
        return False
    if kind == "runs":
        return len(rest) == 2 and is_of_run(name) and rest[1] == "manifest.json"
    return len(rest) == 1 and kind in (*KINDS, *TABLES, RUNNING) and kind not in LAZY and is_ours(kind, rest[0])


def most_mib(name: str) -> int:
    """How long such an object may be, MiB."""
    return _BROUGHT_MIB if name.split("/")[0] in TABLES else RECORD_MIB


_LOGGER = logging.getLogger(__name__)


def list_objects(bucket: Bucket, root: Path) -> dict[str, Entry]:
    """All objects with names that a store may have, by their path; the others are named once.

    Args:
        bucket: the bucket.
        root: the folder of its mirror.

    Raises:
        StrangeNameError: the library refuses a name among those of a store's own folder, and the folder with it.
    """
    try:
        listed = bucket.below(None)
    except StrangeNameError as problem:
        listed = {path: entry for kind in (*FOLDERS, RUNNING) for path, entry in bucket.below(kind).items()}
        warn_damage(_LOGGER, root, f"{problem}; it is ignored")
    strange = {path for path in listed if not all(is_plain(part) or is_harmless(part) for part in path.split("/"))}
    if strange:
        of, such = number_of(len(strange), "object"), f"such as {min(strange)!r}"
        line = f"ignored {of} in store={bucket.url} with a name that no store has, {such}; remove it"
        warn_damage(_LOGGER, root, line)
    return {path: entry for path, entry in listed.items() if path not in strange}


def of_fair_length(listed: Mapping[str, Entry], bucket: Bucket, root: Path) -> dict[str, Entry]:
    """The objects that are kept on this machine from the start; what is longer than any of its kind is named."""
    brought = {path: entry for path, entry in listed.items() if is_brought(path)}
    long = {path for path, entry in brought.items() if entry.n_bytes > most_mib(path) * MIB}
    for path in sorted(long):
        length = f"{brought[path].n_bytes / MIB:,.0f} MiB long, more than the {most_mib(path):,} MiB allowed"
        warn_damage(_LOGGER, root, f"{path} in store={bucket.url} is {length}, and is left out; remove that object")
    return {path: entry for path, entry in brought.items() if path not in long}
