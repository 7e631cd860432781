"""Compares stored tokens with the same tokens measured again, for the audit of precision.

That is in float32 by rbpx, or in another order by the engine that measured them.

Both sides give RBP_k, cross-entropy and the exponents of their laws over the same documents, which are resampled
together. A token moves if its rank under the tie rule changes. It changes if the number of greater or of equal logits
does, which may happen without a move.
Shapes: B resamples, D documents measured again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa

from rbpx.config.options import Dtype
from rbpx.config.request import Request
from rbpx.laws.intervals.estimate import by_name, document_weights
from rbpx.runs.group import Group, Run
from rbpx.runs.points.sizes import Evidence, size_points, weigh
from rbpx.runs.shifts import LawAtK, LawShift, Shift, shift_law, shifts_of_run
from rbpx.store.store import Record

DEFAULT_K: Final = (1, 10, 100)
LAWS: Final = ("rbp", "cross_entropy")


@dataclass(frozen=True)
class Allowance:
    """How far one measurement may be from another.

    Attributes:
        share: of the tokens that may change.
        nats: how far a log-probability may move.
    """

    share: float
    nats: float

    def holds(self, moves: "Moves") -> bool:
        """Whether a measurement moved no further."""
        return moves.n_changed <= self.share * moves.n_tokens and moves.largest_logprob_move <= self.nats


ROUNDING: Final = Allowance(share=1e-3, nats=1e-4)
"""How far two measurements in float32 may be from each other."""


@dataclass(frozen=True)
class Moves:
    """How the tokens of one run moved when they were measured again.

    Attributes:
        n_tokens: tokens compared.
        n_changed: tokens whose number of greater or of equal logits differs.
        n_moved: tokens whose rank differs.
        median_move: median move of the ranks that moved, in ranks; None where none did.
        largest_move: their largest move.
        largest_logprob_move: over all tokens, nats.
        n_lost: by k, tokens that were hits (rank at most k) and no longer are.
        n_gained: by k, tokens that were not hits and are now.
    """

    n_tokens: int
    n_changed: int
    n_moved: int
    median_move: float | None
    largest_move: float | None
    largest_logprob_move: float
    n_lost: dict[int, int]
    n_gained: dict[int, int]

    @property
    def is_same(self) -> bool:
        """Whether both measurements agree up to rounding: at most 1 token in 1,000 changed, no logprob by over 1e-4."""
        return ROUNDING.holds(self)

    @property
    def share_changed(self) -> float:
        """The share of the tokens that changed."""
        return self.n_changed / self.n_tokens


@dataclass(frozen=True, eq=False)
class Remeasured:
    """A run that was measured again.

    Attributes:
        pairs: its ranks beside the ranks of the same tokens measured again (query `rank_pairs`).
        allowed: how far a run of another engine may be from float32; None for a run of rbpx.
        by_engine: whether the engine that measured it was asked again, and not rbpx in float32.
    """

    pairs: pa.Table
    allowed: Allowance | None = None
    by_engine: bool = False


@dataclass(frozen=True, eq=False)
class RunAudit:
    """One run against itself measured again.

    Attributes:
        run: the run.
        moves: how its tokens moved.
        shifts: changes of RBP at each k, then of cross-entropy (nats).
        allowed: as in `Remeasured`.
        by_engine: as in `Remeasured`.
    """

    run: Run
    moves: Moves
    shifts: dict[LawAtK, Shift]
    allowed: Allowance | None
    by_engine: bool

    @property
    def is_same(self) -> bool | None:
        """Whether another engine stays within its allowance, or what should agree up to rounding does.

        That is a float32 run of rbpx, and an engine that is asked again; None for a run of rbpx in another dtype, which
        is not expected to agree.
        """
        if self.allowed is not None:
            return self.allowed.holds(self.moves)
        return self.moves.is_same if self.by_engine or self.run.dtype == Dtype.float32.value else None


@dataclass(frozen=True, eq=False)
class Audit:
    """The runs of a group that were measured again; `laws` is empty for fewer than 3 sizes.

    Attributes:
        group: the sizes that were measured again, as if the documents measured again were all of theirs.
        n_documents: how many documents were measured again.
        n_stored: how many the stored runs have.
    """

    group: Group
    n_documents: int
    n_stored: int
    runs: tuple[RunAudit, ...]
    laws: tuple[LawShift, ...]

    @property
    def by_engine(self) -> bool:
        """Whether the engine that measured the runs was asked again; rbpx measured in float32 otherwise."""
        return self.runs[0].by_engine


def count_moves(pairs: pa.Table, k_grid: Sequence[int]) -> Moves:
    """Count how ranks moved.

    Args:
        pairs: rank, rank_again, n_tokens, n_changed, largest_logprob_move (query `rank_pairs`), no rank missing.
        k_grid: the k of RBP.
    """
    names = ("rank", "rank_again", "n_tokens", "n_changed", "largest_logprob_move")
    rank, again, n_tokens, n_changed, logprob_move = (pairs[name].to_numpy() for name in names)
    moved = np.repeat(np.abs(again - rank), n_tokens)
    moved = moved[moved > 0]
    return Moves(
        n_tokens=int(n_tokens.sum()),
        n_changed=int(n_changed.sum()),
        n_moved=len(moved),
        median_move=float(np.median(moved)) if len(moved) else None,
        largest_move=float(moved.max()) if len(moved) else None,
        largest_logprob_move=float(logprob_move.max()),
        n_lost={k: int(n_tokens[(rank <= k) & (again > k)].sum()) for k in k_grid},
        n_gained={k: int(n_tokens[(rank > k) & (again <= k)].sum()) for k in k_grid},
    )


def analyse(
    measured: Sequence[tuple[Run, Remeasured]], group: Group, doc_ids: Sequence[int], request: Request
) -> Audit:
    """Compare the runs that were measured again, and the laws through them.

    Args:
        measured: runs of the group, in its order.
        group: the group as the store has it.
        doc_ids: the documents that were measured again.
        request: gives k, resamples, seed.
    """
    place = {doc_id: at for at, doc_id in enumerate(doc_ids)}
    sampled = Group(tuple(_sampled(run, again.pairs, len(doc_ids)) for run, again in measured), group.ties)
    weights_BD = document_weights(len(doc_ids), request.resamples, request.seed)
    k_grid = request.k.grid(sampled.vocab_size, DEFAULT_K)
    sides = list[Evidence](), list[Evidence]()
    for run, again in measured:
        pairs = again.pairs
        counts = {"doc_id": pa.array([place[doc_id] for doc_id in pairs["doc_id"].to_pylist()])}
        for side, suffix in zip(sides, ("", "_again"), strict=True):
            counts |= {name: pairs[f"{name}{suffix}"] for name in ("rank", "sum_logprob")}
            table = pa.table(counts | {"n_tokens": pairs["n_tokens"]})
            side.append(weigh(table, weights_BD, k_grid, run.vocab_size or 0, LAWS))
    shifts, laws = compare(sampled, *sides, request, k_grid)
    runs = tuple(
        RunAudit(run, count_moves(again.pairs, k_grid), of_run, again.allowed, again.by_engine)
        for (run, again), of_run in zip(measured, shifts, strict=True)
    )
    return Audit(sampled, len(doc_ids), group.n_documents, runs, tuple(laws))


def compare(
    group: Group, before: Sequence[Evidence], after: Sequence[Evidence], request: Request, k_grid: Sequence[int]
) -> tuple[list[dict[LawAtK, Shift]], list[LawShift]]:
    """Compare two measurements of the same documents: the changes of each run, and of the laws through 3 sizes or more.

    Args:
        group: the runs.
        before: of each run.
        after: of each run.
        request: says for which k there is no RBP.
        k_grid: the k of RBP.
    """
    shifts = [shifts_of_run(*both, k_grid, group.n_resampled) for both in zip(before, after, strict=True)]
    if group.n_sizes < 3:
        return shifts, []
    points = [size_points(group, side, request, k_grid, LAWS) for side in (before, after)]
    return shifts, [shift_law(group, *both) for both in zip(*points, strict=True)]


def _sampled(run: Run, pairs: pa.Table, n_documents: int) -> Run:
    """The run as if these documents were its whole sample."""
    n_scored, n_tokens = len(pairs["doc_id"].unique()), int(pairs["n_tokens"].to_numpy().sum())
    n_skipped = n_documents - n_scored
    return replace(run, n_documents=n_scored, n_skipped=n_skipped, n_tokens=n_tokens, cross_entropy_nats=None)


def records(audit: Audit) -> list[Record]:
    """Rows for programs: kind `run` for each quantity of each run, kind `law` for each law; none is stored."""
    against = "engine" if audit.by_engine else "float32"
    names: Record = {**audit.group.names(), "n_documents": audit.n_documents, "against": against}
    rows = []
    for each in audit.runs:
        run, moves, allowed = each.run, each.moves, each.allowed
        of_run = {"size": run.size, "run_id": run.run_id, "S": run.non_embedding_params}
        of_run |= {name: value for name, value in vars(moves).items() if not isinstance(value, dict)}
        of_run |= {"is_same": each.is_same}
        of_run |= {"allowed_share": allowed and allowed.share, "allowed_nats": allowed and allowed.nats}
        for (law, k), shift in each.shifts.items():
            row = {"kind": "run", **names, **of_run, "law": law, "k": k, "stored": shift.before, "again": shift.after}
            crossed = {} if k is None else {"n_lost": moves.n_lost[k], "n_gained": moves.n_gained[k]}
            rows.append(row | by_name(difference=shift.difference) | crossed)
    for shifted in audit.laws:
        fit, ends = shifted.difference, shifted.difference.alpha_text
        row = {"kind": "law", **names, "law": shifted.law, "k": shifted.k, "stored": shifted.before.alpha}
        row |= {"again": shifted.after.alpha, **by_name(difference=fit.exponent)}
        row |= {"difference_text_lo": ends.lo, "difference_text_hi": ends.hi, "status": fit.status.value}
        rows.append(row | {"n_points": fit.n_points, "run_ids": audit.group.run_ids})
    return rows
