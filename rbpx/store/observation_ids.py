"""The run_ids of observations: digests of the runs that they belong to."""

import hashlib
import json
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rbpx.files.row_digest import digests_of_rows
from rbpx.store.contradictions import codes
from rbpx.store.observations import FIELDS, RUN

_IN_LIST: Final = b'"0123456789abcdef", '  # a digest as JSON writes it, and what follows it in a list
_WIDTH: Final = len(_IN_LIST)


def run_ids(observations: pa.Table) -> pa.Array:
    """The run_id of each observation: a digest of the names of its run and of its values, whatever their order."""
    n = observations.num_rows
    if not n:
        return pa.array([], pa.string())
    of_rows, runs = digests_of_rows(observations, FIELDS), codes(observations, RUN)
    order = np.lexsort((of_rows, runs))
    starts = np.flatnonzero(np.concatenate([[True], np.diff(runs[order]) != 0]))
    names = observations.select(RUN).take(order[starts]).to_pylist()
    written, ends = _written(of_rows[order]), np.append(starts[1:], n)
    ids = []
    for values, start, end in zip(names, starts.tolist(), ends.tolist(), strict=True):  # as `digest([names, of_rows])`
        members = written[_WIDTH * start : _WIDTH * end - len(", ")]
        content = f"[{json.dumps(list(values.values()))}, [".encode() + members + b"]]"
        ids.append(hashlib.sha256(content).hexdigest()[:16])
    run = np.empty(n, np.int64)
    run[order] = np.repeat(np.arange(len(ids)), ends - starts)
    return pa.array(ids, pa.string()).take(pa.array(run))


def _written(digests: npt.NDArray[np.uint64]) -> bytes:
    texts = np.empty((len(digests), _WIDTH), np.uint8)
    texts[:] = np.frombuffer(_IN_LIST, np.uint8)
    texts[:, 1:17] = np.frombuffer(digests.astype(">u8").tobytes().hex().encode(), np.uint8).reshape(-1, 16)
    return texts.tobytes()
