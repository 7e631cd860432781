"""How much of its text a cell would read: counted where the store holds a run of the same tokens, else estimated."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from rbpx.config.grid import Cell
from rbpx.config.options import Bos
from rbpx.data.corpus import Document
from rbpx.data.windows import acting_bos, spans
from rbpx.errors import RbpxError
from rbpx.models.costs import Load, load_of
from rbpx.models.load import hash_tokenizer, load_tokenizer
from rbpx.store.cell_states import CellState
from rbpx.store.store import Record, Store

# Mean over five texts (Wikipedia, law, prose of pydoc, GSM8K, HumanEval) and the tokenizers of GPT-2, GPT-NeoX and
# Qwen2: from 2.4 (code, GPT-2) to 4.5 (Wikipedia).
_BYTES_PER_TOKEN = 3.7


@dataclass(frozen=True)
class Cut:
    """How a cell reads: tokens at once, tokens from one window to the next, None for first windows alone."""

    window: int
    stride: int | None


def reading_of(cell: Cell, context: int | None) -> Cut:
    """How a cell reads with a model of that context; None where the context is not known or without limit."""
    return Cut(*cell.cut_for(context))


def find_load(
    standing: CellState,
    reading: Cut,
    folder: Path | None,
    documents: Sequence[Document] | None,
    runs: Sequence[Record],
    store: Store,
) -> tuple[Load, bool] | None:
    """What a cell reads, and whether that was counted; None where neither its text is here nor a run of it.

    Args:
        standing: the cell.
        reading: its windows.
        folder: of its model, for the tokenizer; None where it is not here.
        documents: its text, None where it is not here.
        runs: the relation `runs` of the store.
        store: where they lie.
    """
    cell = standing.cell
    if standing.run_id is not None:
        return load_of_run(store, standing.run_id, reading), True
    same_text = [run for run in runs if _reads_alike(cell, reading, run)]
    tokenizer = None if folder is None else _tokenizer(folder, cell.bos)
    for run in same_text:
        if tokenizer == (run["tokenizer_hash"], run["bos"] or Bos.tokenizer.value):
            return load_of_run(store, run["run_id"], reading), True
    of_family = [run for run in same_text if run["family"] == cell.family]
    if not of_family and documents is not None:
        return _estimate(documents, reading), False
    for run in of_family or same_text:
        return load_of_run(store, run["run_id"], reading), False
    return None


def _reads_alike(cell: Cell, reading: Cut, run: Record) -> bool:
    """Whether a run cut the same text as a cell would; of a text that is not here its name tells."""
    same_text = run["text_hash"] == cell.text_hash if cell.text_hash is not None else run["dataset"] == cell.dataset
    theirs = Cut(run["window"], run["stride"])
    return same_text and run["protocol"] == cell.protocol and theirs == reading


@cache
def _tokenizer(folder: Path, bos: str) -> tuple[str, str] | None:
    """The identity of a folder's tokenizer and its BOS policy as it acts; None where it cannot be loaded."""
    try:
        tokenizer: Any = load_tokenizer(folder, str(folder))
        return hash_tokenizer(tokenizer), acting_bos(tokenizer, Bos(bos)).value
    except RbpxError:
        return None


def load_of_run(store: Store, run_id: str, reading: Cut) -> Load:
    """What a run read, whose windows were cut that way; documents without a scored token are not run."""
    columns = pq.read_table(store.run_folder(run_id) / "documents.parquet", columns=["n_tokens", "n_scored"])
    read = [(n, scored) for n, scored in zip(*(c.to_pylist() for c in columns.columns), strict=True) if scored]
    lengths = [end - begin for n, _ in read for begin, end in spans(n, reading.window, reading.stride)]
    return load_of(lengths, sum(scored for _, scored in read))


def _estimate(documents: Sequence[Document], reading: Cut) -> Load:
    n_tokens = [round(len(d.text.encode("utf-8", "surrogatepass")) / _BYTES_PER_TOKEN) for d in documents]
    cut = [spans(n, reading.window, reading.stride) for n in n_tokens if n > 1]
    lengths = [end - begin for windows in cut for begin, end in windows]
    return load_of(lengths, sum(windows[-1][1] - 1 for windows in cut))
