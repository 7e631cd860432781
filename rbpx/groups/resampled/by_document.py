"""From SQL by document to points: a mean over tokens for each run of a group, and under resamples of its documents.

Shapes: N runs, B resamples, D documents.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rbpx.config.request import Request
from rbpx.groups.group import Group
from rbpx.laws.numeric.arrays import Floats


def means(group: Group, request: Request, counted: pa.Table, total: str, n: str) -> tuple[Floats, Floats]:
    """The ratio of two sums over the documents of each run.

    Args:
        group: of measured runs.
        request: how many resamples, and their seed, which all questions share.
        counted: run_id, doc_id and two columns to sum; documents without a token, which are drawn too, have no row.
        total: the column above.
        n: the column below.

    Returns:
        The mean of each run, shape [N], and under each resample, the same documents for all runs, shape [B, N]; NaN
        where no drawn document has a token.
    """
    weights_BD = group.weights(request)
    sums = np.zeros((2, weights_BD.shape[1], len(group.runs)))
    for at, run in enumerate(group.runs):
        of_run = counted.filter(pc.equal(counted["run_id"], run.run_id))
        doc_id = of_run["doc_id"].to_numpy()
        for which, column in enumerate((total, n)):
            sums[which, doc_id, at] = of_run[column].to_numpy()
    above_DN, below_DN = sums
    with np.errstate(divide="ignore", invalid="ignore"):
        return above_DN.sum(axis=0) / below_DN.sum(axis=0), (weights_BD @ above_DN) / (weights_BD @ below_DN)
