"""Checks other people's results and makes them observations of RBP_k, p_{N,k}, losses and accuracies, in our units.

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
from rbpx.files.numbers import as_written, is_empty, number, quoted, whole_number
from rbpx.store.schema import OBSERVATIONS, TRAINING
from rbpx.ties import Ties

FIELDS: Final = tuple(name for name in OBSERVATIONS.names if name != "run_id")
RUN: Final = ("source", "family", "size", "revision", "dataset", "text_hash", "protocol", "dtype")  # names of a run
MODEL: Final = (*RUN, *TRAINING.names)  # and which of its trainings, and how far along
QUANTITIES: Final = ("cross_entropy_nats", "bits_per_byte", "accuracy")  # beside RBP_k; each with a standard error
ROW: Final = pa.field("row", pa.int64())
_LARGEST = {"k": 2**31 - 1, "n": 2**31 - 1}  # their type in the relation
_PLAIN = re.compile(r"0?\.[0-9]+")  # a share below 1
_FLOAT32 = 2.0**-24  # relative, what a share may be off that was computed in single precision
_FACTOR = 3.0  # by which stated FLOPs may differ from 6 S D: attention, the head, and how each source counts


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
        sizes = self.positive("non_embedding_params", needed=True)
        fields = {
            "source": pa.repeat(pa.scalar(config.source, pa.string()), self.table.n_rows),
            "ties": self.names("ties", ties, needed=self.columns.has_rbp, check=_tie_rule),
            "family": self.names("family", config.family, needed=True),
            "model": self.names("model"),
            "size": self.sizes(sizes),
            "revision": self.names("revision", config.revision),
            "non_embedding_params": sizes,
            "protocol": self.names("protocol", config.protocol),
            "dtype": self.names("dtype", config.dtype),
            "training_flops": self.positive("training_flops"),
            "variant": self.names("variant", config.variant),
        }
        for name in ("training_tokens", "training_step", "unique_tokens", "training_seed"):
            fields[name] = self.wholes(name)
        self.check_flops(fields)
        parts = []
        if self.columns.texts:
            for text, of_text in self.columns.texts.items():
                dataset = pa.repeat(pa.scalar(text, pa.string()), self.table.n_rows)
                parts += self.of_text(of_text, fields | {"dataset": dataset})
        else:
            fields |= {"dataset": self.names("dataset", config.dataset, needed=True)}
            fields |= {"text_hash": self.names("text_hash")}
            parts = self.of_text(self.columns, fields)
            self.check_filled(parts)
        if self.faults:
            row, _, text = min(self.faults)
            raise RbpxError(f"{self.table.place(row)}{text}")
        whole = pa.concat_tables(parts)
        return whole if len(parts) == 1 else whole.take(np.argsort(whole["row"].to_numpy(), kind="stable"))

    def of_text(self, columns: Columns, fields: dict[str, pa.Array]) -> list[pa.Table]:
        """What the rows say of one text: RBP where it is given, the rest alone where it is not."""
        n, rows = self.table.n_rows, pa.array(np.arange(self.table.n_rows))
        fields = fields | {"n_tokens": self.wholes("n_tokens", columns=columns)} | self.quantities(columns)
        shares, ks, cells = self.shares(columns)
        self.check_counts(shares, cells, fields["n_tokens"])
        lengths = pc.fill_null(self.wholes("n", columns=columns), 1)
        parts = [
            _part(fields | {"k": k, "n": lengths, "rbp": rbp}, rows, pc.is_valid(rbp))
            for rbp, k in zip(shares, ks, strict=True)
        ]
        alone = np.zeros(n, bool)
        for name in QUANTITIES:
            alone |= pc.is_valid(fields[name]).to_numpy(zero_copy_only=False)
        for share in shares:
            alone &= pc.is_null(share).to_numpy(zero_copy_only=False)
        if alone.any() or not parts:
            without = {name: array for name, array in fields.items() if name != "ties"}
            parts.append(_part(without, rows, pa.array(alone)))
        return parts

    def quantities(self, columns: Columns) -> dict[str, pa.Array]:
        """Losses and accuracies with their standard errors; a loss in bits a token becomes nats a token."""
        read = {}
        for name in QUANTITIES:
            for field in (name, f"{name}_stderr"):
                read[field] = self.numbers(self.column(field, columns), field)
        if "loss_bits" in columns.named:
            for field, bits in (("", "loss_bits"), ("_stderr", "loss_bits_stderr")):
                values = self.numbers(self.column(bits, columns), bits)
                read[f"cross_entropy_nats{field}"] = pc.multiply(values, np.log(2))
        return read

    def check_filled(self, parts: list[pa.Table]) -> None:
        """Refuse a row that says nothing."""
        filled = np.zeros(self.table.n_rows, bool)
        for part in parts:
            filled[part["row"].to_numpy()] = True
        if not filled.all() and not self.faults:
            if self.columns.has_rbp:
                what = "rbp is empty; give a share in [0, 1], or leave the row out"
            else:
                names = " and ".join(name for name in _GIVEN if name in self.columns.named)
                what = f"{names} is empty; give a value, or leave the row out"
            self.faults.append((int(np.argmin(filled)), len(self.faults), f": {what}"))

    def check_flops(self, fields: dict[str, pa.Array]) -> None:
        """Refuse FLOPs that are neither about 6 S D nor, where all parameters are known, about 6 of those times D."""
        S, D, C, total = (
            pc.cast(array, pa.float64()).to_numpy(zero_copy_only=False)
            for array in (
                *(fields[name] for name in ("non_embedding_params", "training_tokens", "training_flops")),
                self.positive("total_params"),
            )
        )
        apart = np.ones(len(S), bool)
        for params in (S, total):
            ratio = C / (6 * params * D)
            apart &= ~((ratio >= 1 / _FACTOR) & (ratio <= _FACTOR))
        wrong = np.flatnonzero(apart & np.isfinite(C / (S * D)))
        if wrong.size:
            row = int(wrong[0])
            of_total = f", and 6 times all parameters times D is {6 * total[row] * D[row]:.4g}"
            self.faults.append(
                (
                    row,
                    len(self.faults),
                    f": training_flops is {C[row]:.4g}, but 6 S D is {6 * S[row] * D[row]:.4g}"
                    f"{of_total if np.isfinite(total[row]) else ''}; they differ by more than a factor of 3: correct "
                    "S, D or C, give total_params where embeddings and head count, or leave C out",
                )
            )

    def column(self, field: str, columns: Columns | None = None) -> Column:
        """The column of a field, of one text or of all; one that the file lacks is empty in every row."""
        name = (columns or self.columns).named.get(field)
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
                raise _Fault(f": {field} is {quoted(name)}, but {field}={default} was given; leave one of them out")
            if name is None and default is None and needed:
                rule = "pessimistic, optimistic or mid" if field == "ties" else "NAME"
                raise _Fault(f": the {field} is missing; add a column {field}, or give {field}={rule}")
            return default if name is None else name

        return self.checked(self.column(field), name_of, pa.string())

    def sizes(self, params: pa.Array) -> pa.Array:
        """The size in each row, else the last part of its model, else S."""
        sizes = pc.coalesce(self.names("size"), self.checked(self.column("model"), _last_part, pa.string()))
        if not sizes.null_count:
            return sizes
        return pc.coalesce(
            sizes, pa.array([None if S is None else written(S) for S in params.to_pylist()], pa.string())
        )

    def wholes(self, field: str, needed: bool = False, columns: Columns | None = None) -> pa.Array:
        """Whole numbers; None where a cell is empty."""

        def whole(cell: Any) -> int | None:
            if is_empty(cell) and not needed:
                return None
            meaning, least = _WHOLE[field]
            return whole_number(_Unplaced(), field, cell, meaning, least=least, most=_LARGEST.get(field, 2**63 - 1))

        return self.checked(self.column(field, columns), whole, pa.int64())

    def positive(self, field: str, needed: bool = False) -> pa.Array:
        """Numbers above 0; None where a cell is empty."""

        def read(cell: Any) -> float | None:
            if is_empty(cell) and not needed:
                return None
            exact = number(cell)
            if exact is None or not 0 < exact < 10**300:
                raise _Fault(f": {field} is {as_written(cell)}; {_POSITIVE[field]}")
            return float(exact)

        return self.checked(self.column(field), read, pa.float64())

    def numbers(self, column: Column, field: str) -> pa.Array:
        """Shares in [0, 1], or losses from 0; None where a cell is empty."""
        plain = _plain_shares(column.values)
        pairs = iter(zip(column.values, plain, strict=True))

        def share(_: Any) -> float | None:
            cell, quick = next(pairs)
            return quick if quick is not None else _share_or_loss(cell, field)

        return self.checked(column, share, pa.float64())

    def shares(self, columns: Columns) -> tuple[list[pa.Array], list[pa.Array], list[Column]]:
        """RBP, k and the cells of RBP: one of each where rows name their k, one for each column of RBP at one k."""
        n = self.table.n_rows
        if columns.wide:
            cells = [self.table.columns[name] for name in columns.wide.values()]
            return [self.numbers(each, "rbp") for each in cells], [pa.array(np.full(n, k)) for k in columns.wide], cells
        if "rbp" not in columns.named:
            return [], [], []
        cells = [self.column("rbp", columns)]
        share, k = self.numbers(cells[0], "rbp"), self.wholes("k", columns=columns)
        for missing, there, what in (
            (share, k, "rbp is empty; give a share in [0, 1], or leave the row out"),
            (k, share, f"k is empty; {_WHOLE['k'][0]}"),
        ):
            wrong = pc.and_(pc.is_null(missing), pc.is_valid(there)).to_numpy(zero_copy_only=False)
            if wrong.any() and not self.faults:
                self.faults.append((int(np.argmax(wrong)), len(self.faults), f": {what}"))
        return [share], [k], cells

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


def _part(fields: dict[str, pa.Array], rows: pa.Array, kept: pa.Array) -> pa.Table:
    """Some rows of the relation; what is not among the fields is null."""
    whole = {name: fields.get(name, pa.nulls(len(rows), _SCHEMA.field(name).type)) for name in FIELDS}
    return pa.table(whole | {"row": rows}).cast(_SCHEMA).filter(kept)


def with_all_fields(table: pa.Table) -> pa.Table:
    """Observations of this version or an earlier one, which knew fewer columns, with all fields."""
    n, names = table.num_rows, set(table.column_names)
    whole = {name: table[name] if name in names else pa.nulls(n, OBSERVATIONS.field(name).type) for name in FIELDS}
    return pa.table(whole).cast(pa.schema([OBSERVATIONS.field(name) for name in FIELDS]))


def written(S: float) -> str:
    """A size as a label: all its digits, none after the point where it is whole."""
    return str(int(S)) if S == int(S) and S < 1e18 else repr(S)


def _tie_rule(name: str | None) -> None:
    if name not in (None, *Ties):
        raise _Fault(f": ties is {quoted(name)}; known: {', '.join(Ties)}")


def _name(cell: Any, field: str) -> str | None:
    if is_empty(cell):
        return None
    if isinstance(cell, bool) or not isinstance(cell, str | int):
        raise _Fault(f": {field} is {quoted(cell)}, but a name is expected; write it as text")
    try:
        str(cell).encode()
    except UnicodeEncodeError:
        raise _Fault(f": {field} is {quoted(cell)}, which is not valid Unicode; write it anew") from None
    return str(cell).strip()


def _last_part(model: Any) -> str | None:
    return str(model).rstrip("/").split("/")[-1] or None if isinstance(model, str) else None


_FROM_0 = "a whole number from 0 is expected, or empty"
_WHOLE = {  # field -> what is expected, the least
    "k": ("a rank is a whole number from 1", 1),
    "n": ("the length of a window is a whole number from 1", 1),
    "n_tokens": ("a count is a whole number from 1, or empty", 1),
    "training_tokens": ("tokens that were trained on are a whole number from 1, not billions; or empty", 1),
    "unique_tokens": ("tokens are a whole number from 1, not billions; or empty", 1),
    "training_step": (_FROM_0, 0),
    "training_seed": (_FROM_0, 0),
}
_POSITIVE = {
    "non_embedding_params": "a positive number is expected: give parameters, not millions",
    "total_params": "a positive number is expected: all parameters, or empty",
    "training_flops": "a positive number is expected: the operations of the whole training, or empty",
}
_GIVEN = ("cross_entropy_nats", "loss_bits", "bits_per_byte", "accuracy")
_UNITS = {"cross_entropy_nats": "nats a token", "loss_bits": "bits a token", "bits_per_byte": "bits a byte"}


def _plain_shares(values: list[Any]) -> list[float | None]:
    """Cells that are plainly numbers between 0 and 1, with digits and a point alone; None for any other.

    Below 1 and above 0 as a float, a number is so exactly as written.
    """
    texts = pa.array([value if isinstance(value, str) else None for value in values], pa.string())
    plain = pc.match_substring_regex(texts, f"^{_PLAIN.pattern}$")
    read = pc.if_else(pc.fill_null(plain, False), texts, pa.scalar(None, pa.string())).cast(pa.float64())
    return [share if share is not None and 0 < share < 1 else None for share in read.to_pylist()]


def _share_or_loss(cell: Any, field: str) -> float | None:
    if is_empty(cell):
        return None
    exact = number(cell)
    if field in ("rbp", "accuracy") and (exact is None or not 0 <= exact <= 1):
        raise _Fault(f": {field} is {as_written(cell)}; give shares in [0, 1], not percent")
    if exact is None or not 0 <= exact < 10**300:
        unit = _UNITS.get(field.removesuffix("_stderr"), "a share")
        raise _Fault(f": {field} is {as_written(cell)}; give {unit}, finite and 0 or more, or nothing")
    return float(exact)


def _last_digit(cell: Any) -> float:
    """One unit in the last digit of a number as it is written."""
    if isinstance(cell, str) and _PLAIN.fullmatch(cell):
        return 10.0 ** (cell.index(".") + 1 - len(cell))
    exact = number(cell)
    return 0.0 if exact is None else 10.0 ** int(exact.as_tuple().exponent)
