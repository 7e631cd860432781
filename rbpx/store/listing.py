"""What a bucket holds that may be a store's: names that no store has and objects far too long are passed over."""

import logging
from collections.abc import Mapping
from pathlib import Path

from rbpx.counts import number_of
from rbpx.files.entries import MIB
from rbpx.store.bucket import Bucket, Entry, StrangeNameError
from rbpx.store.inside import FOLDERS, RUNNING, is_harmless, is_plain
from rbpx.store.messages import warn_damage
from rbpx.store.object_names import is_brought, most_mib

__all__ = ["list_objects", "of_fair_length"]

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
        warn_damage(_LOGGER, root, f"{problem}; it is passed over")
    strange = {path for path in listed if not all(is_plain(part) or is_harmless(part) for part in path.split("/"))}
    if strange:
        of = number_of(len(strange), "object")
        line = f"{of} in store={bucket.url} with a name that no store has, passed over: {min(strange)!r}; remove it"
        warn_damage(_LOGGER, root, line)
    return {path: entry for path, entry in listed.items() if path not in strange}


def of_fair_length(listed: Mapping[str, Entry], bucket: Bucket, root: Path) -> dict[str, Entry]:
    """The objects that are kept on this machine from the start; what is longer than any of its kind is named."""
    brought = {path: entry for path, entry in listed.items() if is_brought(path)}
    long = {path for path, entry in brought.items() if entry.n_bytes > most_mib(path) * MIB}
    for path in sorted(long):
        length = f"{brought[path].n_bytes / MIB:,.0f} MiB long, where {most_mib(path):,} MiB are the most"
        warn_damage(_LOGGER, root, f"{path} in store={bucket.url} is {length}, and left out; remove that object")
    return {path: entry for path, entry in brought.items() if path not in long}
