"""The run_ids of observations: digests of the runs that they belong to."""

import hashlib
import json
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rbpx.files.row_digest import digests_of_rows
from rbpx.store.imports.contradictions import codes
from rbpx.store.imports.observations import FIELDS, MODEL, RUN
from rbpx.store.schema import TRAINING

_FIRST: Final = (  # fields of the first versions, whose ids stay
    *("source", "family", "size", "model", "revision", "non_embedding_params", "dataset", "text_hash", "protocol"),
    *("dtype", "k", "n", "ties", "rbp", "n_tokens", "cross_entropy_nats"),
)

_IN_LIST: Final = b'"0123456789abcdef", '  # a digest as JSON writes it, and what follows it in a list
_WIDTH: Final = len(_IN_LIST)


def run_ids(observations: pa.Table) -> pa.Array:
    """The run_id of each observation: a digest of the names of its run and of its values, whatever their order.

    What earlier versions could say has the id that they gave it: later columns enter where they are not empty.
    """
    n = observations.num_rows
    if not n:
        return pa.array([], pa.string())
    of_rows, runs = _of_rows(observations), codes(observations, MODEL)
    order = np.lexsort((of_rows, runs))
    starts = np.flatnonzero(np.concatenate([[True], np.diff(runs[order]) != 0]))
    firsts = observations.take(pa.array(order[starts]))
    names = zip(*(firsts[name].to_pylist() for name in RUN), strict=True)
    trainings = firsts.select(TRAINING.names).to_pylist()
    written, ends = _written(of_rows[order]), np.append(starts[1:], n)
    ids = []
    for run, training, start, end in zip(names, trainings, starts.tolist(), ends.tolist(), strict=True):
        known = {name: value for name, value in training.items() if value is not None}
        before = json.dumps([list(run), *([known] if known else [])], sort_keys=True)
        members = written[_WIDTH * start : _WIDTH * end - len(", ")]  # as `digest([run, known, of_rows])`
        ids.append(hashlib.sha256(before[:-1].encode() + b", [" + members + b"]]").hexdigest()[:16])
    number = np.empty(n, np.int64)
    number[order] = np.repeat(np.arange(len(ids)), ends - starts)
    return pa.array(ids, pa.string()).take(pa.array(number))


def _of_rows(observations: pa.Table) -> npt.NDArray[np.uint64]:
    """[R], a digest of the values of each row."""
    S = observations["non_embedding_params"].to_numpy()
    is_first = (S == np.floor(S)) & (S < 2.0**53) & _valid(observations, "rbp")
    for name in FIELDS:
        if name not in _FIRST and observations[name].null_count < len(S):
            is_first &= ~_valid(observations, name)
    digests = np.empty(len(S), np.uint64)
    first = _of(observations.select(_FIRST), is_first)
    at, whole = _FIRST.index("non_embedding_params"), first["non_embedding_params"].cast(pa.int64())
    digests[is_first] = digests_of_rows(first.set_column(at, "non_embedding_params", whole), _FIRST)
    if not is_first.all():
        digests[~is_first] = digests_of_rows(_of(observations, ~is_first), FIELDS)
    return digests


def _of(table: pa.Table, chosen: npt.NDArray[np.bool_]) -> pa.Table:
    return table if chosen.all() else table.filter(pa.array(chosen))


def _valid(table: pa.Table, name: str) -> npt.NDArray[np.bool_]:
    return np.asarray(pc.is_valid(table[name]).to_numpy())


def _written(digests: npt.NDArray[np.uint64]) -> bytes:
    """Digests as JSON writes a list of them, each with what follows it."""
    texts = np.empty((len(digests), _WIDTH), np.uint8)
    texts[:] = np.frombuffer(_IN_LIST, np.uint8)
    texts[:, 1:17] = np.frombuffer(digests.astype(">u8").tobytes().hex().encode(), np.uint8).reshape(-1, 16)
    return texts.tobytes()
