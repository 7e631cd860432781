"""Makes the relations of a run from its scored tokens, windows and documents."""

import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rbpx.config.text.dataset import HARNESS
from rbpx.data.corpus import Document
from rbpx.data.windows import Window
from rbpx.store import schema
from rbpx.store.columns import rank_counts
from rbpx.store.store import Record

Columns = Mapping[str, Any]
"""Columns of the scored tokens, in order of (doc_id, position): NumPy arrays, or Arrow arrays where some are null."""


def text_facts(windows: Sequence[Window], documents: Sequence[Document]) -> Record:
    """Documents, tokens and bytes of a run's text, without wrong choices."""
    true_ids = {document.doc_id for document in documents if document.is_true}
    true_windows = [window for window in windows if window.doc_id in true_ids]
    scored = {window.doc_id for window in true_windows if window.n_scored}
    return {
        "n_documents": len(scored),
        "n_skipped": len(true_ids) - len(scored),
        "n_tokens": sum(window.n_scored for window in true_windows),
        "n_bytes": sum(window.n_bytes for window in true_windows if window.doc_id in scored),
        "n_bytes_scored": sum(window.n_bytes_scored for window in true_windows),
    }


def cross_entropy_nats(columns: Columns, documents: Sequence[Document]) -> float:
    """Mean of -logprob over the scored tokens of texts, targets and right choices, nats."""
    logprob_N = np.asarray(columns["logprob"])[_is_true(columns, documents)]
    return -float(logprob_N.mean(dtype=np.float64))


def _is_true(columns: Columns, documents: Sequence[Document]) -> npt.NDArray[np.bool_]:
    return np.asarray([document.is_true for document in documents])[_documents_of(columns, documents)]


def _documents_of(columns: Columns, documents: Sequence[Document]) -> npt.NDArray[np.intp]:
    return np.searchsorted([document.doc_id for document in documents], np.asarray(columns["doc_id"]))


def run_tables(
    run_id: str, columns: Columns, windows: Sequence[Window], documents: Sequence[Document], protocol: str
) -> dict[str, pa.Table]:
    """The relations `tokens`, `rank_counts` and `documents` of a run."""
    ids = pa.array([run_id], pa.string()).take(pa.array(np.zeros(len(columns["doc_id"]), np.int32)))
    tokens = pa.table({"run_id": ids, **columns, **_places(windows)}, schema=schema.TOKENS)
    counts = rank_counts(tokens.filter(pa.array(_is_true(columns, documents))))
    windows_by_document = [list(group) for _, group in groupby(windows, key=lambda w: w.doc_id)]
    of_documents = {
        "run_id": [run_id] * len(documents),
        "doc_id": [d.doc_id for d in documents],
        "source_id": [d.source_id for d in documents],
        "n_bytes": [sum(w.n_bytes for w in ws) for ws in windows_by_document],
        "n_tokens": [ws[-1].start + len(ws[-1].ids) - ws[0].start for ws in windows_by_document],
        "n_scored": [sum(w.n_scored for w in ws) for ws in windows_by_document],
        "n_bytes_scored": [sum(w.n_bytes_scored for w in ws) for ws in windows_by_document],
    }
    table = pa.table(of_documents, schema=schema.DOCUMENTS)
    if documents[0].part is None and protocol == HARNESS:
        n_words = [len(re.split(r"\s+", document.text)) for document in documents]  # as lm-evaluation-harness counts
        table = table.append_column(schema.ITEMS_DOCUMENTS.field("n_words"), pa.array(n_words, pa.int32()))
    if documents[0].part is not None:
        table = _with_parts(table, documents, schema.ITEMS_DOCUMENTS)
        tokens = _with_parts(tokens, documents, schema.ITEMS_TOKENS, _documents_of(columns, documents))
    return {"tokens": tokens, "rank_counts": counts, "documents": table}


def _with_parts(
    table: pa.Table,
    documents: Sequence[Document],
    columns: pa.Schema,
    places: npt.NDArray[np.intp] | None = None,
) -> pa.Table:
    """Add the columns about items: of each document, or with `places` of each token's document."""
    for column in list(columns)[table.num_columns :]:
        values = pa.array([getattr(document.part, column.name, None) for document in documents], column.type)
        table = table.append_column(column, values if places is None else values.take(pa.array(places)))
    return table


def _places(windows: Sequence[Window]) -> dict[str, npt.NDArray[np.int32]]:
    begin_N, length_N = (np.concatenate(parts) for parts in zip(*(w.scored_bytes for w in windows), strict=True))
    return {"first_byte": begin_N.astype(np.int32), "n_bytes": length_N.astype(np.int32)}


def vocab_table(tokenizer: Any, tokenizer_hash: str) -> pa.Table:
    """The texts of a tokenizer's ids, relation `vocab`."""
    n_ids = len(tokenizer)
    texts = tokenizer.batch_decode([[i] for i in range(n_ids)])
    columns = {"tokenizer_hash": [tokenizer_hash] * n_ids, "token_id": list(range(n_ids)), "text": texts}
    return pa.table(columns, schema=schema.VOCAB)
