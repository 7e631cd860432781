"""Reads columns of answers as arrays of numpy."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc


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
