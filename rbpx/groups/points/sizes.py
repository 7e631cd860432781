"""The points that laws in size are fitted to: one quantity at every size of a group, with its resamples."""

from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import duckdb
import numpy as np

from rbpx.config.keys.laws import DEFAULT_K
from rbpx.config.request import Request
from rbpx.cores import n_cores
from rbpx.groups.group import Group, Run
from rbpx.groups.points.evidence import Evidence, weigh
from rbpx.groups.points.token_ranks import document_ranks
from rbpx.laws.intervals.bootstrap import Resampled
from rbpx.laws.names import IMPORTED, LAWS
from rbpx.laws.numeric.arrays import Floats, neg_ln
from rbpx.status import Status

_MOST_THREADS: Final = 32


@dataclass(frozen=True, eq=False)
class Points:
    """One quantity of a group.

    Attributes:
        law: name of the law.
        k: None where the law has none.
        runs: the sizes at which it is known.
        y_N: its values: -ln RBP_k, or nats. Infinite where RBP_k is 0.
        y_BN: the same under resampled documents; None where there are none to resample.
        doubt: what is known to be wrong before anything is fitted.
        n_documents: what was resampled, documents or the texts that several were cut from; None where that is unknown.
    """

    law: str
    k: int | None
    runs: tuple[Run, ...]
    y_N: Floats
    y_BN: Floats | None
    doubt: Status | None = None
    n_documents: int | None = None

    @property
    def S_N(self) -> list[float]:
        """Non-embedding parameters, or the places on another axis."""
        return [run.x for run in self.runs if run.x is not None]

    @property
    def resampled(self) -> Resampled | None:
        """The resamples as laws take them; None where there are none, or those of one document."""
        without = self.y_BN is None or self.doubt is Status.one_document
        return None if without else Resampled.of(np.asarray(self.y_BN), self.n_documents)

    def over(self, other: "Points") -> "Points":
        """Their ratio to others at the same sizes and under the same resamples; its fit says where there is none."""
        with np.errstate(divide="ignore", invalid="ignore"):
            y_BN = None if self.y_BN is None or other.y_BN is None else self.y_BN / other.y_BN
            return replace(self, y_N=self.y_N / other.y_N, y_BN=y_BN)


def weigh_group(
    connection: duckdb.DuckDBPyConnection,
    group: Group,
    request: Request,
    k_grid: Sequence[int],
    laws: Collection[str],
) -> list[Evidence]:
    """The evidence of each run, their documents resampled, the same ones for every size; none for imported runs."""
    if not group.is_measured:
        return []
    weights_BD = group.weights(request)
    kept = _KEPT.get({})  # outside of `evidence_kept` an empty one that is discarded
    pending = []
    with side_by_side() as pool:
        for run in group.runs:
            counts = document_ranks(connection, run.run_id, group.ties)
            key = (run.run_id, group.ties, group.n_documents, request.resamples, request.seed)
            of_run = kept.setdefault(key, {})
            pending.append(pool.submit(weigh, counts, weights_BD, k_grid, run.vocab_size or 0, laws, of_run))
        return [each.result() for each in pending]


_KEPT: ContextVar[dict[tuple[Any, ...], dict[str, Evidence]]] = ContextVar("kept parts of evidence")


@contextmanager
def evidence_kept() -> Iterator[None]:
    """Share what takes all ranks of a run among all analyses within the context, whatever k they ask for."""
    token = _KEPT.set({})
    try:
        yield
    finally:
        _KEPT.reset(token)


def side_by_side() -> ThreadPoolExecutor:
    """Threads for work on one run each: numpy works outside the interpreter's lock.

    More of them than cores would only evict each other's blocks from the caches.
    """
    return ThreadPoolExecutor(min(_MOST_THREADS, n_cores()))


def size_points(
    group: Group, evidence: Sequence[Evidence], request: Request, k_grid: Sequence[int], laws: Collection[str]
) -> list[Points]:
    """Every requested quantity, in the order of the laws; unknown ones carry a doubt."""
    if not group.is_measured:
        return _imported_points(group, request, laws)
    doubt = Status.one_document if group.n_resampled == 1 else None
    n_documents = group.n_resampled
    points = []
    for law in LAWS:
        if law == "rbp" and law in laws:
            for at, k in enumerate(k_grid):
                y_N = neg_ln(np.array([e.measured["rbp"][at] for e in evidence]))
                y_BN = neg_ln(np.column_stack([e.resampled["rbp"][:, at] for e in evidence]))
                points.append(Points(law, k, group.runs, y_N, y_BN, doubt, n_documents))
            points += [_unknown(group, k, Status.beyond_vocabulary) for k in request.k.beyond(group.vocab_size)]
        elif law in laws:
            y_N = np.array([e.measured[law] for e in evidence])
            y_BN = np.column_stack([e.resampled[law] for e in evidence])
            ranks = [e.paper.status for e in evidence if e.paper is not None and law.startswith("lognormal")]
            doubts = [status for status in ranks if status is not Status.ok]
            points.append(Points(law, None, group.runs, y_N, y_BN, doubts[0] if doubts else doubt, n_documents))
    return points


def known_points(
    connection: duckdb.DuckDBPyConnection,
    group: Group,
    request: Request,
    laws: Collection[str],
    k: Sequence[int] | Literal["log"] = DEFAULT_K,
) -> list[Points]:
    """The points of `size_points` from the store, at the k asked for; at those of `k` where none are."""
    k_grid = request.k.grid(group.vocab_size, k) if group.is_measured else []
    return size_points(group, weigh_group(connection, group, request, k_grid, laws), request, k_grid, laws)


def _unknown(group: Group, k: int | None, doubt: Status, law: str = "rbp") -> Points:
    return Points(law, k, group.runs, np.full(len(group.runs), np.nan), None, doubt)


def _imported_points(group: Group, request: Request, laws: Collection[str]) -> list[Points]:
    """Imported runs have RBP at some k, and perhaps cross-entropy; whatever needs their tokens is unknown."""
    asked = [("rbp", k) for k in group.stated_k(request)]
    points = []
    for law, k in [*asked, *((law, None) for law in ("cross_entropy", *IMPORTED, *LAWS[2:]))]:
        runs = tuple(run for run in group.runs if run.stated(law, k) is not None)
        if runs and law in laws:
            y_N = np.array([run.stated(law, k) for run in runs], dtype=np.float64)
            y_N = neg_ln(y_N) if law == "rbp" else 1 - y_N if law == "accuracy" else y_N
            points.append(Points(law, k, runs, y_N, None))
        elif law in laws and (request.laws.by_name or law in LAWS[:2]):
            points.append(_unknown(group, k, Status.not_known, law))
    return points
