"""A dataset of the hub as asked in, the documents of its sample and the commit that they come from out."""

import logging
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from rbpx.config.dataset import DatasetConfig
from rbpx.config.options import Draw
from rbpx.data.corpus import Document, Source, draw
from rbpx.data.hub_failures import explained, place_of, undelivered
from rbpx.data.parquet_parts import Tell, read_parts
from rbpx.data.texts import Text, text_of, texts
from rbpx.errors import MeasureError, RbpxError

_HUB_TIMEOUT_S = 5
_RETRIES = 3  # of a read while streaming; `datasets` itself would go on for minutes in silence


@dataclass(frozen=True)
class Sample:
    """Drawn documents, and the commit of the hub that they come from; None for texts of this machine."""

    documents: list[Document]
    commit: str | None


def read_hub(asked: DatasetConfig, limit: int, seed: int, tell: Tell) -> Sample:
    """Draw the sample of a hub's dataset, from the hub or from what its caches on this machine hold.

    No code of a dataset is run: repositories that are scripts are refused by `datasets`.

    Args:
        asked: with `hub` and `split`.
        limit: documents at most.
        seed: of the shuffle, as `datasets.Dataset.shuffle(seed)`.
        tell: called with how far it is.

    Raises:
        RbpxError: there is no such dataset, subset, split, revision or field, or it may not be read by this user.
        MeasureError: the hub fails, and the caches here do not hold it.
    """
    if asked.hub is None or asked.split is None:
        lacks = "hub=ORG/NAME" if asked.hub is None else "split=NAME, as test or validation+test"
        raise RbpxError(f"dataset={asked.name} needs dataset.{lacks}; or dataset.path=FILE for a file of your own")
    with explained(asked), _quiet():
        found = _ask(asked.hub, asked.revision)
        if isinstance(found, str):
            return Sample(_from_hub(asked, found, limit, seed, tell), found)
        return _from_cache(asked, found, limit, seed)


def _ask(hub: str, revision: str | None) -> str | Exception:
    """The commit that a revision is now; or why the hub does not say, while the caches here may still hold it."""
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
        # Asked first because it takes a timeout: a hub that accepts and never answers would hang the rest.
        info = HfApi().dataset_info(hub, revision=revision or "main", timeout=_HUB_TIMEOUT_S)
    except (RepositoryNotFoundError, RevisionNotFoundError, HFValidationError):  # gated is a kind of not found
        raise
    except Exception as problem:  # whatever a network does
        return problem
    return str(info.sha)


def _from_hub(asked: DatasetConfig, commit: str, limit: int, seed: int, tell: Tell) -> list[Document]:
    from datasets import load_dataset_builder

    builder = load_dataset_builder(asked.hub, asked.subset, revision=commit)
    files = {str(split): list(listed) for split, listed in (builder.config.data_files or {}).items()}
    splits = asked.split.split("+")
    unknown = [split for split in splits if split not in files]
    if unknown:
        where, known = place_of(asked, with_split=False), ", ".join(files)
        raise RbpxError(f"dataset.split={asked.split}: {where} has no split {unknown[0]}; it has: {known}")
    if asked.draw is Draw.whole:
        builder.download_and_prepare()
        return _drawn(builder.as_dataset(split=asked.split), asked, limit, seed)
    if asked.draw is Draw.parts:
        parts = [(split, path) for split in splits for path in files[split]]
        return read_parts(parts, asked.row_choice(), place_of(asked), limit, seed, tell)
    # The features of rows are seen from the first file, which should be one that is wanted anyway.
    builder.config.data_files = type(builder.config.data_files)(
        {split: builder.config.data_files[split] for split in splits}
    )
    rows = chain.from_iterable(
        ((f"{split}/{n}", row) for n, row in enumerate(builder.as_streaming_dataset(split=split))) for split in splits
    )
    found = texts(_counted(rows, tell), asked.row_choice(), place_of(asked))
    return draw(list(islice(found, limit) if asked.draw is Draw.first else found), limit, seed)


def _from_cache(asked: DatasetConfig, why: Exception, limit: int, seed: int) -> Sample:
    """The same documents from a dataset that `datasets` has loaded before."""
    from datasets import config, load_dataset_builder

    before, config.HF_HUB_OFFLINE = config.HF_HUB_OFFLINE, True  # the hub was asked; once is enough
    try:
        builder = load_dataset_builder(asked.hub, asked.subset)
        rows = builder.as_dataset(split=asked.split)
    except Exception:  # whatever `datasets` makes of a cache that lacks it; what the hub said is the reason
        raise MeasureError(undelivered(asked, why)) from None
    finally:
        config.HF_HUB_OFFLINE = before
    commit = str(builder.hash)
    if asked.revision not in (None, "main", commit):
        raise MeasureError(
            f"the hub did not answer, and whether its cache here, at commit {commit}, is dataset.revision="
            f"{asked.revision} of {asked.hub} cannot be told; give that commit, or try again later"
        ) from None
    if asked.draw is not Draw.first:
        return Sample(_drawn(rows, asked, limit, seed), commit)
    found = texts(_named(rows, asked.split), asked.row_choice(), place_of(asked))
    return Sample(draw(list(islice(found, limit)), limit, seed), commit)


def _counted(rows: Iterable[tuple[str, Any]], tell: Tell) -> Iterator[tuple[str, Any]]:
    for number, row in enumerate(rows, 1):
        yield row
        tell(number, None, "rows")


# ------------------------------------------------------------------------------------------------- the whole dataset


class _Rows(Sequence[Text]):
    """A loaded dataset whose rows are texts each, read when they are drawn."""

    def __init__(self, rows: Any, names: Sequence[str], asked: DatasetConfig) -> None:
        self._rows, self._names, self._asked = rows, names, asked

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: Any) -> Any:
        name = self._names[index]
        return name, text_of(self._rows[index], self._asked.fields, name, place_of(self._asked))


def _drawn(rows: Any, asked: DatasetConfig, limit: int, seed: int) -> list[Document]:
    wanted = asked.row_choice()
    if wanted.takes_every_row:
        return draw(_Rows(rows, _names(rows, asked.split), asked), limit, seed)
    found: Source = list(texts(_named(rows, asked.split), wanted, place_of(asked)))
    return draw(found, limit, seed)


def _named(rows: Any, split: str) -> Iterator[tuple[str, Any]]:
    return zip(_names(rows, split), rows, strict=True)


def _names(rows: Any, split: str) -> list[str]:
    """The split of each row and its number there, from 0, as the hub's viewer counts."""
    splits = split.split("+")
    lengths = [rows.info.splits[name].num_examples for name in splits] if len(splits) > 1 else [len(rows)]
    return [f"{name}/{n}" for name, length in zip(splits, lengths, strict=True) for n in range(length)]


@contextmanager
def _quiet() -> Iterator[None]:
    """Warnings and bars of the libraries are for people at a terminal, who wait for a long download."""
    os.environ.setdefault("HF_UPDATE_DOWNLOAD_COUNTS", "0")  # one request more, and a dead network holds it
    import datasets
    from huggingface_hub.utils.tqdm import disable_progress_bars

    datasets.config.STREAMING_READ_MAX_RETRIES = datasets.config.STREAMING_OPEN_MAX_RETRIES = _RETRIES
    if not sys.stderr.isatty():
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
