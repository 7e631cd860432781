"""Digests of the rows of an Arrow table, as `digest` gives them for records, without making a record of each."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

_ROWS: Final = 50_000  # written as JSON at once


def digest_of_rows(table: pa.Table) -> str:
    """What `digest` gives for the rows of a table as records: a list of objects whose keys are sorted."""
    names = sorted(table.column_names)
    before = [f"{', ' if number else '{'}{json.dumps(name)}: " for number, name in enumerate(names)]
    content = hashlib.sha256(b"[")
    for number, rows in enumerate(_written(table, names, before, "}")):
        content.update(b", " if number else b"")
        whole = pa.LargeListArray.from_arrays(pa.array([0, len(rows)], pa.int64()), rows)
        content.update(pc.binary_join(whole, pa.scalar(", ", pa.large_string()))[0].as_buffer())
    content.update(b"]")
    return content.hexdigest()[:16]


def digests_of_rows(table: pa.Table, names: Sequence[str]) -> list[str]:
    """What `digest` gives for each row as a list of its values in some columns."""
    before = [", " if number else "[" for number in range(len(names))]
    return [
        hashlib.sha256(row).hexdigest()[:16]
        for rows in _written(table, names, before, "]")
        for row in rows.cast(pa.large_binary()).to_pylist()
    ]


def _written(table: pa.Table, names: Sequence[str], before: Sequence[str], end: str) -> Iterator[pa.Array]:
    """Each row as text: what stands before each value, the value as JSON, and an end; a block of rows at a time."""
    after = [*[""] * (len(names) - 1), end]
    for start in range(0, table.num_rows, _ROWS):
        block = table.slice(start, _ROWS)
        columns = [_json(block[name], *around) for name, *around in zip(names, before, after, strict=True)]
        yield pc.binary_join_element_wise(*columns, pa.scalar("", pa.large_string()))


def _json(column: pa.ChunkedArray, before: str, after: str) -> pa.Array:
    """Each value as JSON, between two texts; what is equal is written once."""
    encoded = column.combine_chunks().dictionary_encode("encode")
    values, floats = encoded.dictionary.to_pylist(), pa.types.is_floating(column.type)
    if floats and all(value is not None for value in values):
        written = [f"{before}{value!r}{after}" for value in values]  # as JSON writes what is finite
    else:
        written = [before + json.dumps(value) + after for value in values]
    return pa.array(written, pa.large_string()).take(encoded.indices)
