"""Measure one cell: load the model, cut its text, rank, write the run; or link the cell to an identical earlier run."""

import platform
import re
import resource
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib.metadata import version
from itertools import groupby
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch

from rbpx.config.grid import Cell
from rbpx.config.options import Quantise
from rbpx.config.protocol import HARNESS, SHORTEST
from rbpx.data.corpus import Document
from rbpx.data.hub_texts import Sample
from rbpx.data.windows import Window
from rbpx.errors import MeasureError, RbpxError
from rbpx.files.digest import digest
from rbpx.measure.best import best_tokens
from rbpx.measure.distributed import ProcessGroup
from rbpx.measure.extract import TokenRows, measure_windows
from rbpx.measure.protocol import ResolvedProtocol, resolve_protocol
from rbpx.models.load import LoadedModel
from rbpx.models.quantise import RECIPE
from rbpx.store import schema
from rbpx.store.store import Record, Store, now
from rbpx.version import __version__

_VERSIONED = ("torch", "transformers", "tokenizers", "accelerate", "numpy", "pyarrow", "duckdb")

Begin = Callable[[int], Callable[[int], None]]  # scored tokens to come -> called with the tokens just scored


def measure_cell(
    cell: Cell,
    sample: Sample,
    load: Callable[[], LoadedModel],
    store: Store,
    processes: ProcessGroup,
    tokens_per_batch: int,
    config: Record,
    begin: Begin,
    keeps_best: bool = False,
) -> Record:
    """Measure one cell that the store does not hold yet, and return the record that links it to its run.

    Args:
        cell: the cell.
        sample: the documents of its dataset.
        load: returns its model.
        store: where the run is written.
        processes: the process group.
        tokens_per_batch: padded tokens in a batch.
        config: the whole request, stored with the run.
        begin: called once with the number of tokens to score; returns a function that is called with the progress.
        keeps_best: whether the best tokens of each place are kept too, for which the model reads the text once more.

    Raises:
        RbpxError: the model, its size, its tokenizer or the dataset does not match the request.
        MeasureError: measuring failed.
    """
    started_at = now()
    documents = sample.documents
    protocol, windows = processes.together(lambda: _prepare(cell, load(), documents))
    loaded = protocol.loaded
    true_ids = {document.doc_id for document in documents if document.is_true}
    true_windows = [w for w in windows if w.doc_id in true_ids]
    n_tokens, n_rows = (sum(w.n_scored for w in each) for each in (true_windows, windows))
    scored = {w.doc_id for w in true_windows if w.n_scored}
    run_id = digest(
        [
            schema.FORMAT,
            loaded.weights_hash,
            loaded.tokenizer_hash,
            cell.text_hash,
            cell.protocol,
            protocol.window,
            cell.dtype,
            f"float32 logits, {loaded.head.after}",
            *protocol.departures(),
            *(["deterministic"] if cell.deterministic else []),
            *([] if cell.quantise is None else [RECIPE[Quantise(cell.quantise)]]),
        ]
    )
    facts: Record | None = None
    is_new = not processes.broadcast(processes.is_main and store.take_run(run_id))
    lacks_best = keeps_best and not processes.broadcast(store.beside_file("best", run_id).is_file())
    advance = begin(n_rows * (is_new + lacks_best)) if is_new or lacks_best else None
    if is_new and advance is not None:
        wall_from = time.monotonic()
        rows = measure_windows(loaded, windows, processes, tokens_per_batch, advance)
        wall_s = time.monotonic() - wall_from
        facts = {
            "run_id": run_id,
            "protocol": cell.protocol,
            "window": protocol.window,
            "stride": protocol.stride,
            "padding": protocol.padding.value,
            "bos": protocol.bos.value,
            "dtype": cell.precision,
            "quantise": cell.quantise,
            "deterministic": cell.deterministic,
            "head": loaded.head.after,
            "non_embedding_params": loaded.non_embedding_params,
            "total_params": loaded.total_params,
            "vocab_size": loaded.head.vocab_size,
            "n_documents": len(scored),
            "n_skipped": len(true_ids) - len(scored),
            "n_tokens": n_tokens,
            "n_bytes": sum(w.n_bytes for w in true_windows if w.doc_id in scored),
            "n_bytes_scored": sum(w.n_bytes_scored for w in true_windows),
            "cross_entropy_nats": -float(rows.columns["logprob"][_is_true(rows, documents)].mean(dtype=np.float64)),
            "text_hash": cell.text_hash,
            "tokenizer_hash": loaded.tokenizer_hash,
            "weights_hash": loaded.weights_hash,
            "device": ", ".join(device_names(loaded.devices)),
            "n_processes": processes.world_size,
            "tokens_per_s": n_rows / wall_s,
            "wall_s": wall_s,
            "peak_mib": _peak_mib(processes.device),
            "started_at": started_at,
            "versions": versions() | ({} if cell.quantise is None else {"torchao": version("torchao")}),
        }
    best: pa.Table | None = None
    if lacks_best and advance is not None:
        best = best_tokens(run_id, loaded, windows, processes, tokens_per_batch, advance)
    record = {
        "cell_key": cell.key,
        "run_id": run_id,
        "family": cell.family,
        "size": cell.size,
        "model": cell.model,
        "revision": cell.revision,
        "commit": loaded.commit,
        "dataset": cell.dataset,
        "dataset_commit": sample.commit,
        "asked_at": started_at,
        "config": config,
        **asdict(cell.training),
    }

    def write() -> None:
        if not store.has_vocab(loaded.tokenizer_hash):
            store.write_vocab(loaded.tokenizer_hash, _vocab_table(loaded))
        if facts is not None:
            store.write_run(run_id, facts, _run_tables(run_id, rows, windows, documents, cell.protocol))
        if best is not None:
            store.write_beside("best", run_id, best)
        store.write_record("cells", cell.key, record)
        store.drop_record("failures", cell.failure_key)

    try:
        processes.together(write if processes.is_main else lambda: None)
    except MeasureError:
        raise
    except RbpxError as problem:
        raise MeasureError(str(problem)) from None
    return processes.broadcast(record)


def _prepare(cell: Cell, loaded: LoadedModel, documents: Sequence[Document]) -> tuple[ResolvedProtocol, list[Window]]:
    """The protocol of a cell, resolved for its model, and the windows of its documents."""
    if cell.non_embedding_params not in (None, loaded.non_embedding_params):
        raise RbpxError(
            f"{cell.model} has S = {loaded.non_embedding_params:,} non-embedding parameters, but its family's file "
            f"gives {cell.non_embedding_params:,}; check the size or the file"
        )
    protocol = resolve_protocol(cell, loaded)
    windows = protocol.windows(documents)
    if not any(window.n_scored for window in windows):
        raise RbpxError(
            f"dataset {cell.dataset} has nothing to score: no document of its {len(documents):,} has "
            f"{SHORTEST} consecutive tokens; use longer texts"
        )
    return protocol, windows


def _is_true(rows: TokenRows, documents: Sequence[Document]) -> npt.NDArray[np.bool_]:
    """Which scored tokens are of texts, targets and right choices."""
    return np.asarray([document.is_true for document in documents])[_documents_of(rows, documents)]


def _documents_of(rows: TokenRows, documents: Sequence[Document]) -> npt.NDArray[np.intp]:
    """The place of the document of each scored token; documents are in the order of their ids."""
    return np.searchsorted([document.doc_id for document in documents], rows.columns["doc_id"])


def _run_tables(
    run_id: str, rows: TokenRows, windows: Sequence[Window], documents: Sequence[Document], protocol: str
) -> dict[str, pa.Table]:
    ids = pa.array([run_id], pa.string())
    columns = {"run_id": ids.take(pa.array(np.zeros(len(rows), np.int32))), **rows.columns, **_places(windows)}
    tokens = pa.table(columns, schema=schema.TOKENS)
    in_float64 = tokens.set_column(6, "logprob", tokens["logprob"].cast(pa.float64()))
    true = in_float64.filter(pa.array(_is_true(rows, documents)))
    counts = true.group_by(["run_id", "greater", "ties"]).aggregate([("logprob", "count"), ("logprob", "sum")])
    counts = counts.rename_columns(["run_id", "greater", "ties", "n_tokens", "sum_logprob"])
    counts = counts.sort_by([("greater", "ascending"), ("ties", "ascending")]).cast(schema.RANK_COUNTS)
    windows_by_document = [list(group) for _, group in groupby(windows, key=lambda w: w.doc_id)]
    columns = {
        "run_id": [run_id] * len(documents),
        "doc_id": [d.doc_id for d in documents],
        "source_id": [d.source_id for d in documents],
        "n_bytes": [sum(w.n_bytes for w in ws) for ws in windows_by_document],
        "n_tokens": [ws[-1].start + len(ws[-1].ids) - ws[0].start for ws in windows_by_document],
        "n_scored": [sum(w.n_scored for w in ws) for ws in windows_by_document],
        "n_bytes_scored": [sum(w.n_bytes_scored for w in ws) for ws in windows_by_document],
    }
    table = pa.table(columns, schema=schema.DOCUMENTS)
    if documents[0].part is None and protocol == HARNESS:
        n_words = [len(re.split(r"\s+", document.text)) for document in documents]  # as lm-evaluation-harness counts
        table = table.append_column(schema.ITEMS_DOCUMENTS.field("n_words"), pa.array(n_words, pa.int32()))
    if documents[0].part is not None:
        table = _with_parts(table, documents, schema.ITEMS_DOCUMENTS)
        tokens = _with_parts(tokens, documents, schema.ITEMS_TOKENS, _documents_of(rows, documents))
    return {"tokens": tokens, "rank_counts": counts, "documents": table}


def _with_parts(
    table: pa.Table,
    documents: Sequence[Document],
    columns: pa.Schema,
    places: npt.NDArray[np.intp] | None = None,
) -> pa.Table:
    """A table with what each document, or the document of each row, is of its item."""
    for column in list(columns)[table.num_columns :]:
        values = pa.array([getattr(document.part, column.name, None) for document in documents], column.type)
        table = table.append_column(column, values if places is None else values.take(pa.array(places)))
    return table


def _places(windows: Sequence[Window]) -> dict[str, npt.NDArray[np.int32]]:
    """Which bytes of its document each scored token stands for, in the order of the rows of `tokens`."""
    begin_N, length_N = (np.concatenate(parts) for parts in zip(*(w.scored_bytes for w in windows), strict=True))
    return {"first_byte": begin_N.astype(np.int32), "n_bytes": length_N.astype(np.int32)}


def _vocab_table(loaded: LoadedModel) -> pa.Table:
    n_ids = len(loaded.tokenizer)
    texts = loaded.tokenizer.batch_decode([[i] for i in range(n_ids)])
    columns = {"tokenizer_hash": [loaded.tokenizer_hash] * n_ids, "token_id": list(range(n_ids)), "text": texts}
    return pa.table(columns, schema=schema.VOCAB)


def versions() -> Record:
    """Versions of rbpx, Python and the libraries here, by name."""
    return {
        "rbpx": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in _VERSIONED},
    }


def device_names(devices: Sequence[str]) -> list[str]:
    """The kinds of devices, as cpu or the name of a GPU, each once."""
    return list(
        dict.fromkeys(
            torch.cuda.get_device_name(device) if device.startswith("cuda") else device.split(":")[0]
            for device in devices
        )
    )


def _peak_mib(device: torch.device) -> float:
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**20
    status = Path("/proc/self/status")
    if status.is_file():  # Linux, where ru_maxrss starts at the value of the parent process
        (line,) = [line for line in status.read_text().splitlines() if line.startswith("VmHWM:")]
        return int(line.split()[1]) / 2**10
    in_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return in_kib / (2**20 if sys.platform == "darwin" else 2**10)
