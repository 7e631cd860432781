"""The bytes of a Parquet file in, its rows out: a batch at a time, and never more than they may hold.

A value that is written once may stand in every row, so that a small file holds terabytes: the lengths of texts are
added up from their dictionary before any row is made.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rbpx.files.unpacked import MIB, Bounds

_ROWS: Final = 10_000  # of a batch
_NESTED_ROWS: Final = 100  # of one with lists or structs, whose texts are not counted before


def parquet_batches(content: bytes, path: Path, bounds: Bounds) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The schema of a Parquet file and its rows, texts as dictionaries.

    Raises:
        RbpxError: a row, or all of them, hold more than they may.
    """
    schema = pq.read_schema(pa.BufferReader(content))
    texts = [field.name for field in schema if _is_text(field.type)]
    file = pq.ParquetFile(pa.BufferReader(content), read_dictionary=texts)
    groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    if sum(group.total_byte_size for group in groups) > bounds.file_mib * MIB:
        raise bounds.file_too_large(path)
    n_values = sum(group.column(at).num_values for group in groups for at in range(group.num_columns))
    bounds.check_values(max(n_values, file.metadata.num_rows), path)  # there may be rows without columns
    return schema, _batches(file, path, bounds)


def parquet_records(content: bytes, path: Path, bounds: Bounds) -> tuple[tuple[str, ...], Iterator[dict[str, Any]]]:
    """The columns of a Parquet file, and each row as column -> value."""
    schema, batches = parquet_batches(content, path, bounds)
    return tuple(schema.names), _records(schema.names, batches)


def _records(names: list[str], batches: Iterator[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    for batch in batches:
        if not names:
            yield from ({} for _ in range(batch.num_rows))
        columns = (column.to_pylist() for column in batch.columns)
        yield from (dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True))


def _batches(file: pq.ParquetFile, path: Path, bounds: Bounds) -> Iterator[pa.RecordBatch]:
    total = row = 0
    nested = any(pa.types.is_nested(field.type) for field in file.schema_arrow)
    for batch in file.iter_batches(_NESTED_ROWS if nested else _ROWS):
        n_bytes = np.zeros(batch.num_rows, np.int64)
        for column in batch.columns:
            if pa.types.is_dictionary(column.type):
                lengths = pc.fill_null(pc.binary_length(column.dictionary), 0).take(column.indices)
                n_bytes += pc.fill_null(lengths, 0).to_numpy(zero_copy_only=False)
        total += int(n_bytes.sum())
        longest = int(n_bytes.argmax()) if batch.num_rows else 0
        if batch.num_rows and n_bytes[longest] > bounds.row_mib * MIB:
            raise bounds.row_too_long(f"row {row + longest + 1:,} of {path}")
        if total > bounds.file_mib * MIB:
            raise bounds.file_too_large(path)
        row += batch.num_rows
        yield batch


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_large_string(kind))
