"""Logs what a user should know of a grid's runs, before and after they are measured, one line each."""

import logging
from collections.abc import Sequence

from rbpx.config.grid import Cell
from rbpx.config.options import Chunk
from rbpx.config.text.dataset import DatasetConfig
from rbpx.data.corpus import Document
from rbpx.data.windows import Window
from rbpx.errors import number_of
from rbpx.measure.run_tables import text_facts
from rbpx.store.store import Record, Store

_LOGGER = logging.getLogger(__name__)
_ALL = 0.99  # of a text: some tokenizers drop white space at its end
_ALMOST = 0.9  # for estimated tokens: a document of a window's length may be scored whole


def unscored(n_tokens: int, share: float, is_counted: bool = True) -> str | None:
    """Which part of a text is scored and what scores the rest; None where all is.

    `share` is of the bytes that the scored tokens and their context cover; `is_counted` says that tokens are no
    estimate.
    """
    from rbpx.display.vocabulary import part

    if share >= (_ALL if is_counted else _ALMOST):
        return None
    about = "" if is_counted else "about "
    return (
        f"scores {about}{part(share)} % of the drawn text, {n_tokens:,} of about {n_tokens / share:,.0f} tokens; "
        "protocol=rolling scores all"
    )


def log_unscored(cell: Cell, dataset: DatasetConfig, documents: Sequence[Document], windows: Sequence[Window]) -> None:
    """Log how much of a user's text a cell will score, where that is not all."""
    if dataset.path is None or dataset.has_items:
        return
    facts = text_facts(windows, documents)
    said = unscored(facts["n_tokens"], facts["n_bytes"] / n_bytes_of(documents))
    if said is not None:
        chunk = "; dataset.chunk=paragraph makes a document of each paragraph"
        _LOGGER.info(f"{cell.family} on {cell.dataset}: {said}{'' if dataset.chunk is not Chunk.none else chunk}")


def n_bytes_of(documents: Sequence[Document]) -> int:
    """Bytes (UTF-8) of the texts of documents."""
    return sum(len(document.text.encode()) for document in documents)


def log_notes(documents: Sequence[Document], new: Sequence[Record], store: Store) -> None:
    """Log how many items were left out, and where padding or a BOS within the text counts."""
    runs = [(f"{record['family']} on {record['dataset']}", store.manifest(record["run_id"])) for record in new]
    if documents and documents[0].part is not None:
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
