"""Stores whose laws are known because the ranks were drawn from them, written as any run is.

Pr(R <= k) = exp(-C S^(-alpha) k^(-beta)): a power law in S at every k with the same alpha, and in k at every S with
exponent beta. Tokens of a document share a part of their luck, at every size alike, so documents are what must be
resampled. R is drawn by inversion and cut at V.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import norm

from rbpx.files.digest import digest
from rbpx.store.store import Store
from tests.support.drawn_runs import of_documents, write_drawn, write_vocabulary

V, TOKENIZER = 100_000, "1" * 16


@dataclass(frozen=True)
class Truth:
    """The law that a store is drawn from; `scatter` is that of each model about it, in ln y."""

    S: tuple[int, ...] = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
    C: float = 4.0
    alpha: float = 0.1
    beta: float = 0.35
    scatter: float = 0.0
    shared: float = 0.3  # share of a token's luck that belongs to its document


def write_store(
    root: Path,
    truth: Truth,
    seed: int,
    n_documents: int = 40,
    n_tokens: int = 60,
    dataset: str = "synthetic",
    late: Truth | None = None,
    cut: int = 0,
    token_DT: Any = None,
    family: str = "drawn",
    sources: Sequence[str] | None = None,
    of_text: Sequence[int] | None = None,
) -> Store:
    """A store with one run a size; tokens at positions after `cut` are drawn from `late` where there is one.

    Documents have the names `sources` in their source, by default their numbers; those of one text share their luck.
    """
    rng = np.random.default_rng(seed)
    store = Store(root)
    store.prepare()
    z_D1 = rng.normal(size=(n_documents, 1))[slice(None) if of_text is None else list(of_text)]
    for S in truth.S:
        luck_DT = np.sqrt(truth.shared) * z_D1 + np.sqrt(1 - truth.shared) * rng.normal(size=(n_documents, n_tokens))
        u_DT = norm.cdf(luck_DT)
        rank_DT = _ranks(truth, S, u_DT, rng)
        if late is not None:
            rank_DT[:, cut:] = _ranks(late, S, u_DT, rng)[:, cut:]
        token_ids = np.zeros_like(rank_DT) if token_DT is None else token_DT
        run_id = f"{dataset}{S:014d}" if family == "drawn" else digest([family, dataset, S])
        _write_run(store, run_id, S, rank_DT, token_ids, dataset, family, sources=sources)
    return store


def _ranks(truth: Truth, S: int, u_DT: Any, rng: np.random.Generator) -> Any:
    level = truth.C * S**-truth.alpha * np.exp(rng.normal(0, truth.scatter) if truth.scatter else 0.0)
    return np.ceil((level / -np.log(u_DT)) ** (1 / truth.beta)).clip(1, V).astype(np.int64)


@dataclass(frozen=True)
class TrueSurface:
    """-ln RBP_k = (E + A S^-alpha + B D^-beta) k^(-by_k) of a grid of trainings; `scatter` as in `Truth`."""

    S: tuple[int, ...] = (10_000, 40_000, 160_000, 640_000, 2_560_000)
    D: tuple[int, ...] = (1_000_000, 3_000_000, 9_000_000, 27_000_000)
    E: float = 0.7
    A: float = 30.0
    alpha: float = 0.35
    B: float = 150.0
    beta: float = 0.3
    by_k: float = 0.35
    scatter: float = 0.004
    shared: float = 0.3

    def level(self, S: Any, D: Any) -> Any:
        """-ln RBP_1."""
        return self.E + self.A * S**-self.alpha + self.B * D**-self.beta


def write_surface(
    root: Path,
    truth: TrueSurface,
    seed: int,
    n_documents: int = 40,
    n_tokens: int = 250,
    family: str = "grid",
    pairs: Sequence[tuple[int, int]] | None = None,
    states: bool = False,
    variant: str | None = None,
    training_seed: int | None = None,
) -> Store:
    """A store with a run for each size and number of tokens, or for each of some pairs of them.

    With `states` the runs of a size are checkpoints of one training, at revisions stepN with 1,000 tokens a step.
    """
    rng = np.random.default_rng(seed)
    store = Store(root)
    store.prepare()
    z_D1 = rng.normal(size=(n_documents, 1))
    luck_DT = np.sqrt(truth.shared) * z_D1 + np.sqrt(1 - truth.shared) * rng.normal(size=(n_documents, n_tokens))
    for S, D in pairs if pairs is not None else [(S, D) for S in truth.S for D in truth.D]:
        level = truth.level(S, D) * np.exp(rng.normal(0, truth.scatter))
        u_DT = norm.cdf(0.9 * luck_DT + np.sqrt(1 - 0.9**2) * rng.normal(size=luck_DT.shape))
        rank_DT = np.ceil((level / -np.log(u_DT)) ** (1 / truth.by_k)).clip(1, V).astype(np.int64)
        revision = f"step{D // 1000}" if states else f"{D}"
        facts = {"training_tokens": D, "revision": revision, "variant": variant, "size": str(S)}
        facts |= {"training_step": D // 1000} if states else {}
        facts |= {"training_seed": training_seed}
        run_id = digest([family, variant, S, D, *([training_seed, "synthetic"] if training_seed is not None else [])])
        token_DT = np.tile(np.arange(n_tokens) % 3, (n_documents, 1))
        _write_run(store, run_id, S, rank_DT, token_DT, "synthetic", family, facts)
    return store


def _write_run(
    store: Store,
    run_id: str,
    S: int,
    rank_DT: Any,
    token_DT: Any,
    dataset: str,
    family: str,
    training: dict[str, Any] | None = None,
    sources: Sequence[str] | None = None,
) -> None:
    (n_documents, n_tokens), rank_N = rank_DT.shape, rank_DT.ravel()
    ranks = {"token_id": token_DT.ravel(), "greater": rank_N - 1, "ties": np.zeros(len(rank_N), int)}
    named = {} if sources is None else {"source_id": list(sources)}
    tokens, documents = of_documents(
        [n_tokens + 1] * n_documents,
        ranks | {"logprob": -np.log1p(rank_N)},
        n_bytes=[4 * n_tokens] * n_documents,
        **named,
    )
    write_vocabulary(store, TOKENIZER, ["a", "b", "c"])
    facts = {"vocab_size": V, "text_hash": dataset, "tokenizer_hash": TOKENIZER, "weights_hash": run_id}
    cell = {"family": family, "size": str(S), "model": f"{family}-{S}", "dataset": dataset, **(training or {})}
    write_drawn(store, run_id, S, tokens, documents, facts, cell)


def write_ranks(
    store: Store,
    ranks: dict[int, Any],
    token_DT: Any,
    S: int = 40_000,
    training_seed: int | None = None,
) -> None:
    """Checkpoints of one training into a store: D -> the rank of each token, [documents, tokens]; ids below 3."""
    for D, rank_DT in ranks.items():
        facts = {"training_tokens": D, "revision": f"step{D // 1000}", "size": str(S), "training_step": D // 1000}
        run_id = digest(["learned", S, D, training_seed, "synthetic"])
        facts |= {"training_seed": training_seed}
        _write_run(store, run_id, S, rank_DT, token_DT, "synthetic", "learned", facts)
