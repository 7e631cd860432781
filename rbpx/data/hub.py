"""What files of the Hugging Face hub take and whether they are here; its refusals in one line."""

import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rbpx.errors import AbsentModelError, RbpxError

TIMEOUT_S: Final = 5  # of a metadata request; a slower hub counts as unreachable
_RETRIES: Final = 3  # of a streaming read; `datasets` would retry for minutes


@contextmanager
def explained(key: str, name: object, revision: str | None) -> Iterator[None]:
    """Turn a refusal of the hub into one line; network failures pass through.

    Raises:
        RbpxError: there is no such repository or revision, or this user may not read it.
    """
    from huggingface_hub.errors import (
        GatedRepoError,
        HFValidationError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    absent, folder = (AbsentModelError, ", nor as a folder") if key == "model.id" else (RbpxError, "")
    try:
        yield
    except GatedRepoError:
        raise gated(key, name) from None
    except RevisionNotFoundError:
        what = f"{key.partition('.')[0]}.revision={revision}"
        raise absent(f"{what} does not exist in {name}; check the branch or commit") from None
    except (RepositoryNotFoundError, HFValidationError):
        raise absent(
            f"{key}={name} does not exist on the hub{folder}; check its spelling, or log in if it is private"
        ) from None


def gated(key: str, name: object) -> RbpxError:
    """The error for a repository whose terms this user has not accepted."""
    return RbpxError(f"{key}={name} is gated; accept its terms on the hub and run `hf auth login`")


@dataclass(frozen=True)
class HubFile:
    """A file of a repository at one commit.

    Attributes:
        blob: the name of its content in the cache: SHA-256 of a large file, git's hash of a small one.
        is_here: whether all of it is.
    """

    path: str
    n_bytes: int
    blob: str
    is_here: bool

    @classmethod
    def of(cls, kind: str, repository: str, commit: str, path: str, n_bytes: int, blob_id: str, lfs: Any) -> "HubFile":
        """A file of a `model` or `dataset` as the hub lists it; `lfs` is None for a small one."""
        blob = blob_id if lfs is None else lfs.sha256
        folder = cache_folder() / f"{kind}s--{repository.replace('/', '--')}"
        is_here = (folder / "blobs" / blob).exists() or (folder / "snapshots" / commit / path).exists()
        return cls(path, n_bytes, blob, is_here)


Needs = tuple[str | None, Sequence[HubFile], int]
"""Commit and files of a repository, and the bytes besides that are read and of which a sample is stored."""


def bytes_bar(advance: Callable[[int], None]) -> Any:
    """A progress bar class for `snapshot_download` that shows nothing and calls `advance` with the bytes that came."""
    from huggingface_hub.utils import tqdm  # type: ignore[attr-defined]

    class Bytes(tqdm):
        def __init__(self, *args: Any, desc: str = "", **kwargs: Any) -> None:
            super().__init__(disable=True)  # type: ignore[no-untyped-call]
            self._is_whole = desc.startswith("Reconstructing")  # others count files, and bytes of Xet's line

        def update(self, n: float | None = 1) -> bool | None:
            if self._is_whole:
                advance(int(n or 0))
            return None

    return Bytes


def cache_folder() -> Path:
    """The hub's cache: $HF_HUB_CACHE, else a folder of $HF_HOME."""
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE)


@contextmanager
def quiet(bars: bool = True) -> Iterator[None]:
    """Silence the warnings of huggingface_hub and `datasets`, and their bars unless on a terminal with `bars`."""
    os.environ.setdefault("HF_UPDATE_DOWNLOAD_COUNTS", "0")  # saves a request, which hangs on a dead network
    import datasets
    from huggingface_hub.utils.tqdm import disable_progress_bars

    datasets.config.STREAMING_READ_MAX_RETRIES = datasets.config.STREAMING_OPEN_MAX_RETRIES = _RETRIES
    if not bars or not sys.stderr.isatty():
        datasets.disable_progress_bars()
        disable_progress_bars()
    loggers = [logging.getLogger(name) for name in ("datasets", "huggingface_hub")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
