"""Finds what became of each token of a text along training, or along sizes.

Shapes: T runs in order, M tokens of the text.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb
import numpy as np

from rbpx.groups.group import Run
from rbpx.laws.trajectory import History, histories, settled
from rbpx.store.sql import ask
from rbpx.ties import Ties


@dataclass(frozen=True)
class TokenCount:
    """One token id of one history.

    Attributes:
        history: what became of its occurrences.
        token_id: in the tokenizer of the runs.
        text: None where it is not in the store.
        n: occurrences with this history.
        n_scored: all its occurrences.
    """

    history: History
    token_id: int
    text: str | None
    n: int
    n_scored: int


@dataclass(frozen=True, eq=False)
class TokenHistories:
    """The tokens of a text at one k.

    Attributes:
        along: "training" or "size".
        of: the size that was trained; "sizes" along sizes.
        k: rank that makes a hit.
        at: D of each run, or S along sizes.
        n_tokens: tokens that were scored in every run.
        shares: the share of each history; they sum to 1.
        settled_by: share of the tokens whose state is final from each run on.
        ids: the token ids with the most occurrences of each history.
    """

    along: str
    of: str
    k: int
    at: tuple[float, ...]
    n_tokens: int
    shares: dict[History, float]
    settled_by: tuple[float, ...]
    ids: tuple[TokenCount, ...]

    @property
    def x(self) -> str:
        """The axis that the runs lie along: D or S."""
        return "D" if self.along == "training" else "S"

    @property
    def half_settled(self) -> float | None:
        """The first D, or S, from which on half of the tokens never change; None without tokens."""
        return next((at for at, share in zip(self.at, self.settled_by, strict=True) if share >= 0.5), None)


def token_histories(
    connection: duckdb.DuckDBPyConnection,
    runs: Sequence[Run],
    at: Sequence[float],
    along: tuple[str, str],
    k: int,
    ties: Ties,
    top: int,
) -> TokenHistories | None:
    """The histories of the tokens of measured runs; None where no token was scored in all of them.

    Args:
        connection: to the store.
        runs: in order; at least two.
        at: D or S of each.
        along: "training" and its size, or "size" and "sizes".
        k: rank that makes a hit.
        ties: tie rule.
        top: how many token ids of each history to name.
    """
    run_ids = [run.run_id for run in runs]
    rows = ask(connection, "token_hits", run_ids=run_ids, k=k, ties=ties.value)
    if rows.num_rows == 0:
        return None
    hit_TM = rows["hits"].combine_chunks().flatten().to_numpy(zero_copy_only=False).reshape(-1, len(runs)).T
    history_M, settled_M, token_id_M = histories(hit_TM), settled(hit_TM), rows["token_id"].to_numpy()
    shares = {each: float((history_M == each).mean()) for each in History}
    by = np.cumsum(np.bincount(settled_M, minlength=len(runs))) / len(token_id_M)
    n_scored = np.bincount(token_id_M)
    named: list[tuple[History, int, int]] = []
    for history in History:
        counts = np.bincount(token_id_M[history_M == history], minlength=len(n_scored))
        order = np.argsort(-counts, kind="stable")[:top]
        named += [(history, int(token_id), int(counts[token_id])) for token_id in order if counts[token_id]]
    wanted = sorted({token_id for _, token_id, _ in named})
    known = ask(connection, "token_texts", run_id=run_ids[0], token_ids=wanted)
    texts = dict(zip(*known.select(["token_id", "text"]).to_pydict().values(), strict=True))
    ids = tuple(TokenCount(h, t, texts.get(t), n, int(n_scored[t])) for h, t, n in named)
    return TokenHistories(*along, k, tuple(at), len(token_id_M), shares, tuple(by.tolist()), ids)
