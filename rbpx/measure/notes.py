"""Says what a user should know of the runs of a grid that were just measured, each in one line a grid."""

import logging
from collections.abc import Sequence

from rbpx.config.options import Chunk
from rbpx.config.text.dataset import DatasetConfig
from rbpx.data.corpus import Document
from rbpx.errors import number_of
from rbpx.store.store import Record, Store

_LOGGER = logging.getLogger(__name__)
_ALL = 0.99  # of a text: some tokenizers leave out white space at the end of documents


def log_notes(
    dataset: DatasetConfig | None, documents: Sequence[Document], new: Sequence[Record], store: Store
) -> None:
    """Say how much of a user's file was scored, how many items not, and where padding or a BOS within the text counts.

    Args:
        dataset: that was measured.
        documents: of it.
        new: the records of the cells that were measured.
        store: with their runs.
    """
    runs = [(f"{record['family']} on {record['dataset']}", store.manifest(record["run_id"])) for record in new]
    if runs and dataset is not None and dataset.path is not None and not dataset.has_items:
        _log_unscored(*runs[0], dataset, documents)
    if dataset is not None and dataset.has_items:
        for name, n, of in dict.fromkeys((name, run["n_skipped"], run["n_documents"]) for name, run in runs):
            if n:
                _LOGGER.warning(
                    f"{name}: {n:,} of {number_of(n + of, 'item')} left out, because the tokenizer joins a target to "
                    "its context, so that no token is the target's alone; dataset.joined=refuse names the first"
                )
    for name, inner in ((name, run["inner_padding"]) for name, run in runs if "inner_padding" in run):
        _LOGGER.warning(
            f"{name}: {inner['documents']:,} of {number_of(len(documents), 'document')} contain {inner['text']}, with "
            "which protocol=official pads windows; the authors' code masks it there too, so their ranks of the "
            f"{number_of(inner['tokens'], 'token')} after it may differ"
        )
        break
    for name, scored in ((name, run["scored_bos"]) for name, run in runs if "scored_bos" in run):
        _LOGGER.info(
            f"{name}: the {scored['text']} that the tokenizer puts before each of {number_of(scored['texts'], 'text')} "
            "is scored too, as the harness does; model.bos=none scores texts alone"
        )
        break


def _log_unscored(name: str, run: Record, dataset: DatasetConfig, documents: Sequence[Document]) -> None:
    from rbpx.display.vocabulary import part

    share = run["n_bytes"] / sum(len(document.text.encode()) for document in documents)
    if share >= _ALL:
        return
    chunk = "" if dataset.chunk is not Chunk.none else "; dataset.chunk=paragraph makes a document of each paragraph"
    _LOGGER.info(
        f"{name}: scored {run['n_tokens']:,} of about {run['n_tokens'] / share:,.0f} tokens ({part(share)} % of "
        f"{number_of(len(documents), 'document')}): protocol=rolling scores all of them{chunk}"
    )
