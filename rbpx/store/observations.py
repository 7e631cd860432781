"""Checks other people's results and turns them into observations of RBP_k and p_{N,k}, in our units.

Observations are Arrow tables with the columns of the relation, without run_id, and `row`: which row of the file each
comes from. A cell is checked once for all rows that have it; of several faults the one in the first row is reported.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rbpx.config.imports import ImportConfig
from rbpx.errors import RbpxError
from rbpx.files.column_table import Column, ColumnTable
from rbpx.files.columns import Columns
from rbpx.files.numbers import as_written, is_empty, number, whole_number
from rbpx.store.schema import OBSERVATIONS
from rbpx.ties import Ties

FIELDS: Final = tuple(name for name in OBSERVATIONS.names if name != "run_id")
RUN: Final = ("source", "family", "size", "revision", "dataset", "text_hash", "protocol", "dtype")  # names of a run
ROW: Final = pa.field("row", pa.int64())
_LARGEST = {"k": 2**31 - 1, "n": 2**31 - 1}  # their type in the relation
_PLAIN = re.compile(r"0?\.[0-9]+")  # a share below 1
_FLOAT32 = 2.0**-24  # relative, what a share may be off that was computed in single precision


class _Fault(Exception):
    """What is wrong with a cell, before it is known which rows have it."""


@dataclass(frozen=True)
class _Unplaced:
    """Stands where a row would stand in the checks of a cell."""

    place: str = ""


def read_observations(table: ColumnTable, columns: Columns, config: ImportConfig) -> pa.Table:
    """The observations of a file, in the order of its rows.

    Raises:
        RbpxError: a value is missing, is not a number, is out of its range, differs from what the request says, or is
            a share that no count of its tokens gives.
    """
    return _Reading(table, columns, config).observations()


class _Reading:
    """A file while its columns are checked: what is wrong is gathered, so that the first row is reported."""

    def __init__(self, table: ColumnTable, columns: Columns, config: ImportConfig) -> None:
        self.table, self.columns, self.config = table, columns, config
        self.faults: list[tuple[int, int, str]] = []  # row, order of the check, what is wrong

    def observations(self) -> pa.Table:
        config = self.config
        ties = None if config.ties is None else config.ties.value
        fields = {
            "source": pa.repeat(pa.scalar(config.source, pa.string()), self.table.n_rows),
            "ties": self.names("ties", ties, needed=True, check=_tie_rule),
            "family": self.names("family", config.family, needed=True),
            "model": self.names("model"),
            "size": self.sizes(),
            "revision": self.names("revision", config.revision),
            "non_embedding_params": self.wholes("non_embedding_params", needed=True),
            "dataset": self.names("dataset", config.dataset, needed=True),
            "text_hash": self.names("text_hash"),
            "protocol": self.names("protocol", config.protocol),
            "dtype": self.names("dtype", config.dtype),
            "n": pc.fill_null(self.wholes("n"), 1),
            "n_tokens": self.wholes("n_tokens"),
            "cross_entropy_nats": self.numbers(self.column("cross_entropy_nats"), "cross_entropy_nats"),
        }
        shares, ks, codes = self.shares()
        self.check_counts(shares, codes, fields["n_tokens"])
        if self.faults:
            row, _, text = min(self.faults)
            raise RbpxError(f"{self.table.place(row)}{text}")
        rows = pa.array(np.arange(self.table.n_rows))
        parts = []
        for share, k in zip(shares, ks, strict=True):
            part = pa.table(fields | {"k": k, "rbp": share, "row": rows})
            parts.append(part.select([*FIELDS, "row"]).cast(_SCHEMA).filter(pc.is_valid(share)))
        whole = pa.concat_tables(parts)
        return whole if len(parts) == 1 else whole.take(np.argsort(whole["row"].to_numpy(), kind="stable"))

    def column(self, field: str) -> Column:
        """The column of a field; one that the file lacks is empty in every row."""
        name = self.columns.named.get(field)
        return Column(np.zeros(self.table.n_rows, np.int64), [None]) if name is None else self.table.columns[name]

    def checked(self, column: Column, check: Callable[[Any], Any], kind: pa.DataType) -> pa.Array:
        """What a check makes of each cell; of the cells that it refuses, the first is kept as a fault."""
        order, checked = len(self.faults), []
        for code, value in enumerate(column.values):
            try:
                checked.append(check(value))
            except (_Fault, RbpxError) as fault:
                if (column.codes == code).any():
                    self.faults.append((column.first_row(code), order, str(fault)))
                    return pa.nulls(len(column.codes), kind)
                checked.append(None)
        return pa.array(checked, kind).take(pa.array(column.codes))

    def names(
        self,
        field: str,
        default: str | None = None,
        needed: bool = False,
        check: Callable[[str | None], None] = lambda name: None,
    ) -> pa.Array:
        """Names from the rows, or the one given for all rows; they must not differ."""

        def name_of(cell: Any) -> str | None:
            name = _name(cell, field)
            check(name)
            if name is not None and default is not None and name != default:
                raise _Fault(f": {field} is {name!r}, but {field}={default} was given; leave one of them out")
            if name is None and default is None and needed:
                rule = "pessimistic, optimistic or mid" if field == "ties" else "NAME"
                raise _Fault(f": the {field} is missing; add a column {field}, or give {field}={rule}")
            return default if name is None else name

        return self.checked(self.column(field), name_of, pa.string())

    def sizes(self) -> pa.Array:
        """The size in each row, else the last part of its model."""
        sizes = self.names("size")
        of_models = self.checked(self.column("model"), _last_part, pa.string())
        sizes = pc.coalesce(sizes, of_models)
        if sizes.null_count:
            row = int(np.argmax(pc.is_null(sizes).to_numpy(zero_copy_only=False)))
            what = "add a column size, or a column model, whose last part is then the size"
            self.faults.append((row, len(self.faults), f": the size is missing; {what}"))
        return sizes

    def wholes(self, field: str, needed: bool = False) -> pa.Array:
        """Whole numbers; None where a cell is empty."""

        def whole(cell: Any) -> int | None:
            if is_empty(cell) and not needed:
                return None
            return whole_number(_Unplaced(), field, cell, _WHOLE[field], most=_LARGEST.get(field, 2**63 - 1))

        return self.checked(self.column(field), whole, pa.int64())

    def numbers(self, column: Column, field: str) -> pa.Array:
        """Shares in [0, 1], or nats from 0; None where a cell is empty."""
        plain = _plain_shares(column.values)
        pairs = iter(zip(column.values, plain, strict=True))

        def share(_: Any) -> float | None:
            cell, quick = next(pairs)
            return quick if quick is not None else _share_or_nats(cell, field)

        return self.checked(column, share, pa.float64())

    def shares(self) -> tuple[list[pa.Array], list[pa.Array], list[Column]]:
        """RBP, k and the cells of RBP: one of each where rows name their k, one for each column of RBP at one k."""
        n = self.table.n_rows
        if self.columns.wide:
            columns = [self.table.columns[name] for name in self.columns.wide.values()]
            ks = [pa.array(np.full(n, k)) for k in self.columns.wide]
        else:
            columns, ks = [self.column("rbp")], [self.wholes("k", needed=True)]
        shares = [self.numbers(column, "rbp") for column in columns]
        filled = np.zeros(n, bool)
        for share in shares:
            filled |= pc.is_valid(share).to_numpy(zero_copy_only=False)
        if not filled.all() and not self.faults:
            what = "rbp is empty; give a share in [0, 1], or leave the row out"
            self.faults.append((int(np.argmin(filled)), len(self.faults), f": {what}"))
        return shares, ks, columns

    def check_counts(self, shares: list[pa.Array], columns: list[Column], n_tokens: pa.Array) -> None:
        """Refuse shares that are no count of n_tokens: 0.333 of 10 lies between 3 and 4 of 10.

        A share is as exact as its last digit, rounded or cut off, and as single precision.
        """
        n = pc.fill_null(n_tokens, 0).to_numpy(zero_copy_only=False).astype(np.float64)
        for share, column in zip(shares, columns, strict=True):
            p = pc.fill_null(share, 0).to_numpy(zero_copy_only=False)
            off = np.abs(p - np.rint(p * n) / np.maximum(n, 1)) * (n > 0)
            rows = np.flatnonzero(off > np.maximum(_FLOAT32 * p, 2.0**-52))
            cells, cell_of_row = np.unique(column.codes[rows], return_inverse=True)
            last_digits = np.array([_last_digit(column.values[cell]) for cell in cells])
            wrong = rows[off[rows] > last_digits[cell_of_row]]
            if wrong.size:
                row = int(wrong[0])
                count = int(np.floor(p[row] * n[row]))
                what = (
                    f": rbp is {as_written(column.values[column.codes[row]])}, which is no count of "
                    f"n_tokens={int(n[row]):,}: {count:,} are {count / n[row]:.6g}, {count + 1:,} are "
                    f"{(count + 1) / n[row]:.6g}; correct one of them"
                )
                self.faults.append((row, len(self.faults), what))


_SCHEMA: Final = pa.schema([*(OBSERVATIONS.field(name) for name in FIELDS), ROW])


def _tie_rule(name: str | None) -> None:
    if name not in (None, *Ties):
        raise _Fault(f": ties is {name!r}; known: {', '.join(Ties)}")


def _name(cell: Any, field: str) -> str | None:
    if is_empty(cell):
        return None
    if isinstance(cell, bool) or not isinstance(cell, str | int):
        raise _Fault(f": {field} is {cell!r}, but a name is expected; write it as text")
    try:
        str(cell).encode()
    except UnicodeEncodeError:
        raise _Fault(f": {field} is {cell!r}, which is not valid Unicode; write it anew") from None
    return str(cell).strip()


def _last_part(model: Any) -> str | None:
    return str(model).rstrip("/").split("/")[-1] or None if isinstance(model, str) else None


_WHOLE = {
    "non_embedding_params": "a positive whole number is expected: give parameters, not millions",
    "k": "a rank is a whole number from 1",
    "n": "the length of a window is a whole number from 1",
    "n_tokens": "a count is a whole number from 1, or empty",
}


def _plain_shares(values: list[Any]) -> list[float | None]:
    """Cells that are plainly numbers between 0 and 1, with digits and a point alone; None for any other.

    Below 1 and above 0 as a float, a number is so exactly as written.
    """
    texts = pa.array([value if isinstance(value, str) else None for value in values], pa.string())
    plain = pc.match_substring_regex(texts, f"^{_PLAIN.pattern}$")
    read = pc.if_else(pc.fill_null(plain, False), texts, pa.scalar(None, pa.string())).cast(pa.float64())
    return [share if share is not None and 0 < share < 1 else None for share in read.to_pylist()]


def _share_or_nats(cell: Any, field: str) -> float | None:
    if is_empty(cell):
        return None
    exact = number(cell)
    if field == "rbp" and (exact is None or not 0 <= exact <= 1):
        raise _Fault(f": rbp is {as_written(cell)}; give shares in [0, 1], not percent")
    if exact is None or not 0 <= exact < 10**300:
        raise _Fault(f": {field} is {as_written(cell)}; give nats a token, finite and 0 or more, or nothing")
    return float(exact)


def _last_digit(cell: Any) -> float:
    """One unit in the last digit of a number as it is written."""
    if isinstance(cell, str) and _PLAIN.fullmatch(cell):
        return 10.0 ** (cell.index(".") + 1 - len(cell))
    exact = number(cell)
    return 0.0 if exact is None else 10.0 ** int(exact.as_tuple().exponent)
