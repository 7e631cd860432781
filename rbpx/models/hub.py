"""Downloads a model from the Hugging Face hub into the hub's cache, and verifies the hashes of its files."""

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

from rbpx.errors import AbsentModelError, MeasureError, RbpxError
from rbpx.files.digest import file_hashes
from rbpx.models.folder import PICKLE, local_folder, only_pickles, weight_files

_TIMEOUT_S = 5  # of a request for metadata; a hub that is slower counts as unreachable
_SMALL_FILES = ["*.json", "*.txt", "*.model", "*.jinja", "*.tiktoken"]  # configuration and tokenizer
_PICKLES = [PICKLE, PICKLE.replace(".bin", "-*.bin")]


def fetch(model: str, revision: str | None, pickled: bool = False, weights: bool = True) -> tuple[Path, str | None]:
    """The local folder of a model and, for a hub id, the commit that `revision` names.

    Only configuration, tokenizer and weights are downloaded: safetensors, or pickles if they are allowed and the
    repository has nothing else. Files that an earlier attempt downloaded are not downloaded again.

    Args:
        model: ORG/NAME, a folder, or `rbpx:` and a path inside the package.
        revision: branch, tag or commit of a hub id.
        pickled: whether pytorch_model.bin is allowed if there are no safetensors.
        weights: whether to download the weights too, and not only configuration and tokenizer.

    Raises:
        AbsentModelError: there is no such repository or revision.
        RbpxError: it has no weights that may be opened.
        MeasureError: the hub does not answer and its cache does not hold the whole model.
    """
    folder = local_folder(model, pickled)
    if folder is not None:
        return folder, None
    from huggingface_hub.errors import (
        GatedRepoError,
        HFValidationError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    try:
        listing = _listing(model, revision)
        patterns = _weight_patterns(listing, model, pickled) if weights else []
        snapshot = _download(model, revision, patterns)
    except RbpxError:
        raise
    except GatedRepoError:
        raise RbpxError(f"model.id={model} is gated; accept its terms on the hub and run `hf auth login`") from None
    except RevisionNotFoundError:
        raise AbsentModelError(
            f"model.revision={revision} does not exist in {model}; check the branch or commit"
        ) from None
    except (RepositoryNotFoundError, HFValidationError):
        raise AbsentModelError(
            f"model.id={model} does not exist on the hub; check its spelling, or log in if private"
        ) from None
    except Exception as problem:  # any failure of the network; a copy in the cache is as good
        try:
            snapshot = _cached(model, revision, pickled) if weights else _download(model, revision, [], local_only=True)
        except Exception as cache_problem:
            raise MeasureError(_undelivered(model, revision, problem, cache_problem)) from None
    if weights:
        weight_files(snapshot, model, pickled)
    return snapshot, snapshot.name


def check_snapshot(
    folder: Path, model: str, pickled: bool = False, cache: Path | None = None, weights: bool = True
) -> None:
    """Verify the hash of each file to be read: a link in the hub's cache points to a file that is named by its hash.

    huggingface_hub compares only sizes. Large files are named by SHA-256, small ones by git's blob hash. Nothing can be
    compared in a cache without links (on a file system that has none), or if a mirror names files in another way.

    Args:
        folder: as `fetch` returned it; files that do not come from the hub are skipped.
        model: as requested, for errors.
        pickled: as passed to `fetch`.
        cache: file that caches the hashes of large files.
        weights: as passed to `fetch`.

    Raises:
        MeasureError: a file is corrupt.
    """
    small_files = (path for pattern in _SMALL_FILES for path in sorted(folder.glob(pattern)))
    for path in [*(weight_files(folder, model, pickled) if weights else ()), *small_files]:
        if not path.is_symlink():
            continue
        blob = path.parent / path.readlink()
        if re.fullmatch(r"[0-9a-f]{64}", blob.name):
            hashes = file_hashes([path], cache)
        elif re.fullmatch(r"[0-9a-f]{40}", blob.name):
            raw = path.read_bytes()  # a small file; some mirrors use the plain SHA-1 in place of git's
            hashes = [hashlib.sha1(start + raw).hexdigest() for start in (b"blob %d\0" % len(raw), b"")]
        else:
            continue
        if blob.name not in hashes:
            raise MeasureError(
                f"{path.name} of {model} is corrupt: its hash is {hashes[0][:12]}..., the hub gives "
                f"{blob.name[:12]}...; delete {blob.parent.resolve() / blob.name} and run again"
            )


def _listing(model: str, revision: str | None) -> set[str]:
    """The files of a repository; requested first, with a timeout, because a download would wait for a silent hub."""
    from huggingface_hub import HfApi

    info = HfApi().model_info(model, revision=revision or "main", timeout=_TIMEOUT_S)
    return {file.rfilename for file in info.siblings or []}


def _weight_patterns(repo_files: set[str], model: str, pickled: bool) -> list[str]:
    """Patterns of the weight files to download."""
    top = sorted(name for name in repo_files if "/" not in name)
    if any(name.endswith(".safetensors") for name in top):
        return ["*.safetensors"]
    pickles = [name for name in top if name.endswith(".bin")]
    if not pickled:
        raise RbpxError(f"model.id={model} needs weights in safetensors, but the hub has {only_pickles(pickles)}")
    return [PICKLE] if PICKLE in pickles else _PICKLES


def _download(model: str, revision: str | None, weights: Sequence[str], local_only: bool = False) -> Path:
    from huggingface_hub import snapshot_download

    return Path(
        snapshot_download(
            model,
            revision=revision,
            allow_patterns=[*_SMALL_FILES, *weights],
            ignore_patterns=["*/*"],
            etag_timeout=_TIMEOUT_S,
            local_files_only=local_only,
        )
    )


def _cached(model: str, revision: str | None, pickled: bool) -> Path:
    """The cached snapshot, if it is complete."""
    snapshot = _download(model, revision, ["*.safetensors"], local_only=True)
    if pickled and not any(snapshot.glob("*.safetensors")) and not (snapshot / PICKLE).exists():
        return _download(model, revision, _PICKLES, local_only=True)
    return snapshot


def _undelivered(model: str, revision: str | None, problem: Exception, cache_problem: Exception) -> str:
    """The error of a hub that failed while the cache does not hold the model either."""
    at = f" at revision {revision}" if revision else ""
    reason = f"{type(problem).__name__}: {str(problem).split(chr(10))[0][:160]}"
    missing = re.search(r"missing \(([^)]*)\)", str(cache_problem))
    if missing is not None:  # huggingface_hub's message for an interrupted download
        return (
            f"{model}{at} is incomplete, {missing[1]} is missing, and the hub did not deliver it ({reason}); "
            "run again when the hub answers; files that are complete are not downloaded again"
        )
    return f"the hub did not deliver {model}{at} ({reason}); check the network, or give a local folder as model.id"
