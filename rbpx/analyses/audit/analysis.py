"""Precision of runs (verb audit): stored tokens compared with the same ones measured in float32.

RBP_k, cross-entropy and the exponents of their laws are taken of the same documents on both sides, and these documents
are resampled together. Shapes: B resamples, D documents measured again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import duckdb
import numpy as np
import pyarrow as pa

from rbpx.analyses.audit.rank_changes import Allowance, Moves, count_moves
from rbpx.config.options import Dtype
from rbpx.config.request import Request
from rbpx.errors import MeasureError
from rbpx.groups.evidence import Evidence, weigh
from rbpx.groups.group import Group, Run
from rbpx.groups.points import size_points
from rbpx.groups.shifts import LawShift, Shift, shift_law, shift_run
from rbpx.laws.bootstrap import document_weights
from rbpx.store.queries import ask_beside
from rbpx.store.store import Record

DEFAULT_K: Final = (1, 10, 100)
_LAWS: Final = ("rbp", "cross_entropy")


@dataclass(frozen=True, eq=False)
class RunAudit:
    """One run against itself in float32: what moved, and the shift of RBP at each k and of cross-entropy (nats).

    Attributes:
        allowed: how far the run of another engine may be from it; None for a run of rbpx.
    """

    run: Run
    moves: Moves
    rbp: dict[int, Shift]
    cross_entropy_nats: Shift
    allowed: Allowance | None = None

    @property
    def is_same(self) -> bool | None:
        """Whether an engine is within what it is allowed, or a float32 run of rbpx came out the same.

        None for another dtype of rbpx, which is not expected to.
        """
        if self.allowed is not None:
            return self.allowed.holds(self.moves)
        return self.moves.is_same if self.run.dtype == Dtype.float32.value else None


@dataclass(frozen=True, eq=False)
class Audit:
    """The runs of a group that were measured again; `laws` is empty for fewer than 3 sizes.

    Attributes:
        group: only the sizes that were measured again, as if these were all of its documents.
        n_documents: that were measured again.
        n_stored: documents of the stored runs.
    """

    group: Group
    n_documents: int
    n_stored: int
    runs: tuple[RunAudit, ...]
    laws: tuple[LawShift, ...]


def sample_documents(group: Group, limit: int, seed: int) -> list[int]:
    """Which documents of a group are measured again, the same ones for every size, in order."""
    return sorted(np.random.default_rng(seed).permutation(group.n_documents)[:limit].tolist())


def pair_ranks(
    connection: duckdb.DuckDBPyConnection, group: Group, run: Run, doc_ids: Sequence[int], again: pa.Table
) -> pa.Table:
    """The ranks of a run beside those of the same tokens measured again (query `rank_pairs`).

    Raises:
        MeasureError: a token occurs in only one of the two.
    """
    parameters: dict[str, Any] = {"run_id": run.run_id, "doc_ids": list(doc_ids), "ties": group.ties.value}
    pairs = ask_beside(connection, again, "rank_pairs", **parameters)
    alone = pairs["rank"].null_count + pairs["rank_again"].null_count
    if alone:
        raise MeasureError(
            f"its text is cut into other tokens now than when it was measured ({alone:,} pairs of ranks lack one), so "
            "nothing can be compared; look at the versions with `show`, and measure it anew"
        )
    return pairs


def analyse(
    measured: Sequence[tuple[Run, pa.Table]],
    group: Group,
    doc_ids: Sequence[int],
    request: Request,
    allowed: Mapping[str, Allowance] | None = None,
) -> Audit:
    """Compare the runs that were measured again, and the laws through them.

    Args:
        measured: runs of the group, in its order, each with its pairs of ranks.
        group: as selected from the store.
        doc_ids: the documents that were measured again.
        request: k, resamples, seed.
        allowed: by run_id, how far a run of another engine may be from float32.
    """
    place = {doc_id: at for at, doc_id in enumerate(doc_ids)}
    sampled = _sampled(group, measured, len(doc_ids))
    weights_BD = document_weights(len(doc_ids), request.resamples, request.seed)
    k_grid = request.k.grid(min(run.vocab_size or 0 for run in sampled.runs), DEFAULT_K)
    evidence: dict[str, list[Evidence]] = {"": [], "_again": []}
    for run, pairs in measured:
        doc_id = pa.array([place[doc_id] for doc_id in pairs["doc_id"].to_pylist()])
        for suffix, side_evidence in evidence.items():
            counts = {"doc_id": doc_id, "rank": pairs[f"rank{suffix}"], "n_tokens": pairs["n_tokens"]}
            table = pa.table(counts | {"sum_logprob": pairs[f"sum_logprob{suffix}"]})
            side_evidence.append(weigh(table, weights_BD, k_grid, run.vocab_size or 0, _LAWS))
    stored, again = evidence.values()
    runs = [
        replace(_compare(run, pairs, one, other, k_grid, len(doc_ids)), allowed=(allowed or {}).get(run.run_id))
        for (run, pairs), one, other in zip(measured, stored, again, strict=True)
    ]
    points = [size_points(sampled, side, request, k_grid, _LAWS) for side in (stored, again)]
    laws = [] if len(measured) < 3 else [shift_law(sampled, *both) for both in zip(*points, strict=True)]
    return Audit(sampled, len(doc_ids), group.n_documents, tuple(runs), tuple(laws))


def _sampled(group: Group, measured: Sequence[tuple[Run, pa.Table]], n_documents: int) -> Group:
    """The runs as if these documents were the whole sample."""
    runs = []
    for run, pairs in measured:
        n_scored, n_tokens = len(pairs["doc_id"].unique()), int(pairs["n_tokens"].to_numpy().sum())
        counts: dict[str, Any] = {"n_documents": n_scored, "n_skipped": n_documents - n_scored, "n_tokens": n_tokens}
        runs.append(replace(run, **counts, cross_entropy_nats=None))
    return Group(tuple(runs), group.ties)


def _compare(
    run: Run, pairs: pa.Table, stored: Evidence, again: Evidence, k_grid: Sequence[int], n_documents: int
) -> RunAudit:
    rbp = {k: shift_run(stored, again, "rbp", n_documents, at) for at, k in enumerate(k_grid)}
    return RunAudit(run, count_moves(pairs, k_grid), rbp, shift_run(stored, again, "cross_entropy", n_documents))


def records(audit: Audit) -> list[Record]:
    """Rows for programs: kind `run` for each quantity of each run, kind `law` for each law; neither is stored."""
    names: Record = {**audit.group.names(), "n_documents": audit.n_documents}
    rows = []
    for each in audit.runs:
        of_run = {"size": each.run.size, "run_id": each.run.run_id, "S": each.run.non_embedding_params}
        of_run |= {name: value for name, value in asdict(each.moves).items() if not isinstance(value, dict)}
        of_run["is_same"] = each.is_same
        of_run |= {
            "allowed_share": None if each.allowed is None else each.allowed.share,
            "allowed_nats": None if each.allowed is None else each.allowed.nats,
        }
        shifts = [("rbp", k, shifted) for k, shifted in each.rbp.items()]
        for law, k, shifted in [*shifts, ("cross_entropy", None, each.cross_entropy_nats)]:
            crossed = {} if k is None else {"n_lost": each.moves.n_lost[k], "n_gained": each.moves.n_gained[k]}
            rows.append({"kind": "run", **names, **of_run, "law": law, "k": k, **_of(shifted), **crossed})
    for shifted_law in audit.laws:
        fit, alphas = shifted_law.difference, (shifted_law.before.alpha, shifted_law.after.alpha)
        row = {
            "kind": "law",
            **names,
            "law": shifted_law.law,
            "k": shifted_law.k,
            "stored": alphas[0],
            "again": alphas[1],
        }
        row |= {"difference": fit.alpha, "difference_lo": fit.alpha_lo, "difference_hi": fit.alpha_hi}
        row |= {"difference_text_lo": fit.alpha_text.lo, "difference_text_hi": fit.alpha_text.hi}
        row |= {"status": fit.status.value, "n_points": fit.n_points, "run_ids": audit.group.run_ids}
        rows.append(row)
    return rows


def _of(shifted: Shift) -> Record:
    """The columns of a shift."""
    ends = {"difference_lo": shifted.difference.lo, "difference_hi": shifted.difference.hi}
    return {"stored": shifted.before, "again": shifted.after, "difference": shifted.difference.value, **ends}
