"""Stores in object storage: keeps an up-to-date local copy of one, from which questions are answered."""

import logging
import os
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from rbpx.counts import number_of
from rbpx.errors import MeasureError, RbpxError
from rbpx.files.atomic import atomic_write
from rbpx.files.cache import cache_folder
from rbpx.files.digest import digest
from rbpx.store import ledger
from rbpx.store.store import Store

_LOGGER = logging.getLogger(__name__)
_URL = re.compile(r"[a-z][a-z0-9]+://.")
_KINDS = (
    *("runs", "cells", "vocab", "imports", "samples", "temperatures", "best", "fits", "rank_fits", "failures"),
    "forecasts",
)
_PRUNED = (
    "runs",
    "cells",
    "imports",
    "temperatures",
    "best",
    "failures",
    "forecasts",
)  # fits are kept: they may have been made here
_THREADS = 16
_CONNECT_S, _REQUEST_S = 5, 60


@dataclass(frozen=True)
class _File:
    """A file of the remote store: its path relative to the store, bytes, and when it was written (nanoseconds)."""

    path: PurePosixPath
    n_bytes: int
    written_ns: int


def is_remote(name: str) -> bool:
    """Whether a store is named by a URL."""
    return _URL.match(name) is not None


def open_store(name: str) -> Store:
    """Open the store of that name for reading: a folder, or a local copy of one in object storage (s3://BUCKET/PATH).

    Raises:
        RbpxError: there is no store.
        MeasureError: the storage does not answer, or refuses access.
    """
    return Store(local_copy(name) if is_remote(name) else Path(name))


def own_store(name: str) -> Store:
    """Open the store of that name for writing.

    Raises:
        RbpxError: it is in object storage, which has no atomic rename, so that a run might be seen half written.
    """
    if is_remote(name):
        raise RbpxError(
            f"store={name} can be read but not written; measure into a folder and copy it: aws s3 sync DIR {name}"
        )
    return Store(Path(name))


def local_copy(url: str) -> Path:
    """Copy what is new in a remote store to this machine's cache, and remove what is gone; returns the folder.

    Files of a run never change, so each is copied once; its manifest is copied last, so that here too a run is either
    complete or absent. Files copied before are not read again.
    """
    copy = cache_folder() / "stores" / digest(url)
    try:
        system, root = _open(url)
        files = _list_files(system, root)
        if not any(file.path.parts[0] in ("runs", "imports") for file in files):
            raise RbpxError(f"store={url} holds no runs; check the bucket and the path")
        new = [file for file in files if not _is_here(copy, file)]
        manifests = [file for file in new if file.path.name == "manifest.json"]
        with ThreadPoolExecutor(_THREADS) as pool:
            for part in ([file for file in new if file not in manifests], manifests):
                list(pool.map(lambda file: _bring(system, root, file, copy), part))
    except FileNotFoundError:
        raise RbpxError(f"store={url} does not exist; check the bucket and the path") from None
    except (OSError, ValueError) as problem:  # what pyarrow raises for failures of the network and of access
        hint = f"; what was copied before is in {copy}" if copy.is_dir() else ""
        reason = " ".join(str(problem).split())[:160]
        raise MeasureError(f"store={url} cannot be read ({reason}){hint}") from None
    _prune(copy, files)
    if new:
        mib = sum(file.n_bytes for file in new) / 2**20
        _LOGGER.info(f"copied {number_of(len(new), 'file')} ({mib:,.1f} MiB) of {url} into {copy}")
    return copy


def _open(url: str) -> tuple[Any, str]:
    from pyarrow import fs

    if not url.startswith("s3://"):
        system, root = fs.FileSystem.from_uri(url)
        return system, str(root)
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    where = {} if endpoint is None else {"scheme": endpoint.split("://")[0], "endpoint_override": endpoint}
    return fs.S3FileSystem(connect_timeout=_CONNECT_S, request_timeout=_REQUEST_S, **where), url.removeprefix("s3://")


def _list_files(system: Any, root: str) -> list[_File]:
    from pyarrow import fs

    files = []
    for info in system.get_file_info(fs.FileSelector(root, recursive=True)):
        path = PurePosixPath(info.path).relative_to(root.rstrip("/"))
        hidden = any(part.startswith(".") for part in path.parts)
        if info.type is fs.FileType.File and not hidden and path.parts[0] in _KINDS:
            files.append(_File(path, info.size, info.mtime_ns))
    return files


def _is_here(copy: Path, file: _File) -> bool:
    try:
        stat = (copy / file.path).stat()
    except FileNotFoundError:
        return False
    return stat.st_size == file.n_bytes and stat.st_mtime_ns == file.written_ns


def _bring(system: Any, root: str, file: _File, copy: Path) -> None:
    path = copy / file.path
    with atomic_write(path) as temporary:  # durable: a file of the right size and time is not read again
        with system.open_input_stream(f"{root.rstrip('/')}/{file.path}") as source:
            temporary.write_bytes(source.read())
        os.utime(temporary, ns=(file.written_ns, file.written_ns))


def _prune(copy: Path, files: Sequence[_File]) -> None:
    remote_paths = {file.path for file in files}
    for kind in _PRUNED:
        local = [path for path in (copy / kind).rglob("*") if path.is_file()]
        gone = [path for path in local if PurePosixPath(path.relative_to(copy)) not in remote_paths]
        for path in sorted(gone, key=lambda p: p.name != "manifest.json"):  # manifests first: without one it is no run
            ledger.remove(path)
