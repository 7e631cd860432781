"""The points that laws in size are fitted to: one quantity at every size of a group, with its resamples."""

from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

import duckdb
import numpy as np
import numpy.typing as npt

from rbpx.config.keys.laws import DEFAULT_K
from rbpx.config.request import Request
from rbpx.cores import n_cores
from rbpx.groups.evidence import Evidence, Part, weigh
from rbpx.groups.group import Group, Run
from rbpx.groups.token_ranks import document_ranks
from rbpx.laws.logarithms import neg_ln
from rbpx.laws.names import IMPORTED, LAWS
from rbpx.status import Status

Floats = npt.NDArray[np.float64]

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


_KEPT: ContextVar[dict[tuple[Any, ...], dict[str, Part]]] = ContextVar("kept parts of evidence")


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
    k: Sequence[int] | str = DEFAULT_K,
) -> list[Points]:
    """The points of `size_points` from the store, at the k asked for; at those of `k` where none are."""
    k_grid = request.k.grid(group.vocab_size, k) if group.is_measured else []
    return size_points(group, weigh_group(connection, group, request, k_grid, laws), request, k_grid, laws)


def _unknown(group: Group, k: int | None, doubt: Status, law: str = "rbp") -> Points:
    return Points(law, k, group.runs, np.full(len(group.runs), np.nan), None, doubt)


def _imported_points(group: Group, request: Request, laws: Collection[str]) -> list[Points]:
    """Imported runs have RBP at some k, and perhaps cross-entropy; whatever needs their tokens is unknown."""
    points = []
    observed = sorted({k for run in group.runs for k, n in run.observed if n == 1})
    if "rbp" in laws:
        for k in observed if not request.k.by_number else request.k.listed():
            runs = tuple(run for run in group.runs if (k, 1) in run.observed)
            y_N = neg_ln(np.array([run.observed[k, 1] for run in runs]))
            points.append(Points("rbp", k, runs, y_N, None) if runs else _unknown(group, k, Status.not_known))
    if "cross_entropy" in laws:
        runs = tuple(run for run in group.runs if run.cross_entropy_nats is not None)
        y_N = np.array([run.cross_entropy_nats for run in runs], dtype=np.float64)
        series = Points("cross_entropy", None, runs, y_N, None)
        points.append(series if runs else _unknown(group, None, Status.not_known, "cross_entropy"))
    for law in IMPORTED:
        runs = tuple(run for run in group.runs if law in run.imported)
        if runs and law in laws:
            y_N = np.array([run.imported[law] for run in runs], dtype=np.float64)
            points.append(Points(law, None, runs, 1 - y_N if law == "accuracy" else y_N, None))
        elif law in laws and request.laws.by_name:
            points.append(_unknown(group, None, Status.not_known, law))
    named = [law for law in LAWS[2:] if law in laws and request.laws.by_name]
    return points + [_unknown(group, None, Status.not_known, law) for law in named]
