"""A store of drawn runs on items with choices that looks as one that was measured, and takes no model."""

from pathlib import Path

import numpy as np

from rbpx.files.digest import digest
from rbpx.store.store import Store
from tests.support.drawn_runs import write_drawn, write_vocabulary
from tests.support.filled import SIZES

N_ITEMS, N_CHOICES, VOCAB_SIZE, TOKENIZER = 60, 3, 320, "6" * 16


def quiz(root: Path) -> Store:
    """Write the store: one of three choices of each item is right, and of one to three tokens.

    Right choices get likelier as S rises, wrong ones do not; up to two tokens tie with each.
    """
    store, rng = Store(root), np.random.default_rng(0)
    store.prepare()
    item = np.tile(np.arange(N_ITEMS), N_CHOICES)  # a right choice has the number of its item, as where it is measured
    choice = (item + np.repeat(np.arange(N_CHOICES), N_ITEMS)) % N_CHOICES
    n_tokens, correct = 1 + (item + choice) % 3, np.arange(len(item)) < N_ITEMS
    doc_id = np.repeat(np.arange(len(item)), n_tokens)
    position = np.concatenate([5 + np.arange(n) for n in n_tokens])
    luck = rng.exponential(size=len(doc_id))
    of_items = {"item": item, "choice": choice, "correct": correct}
    documents = {
        "doc_id": np.arange(len(item)), "source_id": item.astype(str), "n_bytes": 4 * (5 + n_tokens),
        "n_tokens": 5 + n_tokens, "n_scored": n_tokens, "n_bytes_scored": 4 * n_tokens, **of_items,
        "n_characters": 4 * n_tokens, "n_answer_bytes": 4 * n_tokens,
    }  # fmt: skip
    for size, S in SIZES.items():
        level = np.where(correct, 200 * S**-0.4, 9)[doc_id]
        greater = np.floor(level * luck * rng.uniform(0.8, 1.2, len(luck))).clip(0, VOCAB_SIZE - 3).astype(int)
        ties, run_id = rng.integers(0, 3, len(luck)), digest(["mine", "quiz", size])
        tokens = {
            "doc_id": doc_id, "position": position, "token_id": doc_id, "greater": greater, "ties": ties,
            "logprob": (-np.log(greater + ties + 1.2)).astype(np.float32), "first_byte": 4 * position,
            "n_bytes": np.full(len(doc_id), 4), **{name: each[doc_id] for name, each in of_items.items()},
        }  # fmt: skip
        facts = {
            "protocol": "harness", "window": 64, "vocab_size": VOCAB_SIZE, "text_hash": "8" * 16,
            "tokenizer_hash": TOKENIZER, "weights_hash": run_id,
        }  # fmt: skip
        cell = {"family": "mine", "size": size, "model": f"models/{size}", "dataset": "quiz"}
        write_drawn(store, run_id, S, tokens, documents, facts, cell)
    write_vocabulary(store, TOKENIZER, [f"t{n}" for n in item])
    return store
