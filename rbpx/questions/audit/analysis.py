"""Compares stored tokens with the same tokens measured again: in float32 by rbpx, or by their own engine.

Both give RBP_k, cross-entropy and their exponents over the same documents, resampled together. A token moves if its
rank changes; it changes if the number of greater or of equal logits does. Shapes: B replicates, D documents.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa

from rbpx.config.options import Dtype
from rbpx.laws.intervals.estimate import by_name, document_weights, effective_number
from rbpx.questions.audit import AuditKeys
from rbpx.runs.group import Group
from rbpx.runs.points.sizes import Evidence, size_points, weigh
from rbpx.runs.run import Run
from rbpx.runs.shifts import BeforeAfter, LawAtK, LawShift, shift_law, shifts_of_run
from rbpx.runs.units import Documents
from rbpx.store.columns import numbers
from rbpx.store.store import Record

DEFAULT_K: Final = (1, 10, 100)
LAWS: Final = ("rbp", "cross_entropy")


@dataclass(frozen=True)
class Allowance:
    """How far two measurements may differ: share of tokens that change, and largest logprob move."""

    share: float
    nats: float

    def holds(self, moves: Record) -> bool:
        """Whether the moves of a measurement stay within it."""
        few = moves["n_changed"] <= self.share * moves["n_tokens"]
        return bool(few and moves["largest_logprob_move"] <= self.nats)


ROUNDING: Final = Allowance(share=1e-3, nats=1e-4)
"""Allowance between two float32 measurements: 1 token in 1,000 may change, and no logprob may move by 1e-4 nats."""

Remeasured = tuple[pa.Table, Allowance | None]
"""The ranks of a run joined with those of the same tokens measured again (query `rank_pairs`), and how far a run of
another engine may be from float32."""


@dataclass(frozen=True, eq=False)
class Audit:
    """The sizes and documents of a group that were measured again, of `n_stored` documents.

    Rows are of kind `run` for each quantity of each run, `law` for each law through 3 sizes.
    """

    group: Group
    n_stored: int
    rows: list[Record]

    @property
    def of_runs(self) -> list[Record]:
        """The cross-entropy row of each run; all its rows have the same moves."""
        return [row for row in self.rows if row["kind"] == "run" and row["k"] is None]


def count_moves(pairs: pa.Table) -> Record:
    """Counts how the tokens of one run moved between the two measurements, from the query `rank_pairs`.

    n_changed have other greater or equal logits, n_moved another rank; moves are in ranks, of logprobs in nats.
    """
    rank, again, n_tokens = (numbers(pairs[name]) for name in ("rank", "rank_again", "n_tokens"))
    moved = np.repeat(np.abs(again - rank), n_tokens)
    moved = moved[moved > 0]
    return {
        "n_tokens": int(n_tokens.sum()),
        "n_changed": int(numbers(pairs["n_changed"]).sum()),
        "n_moved": len(moved),
        "median_move": float(np.median(moved)) if len(moved) else None,
        "largest_move": float(moved.max()) if len(moved) else None,
        "largest_logprob_move": float(numbers(pairs["largest_logprob_move"]).max()),
    }


def crossed(pairs: pa.Table, k: int) -> Record:
    """Counts the tokens that are hits before but not after, and the other way round."""
    rank, again, n_tokens = (numbers(pairs[name]) for name in ("rank", "rank_again", "n_tokens"))
    lost, gained = (rank <= k) & (again > k), (rank > k) & (again <= k)
    return {"n_lost": int(n_tokens[lost].sum()), "n_gained": int(n_tokens[gained].sum())}


def analyse(
    measured: Sequence[tuple[Run, Remeasured]], group: Group, doc_ids: Sequence[int], request: AuditKeys
) -> Audit:
    """Compares the runs that were measured again, and the laws through them."""
    place = {doc_id: at for at, doc_id in enumerate(doc_ids)}
    runs = tuple(_sampled(run, pairs, len(doc_ids)) for run, (pairs, _) in measured)
    of_one = measured[0][1][0]
    tokens_D = np.bincount([place[doc_id] for doc_id in of_one["doc_id"].to_pylist()], numbers(of_one["n_tokens"]))
    documents = replace(Documents.alone(len(doc_ids)), effective=effective_number(tokens_D))
    sampled = Group(runs, group.ties, documents=documents)
    weights_BD = document_weights(len(doc_ids), request.resamples, request.seed)
    k_grid = request.k.grid(sampled.vocab_size, DEFAULT_K)
    sides = list[Evidence](), list[Evidence]()
    for run, (pairs, _) in measured:
        counts = {"doc_id": pa.array([place[doc_id] for doc_id in pairs["doc_id"].to_pylist()])}
        for side, suffix in zip(sides, ("", "_again"), strict=True):
            counts |= {name: pairs[f"{name}{suffix}"] for name in ("rank", "sum_logprob")}
            table = pa.table(counts | {"n_tokens": pairs["n_tokens"]})
            side.append(weigh(table, weights_BD, k_grid, run.vocab_size or 0, LAWS))
    shifts, laws = compare(sampled, *sides, request, k_grid)
    names = sampled.names() | {"n_documents": len(doc_ids), "against": "engine" if request.engine else "float32"}
    rows = [
        {"kind": "run", **names, **row}
        for (run, again), of_run in zip(measured, shifts, strict=True)
        for row in _of_run(run, again, of_run, request.engine is not None)
    ]
    rows += [{"kind": "law", **names, **_of_law(law), "run_ids": sampled.run_ids} for law in laws]
    return Audit(sampled, group.n_documents, rows)


def _of_run(run: Run, again: Remeasured, shifts: dict[LawAtK, BeforeAfter], by_engine: bool) -> Iterator[Record]:
    """How the tokens of a run moved, with each of its quantities.

    `is_same`: whether another engine stays within its allowance, a float32 run of rbpx or an engine asked again within
    rounding; None for rbpx in another dtype, which need not agree.
    """
    (pairs, allowed), moves = again, count_moves(again[0])
    expected = allowed or (ROUNDING if by_engine or run.dtype == Dtype.float32.value else None)
    about = {"size": run.size, "run_id": run.run_id, "S": run.non_embedding_params, **moves}
    about |= {"is_same": expected and expected.holds(moves)}
    about |= {"allowed_share": allowed and allowed.share, "allowed_nats": allowed and allowed.nats}
    for (law, k), shift in shifts.items():
        row = {"law": law, "k": k, "stored": shift.before, "again": shift.after}
        yield about | row | by_name(difference=shift.difference) | ({} if k is None else crossed(pairs, k))


def _of_law(shift: LawShift) -> Record:
    fit, ends = shift.difference, shift.difference.alpha_text
    row = {"law": shift.law, "k": shift.k, "stored": shift.before.alpha.value, "again": shift.after.alpha.value}
    row |= {**by_name(difference=fit.alpha), "difference_text_lo": ends.lo, "difference_text_hi": ends.hi}
    return row | {"status": fit.status, "n_points": fit.n_points}


def compare(
    group: Group, before: Sequence[Evidence], after: Sequence[Evidence], request: AuditKeys, k_grid: Sequence[int]
) -> tuple[list[dict[LawAtK, BeforeAfter]], list[LawShift]]:
    """Compares two measurements of the same documents: the shifts of each run, and of laws of 3 sizes."""
    shifts = [shifts_of_run(*both, k_grid, group.n_effective) for both in zip(before, after, strict=True)]
    if group.n_sizes < 3:
        return shifts, []
    points = [size_points(group, side, request, k_grid, LAWS) for side in (before, after)]
    return shifts, [shift_law(group, *both) for both in zip(*points, strict=True)]


def _sampled(run: Run, pairs: pa.Table, n_documents: int) -> Run:
    n_scored, n_tokens = len(pairs["doc_id"].unique()), int(numbers(pairs["n_tokens"]).sum())
    n_skipped = n_documents - n_scored
    return replace(run, n_documents=n_scored, n_skipped=n_skipped, n_tokens=n_tokens, cross_entropy_nats=None)
