"""Computes which observations are of one run, and their run_ids.

Shapes: R rows of a table.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rbpx.files.digest import digest, digests_of_rows
from rbpx.store.imports.observations import FIELDS, MODEL, RUN, valid
from rbpx.store.schema import TRAINING, varied

_FIRST: Final = (  # fields of the first versions, whose ids stay
    *("source", "family", "size", "model", "revision", "non_embedding_params", "dataset", "text_hash", "protocol"),
    *("dtype", "k", "n", "ties", "rbp", "n_tokens", "cross_entropy_nats"),
)
# Later fields, which enter an id only where they are not empty.
LATER: Final = (
    *("weight", "active_params", "total_params", "schedule", "schedule_tokens", "lr"),
    *("n_samples", "n_correct", "item"),
    *("warmup_tokens", "decay_tokens", "lr_decay", "final_lr"),
)
_SECOND: Final = tuple(name for name in FIELDS if name not in LATER)


def codes(table: pa.Table, names: Sequence[str]) -> npt.NDArray[np.int64]:
    """[R], a number for each combination of values of some columns; missing values are equal."""
    combined = np.zeros(table.num_rows, np.int64)
    for name in names:
        encoded = table[name].combine_chunks().dictionary_encode("encode")
        encoded = encoded if isinstance(encoded, pa.DictionaryArray) else encoded.combine_chunks()
        combined = combined * len(encoded.dictionary) + encoded.indices.to_numpy(zero_copy_only=False)
        if combined.size and combined.max() > 2**31:
            combined = np.unique(combined, return_inverse=True)[1].astype(np.int64)
    return combined


def rows_of(table: pa.Table, kept: npt.NDArray[np.bool_]) -> pa.Table:
    """Some rows of a table, without a copy where they are all."""
    return table if kept.all() else table.filter(pa.array(kept))


def run_ids(observations: pa.Table) -> pa.Array:
    """The run_id of each observation: a digest of the names of its run and of its values, in any order.

    Ids of earlier versions stay: later columns enter the digest only where they are not empty.
    """
    trained = (*TRAINING.names, *varied(observations.column_names))
    values_R = np.array([f"{value:016x}" for value in _digests(observations).tolist()])
    runs_R = codes(observations, (*MODEL, *varied(observations.column_names)))
    _, first, run_R, n_rows = np.unique(runs_R, return_index=True, return_inverse=True, return_counts=True)
    values = np.split(values_R[np.lexsort((values_R, run_R))], np.cumsum(n_rows))
    ids = []
    for run, of_run in zip(observations.take(first).select([*RUN, *trained]).to_pylist(), values, strict=False):
        known = {name: run[name] for name in trained if run[name] is not None}
        ids.append(digest([[run[name] for name in RUN], *([known] if known else []), of_run.tolist()]))
    return pa.array(ids, pa.string()).take(pa.array(run_R))


def _digests(observations: pa.Table) -> npt.NDArray[np.uint64]:
    S = observations["non_embedding_params"].to_numpy()
    is_first = (S == np.floor(S)) & (S < 2.0**53) & valid(observations["rbp"])
    for name in _SECOND:
        if name not in _FIRST:
            is_first &= ~valid(observations[name])
    digests = np.empty(len(S), np.uint64)
    first, second = rows_of(observations, is_first), rows_of(observations, ~is_first)
    at, whole = first.column_names.index("non_embedding_params"), first["non_embedding_params"].cast(pa.int64())
    digests[is_first] = digests_of_rows(first.set_column(at, "non_embedding_params", whole), _FIRST)
    digests[~is_first] = digests_of_rows(second, _SECOND)
    for name in LATER:
        says = valid(observations[name])
        before = pa.array([f"{value:016x}" for value in digests[says].tolist()], pa.string())
        more = pa.table({"before": before, name: observations[name].filter(pa.array(says))})
        digests[says] = digests_of_rows(more, more.column_names)
    return digests
