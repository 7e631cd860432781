"""A quantity of one's own: what it must return."""

import numpy as np
import pyarrow as pa
import pytest

from rbpx.errors import RbpxError
from rbpx.laws.quantity import Quantity
from rbpx.runs.points import sizes


def test_a_value_that_is_no_number_for_each_replicate_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    own = Quantity("mean", "", "", lambda counts: np.asarray(1.0))
    monkeypatch.setattr(sizes, "quantity", lambda law: own if law == "own" else None)
    columns = {"doc_id": [0, 1], "rank": [1, 2], "n_tokens": [3, 4], "sum_logprob": [-1.0, -2.0]}
    with pytest.raises(RbpxError, match=r"law own: value returned shape \(\) for 1 rows"):
        sizes.weigh(pa.table(columns), np.ones((5, 2)), [1], 8, ["own"])
