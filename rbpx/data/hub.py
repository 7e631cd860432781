"""Downloads files of the Hugging Face hub, lists their sizes, and explains refusals in one line."""

import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rbpx.errors import AbsentModelError, MeasureError, RbpxError, reason

TIMEOUT_S: Final = 5  # of a metadata request; a slower hub counts as unreachable
_LISTED_AT_ONCE: Final = 100  # paths per request
_RETRIES: Final = 3  # of a streaming read; `datasets` would retry for minutes


@contextmanager
def explained(key: str, name: object, revision: str | None) -> Iterator[None]:
    """Turn a refusal of the hub into one line; network failures pass through.

    `key` names the repository: `model.id` or `dataset.hub`.

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
        kind: `model` or `dataset`.
        repository: ORG/NAME.
        path: of the file in it.
        blob: the name of its content in the cache: SHA-256 of a large file, git's hash of a small one.
    """

    kind: str
    repository: str
    commit: str
    path: str
    n_bytes: int
    blob: str

    @property
    def content(self) -> tuple[str, str, str]:
        """Key that files of the same content in a repository share; they are downloaded together."""
        return self.kind, self.repository, self.blob

    @property
    def is_here(self) -> bool:
        """Whether all of it is on this machine."""
        folder = cache_folder() / f"{self.kind}s--{self.repository.replace('/', '--')}"
        return (folder / "blobs" / self.blob).exists() or (folder / "snapshots" / self.commit / self.path).exists()

    def fetch(self, advance: Callable[[int], None]) -> None:
        """Download it into the hub's cache; other processes that want it wait.

        `advance` is called with the number of bytes received, or, negative, to be received again.

        Raises:
            RbpxError: this user may not read it.
            MeasureError: the hub or the disk fails.
        """
        from huggingface_hub import hf_hub_download
        from huggingface_hub.utils import tqdm  # type: ignore[attr-defined]

        class Bytes(tqdm):
            def __init__(self, *args: Any, desc: str = "", **kwargs: Any) -> None:
                super().__init__(disable=True)  # type: ignore[no-untyped-call]
                self._is_whole = "downloading bytes" not in desc  # the other of Xet's two bars per file

            def update(self, n: float | None = 1) -> bool | None:
                if self._is_whole:
                    advance(int(n or 0))
                return None

        try:
            with explained(f"{self.kind}.{'id' if self.kind == 'model' else 'hub'}", self.repository, self.commit):
                hf_hub_download(self.repository, self.path, repo_type=self.kind, revision=self.commit, tqdm_class=Bytes)
        except RbpxError:
            raise
        except Exception as problem:  # any network or disk failure
            raise MeasureError(
                f"{self.path} of {self.repository} did not come ({type(problem).__name__}: {reason(problem, 160)}); "
                "type the same again"
            ) from None


def cache_folder() -> Path:
    """The hub's cache: $HF_HUB_CACHE, else a folder of $HF_HOME."""
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE)


def files_of(kind: str, repository: str, commit: str, paths: Sequence[str]) -> list[HubFile]:
    """Sizes and content names of some files of a repository, in the order of their paths; absent files are left out.

    `kind` is `model` or `dataset`.
    """
    from huggingface_hub import HfApi, RepoFile

    api, wanted = HfApi(), sorted(paths)
    parts = [wanted[at : at + _LISTED_AT_ONCE] for at in range(0, len(wanted), _LISTED_AT_ONCE)]
    told = [each for part in parts for each in api.get_paths_info(repository, part, repo_type=kind, revision=commit)]
    return [
        HubFile(kind, repository, commit, each.path, each.size, each.blob_id if each.lfs is None else each.lfs.sha256)
        for each in told
        if isinstance(each, RepoFile)
    ]


@contextmanager
def quiet(bars: bool = True) -> Iterator[None]:
    """Silence the warnings of huggingface_hub and `datasets`, and their progress bars unless on a terminal.

    `bars` is whether they may show bars at all.
    """
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
