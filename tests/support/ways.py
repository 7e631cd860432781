"""Four ways in which one family is measured, and what each gives, counted by hand from the tokens of its runs."""

from pathlib import Path
from typing import Any

import numpy as np

from tests.support.stores import SHAPES, cell_records, columns_of, manifests, rank_by_hand

Way = tuple[str, str, int]  # dtype, bos, window
REFERENCE: Way = ("float32", "tokenizer", 64)
WITH_BOS: Way = ("float32", "add", 64)
SIZES: dict[Way, list[str]] = {
    REFERENCE: list(SHAPES),
    WITH_BOS: ["xs", "s", "m"],
    ("bfloat16", "tokenizer", 64): list(SHAPES),
    ("float32", "tokenizer", 16): list(SHAPES),
}


def way_of(row: dict[str, Any]) -> Way:
    return row["dtype"], row["bos"], row["window"]


def one(rows: list[dict[str, Any]], way: Way, ties: str, quantity: str, k: int | None) -> dict[str, Any]:
    (row,) = [r for r in rows if (way_of(r), r["ties"], r["quantity"], r["k"]) == (way, ties, quantity, k)]
    return row


def tokens_of(store: Path, way: Way) -> dict[str, dict[str, Any]]:
    """Tokens of each size that was measured this way, in order of S."""
    found = {}
    for record in cell_records(store):
        facts = manifests(store)[record["run_id"]]
        if way_of(facts) == way:
            tokens = columns_of(store / "runs" / record["run_id"], "tokens")
            found[record["size"]] = tokens | {"S": facts["non_embedding_params"]}
    return dict(sorted(found.items(), key=lambda item: item[1]["S"]))


def loss(tokens: dict[str, Any], ties: str, k: int | None) -> float:
    """RBP_k, or nats where there is no k."""
    if k is None:
        return float(-np.mean(tokens["logprob"].astype(np.float64)))
    return float(np.mean(rank_by_hand(tokens, ties) <= k))


def alpha(runs: dict[str, dict[str, Any]], ties: str, k: int | None) -> float:
    y = [loss(run, ties, k) for run in runs.values()]
    y = y if k is None else [-np.log(rbp) for rbp in y]
    return float(-np.polyfit(np.log([run["S"] for run in runs.values()]), np.log(y), 1)[0])
