"""Tables of others brought into a store as `import` does, and what then lies in it, read by nothing but pyarrow."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.commands import Answer
from tests.support.composed import here


def bring(file: Path, store: Path, cwd: Path, *words: str, check: int | None = 0) -> Answer:
    """`rbpx import FILE WORDS`."""
    return bring_words(file, *words, "--store", store, cwd=cwd, check=check)


def bring_words(*words: object, cwd: Path, check: int | None = 0) -> Answer:
    """`rbpx import WORDS`, but for the views, which take longer than an import."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rbpx.store.relations.write_views", lambda store: None)
        return here("import", *words, cwd=cwd, check=check)


def imported(store: Path, *columns: str) -> list[dict[str, Any]]:
    """The imported observations in the order of their values, all columns but `run_id`, or some."""
    from rbpx.store.schema import OBSERVATIONS

    tables = [pq.read_table(path) for path in (store / "imports").glob("*.parquet")]
    rows = pa.concat_tables([OBSERVATIONS.empty_table(), *tables], promote_options="default").to_pylist()
    names = columns or tuple(name for name in OBSERVATIONS.names if name != "run_id")
    return sorted(({name: row[name] for name in names} for row in rows), key=_in_order)


def found(store: Path, columns: str) -> list[tuple[Any, ...]]:
    """The values of some columns, `a, b`, in their order."""
    return [tuple(row.values()) for row in imported(store, *columns.split(", "))]


def _in_order(row: dict[str, Any]) -> list[tuple[bool, Any]]:
    """As SQL orders by all columns: what is null comes last."""
    return [(value is None, 0 if value is None else value) for value in row.values()]
