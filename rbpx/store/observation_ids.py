"""The run_ids of observations: digests of the runs that they belong to."""

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rbpx.files.digest import digest
from rbpx.files.row_digest import digests_of_rows
from rbpx.store.contradictions import codes
from rbpx.store.observations import FIELDS, MODEL, RUN
from rbpx.store.schema import TRAINING

_FIRST: Final = (  # fields of the first versions, whose ids stay
    *("source", "family", "size", "model", "revision", "non_embedding_params", "dataset", "text_hash", "protocol"),
    *("dtype", "k", "n", "ties", "rbp", "n_tokens", "cross_entropy_nats"),
)


def run_ids(observations: pa.Table) -> pa.Array:
    """The run_id of each observation: a digest of the names of its run and of its values, whatever their order.

    What earlier versions could say has the id that they gave it: later columns enter where they are not empty.
    """
    if not observations.num_rows:
        return pa.array([], pa.string())
    of_rows = _of_rows(observations)
    runs = codes(observations, MODEL)
    order = np.argsort(runs, kind="stable")
    starts = np.flatnonzero(np.concatenate([[True], np.diff(runs[order]) != 0]))
    ids = np.empty(len(runs), object)
    firsts = observations.take(pa.array(order[starts]))
    names = zip(*(firsts[name].to_pylist() for name in RUN), strict=True)
    trainings = firsts.select(TRAINING.names).to_pylist()
    for members, run, training in zip(np.split(order, starts[1:]), names, trainings, strict=True):
        known = {name: value for name, value in training.items() if value is not None}
        ids[members] = digest([list(run), *([known] if known else []), sorted(of_rows[members])])
    return pa.array(ids, pa.string())


def _of_rows(observations: pa.Table) -> npt.NDArray[np.object_]:
    """[R], a digest of the values of each row."""
    S = observations["non_embedding_params"].to_numpy()
    is_first = (S == np.floor(S)) & (S < 2.0**53) & _valid(observations, "rbp")
    for name in FIELDS:
        if name not in _FIRST:
            is_first &= ~_valid(observations, name)
    digests = np.empty(len(S), object)
    at = observations.column_names.index("non_embedding_params")
    first = observations.filter(pa.array(is_first))
    whole = first.set_column(at, "non_embedding_params", first["non_embedding_params"].cast(pa.int64()))
    digests[is_first] = digests_of_rows(whole, _FIRST)
    digests[~is_first] = digests_of_rows(observations.filter(pa.array(~is_first)), FIELDS)
    return digests


def _valid(table: pa.Table, name: str) -> npt.NDArray[np.bool_]:
    return np.asarray(pc.is_valid(table[name]).to_numpy())
