"""A model of the hub: its id and revision in, its folder in the hub's cache out, whole and as the hub says it is."""

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

from rbpx.errors import MeasureError, RbpxError
from rbpx.files.digest import file_hashes
from rbpx.models.weights import PICKLE, local_folder, only_pickles, weight_files

_TIMEOUT_S = 5
_SETTINGS = ["*.json", "*.txt", "*.model", "*.jinja", "*.tiktoken"]
_PICKLES = [PICKLE, PICKLE.replace(".bin", "-*.bin")]


def fetch(model: str, revision: str | None, pickled: bool = False) -> tuple[Path, str | None]:
    """The local folder of a model and, for a hub id, the commit that `revision` names.

    Only what is needed is fetched: settings, the tokenizer, and weights in safetensors, or in pickles where they are
    asked for and the repository has nothing else. What an earlier try fetched is not fetched again.

    Args:
        model: ORG/NAME, a folder, or `rbpx:` and a path inside the package.
        revision: branch, tag or commit of a hub id.
        pickled: whether pytorch_model.bin will do where there are no safetensors.

    Raises:
        RbpxError: no such repository or revision, or it holds no weights that may be opened.
        MeasureError: the hub does not answer and its cache here does not hold the whole model.
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
        patterns = _weights_of(_listing(model, revision), model, pickled)
        snapshot = _download(model, revision, patterns)
    except RbpxError:
        raise
    except GatedRepoError:
        raise RbpxError(f"model.id={model} is gated; accept its terms on the hub and run `hf auth login`") from None
    except RevisionNotFoundError:
        raise RbpxError(f"model.revision={revision} does not exist in {model}; check the branch or commit") from None
    except (RepositoryNotFoundError, HFValidationError):
        raise RbpxError(f"model.id={model} is unknown to the hub; check its spelling, or log in if private") from None
    except Exception as problem:  # whatever a network does; a copy in the hub's cache serves as well
        try:
            snapshot = _cached(model, revision, pickled)
        except Exception as without:
            raise MeasureError(_undelivered(model, revision, problem, without)) from None
    weight_files(snapshot, model, pickled)
    return snapshot, snapshot.name


def check_snapshot(folder: Path, model: str, pickled: bool = False, cache: Path | None = None) -> None:
    """See that each file that is read holds what the hub said: its link in the cache is named by its content's hash.

    huggingface_hub compares only sizes. SHA-256 names large files, git's hash of a blob small ones; where a cache has
    no links (on a file system without them), or a mirror names files in another way, nothing can be compared.

    Args:
        folder: as `fetch` returns it; files that are not the hub's are passed over.
        model: as asked, for errors.
        pickled: as `fetch` was asked.
        cache: file that keeps the hashes of large files.

    Raises:
        MeasureError: a file holds something else.
    """
    settings = (path for pattern in _SETTINGS for path in sorted(folder.glob(pattern)))
    for path in [*weight_files(folder, model, pickled), *settings]:
        if not path.is_symlink():
            continue
        blob = path.parent / path.readlink()
        if re.fullmatch(r"[0-9a-f]{64}", blob.name):
            found = file_hashes([path], cache)
        elif re.fullmatch(r"[0-9a-f]{40}", blob.name):
            raw = path.read_bytes()  # small, or the hub would name it by SHA-256; some mirrors take the plain SHA-1
            found = [hashlib.sha1(start + raw).hexdigest() for start in (b"blob %d\0" % len(raw), b"")]
        else:
            continue
        if blob.name not in found:
            raise MeasureError(
                f"{path.name} of {model} is damaged here: its hash is {found[0][:12]}..., the hub says "
                f"{blob.name[:12]}...; delete {blob.parent.resolve() / blob.name} and run again"
            )


def _listing(model: str, revision: str | None) -> set[str]:
    """The files of a repository. Asked first because it takes a timeout, while a download waits for a silent hub."""
    from huggingface_hub import HfApi

    info = HfApi().model_info(model, revision=revision or "main", timeout=_TIMEOUT_S)
    return {file.rfilename for file in info.siblings or []}


def _weights_of(listed: set[str], model: str, pickled: bool) -> list[str]:
    """Patterns of the files of weights to fetch."""
    top = sorted(name for name in listed if "/" not in name)
    if any(name.endswith(".safetensors") for name in top):
        return ["*.safetensors"]
    pickles = [name for name in top if name.endswith(".bin")]
    if not pickled:
        raise RbpxError(f"model.id={model} needs weights in safetensors, the hub has {only_pickles(pickles)}")
    return [PICKLE] if PICKLE in pickles else _PICKLES


def _download(model: str, revision: str | None, weights: Sequence[str], local_only: bool = False) -> Path:
    from huggingface_hub import snapshot_download

    return Path(
        snapshot_download(
            model,
            revision=revision,
            allow_patterns=[*_SETTINGS, *weights],
            ignore_patterns=["*/*"],
            etag_timeout=_TIMEOUT_S,
            local_files_only=local_only,
        )
    )


def _cached(model: str, revision: str | None, pickled: bool) -> Path:
    """What was fetched before, if all of it was."""
    snapshot = _download(model, revision, ["*.safetensors"], local_only=True)
    if pickled and not any(snapshot.glob("*.safetensors")) and not (snapshot / PICKLE).exists():
        return _download(model, revision, _PICKLES, local_only=True)
    return snapshot


def _undelivered(model: str, revision: str | None, problem: Exception, without: Exception) -> str:
    """One line for a hub that failed where the cache does not hold the model either."""
    at = f" at revision {revision}" if revision else ""
    reason = f"{type(problem).__name__}: {str(problem).split(chr(10))[0][:160]}"
    missing = re.search(r"missing \(([^)]*)\)", str(without))
    if missing is not None:  # what huggingface_hub says of a snapshot that broke off
        return (
            f"{model}{at} is incomplete here, {missing[1]} is missing, and the hub did not deliver it ({reason}); "
            + ("run again while the hub answers, what is here is not fetched again")
        )
    return f"the hub did not deliver {model}{at} ({reason}); check the network, or give a local folder as model.id"
