"""Digests of the rows of a table are those of its rows as records, however they are computed."""

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from rbpx.files import row_digest
from rbpx.files.digest import digest
from rbpx.files.row_digest import digest_of_rows, digests_of_rows
from rbpx.store.observation_ids import run_ids
from rbpx.store.observations import FIELDS, RUN
from rbpx.store.schema import OBSERVATIONS

NAMES = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=3) | st.sampled_from(["a", "b"])
KINDS = {
    pa.string(): NAMES,
    pa.int64(): st.none() | st.integers(-(2**63), 2**63 - 1),
    pa.int32(): st.integers(1, 3),
    pa.float64(): st.none() | st.floats(allow_nan=False, allow_infinity=False),
}
ROWS = st.lists(st.fixed_dictionaries({field.name: KINDS[field.type] for field in OBSERVATIONS}), max_size=8)


@settings(max_examples=60, deadline=None)
@given(ROWS, st.integers(1, 4))
def test_digests_of_rows_are_those_of_records(rows: list[dict[str, object]], block: int) -> None:
    table, before = pa.Table.from_pylist(rows, schema=OBSERVATIONS), row_digest._ROWS
    row_digest._ROWS = block  # type: ignore[misc]
    try:
        assert digest_of_rows(table) == digest(table.to_pylist())
        names = ["rbp", "family", "k"]
        of_rows = [f"{number:016x}" for number in digests_of_rows(table, names).tolist()]
        assert of_rows == [digest([row[name] for name in names]) for row in rows]
    finally:
        row_digest._ROWS = before  # type: ignore[misc]


@settings(max_examples=40, deadline=None)
@given(ROWS)
def test_a_run_is_identified_by_its_names_and_its_values_in_any_order(rows: list[dict[str, object]]) -> None:
    members: dict[str, list[str]] = {}
    names = {digest([row[name] for name in RUN]): [row[name] for name in RUN] for row in rows}
    for row in rows:
        members.setdefault(digest([row[name] for name in RUN]), []).append(digest([row[name] for name in FIELDS]))
    expected = {key: digest([names[key], sorted(digests)]) for key, digests in members.items()}
    for order in (rows, rows[::-1]):
        found = run_ids(pa.Table.from_pylist(order, schema=OBSERVATIONS)).to_pylist()
        assert found == [expected[digest([row[name] for name in RUN])] for row in order]
