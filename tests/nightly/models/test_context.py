"""Models of every architecture do what the table says."""

import pytest

from tests.support.census import examine, read_table

ROWS = {row["architecture"]: row for row in read_table()}


@pytest.mark.parametrize("model_type", sorted(name for name, row in ROWS.items() if "not tried" not in row["refused"]))
def test_the_table_tells_what_happens(model_type: str) -> None:
    assert examine(model_type) == ROWS[model_type]
