"""A store of four drawn runs that looks as one that was measured: ties, documents of many lengths, laws, a vocabulary.

Its sizes have the names of `stores.SHAPES`, and so have its family and its text, so that what is asked of a measured
store can be asked of this one, which takes no model.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from rbpx.files.digest import digest
from rbpx.store import schema
from rbpx.store.store import Store, now
from tests.support.stores import FAMILY

SIZES = {"xs": 1_000, "s": 4_000, "m": 16_000, "l": 64_000}  # name -> S
VOCAB_SIZE, N_IDS = 320, 299
LENGTHS = (2, 40, 7, 64, 23, 90, 12, 55)  # tokens of each document
TOKENIZER = "5" * 16


def filled(
    root: Path,
    seed: int = 0,
    sizes: Sequence[str] = tuple(SIZES),
    family: str = FAMILY,
    dataset: str = "file",
    **facts: Any,
) -> Store:
    """Write the store: ranks fall as S rises, and up to two tokens tie with each.

    With facts, as `dtype="bfloat16"`, its runs are those of the same models, measured in another way.
    """
    if dataset != "file":
        facts["text_hash"] = digest([dataset])
    store, rng = Store(root), np.random.default_rng(seed)
    store.prepare()
    ids = {"tokenizer_hash": [TOKENIZER] * N_IDS, "token_id": range(N_IDS), "text": [f"t{n}" for n in range(N_IDS)]}
    store.write_file("vocab", TOKENIZER, _table(schema.VOCAB, ids))
    doc_id = np.repeat(np.arange(len(LENGTHS)), np.array(LENGTHS) - 1)
    position = np.concatenate([np.arange(1, length) for length in LENGTHS])
    token_id = rng.zipf(1.3, len(doc_id)) % N_IDS
    luck = rng.exponential(size=len(doc_id))
    for size in sizes:
        S = SIZES[size]
        greater = np.floor(40 * S**-0.15 * luck * rng.uniform(0.8, 1.2, len(luck)) ** 2).clip(0, VOCAB_SIZE - 3)
        _write(
            store,
            size,
            S,
            doc_id,
            position,
            token_id,
            greater.astype(int),
            rng.integers(0, 3, len(luck)),
            family,
            dataset,
            facts,
        )
    return store


def _write(
    store: Store,
    size: str,
    S: int,
    doc_id: Any,
    position: Any,
    token_id: Any,
    greater: Any,
    ties: Any,
    family: str,
    dataset: str,
    more: dict[str, Any],
) -> None:
    way = [[*each] for each in sorted(more.items())] + ([] if family == FAMILY else [family])
    run_id, weights, n = digest(["filled", size, *way]), digest(["filled", size, family]), len(doc_id)
    logprob = (-np.log(greater + ties + 2.0)).astype(np.float32)
    tokens = {
        "run_id": [run_id] * n, "doc_id": doc_id, "position": position, "token_id": token_id, "greater": greater,
        "ties": ties, "logprob": logprob, "first_byte": 4 * position, "n_bytes": np.full(n, 4),
    }  # fmt: skip
    pairs, which = np.unique(np.column_stack([greater, ties]), axis=0, return_inverse=True)
    counts = {
        "run_id": [run_id] * len(pairs), "greater": pairs[:, 0], "ties": pairs[:, 1],
        "n_tokens": np.bincount(which.ravel()),
        "sum_logprob": np.bincount(which.ravel(), weights=logprob.astype(np.float64)),
    }  # fmt: skip
    lengths = np.array(LENGTHS)
    documents = {
        "run_id": [run_id] * len(lengths), "doc_id": range(len(lengths)), "n_bytes": 4 * lengths, "n_tokens": lengths,
        "source_id": [str(n + 1) for n in range(len(lengths))], "n_scored": lengths - 1,
        "n_bytes_scored": 4 * (lengths - 1),
    }  # fmt: skip
    facts = {
        "run_id": run_id, "protocol": "paper", "window": 512, "dtype": "float32", "head": "linear",
        "non_embedding_params": S, "total_params": 2 * S, "vocab_size": VOCAB_SIZE, "n_documents": len(lengths),
        "n_skipped": 0, "n_tokens": n, "n_bytes": 4 * int(lengths.sum()), "n_bytes_scored": 4 * n,
        "cross_entropy_nats": -float(logprob.astype(np.float64).mean()), "text_hash": "7" * 16,
        "tokenizer_hash": TOKENIZER, "weights_hash": weights, "device": "cpu", "n_processes": 1, "tokens_per_s": 50.0,
        "wall_s": n / 50, "peak_mib": 1.0, "started_at": now(), "versions": {"rbpx": "1"}, **more,
    }  # fmt: skip
    tables = {
        "tokens": _table(schema.TOKENS, tokens),
        "rank_counts": _table(schema.RANK_COUNTS, counts),
        "documents": _table(schema.DOCUMENTS, documents),
    }
    store.write_run(run_id, facts, tables)
    cell = {
        "cell_key": digest(["cell", size, *way]), "run_id": run_id, "family": family, "size": size,
        "model": f"models/{size}", "revision": None, "commit": None, "dataset": dataset, "asked_at": now(),
        "config": {"limit": 1000},
    }  # fmt: skip
    store.write_record("cells", cell["cell_key"], cell)


def _table(columns: pa.Schema, values: dict[str, Any]) -> pa.Table:
    return pa.table({name: pa.array(values[name], columns.field(name).type) for name in columns.names})
