"""Files of the Hugging Face hub in its cache: which are here, and how one comes here so that a kill loses nothing.

huggingface_hub begins a file again whose download was killed; here it goes on where it was, and is then found by
huggingface_hub, `datasets` and transformers as one of their own.
"""

import hashlib
import logging
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rbpx.errors import MeasureError, RbpxError, reason
from rbpx.files.digest import file_hashes

_LISTED_AT_ONCE = 100  # paths that the hub is asked about in one request


@dataclass(frozen=True)
class HubFile:
    """A file of a repository at one commit.

    Attributes:
        kind: of the repository, `model` or `dataset`.
        repository: ORG/NAME.
        commit: of the repository.
        path: of the file in it.
        n_bytes: its size.
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
        """What it has in common with files of the same content in its repository, which come together."""
        return self.kind, self.repository, self.blob

    @property
    def n_bytes_here(self) -> int:
        """How much of it is on this machine, counting what a killed download left."""
        if self.is_here:
            return self.n_bytes
        n_bytes = self._partial.stat().st_size if self._partial.exists() else 0
        return n_bytes if n_bytes <= self.n_bytes else 0  # more than that is of something else

    @property
    def is_here(self) -> bool:
        """Whether all of it is on this machine."""
        return self._whole.exists() or (self._folder / "snapshots" / self.commit / self.path).exists()

    @property
    def _folder(self) -> Path:
        return cache_folder() / f"{self.kind}s--{self.repository.replace('/', '--')}"

    @property
    def _whole(self) -> Path:
        return self._folder / "blobs" / self.blob

    @property
    def _partial(self) -> Path:
        return self._whole.with_name(f"{self.blob}.incomplete")

    def fetch(self, advance: Callable[[int], None]) -> None:
        """Download what is missing of it, and verify its hash; other processes that want it wait.

        Args:
            advance: called with the number of bytes that came, or, negative, that have to come again.

        Raises:
            RbpxError: this user may not read it.
            MeasureError: the hub or the disk fails, or it has other bytes than the hub says.
        """
        from huggingface_hub.errors import GatedRepoError

        try:
            self._fetch(advance)
        except RbpxError:
            raise
        except GatedRepoError:
            raise RbpxError(
                f"{self.kind} {self.repository} is gated; accept its terms on the hub and run `hf auth login`"
            ) from None
        except Exception as problem:  # whatever a network or a disk does
            raise MeasureError(
                f"{self.path} of {self.repository} did not come ({type(problem).__name__}: {reason(problem, 160)}); "
                "type the same again, and it goes on where it stopped"
            ) from None

    def _fetch(self, advance: Callable[[int], None]) -> None:
        from huggingface_hub import constants, hf_hub_download, hf_hub_url
        from huggingface_hub.file_download import http_get
        from huggingface_hub.utils import WeakFileLock, build_hf_headers  # type: ignore[attr-defined]

        if self.n_bytes > constants.MAX_HTTP_DOWNLOAD_SIZE:  # the hub serves such a file only to its own client, whole
            hf_hub_download(self.repository, self.path, repo_type=self.kind, revision=self.commit)
            advance(self.n_bytes)
            return
        lock = cache_folder() / ".locks" / self._folder.name / f"{self.blob}.lock"  # the one that huggingface_hub takes
        lock.parent.mkdir(parents=True, exist_ok=True)
        self._whole.parent.mkdir(parents=True, exist_ok=True)
        before = self.n_bytes_here
        with WeakFileLock(lock):
            here = self.n_bytes_here
            advance(here - before)  # what another process fetched meanwhile
            if self.is_here:
                return
            with self._partial.open("ab") as growing:
                growing.truncate(here)
                growing.seek(here)
                http_get(
                    hf_hub_url(self.repository, self.path, repo_type=self.kind, revision=self.commit),
                    _Counted(growing, advance),  # type: ignore[arg-type]
                    resume_size=here,
                    headers=build_hf_headers(),
                    expected_size=self.n_bytes,
                )
            differs = other_hash(self._partial, self.blob)
            if differs is not None:
                self._partial.unlink()
                raise MeasureError(
                    f"{self.path} of {self.repository} came with other bytes than the hub says: their hash is "
                    f"{differs[:12]}..., not {self.blob[:12]}...; type the same again"
                )
            self._partial.replace(self._whole)


class _Counted:
    """A file to which bytes are appended, and who is told how many."""

    def __init__(self, file: Any, advance: Callable[[int], None]) -> None:
        self._file, self._advance = file, advance
        self.tell, self.seek = file.tell, file.seek

    def write(self, part: bytes) -> int:
        self._advance(len(part))
        return int(self._file.write(part))

    def truncate(self) -> int:
        """Cut it off at the current position: a server that knows no ranges begins again."""
        self._file.flush()
        before, after = os.fstat(self._file.fileno()).st_size, int(self._file.truncate())
        self._advance(after - before)
        return after


@contextmanager
def silent() -> Iterator[None]:
    """Neither bars nor warnings of huggingface_hub within the block."""
    from huggingface_hub.utils.tqdm import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    logger, were_disabled = logging.getLogger("huggingface_hub"), are_progress_bars_disabled()
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    disable_progress_bars()
    try:
        yield
    finally:
        logger.setLevel(level)
        if not were_disabled:
            enable_progress_bars()


def cache_folder() -> Path:
    """Where the hub's cache is: $HF_HUB_CACHE, else a folder of $HF_HOME."""
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE)


def files_of(kind: str, repository: str, commit: str, paths: Sequence[str]) -> list[HubFile]:
    """What the hub says of some files of a repository, in the order of their paths.

    Args:
        kind: `model` or `dataset`.
        repository: ORG/NAME.
        commit: of the repository.
        paths: of the files; those that are not there are left out.
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


def other_hash(path: Path, blob: str, cache: Path | None = None) -> str | None:
    """The hash of a file whose content is not what its name in the hub's cache says.

    Args:
        path: the file.
        blob: its name there: SHA-256 of a large file, git's hash of a small one; some mirrors use the plain SHA-1.
        cache: file that caches the hashes of large files.

    Returns:
        None where it is the same, or where the name is no hash.
    """
    if re.fullmatch(r"[0-9a-f]{64}", blob):
        hashes = file_hashes([path], cache)
    elif re.fullmatch(r"[0-9a-f]{40}", blob):
        raw = path.read_bytes()
        hashes = [hashlib.sha1(start + raw).hexdigest() for start in (b"blob %d\0" % len(raw), b"")]
    else:
        return None
    return None if blob in hashes else hashes[0]
