"""Reads columns of answers as arrays of numpy, and counts tokens by rank."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rbpx.store.schema import RANK_COUNTS


def numbers(column: pa.ChunkedArray) -> npt.NDArray[Any]:
    """The values of a column of numbers or truths; null is NaN.

    pyarrow's own `to_numpy` imports pandas, which takes a fifth of the time of a question.
    """
    values = column.combine_chunks()
    if values.null_count:
        values = pc.fill_null(values.cast(pa.float64()), np.nan)
    if pa.types.is_boolean(values.type):
        return np.from_dlpack(values.cast(pa.uint8())).astype(bool)
    return np.array(np.from_dlpack(values))


def rank_counts(tokens: pa.Table) -> pa.Table:
    """The relation `rank_counts` of tokens."""
    place = tokens.column_names.index("logprob")
    in_float64 = tokens.set_column(place, "logprob", tokens["logprob"].cast(pa.float64()))
    counts = in_float64.group_by(["run_id", "greater", "ties"]).aggregate([("logprob", "count"), ("logprob", "sum")])
    return (
        counts.rename_columns(RANK_COUNTS.names)
        .sort_by([(name, "ascending") for name in ("greater", "ties")])
        .cast(RANK_COUNTS)
    )
