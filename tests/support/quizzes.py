"""A store of drawn runs on items with choices that looks as one that was measured, and takes no model."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from rbpx.files.digest import digest
from rbpx.store import schema
from rbpx.store.store import Store, now
from tests.support.filled import SIZES

N_ITEMS, N_CHOICES, VOCAB_SIZE, TOKENIZER = 60, 3, 320, "6" * 16


def quiz(root: Path, sizes: Mapping[str, int] = SIZES, family: str = "mine", dataset: str = "quiz") -> Store:
    """Write the store: one of three choices of each item is right, and of one to three tokens.

    Right choices get likelier as S rises, wrong ones do not; up to two tokens tie with each.
    """
    store, rng = Store(root), np.random.default_rng(0)
    store.prepare()
    item = np.tile(np.arange(N_ITEMS), N_CHOICES)  # a right choice has the number of its item, as where it is measured
    choice = (item + np.repeat(np.arange(N_CHOICES), N_ITEMS)) % N_CHOICES
    n_tokens, correct = 1 + (item + choice) % 3, np.arange(len(item)) < N_ITEMS
    doc_id = np.repeat(np.arange(len(item)), n_tokens)
    luck = rng.exponential(size=len(doc_id))
    for size, S in sizes.items():
        level = np.where(correct, 200 * S**-0.4, 9)[doc_id]
        greater = np.floor(level * luck * rng.uniform(0.8, 1.2, len(luck))).clip(0, VOCAB_SIZE - 3).astype(int)
        ties = rng.integers(0, 3, len(luck))
        logprob = (-np.log(greater + ties + 1.2)).astype(np.float32)
        run_id = digest([family, dataset, size])
        position = np.concatenate([5 + np.arange(n) for n in n_tokens])
        of_items = {"item": item, "choice": choice, "correct": correct}
        tokens = {
            "run_id": [run_id] * len(doc_id), "doc_id": doc_id, "position": position, "token_id": doc_id,
            "greater": greater, "ties": ties, "logprob": logprob, "first_byte": 4 * position,
            "n_bytes": np.full(len(doc_id), 4), **{name: each[doc_id] for name, each in of_items.items()},
        }  # fmt: skip
        true = correct[doc_id]
        pairs, which = np.unique(np.column_stack([greater, ties])[true], axis=0, return_inverse=True)
        counts = {
            "run_id": [run_id] * len(pairs), "greater": pairs[:, 0], "ties": pairs[:, 1],
            "n_tokens": np.bincount(which.ravel()),
            "sum_logprob": np.bincount(which.ravel(), weights=logprob[true].astype(np.float64)),
        }  # fmt: skip
        documents = {
            "run_id": [run_id] * len(item), "doc_id": range(len(item)), "source_id": [str(each) for each in item],
            "n_bytes": 4 * (5 + n_tokens), "n_tokens": 5 + n_tokens, "n_scored": n_tokens,
            "n_bytes_scored": 4 * n_tokens, **of_items, "n_characters": 4 * n_tokens, "n_answer_bytes": 4 * n_tokens,
        }  # fmt: skip
        facts = {
            "run_id": run_id, "protocol": "harness", "window": 64, "dtype": "float32", "head": "linear",
            "non_embedding_params": S, "total_params": 2 * S, "vocab_size": VOCAB_SIZE, "n_documents": N_ITEMS,
            "n_skipped": 0, "n_tokens": int(true.sum()), "n_bytes": 4 * int((5 + n_tokens)[correct].sum()),
            "n_bytes_scored": 4 * int(true.sum()), "cross_entropy_nats": -float(logprob[true].mean(dtype=np.float64)),
            "text_hash": "8" * 16, "tokenizer_hash": TOKENIZER, "weights_hash": run_id, "device": "cpu",
            "n_processes": 1, "tokens_per_s": 50.0, "wall_s": 1.0, "peak_mib": 1.0, "started_at": now(),
            "versions": {"rbpx": "1"},
        }  # fmt: skip
        tables = {
            "tokens": _table(schema.ITEMS_TOKENS, tokens),
            "rank_counts": _table(schema.RANK_COUNTS, counts),
            "documents": _table(schema.ITEMS_DOCUMENTS, documents),
        }
        store.write_run(run_id, facts, tables)
        cell = {
            "cell_key": digest(["cell", run_id]), "run_id": run_id, "family": family, "size": size,
            "model": f"models/{size}", "revision": None, "commit": None, "dataset": dataset, "asked_at": now(),
            "config": {},
        }  # fmt: skip
        store.write_record("cells", cell["cell_key"], cell)
    vocab = {"tokenizer_hash": [TOKENIZER] * len(item), "token_id": range(len(item)), "text": [f"t{n}" for n in item]}
    store.write_file("vocab", TOKENIZER, _table(schema.VOCAB, vocab))
    return store


def _table(columns: pa.Schema, values: dict[str, Any]) -> pa.Table:
    n = len(values["run_id"] if "run_id" in values else values["token_id"])
    return pa.table({name: pa.array(values.get(name, [None] * n), columns.field(name).type) for name in columns.names})
