"""Computes the points that laws in size are fitted to: one quantity at every size, with bootstrap replicates.

The curves of a run come from the counts of its ranks, for the documents as measured and resampled.

Shapes: D documents, R different ranks, K values of k, B replicates, N sizes.
"""

from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy.sparse import csr_array

from rbpx.config.keys.laws import DEFAULT_K, USUAL_K, Laws, Resampled
from rbpx.cores import n_cores
from rbpx.errors import RbpxError
from rbpx.laws.intervals.estimate import Replicates
from rbpx.laws.names import IMPORTED, LAWS, LOGNORMAL
from rbpx.laws.numeric import Floats, neg_ln
from rbpx.laws.quantity import Counts, Quantity, quantity
from rbpx.laws.ranks.error_entropy import decompose, replicate_terms
from rbpx.laws.ranks.family import RankFit
from rbpx.laws.ranks.lognormal import derived_approximation, derived_curve, fit_paper, paper_slopes, step_paper
from rbpx.runs.documents import EDGES, distinct_ranks, document_hits, document_ranks
from rbpx.runs.group import Group
from rbpx.runs.run import Run
from rbpx.status import Status
from rbpx.store.columns import numbers

Curves = dict[str, Floats]
"""Quantities of one run by the name of their law; `rbp` has a last axis [K], those of replicates a first one [B]."""

# Resampled counts in one block, for each run; larger blocks take new memory from the system each time.
_BLOCK_BYTES = 8 * 2**20
_TERMS = ("error_entropy", "self_alignment", "confidence")
_PARTS = {"lognormal": LOGNORMAL, "terms": _TERMS}
_OF_ALL_RANKS = {*LOGNORMAL, *_TERMS}  # whatever the k


@dataclass(frozen=True, eq=False)
class Evidence:
    """The curves of one run under one tie rule; or those that do not depend on k.

    Attributes:
        measured: rbp (shares), cross_entropy (nats) and, on request, the terms of the error-entropy decomposition and
            the curves derived from the rank model (nats, NaN without one).
        replicates: the same for each replicate; NaN for a replicate without a token.
        paper: lognormal fitted to the ranks from 2 up, as published.
        approximated: (-ln RBP_1, cross-entropy) of `paper` by the paper's own approximation.
    """

    measured: Curves
    replicates: Curves
    paper: RankFit | None = None
    approximated: tuple[float, float] | None = None


def weigh(
    counts: pa.Table,
    weights_BD: npt.NDArray[Any],
    k_grid: Sequence[int],
    vocab_size: int,
    laws: Collection[str],
    kept: dict[str, Evidence] | None = None,
) -> Evidence:
    """Compute the curves of a run and of its replicates from the rank counts of each document (`document_ranks`).

    Quantities beyond RBP and cross-entropy are computed only if named in `laws`; `kept` keeps results for the same
    counts and weights.
    """
    doc, rank, tokens, logprob = (numbers(counts[name]) for name in ("doc_id", "rank", "n_tokens", "sum_logprob"))
    weights_BD = weights_BD.astype(np.float64, copy=False)
    parts = [Evidence(*_shares(doc, rank, tokens, logprob, weights_BD, k_grid))]
    kept = {} if kept is None else kept
    needed = [name for name, of in _PARTS.items() if set(of) & set(laws)]
    needed += [law for law in laws if quantity(law) is not None]
    missing = [name for name in needed if name not in kept]
    if missing:
        kept |= _whole(doc, rank, tokens.astype(np.float64), logprob, weights_BD, vocab_size, missing)
    parts += [kept[name] for name in needed]
    model = next((each for each in parts if each.paper is not None), parts[0])
    measured, replicates = (
        {k: v for each in parts for k, v in getattr(each, of).items()} for of in ("measured", "replicates")
    )
    return Evidence(measured, replicates, model.paper, model.approximated)


def _whole(
    doc: Any, rank: Any, tokens: Floats, logprob: Any, weights_BD: Floats, vocab_size: int, names: Sequence[str]
) -> dict[str, Evidence]:
    rank_R, column = distinct_ranks(rank)
    shape = (weights_BD.shape[1], len(rank_R))
    tokens_R, logprob_R = (np.bincount(column, each).astype(np.float64) for each in (tokens, logprob))
    parts = {}
    if "lognormal" in names:
        paper = fit_paper(rank_R, tokens_R)
        beta_1, gamma_1 = (np.array([paper.params[name]], np.float64) for name in ("beta", "gamma"))  # None is NaN
        theta_B = _replicate_theta(paper, rank_R, csr_array((tokens, (doc, column)), shape), weights_BD)
        parts["lognormal"] = Evidence(
            dict(zip(LOGNORMAL, derived_curve(beta_1, gamma_1, vocab_size, [1])[0], strict=True)),
            dict(zip(LOGNORMAL, derived_curve(*theta_B, vocab_size, [1]).T, strict=True)),
            paper,
            _approximate(paper),
        )
    if "terms" in names:
        measured, replicates = (
            {name: np.asarray(getattr(terms, name)) for name in _TERMS}
            for terms in (
                decompose(tokens_R, logprob_R),
                replicate_terms(doc, column, tokens, logprob, weights_BD),
            )
        )
        parts["terms"] = Evidence(measured, replicates)
    more = {law: definition for law in names if (definition := quantity(law)) is not None}
    if more:
        measured = _values(more, Counts(rank_R, tokens_R[None], logprob_R[None], vocab_size))
        tokens_DR, logprob_DR = (csr_array((each, (doc, column)), shape) for each in (tokens, logprob))
        replicates = _replicate_values(more, rank_R, tokens_DR, logprob_DR, weights_BD, vocab_size)
        parts |= {law: Evidence({law: measured[law][0]}, {law: replicates[law]}) for law in more}
    return parts


def _shares(
    doc: Any, rank: Any, tokens: Any, logprob: Any, weights_BD: npt.NDArray[Any], k_grid: Sequence[int]
) -> tuple[Curves, Curves]:
    n_documents, n_k = weights_BD.shape[1], len(k_grid)
    bin_N = np.searchsorted(k_grid, rank)  # the smallest k that is at least the rank
    counted = np.bincount(bin_N * n_documents + doc, tokens, (n_k + 1) * n_documents).reshape(n_k + 1, n_documents)
    sums_DC = np.vstack([np.cumsum(counted, axis=0), np.bincount(doc, logprob, n_documents)]).T
    total_C = sums_DC.sum(axis=0)
    measured = {"rbp": total_C[:-2] / total_C[-2], "cross_entropy": np.asarray(-total_C[-1] / total_C[-2])}
    drawn_BC = weights_BD.astype(np.float64, copy=False) @ sums_DC
    n_B = drawn_BC[:, -2]
    n_B[n_B == 0] = np.nan  # a replicate that drew only documents without a token has no value
    return measured, {"rbp": drawn_BC[:, :-2] / n_B[:, None], "cross_entropy": -drawn_BC[:, -1] / n_B}


def _replicate_values(
    more: dict[str, Quantity], rank_R: Floats, tokens_DR: csr_array, logprob_DR: csr_array, weights_BD: Floats, V: int
) -> Curves:
    rows, blocks = max(1, _BLOCK_BYTES // (8 * len(rank_R))), []
    for begin in range(0, len(weights_BD), rows):
        drawn_BR, logprob_BR = ((each.T @ weights_BD[begin : begin + rows].T).T for each in (tokens_DR, logprob_DR))
        blocks.append(_values(more, Counts(rank_R, drawn_BR, logprob_BR, V)))
    return {law: np.concatenate([block[law] for block in blocks]) for law in more}


def _values(more: dict[str, Quantity], counts: Counts) -> Curves:
    """NaN where a replicate contains no token."""
    says_B = counts.tokens_BR.sum(axis=1) > 0
    replicates = Counts(counts.rank_R, counts.tokens_BR[says_B], counts.sum_logprob_BR[says_B], counts.vocab_size)
    filled = {law: np.full(len(says_B), np.nan) for law in more}
    for law, definition in more.items():
        value_B = np.asarray(definition.value(replicates))
        if value_B.shape != (says_B.sum(),):
            raise RbpxError(
                f"law {law}: value returned shape {value_B.shape} for {says_B.sum()} rows of tokens_BR; return one "
                "number for each"
            )
        filled[law][says_B] = value_B
    return filled


def _replicate_theta(paper: RankFit, rank_R: Floats, tokens_DR: csr_array, weights_BD: Floats) -> tuple[Floats, Floats]:
    if paper.status is not Status.ok:
        unknown_B = np.full(len(weights_BD), np.nan)
        return unknown_B, unknown_B
    mu_B, sigma_B = step_paper(paper, weights_BD @ (tokens_DR @ paper_slopes(paper, rank_R))).T
    return 1 - mu_B / sigma_B**2, 0.5 / sigma_B**2


def _approximate(paper: RankFit) -> tuple[float, float] | None:
    mu, sigma = paper.params["mu"], paper.params["sigma"]
    if mu is None or sigma is None:
        return None
    rbp_1, cross_entropy = derived_approximation(mu, sigma)
    return float(rbp_1), float(cross_entropy)


_MOST_THREADS: Final = 32


@dataclass(frozen=True, eq=False)
class Points:
    """One quantity of a group.

    Attributes:
        runs: at which it is known.
        y_N: -ln RBP_k, or nats. Infinite where RBP_k is 0.
        y_BN: None without documents to resample.
        doubt: a warning that holds before anything is fitted.
    """

    law: str
    k: int | None
    runs: tuple[Run, ...]
    y_N: Floats
    y_BN: Floats | None
    doubt: Status | None = None
    n_effective: float | None = None

    @property
    def S_N(self) -> list[float]:
        """Non-embedding parameters, or positions on another axis."""
        return [run.x for run in self.runs if run.x is not None]

    @property
    def weight_N(self) -> Floats | None:
        """The weight of each run; None where all are equal."""
        weights = np.array([run.weight for run in self.runs], np.float64)
        return None if np.all(weights == 1) else weights

    @property
    def replicates(self) -> Replicates | None:
        """The replicates as laws take them; None without any, or with one document only."""
        without = self.y_BN is None or self.doubt is Status.one_document
        return None if without else Replicates.of(np.asarray(self.y_BN), self.n_effective)

    def over(self, other: "Points") -> "Points":
        """The ratio to another quantity at the same sizes and replicates; its fit reports where there is none."""
        with np.errstate(divide="ignore", invalid="ignore"):
            y_BN = None if self.y_BN is None or other.y_BN is None else self.y_BN / other.y_BN
            return replace(self, y_N=self.y_N / other.y_N, y_BN=y_BN)


def weigh_group(
    connection: duckdb.DuckDBPyConnection,
    group: Group,
    request: Resampled,
    k_grid: Sequence[int],
    laws: Collection[str],
) -> list[Evidence]:
    """The evidence of each run, with the same resampled documents at every size; empty for imported runs."""
    if not group.is_measured:
        return []
    weights_BD = group.weights(request)
    kept, several = _KEPT.get({}), _KEPT.get(None) is not None  # outside of `evidence_kept` a temporary one
    whole = (
        several
        or not set(k_grid) <= set(EDGES)
        or any(law in _OF_ALL_RANKS or quantity(law) is not None for law in laws)
    )
    pending = []
    with side_by_side() as pool:
        for run in group.runs:
            counts = (document_ranks if whole else document_hits)(connection, run.run_id, group.ties)
            key = (run.run_id, group.ties, group.n_documents, request.resamples, request.seed)
            of_run = kept.setdefault(key, {})
            pending.append(pool.submit(weigh, counts, weights_BD, k_grid, run.vocab_size or 0, laws, of_run))
        return [each.result() for each in pending]


_KEPT: ContextVar[dict[tuple[Any, ...], dict[str, Evidence]]] = ContextVar("kept parts of evidence")


@contextmanager
def evidence_kept() -> Iterator[None]:
    """Share results that need all ranks of a run between the analyses within the context, at any k."""
    token = _KEPT.set({})
    try:
        yield
    finally:
        _KEPT.reset(token)


def side_by_side() -> ThreadPoolExecutor:
    """A thread pool with a run per task; more threads than cores would evict each other's blocks from the caches."""
    return ThreadPoolExecutor(min(_MOST_THREADS, n_cores()))


def size_points(
    group: Group, evidence: Sequence[Evidence], request: Resampled, k_grid: Sequence[int], laws: Collection[str]
) -> list[Points]:
    """Every requested quantity, in the order of the laws; unknown ones carry a warning."""
    if not group.is_measured:
        return _imported_points(group, request, laws)
    doubt = Status.one_document if group.n_resampled == 1 else None
    n, points = group.n_effective, list[Points]()
    for law in LAWS:
        if law == "rbp" and law in laws:
            for at, k in enumerate(k_grid):
                y_N = neg_ln(np.array([e.measured["rbp"][at] for e in evidence]))
                y_BN = neg_ln(np.column_stack([e.replicates["rbp"][:, at] for e in evidence]))
                points.append(Points(law, k, group.runs, y_N, y_BN, doubt, n))
            points += [_unknown(group, k, Status.not_positive) for k in request.k.beyond(group.vocab_size)]
        elif law in laws:
            y_N = np.array([e.measured[law] for e in evidence])
            y_BN = np.column_stack([e.replicates[law] for e in evidence])
            ranks = [e.paper.status for e in evidence if e.paper is not None and law.startswith("lognormal")]
            doubts = [status for status in ranks if status is not Status.ok]
            points.append(Points(law, None, group.runs, y_N, y_BN, doubts[0] if doubts else doubt, n))
    return points


def known_points(
    connection: duckdb.DuckDBPyConnection,
    group: Group,
    request: Resampled,
    laws: Collection[str],
    k: Sequence[int] | Literal["log"],
) -> list[Points]:
    """The points of `size_points` from the store, at the requested k, else at those of `k`."""
    k_grid = request.k.grid(group.vocab_size, k) if group.is_measured else []
    return size_points(group, weigh_group(connection, group, request, k_grid, laws), request, k_grid, laws)


def law_points(
    connection: duckdb.DuckDBPyConnection, group: Group, request: Laws
) -> tuple[list[int], list[Evidence], list[Points]]:
    """The k of RBP_k, the evidence of each run (none if imported), and the points of the laws asked for."""
    laws = set(request.laws.names)
    if group.is_measured:
        k_grid = request.k.grid(group.vocab_size, USUAL_K if request.is_usual else DEFAULT_K)
        evidence = weigh_group(connection, group, request, k_grid, laws)
        return k_grid, evidence, size_points(group, evidence, request, k_grid, laws)
    k_grid, points = group.stated_k(request), _imported_points(group, request, laws)
    if request.is_usual:
        k_grid = [k for k in k_grid if k in USUAL_K] or k_grid[: len(USUAL_K)]
    return k_grid, [], [each for each in points if each.k is None or each.k in k_grid]


def _unknown(group: Group, k: int | None, doubt: Status, law: str = "rbp") -> Points:
    return Points(law, k, group.runs, np.full(len(group.runs), np.nan), None, doubt)


def _imported_points(group: Group, request: Resampled, laws: Collection[str]) -> list[Points]:
    """Imported runs have RBP at some k, and perhaps losses; whatever needs their tokens is unknown."""
    asked = [("rbp", k) for k in group.stated_k(request)]
    told = () if any(run.imported for run in group.runs) else LAWS[:2]  # report these as unknown
    points = []
    for law, k in [*asked, *((law, None) for law in ("cross_entropy", *IMPORTED, *LAWS[2:]))]:
        runs = tuple(run for run in group.runs if run.stated(law, k) is not None)
        if runs and law in laws:
            y_N = np.array([run.stated(law, k) for run in runs], dtype=np.float64)
            y_N = neg_ln(y_N) if law == "rbp" else 1 - y_N if law == "accuracy" else y_N
            points.append(Points(law, k, runs, y_N, None))
        elif law in laws and (request.laws.by_name or law in told):
            points.append(_unknown(group, k, Status.not_known, law))
    return points
