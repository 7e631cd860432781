"""Digests of the rows of a table are those of its rows as records, however they are computed."""

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from rbpx.files import digest as module
from rbpx.files.digest import digest, digest_of_rows, digests_of_rows
from rbpx.store.imports.identity import run_ids
from rbpx.store.schema import OBSERVATIONS

NAMES = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=3) | st.sampled_from(["a", "b"])
KINDS = {
    pa.string(): NAMES,
    pa.int64(): st.none() | st.integers(-(2**63), 2**63 - 1),
    pa.int32(): st.integers(1, 3),
    pa.float64(): st.none() | st.floats(allow_nan=False, allow_infinity=False),
}
ROWS = st.lists(st.fixed_dictionaries({field.name: KINDS[field.type] for field in OBSERVATIONS}), max_size=8)


@settings(max_examples=15, deadline=None)
@given(ROWS, st.integers(1, 4))
def test_digests_of_rows_are_those_of_records(rows: list[dict[str, object]], block: int) -> None:
    table, before = pa.Table.from_pylist(rows, schema=OBSERVATIONS), module._DIGESTED_ROWS
    module._DIGESTED_ROWS = block  # type: ignore[misc]
    try:
        assert digest_of_rows(table) == digest(table.to_pylist())
        names = ["rbp", "family", "k"]
        of_rows = [f"{number:016x}" for number in digests_of_rows(table, names).tolist()]
        assert of_rows == [digest([row[name] for name in names]) for row in rows]
    finally:
        module._DIGESTED_ROWS = before  # type: ignore[misc]


def test_an_imported_run_has_the_id_that_the_first_version_gave_it() -> None:
    row = {"source": "them", "family": "toy", "size": "1b", "non_embedding_params": 1e9, "dataset": "wiki"}
    row |= {"k": 1, "n": 1, "ties": "mid", "rbp": 0.41, "cross_entropy_nats": 3.1}
    assert run_ids(pa.Table.from_pylist([row], schema=OBSERVATIONS)).to_pylist() == ["ba6382bcae81e14d"]
