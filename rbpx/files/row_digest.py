"""Digests of the rows of an Arrow table, as `digest` gives them for records, without making a record of each."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_ROWS: Final = 50_000  # written as JSON at once
_TEXT: Final = pa.large_string()


def digest_of_rows(table: pa.Table) -> str:
    """What `digest` gives for the rows of a table as records: a list of objects whose keys are sorted."""
    names = sorted(table.column_names)
    before = [f"{', ' if number else '{'}{json.dumps(name)}: " for number, name in enumerate(names)]
    content = hashlib.sha256(b"[")
    for number, rows in enumerate(_written(table, names, before, "}")):
        content.update(b", " if number else b"")
        whole = pa.LargeListArray.from_arrays(pa.array([0, len(rows)], pa.int64()), rows)
        content.update(pc.binary_join(whole, pa.scalar(", ", _TEXT))[0].as_buffer())
    content.update(b"]")
    return content.hexdigest()[:16]


def digests_of_rows(table: pa.Table, names: Sequence[str]) -> npt.NDArray[np.uint64]:
    """[R], what `digest` gives for each row as a list of its values in some columns, as the number that it writes."""
    before, sha256 = [", " if number else "[" for number in range(len(names))], hashlib.sha256
    digests = [
        sha256(row).digest()
        for rows in _written(table, names, before, "]")
        for row in rows.cast(pa.large_binary()).to_pylist()
    ]
    return np.frombuffer(b"".join(digests), ">u8").reshape(-1, 4)[:, 0].astype(np.uint64)


@dataclass(frozen=True)
class _Varying:
    """A column with several values: the text of each, with what stands before it, and which of them each row has."""

    texts: pa.Array
    codes: pa.Array


def _written(table: pa.Table, names: Sequence[str], before: Sequence[str], end: str) -> Iterator[pa.Array]:
    """Each row as text: what stands before each value, the value as JSON, and an end; a block of rows at a time."""
    varying, same = [], ""
    for name, text in zip(names, before, strict=True):
        codes, values = _json(table[name])
        same += text
        if len(values) == 1:  # of all rows
            same += values[0]
        else:
            varying.append(_Varying(pa.array([same + value for value in values], _TEXT), codes))
            same = ""
    for start in range(0, table.num_rows, _ROWS):
        columns = [column.texts.take(column.codes.slice(start, _ROWS)) for column in varying]
        last = pa.repeat(pa.scalar(same + end, _TEXT), min(_ROWS, table.num_rows - start))
        yield pc.binary_join_element_wise(*columns, last, pa.scalar("", _TEXT))


def _json(column: pa.ChunkedArray) -> tuple[pa.Array, list[str]]:
    """Which of the distinct values each row has, and each of those as JSON."""
    encoded = column.combine_chunks().dictionary_encode("encode")
    values, floats = encoded.dictionary.to_pylist(), pa.types.is_floating(column.type)
    if floats and None not in values:
        return encoded.indices, list(map(repr, values))  # as JSON writes what is finite
    return encoded.indices, list(map(json.dumps, values))
