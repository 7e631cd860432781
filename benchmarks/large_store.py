"""Makes a synthetic store of any size, once: 32 models (4 families of 8 sizes) on 6 texts, ranks drawn from a law.

Pr(R <= k) = exp(-C S^(-alpha) k^(-beta)), cut at V. A fifth of a token's variance belongs to its document and is the
same at every size, as in real ranks. The log-probability falls with the rank and scatters in all of its 24 bits; token
ids are drawn by Zipf's law. `Store.write_run` writes the files, so they have the layout of a measured run.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rbpx.store import schema
from rbpx.store.store import Store, now

V = 50_304
FAMILIES, DATASETS = (
    ("gpt2", "opt", "pythia", "qwen2.5"),
    ("wikipedia", "humaneval", "hotpotqa", "auslegal", "c4", "github"),
)
SIZES = tuple(round(10**exponent) for exponent in np.linspace(6.5, 10, 8))
N_CELLS = len(FAMILIES) * len(SIZES) * len(DATASETS)
MEAN_LENGTH, LONGEST = 208, 511
_C, _ALPHA, _BETA, _SCATTER, _SHARED = 4.0, 0.1, 0.35, 0.02, 0.2

Columns = dict[str, npt.NDArray[Any]]


def large_store(root: Path, n_rows: int, families: Sequence[str] = FAMILIES) -> Store:
    """The store with about `n_rows` tokens below `root`, slightly fewer because long documents are cut; made once."""
    n_cells = len(families) * len(SIZES) * len(DATASETS)
    many = "" if families is FAMILIES else f"-{n_cells}-runs"
    store = Store(root / (f"{n_rows:.0e}".replace("+0", "") + many))
    store.prepare()
    n_documents = max(2, round(n_rows / n_cells / MEAN_LENGTH))
    for at, dataset in enumerate(DATASETS):
        rng = np.random.default_rng([at, n_documents])
        length_D = np.clip(rng.gamma(2.0, MEAN_LENGTH / 2, n_documents), 8, LONGEST).astype(int)
        token_N = (rng.zipf(1.2, length_D.sum()) % V).astype(np.int32)
        luck_D = rng.normal(size=n_documents)
        for family in families:
            for size, S in enumerate(SIZES):
                run_id = f"{family}-{size}-{dataset}"
                if not store.has_run(run_id):
                    seed = [at, size, families.index(family), n_documents]
                    columns = draw_cell(np.random.default_rng(seed), S, length_D, luck_D, token_N)
                    _write(store, run_id, (family, S, dataset), columns, length_D)
    return store


def draw_cell(
    rng: np.random.Generator,
    S: int,
    length_D: npt.NDArray[np.int64],
    luck_D: npt.NDArray[np.float64],
    token_N: npt.NDArray[np.int32],
) -> Columns:
    """The rows of one run, by column."""
    doc_N = np.repeat(np.arange(len(length_D), dtype=np.int32), length_D)
    z_N = math.sqrt(_SHARED) * luck_D[doc_N] + math.sqrt(1 - _SHARED) * rng.standard_normal(len(doc_N))
    # Pr(R <= k) = u at k = (level / -ln u)^(1 / beta); the logistic curve stands for the normal one, and costs less
    level = _C * S**-_ALPHA * math.exp(rng.normal(0, _SCATTER))
    rank_N = np.ceil((level / np.log1p(np.exp(-1.702 * z_N))) ** (1 / _BETA)).clip(1, V).astype(np.int32)
    first_D = np.cumsum(length_D) - length_D
    bytes_N = 1 + token_N % 8
    before_N = np.cumsum(bytes_N) - bytes_N
    logprob_N = -np.log1p(rank_N) * rng.uniform(0.3, 1.2, len(rank_N)) - 1e-3 * rng.exponential(1, len(rank_N))
    return {
        "doc_id": doc_N,
        "position": (np.arange(len(doc_N)) - first_D[doc_N] + 1).astype(np.int32),
        "token_id": token_N,
        "greater": rank_N - 1,
        "ties": ((rng.random(len(rank_N)) < 1e-4) & (rank_N < V)).astype(np.int32),
        "logprob": logprob_N.astype(np.float32),
        "first_byte": (before_N - before_N[first_D][doc_N] + 4).astype(np.int32),
        "n_bytes": bytes_N.astype(np.int32),
    }


def _write(
    store: Store, run_id: str, named: tuple[str, int, str], columns: Columns, length_D: npt.NDArray[np.int64]
) -> None:
    family, S, dataset = named
    n, n_documents = int(length_D.sum()), len(length_D)
    tokens = pa.table(
        {"run_id": pa.array([run_id]).take(pa.array(np.zeros(n, np.int32))), **columns}, schema=schema.TOKENS
    )
    wide = tokens.set_column(6, "logprob", tokens["logprob"].cast(pa.float64()))
    counts = wide.group_by(["run_id", "greater", "ties"]).aggregate([("logprob", "count"), ("logprob", "sum")])
    counts = counts.rename_columns(schema.RANK_COUNTS.names).sort_by([("greater", "ascending"), ("ties", "ascending")])
    documents = {
        "run_id": [run_id] * n_documents,
        "doc_id": np.arange(n_documents),
        "source_id": [str(d) for d in range(n_documents)],
        "n_bytes": 4 * length_D,
        "n_tokens": length_D + 1,
        "n_scored": length_D,
        "n_bytes_scored": 4 * length_D,
    }
    facts = {
        "run_id": run_id, "protocol": "paper", "window": 512, "stride": None, "padding": "counted", "bos": "tokenizer",
        "dtype": "float32", "head": "linear", "non_embedding_params": S, "total_params": 2 * S, "vocab_size": V,
        "n_documents": n_documents, "n_skipped": 0, "n_tokens": n, "n_bytes": 4 * n, "n_bytes_scored": 4 * n,
        "cross_entropy_nats": -float(columns["logprob"].mean(dtype=np.float64)), "text_hash": dataset,
        "tokenizer_hash": "1" * 16, "weights_hash": run_id, "device": "cpu", "n_processes": 1, "tokens_per_s": 1.0,
        "wall_s": 1.0, "peak_mib": 1.0, "started_at": now(), "versions": {},
    }  # fmt: skip
    tables = {
        "tokens": tokens,
        "rank_counts": counts.cast(schema.RANK_COUNTS),
        "documents": pa.table(documents, schema=schema.DOCUMENTS),
    }
    store.write_run(run_id, facts, tables)
    cell = {
        "cell_key": f"cell-{run_id}", "run_id": run_id, "family": family, "size": f"{S / 1e6:.0f}m", "model": run_id,
        "revision": None, "commit": None, "dataset": dataset, "asked_at": now(), "config": {},
    }  # fmt: skip
    store.write_record("cells", cell["cell_key"], cell)
