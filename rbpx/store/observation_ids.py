"""The run_ids of observations: digests of the runs that they belong to."""

import numpy as np
import pyarrow as pa

from rbpx.files.digest import digest
from rbpx.files.row_digest import digests_of_rows
from rbpx.store.contradictions import codes
from rbpx.store.observations import FIELDS, RUN


def run_ids(observations: pa.Table) -> pa.Array:
    """The run_id of each observation: a digest of the names of its run and of its values, whatever their order."""
    if not observations.num_rows:
        return pa.array([], pa.string())
    of_rows = digests_of_rows(observations, FIELDS)
    runs = codes(observations, RUN)
    order = np.argsort(runs, kind="stable")
    starts = np.flatnonzero(np.concatenate([[True], np.diff(runs[order]) != 0]))
    ids = np.empty(len(runs), object)
    for members in np.split(order, starts[1:]):
        names = [observations[name][int(members[0])].as_py() for name in RUN]
        ids[members] = digest([names, sorted(of_rows[member] for member in members)])
    return pa.array(ids, pa.string())
