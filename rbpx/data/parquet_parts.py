"""Draws documents from Parquet files of the hub, reading only the row groups that contain them."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from rbpx.config.text.dataset import DatasetConfig
from rbpx.data.corpus import Document, documents_of, drawn_rows
from rbpx.data.texts import Content, content_of
from rbpx.errors import RbpxError

_READERS = 8  # row groups in parallel: network-bound

Tell = Callable[[int, int | None, str], None]  # progress: number done, of how many (None: unknown), of what


@dataclass(frozen=True, eq=False)
class _RowGroup:
    """`start` is the number of its first row among all rows, `first` in its split; `head` the footer."""

    start: int
    first: int
    split: str
    path: str
    head: Any
    group: int


def parts_bytes(
    files: Sequence[tuple[str, str]], wanted: DatasetConfig, place: str, limit: int, seed: int | None
) -> int:
    """Compressed bytes of the columns and row groups that `read_parts` would read."""
    n_bytes = 0
    for group, _ in _drawn_groups(files, wanted, place, limit, seed)[0]:
        columns = group.head.row_group(group.group)
        for at in range(columns.num_columns):
            column = columns.column(at)
            if column.path_in_schema.split(".")[0] in wanted.columns:
                n_bytes += column.total_compressed_size
    return n_bytes


def read_parts(
    files: Sequence[tuple[str, str]], wanted: DatasetConfig, place: str, limit: int, seed: int | None, tell: Tell
) -> list[Document]:
    """Draw from all rows of the files, reading only the needed fields of the row groups that contain drawn rows.

    The footers give the number of rows, so the draw equals that from the whole, shuffled dataset. `files` have split
    and `hf://` address of each, in the order of the dataset.

    Raises:
        RbpxError: the files are not Parquet, a row is not one text, or a field is missing.
    """
    rows_by_group, order = _drawn_groups(files, wanted, place, limit, seed)
    with ThreadPoolExecutor(_READERS) as pool:
        by_row: dict[int, tuple[str, Content]] = {}
        for texts_by_row in pool.map(lambda part: _read(part[0], part[1], wanted, place), rows_by_group):
            by_row |= texts_by_row
            tell(len(by_row), len(order), "documents")
    return documents_of([by_row[row] for row in order])


def _drawn_groups(
    files: Sequence[tuple[str, str]], wanted: DatasetConfig, place: str, limit: int, seed: int | None
) -> tuple[list[tuple[_RowGroup, list[int]]], list[int]]:
    if not (wanted.takes_every_row and all(path.endswith(".parquet") for _, path in files)):
        raise RbpxError(
            f"dataset.draw=parts reads drawn rows of Parquet alone, so not {place} if it is in other files, or with "
            "dataset.articles, messages, where or longer_than; use dataset.draw=whole"
        )
    with ThreadPoolExecutor(_READERS) as pool:
        groups, n_rows = _row_groups(files, list(pool.map(lambda file: _open(file[1]).metadata, files)))
    starts = [group.start for group in groups]
    order = drawn_rows(n_rows, limit, seed)
    by_group = groupby(sorted(order), lambda row: groups[bisect_right(starts, row) - 1])
    return [(group, list(rows)) for group, rows in by_group], order


def _open(path: str, head: Any = None) -> Any:
    from huggingface_hub import HfFileSystem
    from pyarrow.parquet import ParquetFile

    return ParquetFile(HfFileSystem().open(path, "rb", cache_type="none"), metadata=head, pre_buffer=True)


def _row_groups(files: Sequence[tuple[str, str]], heads: Sequence[Any]) -> tuple[list[_RowGroup], int]:
    groups, start, lengths = [], 0, dict.fromkeys((split for split, _ in files), 0)
    for (split, path), head in zip(files, heads, strict=True):
        for group in range(head.num_row_groups):
            length = head.row_group(group).num_rows
            if length:
                groups.append(_RowGroup(start, lengths[split], split, path, head, group))
            start, lengths[split] = start + length, lengths[split] + length
    return groups, start


def _read(where: _RowGroup, rows: Sequence[int], wanted: DatasetConfig, place: str) -> dict[int, tuple[str, Content]]:
    file = _open(where.path, where.head)
    columns = file.schema_arrow.names
    table = file.read_row_group(where.group, columns=[name for name in wanted.columns if name in columns])
    # no columns, no rows: `text_of` reports the missing fields
    records = table.take([row - where.start for row in rows]).to_pylist() if table.column_names else [{}] * len(rows)
    texts_by_row = {}
    for row, record in zip(rows, records, strict=True):
        name = f"{where.split}/{where.first + row - where.start}"
        # unread columns by name, for an error that lists all
        texts_by_row[row] = (name, content_of(dict.fromkeys(columns) | record, wanted, name, place))
    return texts_by_row
