"""Draws the sample of a hub's dataset, and finds the commit that its documents come from."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

from rbpx.config.options import Draw
from rbpx.config.text.dataset import DatasetConfig
from rbpx.data.corpus import Document, documents_of, draw, drawn_rows, text_hash
from rbpx.data.hub import TIMEOUT_S, HubFile, Needs, explained, gated, quiet
from rbpx.data.parquet_parts import Tell, parts_bytes, read_parts
from rbpx.data.texts import texts
from rbpx.errors import MeasureError, NotHereError, RbpxError, reason
from rbpx.spelling import typed

_PREPARED: Final = "dataset_info.json"  # which `datasets` writes last


@dataclass(frozen=True)
class Sample:
    """Drawn documents; `of_files` where they come from a folder or glob, whose file names are part of its identity."""

    documents: list[Document]
    commit: str | None
    of_files: bool = False

    @property
    def text_hash(self) -> str:
        """The identity of the text; raises what `corpus.text_hash` raises."""
        return text_hash(self.documents, self.of_files)


def read_hub(dataset: DatasetConfig, limit: int, seed: int | None, tell: Tell) -> Sample:
    """Draw the sample of a hub's dataset, from the hub or from its caches on this machine.

    No code of a dataset is run: `datasets` refuses repositories that are scripts. The seed is that of
    `datasets.Dataset.shuffle(seed)`; None takes the first documents.

    Raises:
        RbpxError: there is no such dataset, subset, split, revision or field, or this user may not read it.
        MeasureError: the hub fails, and the dataset is not in the caches here.
    """
    hub = named_hub(dataset)
    with _delivered(dataset), quiet():
        commit = _current_commit(hub, dataset.revision)
        if isinstance(commit, str):
            return Sample(_from_hub(dataset, commit, limit, seed, tell), commit)
        return _from_cache(dataset, commit, limit, seed)


def needed_rows(dataset: DatasetConfig, limit: int, seed: int | None) -> Needs:
    """What `read_hub` would download whole, and read besides (of a stream an upper bound); raises as `read_hub`."""
    hub = named_hub(dataset)
    with _delivered(dataset), quiet():
        commit = _current_commit(hub, dataset.revision)
        if isinstance(commit, Exception):
            _from_cache(dataset, commit, limit, seed)
            return str(dataset.revision), (), 0
        builder, parts = _opened(dataset, commit)
        if dataset.draw is Draw.parts:
            return commit, (), parts_bytes(parts, dataset, place_of(dataset), limit, seed)
        if dataset.draw is not Draw.whole:
            return commit, (), sum(file.n_bytes for file in _hub_files(hub, commit, [path for _, path in parts]))
        if (Path(builder.cache_dir) / _PREPARED).is_file():  # loaded before
            return commit, (), 0
        listed = [path for of_split in builder.config.data_files.values() for path in of_split]
        return commit, _hub_files(hub, commit, listed), 0


def _hub_files(hub: str, commit: str, addresses: Sequence[str]) -> list[HubFile]:
    from huggingface_hub import HfFileSystem

    told = ((address.partition(f"@{commit}/")[2], HfFileSystem().info(address)) for address in addresses)
    return [HubFile.of("dataset", hub, commit, path, of["size"], of["blob_id"], of["lfs"]) for path, of in told]


def named_hub(dataset: DatasetConfig) -> str:
    """The id of a hub's dataset; RbpxError where it, or the split, is not given."""
    if dataset.hub is None or dataset.split is None:
        lacks = "hub=ORG/NAME" if dataset.hub is None else "split=NAME, as test or validation+test"
        raise RbpxError(f"dataset={dataset.name} needs dataset.{lacks}; or dataset.path=FILE for a file of your own")
    return dataset.hub


def _current_commit(hub: str, revision: str | None) -> str | Exception:
    """Or the error of the hub, in which case the caches may have the dataset."""
    from datasets import config
    from huggingface_hub import HfApi
    from huggingface_hub.errors import (
        HFValidationError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    if config.HF_HUB_OFFLINE:
        return OfflineModeIsEnabled("HF_HUB_OFFLINE or HF_DATASETS_OFFLINE is set")
    try:
        # First because it takes a timeout: a hub that accepts but never answers would hang the rest.
        info = HfApi().dataset_info(hub, revision=revision or "main", timeout=TIMEOUT_S)
    except (RepositoryNotFoundError, RevisionNotFoundError, HFValidationError):  # gated is a kind of not found
        raise
    except Exception as problem:  # whatever a network does
        return problem
    return str(info.sha)


def _opened(dataset: DatasetConfig, commit: str) -> tuple[Any, list[tuple[str, str]]]:
    from datasets import load_dataset_builder

    builder = load_dataset_builder(dataset.hub, dataset.subset, revision=commit)
    files = {str(split): list(listed) for split, listed in (builder.config.data_files or {}).items()}
    splits = dataset.split.split("+")
    unknown = [split for split in splits if split not in files]
    if unknown:
        where, available = place_of(dataset, with_split=False), ", ".join(files)
        raise RbpxError(f"dataset.split={dataset.split}: {where} has no split {unknown[0]}; it has: {available}")
    return builder, [(split, path) for split in splits for path in files[split]]


def _from_hub(dataset: DatasetConfig, commit: str, limit: int, seed: int | None, tell: Tell) -> list[Document]:
    builder, parts = _opened(dataset, commit)
    if dataset.draw is Draw.whole:
        builder.download_and_prepare()
        return _draw_loaded(builder.as_dataset(split=dataset.split), dataset, limit, seed)
    if dataset.draw is Draw.parts:
        return read_parts(parts, dataset, place_of(dataset), limit, seed, tell)
    # `datasets` infers features from the first file, which should be a needed one.
    splits = dataset.split.split("+")
    builder.config.data_files = type(builder.config.data_files)(
        {split: builder.config.data_files[split] for split in splits}
    )
    rows = chain.from_iterable(
        ((f"{split}/{n}", row) for n, row in enumerate(builder.as_streaming_dataset(split=split))) for split in splits
    )
    return _drawn(_counted(rows, tell), dataset, limit, seed)


def _from_cache(dataset: DatasetConfig, why: Exception, limit: int, seed: int | None) -> Sample:
    from datasets import config, load_dataset_builder

    before, config.HF_HUB_OFFLINE = config.HF_HUB_OFFLINE, True  # do not contact the hub a second time
    try:
        builder = load_dataset_builder(dataset.hub, dataset.subset)
        rows = builder.as_dataset(split=dataset.split)
    except Exception:  # not in the cache: report the hub's failure
        raise _undelivered(dataset, why) from None
    finally:
        config.HF_HUB_OFFLINE = before
    commit = str(builder.hash)
    if dataset.revision not in (None, "main", commit):  # only the hub knows whether that is the cached one
        raise _undelivered(dataset, why)
    return Sample(_draw_loaded(rows, dataset, limit, seed), commit)


def _counted(rows: Iterable[tuple[str, Any]], tell: Tell) -> Iterator[tuple[str, Any]]:
    for number, row in enumerate(rows, 1):
        yield row
        tell(number, None, "rows")


def _drawn(rows: Iterable[tuple[str, Any]], dataset: DatasetConfig, limit: int, seed: int | None) -> list[Document]:
    found = texts(rows, dataset, place_of(dataset))
    return draw(list(islice(found, limit) if dataset.draw is Draw.first else found), limit, seed)


def _draw_loaded(rows: Any, dataset: DatasetConfig, limit: int, seed: int | None) -> list[Document]:
    """Where each row is one text or item, drawn ones alone are read."""
    names = _names(rows, dataset.split)
    if dataset.draw is Draw.first or not dataset.takes_every_row:
        return _drawn(zip(names, rows, strict=True), dataset, limit, seed)
    chosen = ((names[at], rows[at]) for at in drawn_rows(len(rows), limit, seed))
    return documents_of(list(texts(chosen, dataset, place_of(dataset))))


def _names(rows: Any, split: str) -> list[str]:
    """The split of each row and its number in it, from 0, as in the hub's viewer."""
    splits = split.split("+")
    lengths = [rows.info.splits[name].num_examples for name in splits] if len(splits) > 1 else [len(rows)]
    return [f"{name}/{n}" for name, length in zip(splits, lengths, strict=True) for n in range(length)]


def place_of(dataset: DatasetConfig, with_split: bool = True) -> str:
    """The readable name of a dataset: ORG/NAME, its subset, its split."""
    return ", ".join(part for part in (dataset.hub, dataset.subset, dataset.split if with_split else None) if part)


@contextmanager
def _delivered(dataset: DatasetConfig) -> Iterator[None]:
    from datasets.exceptions import DatasetNotFoundError

    try:
        with explained("dataset.hub", dataset.hub, dataset.revision):
            yield
    except RbpxError:
        raise
    except DatasetNotFoundError as problem:  # a refusal of the hub, by `datasets`
        raise gated("dataset.hub", dataset.hub) if "gated" in str(problem) else _undelivered(dataset, problem) from None
    except Exception as problem:  # any other failure of the network or of `datasets`
        subsets = re.search(r"(?:BuilderConfig '.*' not found. Available|available configs): \[(.*?)\]", str(problem))
        if subsets:
            available = subsets[1].replace("'", "")
            raise RbpxError(
                f"dataset.subset={dataset.subset} is not a subset of {dataset.hub}; it has: {available}"
            ) from None
        raise _undelivered(dataset, problem) from None


def _undelivered(dataset: DatasetConfig, problem: BaseException) -> MeasureError:
    from huggingface_hub.errors import OfflineModeIsEnabled

    while problem.__cause__ is not None:  # `datasets` wraps what went wrong
        problem = problem.__cause__
    if isinstance(problem, OfflineModeIsEnabled):
        what = f"{place_of(dataset)} is not on this machine, and HF_HUB_OFFLINE or HF_DATASETS_OFFLINE is set"
        return NotHereError(what, typed("download", dataset=dataset.name))
    return MeasureError(
        f"the hub did not deliver {place_of(dataset)} ({type(problem).__name__}: {reason(problem, 160)}); check its "
        "name and the network and type the same again, or read a file with dataset.path=FILE"
    )
