"""Downloads a model from the Hugging Face hub into the hub's cache, and verifies the hashes of its files."""

import hashlib
import re
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from rbpx.config.model.adapter import adapter_config, is_adapter
from rbpx.data.hub import TIMEOUT_S, HubFile, Needs, bytes_bar, explained
from rbpx.errors import MeasureError, NotHereError, RbpxError, first_line
from rbpx.files.digest import file_hashes
from rbpx.models.folder import PICKLE, local_folder, weight_files, without_safetensors
from rbpx.spelling import typed

_SMALL_FILES = ["*.json", "*.txt", "*.model", "*.jinja", "*.tiktoken"]  # configuration and tokenizer
_PICKLES = [PICKLE, PICKLE.replace(".bin", "-*.bin")]


def fetch(
    model: str,
    revision: str | None,
    pickled: bool = False,
    weights: bool = True,
    advance: Callable[[int], None] | None = None,
) -> tuple[Path, str | None]:
    """The local folder of a model and, for a hub id, the commit of `revision`.

    Downloads only what is not here of configuration, tokenizer and, unless `weights` is false, weights: safetensors, or
    pickles if they are allowed and there is nothing else. `advance` is called with the bytes that came, from several
    threads.

    Raises:
        AbsentModelError: there is no such repository or revision.
        RbpxError: it has no weights that may be opened, or is an adapter.
        MeasureError: the hub does not answer and its cache does not hold the whole model.
    """
    folder = local_folder(model, pickled)
    if folder is not None:
        return folder, None
    try:
        with explained("model.id", model, revision):
            names = [file.rfilename for file in _info(model, revision).siblings or []]
            patterns = _weight_patterns(names, model, pickled) if weights else []
            snapshot = _download(model, revision, patterns, None if advance is None else bytes_bar(advance))
    except RbpxError:
        raise
    except Exception as problem:  # any network failure; a cached copy will do
        try:
            snapshot = _cached(model, revision, pickled) if weights else _download(model, revision, [], local_only=True)
            if weights and not any(snapshot.glob("*.safetensors")) and not any(snapshot.glob("*.bin")):
                raise FileNotFoundError("its weights were never downloaded")
        except Exception as cache_problem:
            raise _undelivered(model, revision, pickled, problem, cache_problem) from None
    if is_adapter(str(snapshot)):
        base = adapter_config(str(snapshot)).get("base_model_name_or_path")
        raise RbpxError(
            f"model.id={model} is an adapter, which is here now; put it into its base: model.id={base} "
            f"model.adapter={snapshot}"
        )
    if weights:
        weight_files(snapshot, model, pickled)
    return snapshot, snapshot.name


def needed_files(model: str, revision: str | None, pickled: bool, weights: bool) -> Needs:
    """Commit and files that `fetch` would download now; the cached files if the hub does not answer.

    Raises:
        RbpxError: as `fetch`.
    """
    from huggingface_hub.utils import filter_repo_objects  # type: ignore[attr-defined]

    try:
        with explained("model.id", model, revision):
            info = _info(model, revision, files_metadata=True)
    except RbpxError:
        raise
    except Exception:  # no answer: the cache has all, or `fetch` raises
        folder, _ = fetch(model, revision, pickled, weights)
        here = [path for path in sorted(folder.iterdir()) if path.is_file()]
        files = [HubFile(path.name, path.stat().st_size, path.resolve().name, True) for path in here]
        return folder.name, files, 0
    listed = {file.rfilename: file for file in info.siblings or []}
    patterns = [*_SMALL_FILES, *(_weight_patterns(listed, model, pickled) if weights else [])]
    names = filter_repo_objects(listed, allow_patterns=patterns, ignore_patterns=["*/*"])
    files = [
        HubFile.of("model", model, str(info.sha), name, file.size or 0, str(file.blob_id), file.lfs)
        for name, file in ((name, listed[name]) for name in names)
    ]
    return info.sha, files, 0


def check_snapshot(
    folder: Path, model: str, pickled: bool = False, cache: Path | None = None, weights: bool = True
) -> None:
    """Verify the hash of each file of a folder that `fetch` returned; files that do not come from the hub are skipped.

    huggingface_hub compares only sizes. In its cache a link points to a file named by its hash, SHA-256 of large files,
    git's blob hash of small ones; caches without links, and mirrors that name files in another way, cannot be verified.

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
            raw = path.read_bytes()  # some mirrors name a small file by its plain SHA-1
            hashes = [hashlib.sha1(start + raw).hexdigest() for start in (b"blob %d\0" % len(raw), b"")]
        else:
            continue
        if blob.name not in hashes:
            raise MeasureError(
                f"{path.name} of {model} is corrupt: its hash is {hashes[0][:12]}..., the hub gives "
                f"{blob.name[:12]}...; delete {blob.parent.resolve() / blob.name} and run again"
            )


def _info(model: str, revision: str | None, files_metadata: bool = False) -> Any:
    """Requested first because it has a timeout, which downloads lack."""
    from huggingface_hub import HfApi

    return HfApi().model_info(model, revision=revision or "main", timeout=TIMEOUT_S, files_metadata=files_metadata)


def _weight_patterns(repo_files: Collection[str], model: str, pickled: bool) -> list[str]:
    top = sorted(name for name in repo_files if "/" not in name)
    if any(name.endswith(".safetensors") for name in top):
        return ["*.safetensors"]
    pickles = [name for name in top if name.endswith(".bin")]
    if not pickled:
        raise without_safetensors(model, "the hub", pickles)
    return [PICKLE] if PICKLE in pickles else _PICKLES


def _download(
    model: str, revision: str | None, weights: Sequence[str], bar: Any = None, local_only: bool = False
) -> Path:
    from huggingface_hub import snapshot_download

    return Path(
        snapshot_download(
            model,
            revision=revision,
            allow_patterns=[*_SMALL_FILES, *weights],
            ignore_patterns=["*/*"],
            etag_timeout=TIMEOUT_S,
            local_files_only=local_only,
            tqdm_class=bar,
        )
    )


def _cached(model: str, revision: str | None, pickled: bool) -> Path:
    """The cached snapshot, if it is complete."""
    snapshot = _download(model, revision, ["*.safetensors"], local_only=True)
    if pickled and not any(snapshot.glob("*.safetensors")) and not (snapshot / PICKLE).exists():
        return _download(model, revision, _PICKLES, local_only=True)
    return snapshot


def _undelivered(
    model: str, revision: str | None, pickled: bool, problem: Exception, cache_problem: Exception
) -> MeasureError:
    from huggingface_hub import constants

    missing = re.search(r"missing \(([^)]*)\)", str(cache_problem))  # huggingface_hub's, for an interrupted download
    absent = "is no folder here and not in the hub's cache"
    lacks = absent if missing is None else f"is incomplete, {missing[1]} is missing"
    what = f"{model}{f' at revision {revision}' if revision else ''} {lacks}"
    if constants.HF_HUB_OFFLINE:
        keys = {"model": "hub", "model.id": model, "model.revision": revision, "model.pickled": pickled}
        fetching = typed("download", {key: value for key, value in keys.items() if value})
        return NotHereError(f"{what}, and HF_HUB_OFFLINE is set", fetching)
    return MeasureError(
        f"{what}, and the hub did not deliver it ({first_line(problem)}); check the path or the network, and run "
        "again: files that are complete are not downloaded again"
    )
