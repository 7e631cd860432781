"""The number of tokens that a cell reads: counted if the store holds a run of the same tokens, else estimated."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from rbpx.config.grid import Cell
from rbpx.config.options import Bos
from rbpx.config.text.dataset import HARNESS
from rbpx.data.corpus import Document
from rbpx.data.windows import acting_bos, spans
from rbpx.errors import RbpxError
from rbpx.models.costs import TokensRead, tokens_read
from rbpx.models.tokenizer import hash_tokenizer, load_tokenizer
from rbpx.store.cell_states import CellState
from rbpx.store.store import Record, Store

# Mean over five texts (Wikipedia, law, prose of pydoc, GSM8K, HumanEval) and the tokenizers of GPT-2, GPT-NeoX and
# Qwen2: from 2.4 (code, GPT-2) to 4.5 (Wikipedia).
BYTES_PER_TOKEN = 3.7  # where no tokenizer is here
_SAMPLED, _BEGINNING = 100, 2000  # documents, and characters of each, that tell it of a tokenizer and a text
Cut = tuple[int, int | None]
"""Tokens of a window at most, and from one window to the next; None if only the first window of a document is read."""


def find_tokens_read(
    cell_state: CellState,
    cut: Cut,
    folder: Path | None,
    documents: Sequence[Document] | None,
    runs: Sequence[Record],
    store: Store,
) -> tuple[TokensRead | None, bool | None]:
    """The tokens that a cell reads, and whether they were counted; None if neither its text nor a run of it is here."""
    cell = cell_state.cell
    if cell_state.run_id is not None:
        return tokens_read_of_run(store, cell_state.run_id, cut), True
    same_text = [run for run in runs if _reads_same_text(cell, cut, run)]
    tokenizer = None if folder is None or cell.chat or cell.prefix is not None else _tokenizer(folder, cell.bos)
    for run in same_text:
        if tokenizer == (run["tokenizer_hash"], run["bos"] or Bos.tokenizer.value):
            return tokens_read_of_run(store, run["run_id"], cut), True
    of_family = [run for run in same_text if run["family"] == cell.family]
    if not of_family and documents is not None:
        overlap = (cut[0], cut[0] - 1) if cell.protocol == HARNESS else cut  # the harness reads texts whole
        return _estimate(documents, overlap, _bytes_per_token(documents, folder)), False
    for run in of_family or same_text:
        return tokens_read_of_run(store, run["run_id"], cut), False
    return None, None


def _reads_same_text(cell: Cell, cut: Cut, run: Record) -> bool:
    """In the same windows; a text that is not here is compared by name."""
    same_text = run["text_hash"] == cell.text_hash if cell.text_hash is not None else run["dataset"] == cell.dataset
    return same_text and run["protocol"] == cell.protocol and (run["window"], run["stride"]) == cut


@cache
def _loaded(folder: Path | None) -> Any:
    try:
        return None if folder is None else load_tokenizer(folder, str(folder))
    except RbpxError:
        return None


@cache
def _tokenizer(folder: Path, bos: str) -> tuple[str, str] | None:
    tokenizer = _loaded(folder)
    try:
        return tokenizer and (hash_tokenizer(tokenizer), acting_bos(tokenizer, Bos(bos)).value)
    except RbpxError:
        return None


def _bytes_per_token(documents: Sequence[Document], folder: Path | None) -> float:
    tokenizer, texts = _loaded(folder), [document.text[:_BEGINNING] for document in documents[:_SAMPLED]]
    ids = tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"] if tokenizer else []
    return len("".join(texts).encode()) / sum(map(len, ids)) if any(ids) else BYTES_PER_TOKEN


def tokens_read_of_run(store: Store, run_id: str, cut: Cut) -> TokensRead:
    """The tokens that a run read, given how its text was cut; documents without a scored token are not."""
    columns = pq.read_table(store.part(run_id, "documents"), columns=["n_tokens", "n_scored"])
    documents = [(n, scored) for n, scored in zip(*(c.to_pylist() for c in columns.columns), strict=True) if scored]
    n_scored = sum(scored for _, scored in documents)
    facts = store.manifest(run_id)
    once = facts.get("read_once")
    if once is not None:
        return TokensRead(n_scored, once["tokens"], once["pairs"], facts["n_bytes"])
    read = tokens_read([end - begin for n, _ in documents for begin, end in spans(n, *cut)], n_scored)
    return replace(read, n_bytes=facts["n_bytes"])


def _estimate(documents: Sequence[Document], cut: Cut, per_token: float) -> TokensRead:
    if any(document.part for document in documents):
        return _estimate_of_items(documents, cut[0], per_token)
    n_tokens = [_n_tokens(document.text, per_token) for document in documents]
    windows_of_documents = [spans(n, *cut) for n in n_tokens if n > 1]
    lengths = [end - begin for windows in windows_of_documents for begin, end in windows]
    ends = [windows[-1][1] for windows in windows_of_documents]
    return replace(tokens_read(lengths, sum(ends) - len(ends)), n_bytes=round(sum(ends) * per_token))


def _estimate_of_items(documents: Sequence[Document], window: int, per_token: float) -> TokensRead:
    """The common beginning of all items, then each context, is read once, in one window a text."""
    parts = [(document.part, document.text) for document in documents if document.part is not None]
    whole_n = [_n_tokens(text, per_token) for _, text in parts]
    n_scored = sum(whole_n) - sum(_n_tokens(text[: part.n_context], per_token) for part, text in parts)
    if max(whole_n) > window:
        return tokens_read([min(n, window) for n in whole_n], n_scored)
    before = {part.item: text[: part.n_context] for part, text in parts}
    alike = takewhile(lambda pair: pair[0] == pair[1], zip(min(before.values()), max(before.values()), strict=False))
    of_all = _n_tokens("".join(character for character, _ in alike), per_token)
    contexts = {item: _n_tokens(text, per_token) for item, text in before.items()}
    steps = [(0, of_all), *((of_all, n) for n in contexts.values())]
    steps += [(contexts[part.item], n) for (part, _), n in zip(parts, whole_n, strict=True)]
    return TokensRead(
        n_scored, sum(end - begin for begin, end in steps), sum(end**2 - begin**2 for begin, end in steps)
    )


def _n_tokens(text: str, per_token: float) -> int:
    return round(len(text.encode()) / per_token)
