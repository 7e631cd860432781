"""A run whose ranks were drawn, written as one that was measured: it takes no model."""

from typing import Any

import numpy as np
import pyarrow as pa

from rbpx.store import schema
from rbpx.store.store import Store, now


def write_drawn(
    store: Store, run_id: str, S: int, tokens: dict[str, Any], documents: dict[str, Any], facts: dict[str, Any],
    cell: dict[str, Any],
) -> None:  # fmt: skip
    """Write a run, and the record of the request that it answers.

    Args:
        store: where to.
        run_id: its name.
        S: its size.
        tokens: columns of `tokens`; those of items have `correct` too, and count where it is true.
        documents: columns of `documents`.
        facts: of its manifest, instead of those of a plain run or beside them.
        cell: of the record.
    """
    logprob, of_items = np.asarray(tokens["logprob"], np.float64), "correct" in tokens
    true = tokens["correct"] if of_items else np.full(len(logprob), True)
    pairs, which = np.unique(np.column_stack([tokens["greater"], tokens["ties"]])[true], axis=0, return_inverse=True)
    counts = {
        "greater": pairs[:, 0],
        "ties": pairs[:, 1],
        "n_tokens": np.bincount(which.ravel()),
        "sum_logprob": np.bincount(which.ravel(), weights=logprob[true]),
    }
    told = documents if not of_items else {name: each[documents["correct"]] for name, each in documents.items()}
    manifest = {
        "run_id": run_id, "protocol": "paper", "window": 512, "dtype": "float32", "head": "linear",
        "non_embedding_params": S, "total_params": 2 * S, "n_documents": len(told["n_bytes"]), "n_skipped": 0,
        "n_tokens": int(true.sum()), "n_bytes": int(sum(told["n_bytes"])),
        "n_bytes_scored": int(sum(told["n_bytes_scored"])), "cross_entropy_nats": -float(logprob[true].mean()),
        "device": "cpu", "n_processes": 1, "tokens_per_s": 50.0, "wall_s": len(logprob) / 50, "peak_mib": 1.0,
        "started_at": now(), "versions": {"rbpx": "1"}, **facts,
    }  # fmt: skip
    tables = {
        "tokens": table(schema.ITEMS_TOKENS if of_items else schema.TOKENS, tokens, run_id),
        "rank_counts": table(schema.RANK_COUNTS, counts, run_id),
        "documents": table(schema.ITEMS_DOCUMENTS if of_items else schema.DOCUMENTS, documents, run_id),
    }
    store.write_run(run_id, manifest, tables)
    record = {
        "cell_key": f"cell-{run_id}", "run_id": run_id, "revision": None, "commit": None, "asked_at": now(),
        "config": {}, **cell,
    }  # fmt: skip
    store.write_record("cells", record["cell_key"], record)


def of_documents(lengths: Any, ranks: dict[str, Any], **documents: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Columns of `tokens` and `documents` of so many tokens of four bytes each, of which the first is not scored.

    Args:
        lengths: tokens of each document.
        ranks: of the scored tokens: token_id, greater, ties and logprob.
        documents: columns that are other than these.
    """
    lengths = np.asarray(lengths)
    n_scored, doc_id = lengths - 1, np.arange(len(lengths))
    position = np.concatenate([np.arange(1, length) for length in lengths])
    tokens = {"doc_id": np.repeat(doc_id, n_scored), "position": position, "first_byte": 4 * position}
    tokens |= {"n_bytes": np.full(len(position), 4), **ranks}
    found = {"doc_id": doc_id, "source_id": [str(d) for d in doc_id], "n_bytes": 4 * lengths, "n_tokens": lengths}
    return tokens, found | {"n_scored": n_scored, "n_bytes_scored": 4 * n_scored} | documents


def write_vocabulary(store: Store, tokenizer: str, texts: list[str]) -> None:
    """Write the texts of the tokens 0, 1, ... of a tokenizer, if they are not there."""
    if not store.has_vocab(tokenizer):
        columns = {"tokenizer_hash": [tokenizer] * len(texts), "token_id": range(len(texts)), "text": texts}
        store.write_file("vocab", tokenizer, table(schema.VOCAB, columns))


def table(columns: pa.Schema, values: dict[str, Any], run_id: str | None = None) -> pa.Table:
    """A table of this schema; what is not said is null."""
    n = len(next(iter(values.values())))
    whole = values | ({} if run_id is None else {"run_id": [run_id] * n})
    return pa.table({name: pa.array(whole.get(name, [None] * n), columns.field(name).type) for name in columns.names})
