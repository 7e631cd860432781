"""A store of four drawn runs that looks as one that was measured: ties, documents of many lengths, laws, a vocabulary.

Its sizes have the names of `stores.SHAPES`, and so have its family and its text, so that what is asked of a measured
store can be asked of this one, which takes no model.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rbpx.files.digest import digest
from rbpx.store.store import Store
from tests.support.drawn_runs import of_documents, write_drawn, write_vocabulary
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
    write_vocabulary(store, TOKENIZER, [f"t{n}" for n in range(N_IDS)])
    way = [[*each] for each in sorted(facts.items())] + ([] if family == FAMILY else [family])
    n_tokens = sum(LENGTHS) - len(LENGTHS)
    token_id = rng.zipf(1.3, n_tokens) % N_IDS
    luck = rng.exponential(size=n_tokens)
    for size in sizes:
        S = SIZES[size]
        greater = np.floor(40 * S**-0.15 * luck * rng.uniform(0.8, 1.2, len(luck)) ** 2).clip(0, VOCAB_SIZE - 3)
        ties = rng.integers(0, 3, len(luck))
        logprob = (-np.log(greater + ties + 2.0)).astype(np.float32)
        ranks = {"token_id": token_id, "greater": greater.astype(int), "ties": ties, "logprob": logprob}
        names = [str(n + 1) for n in range(len(LENGTHS))]
        tokens, documents = of_documents(LENGTHS, ranks, source_id=names)
        about = {
            "vocab_size": VOCAB_SIZE, "text_hash": "7" * 16, "tokenizer_hash": TOKENIZER,
            "weights_hash": digest(["filled", size, family]), **facts,
        }  # fmt: skip
        cell = {
            "cell_key": digest(["cell", size, *way]), "family": family, "size": size, "model": f"models/{size}",
            "dataset": dataset, "config": {"limit": 1000},
        }  # fmt: skip
        write_drawn(store, digest(["filled", size, *way]), S, tokens, documents, about, cell)
    return store
