"""The names of a store's objects in a bucket: what each is, whether it is kept on this machine, how long it may be."""

import re
from pathlib import Path
from typing import Final

from rbpx.files.sealed import RECORD_MIB
from rbpx.store.inside import KINDS, RUNNING, TABLES, is_ours, is_plain

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
