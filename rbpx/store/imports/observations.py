"""Checks other people's results and makes them observations of RBP_k, p_{N,k}, losses and accuracies, in our units.

Observations are Arrow tables with the columns of the relation, without run_id, and `row`: which row of the file each
comes from. A cell is checked once for all rows that have it. A size that a file does not name is null here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rbpx.config.imports import ImportConfig
from rbpx.files.cells import as_written, is_empty, quoted
from rbpx.files.column_table import Column, ColumnTable
from rbpx.files.columns import Columns
from rbpx.store.imports.cells import (
    MISSING_K,
    Wrong,
    check_ties,
    is_missing,
    is_rounded,
    last_digit,
    name_of,
    number_of_knob,
    plain_shares,
    positive_of,
    rate_of,
    share_or_loss,
    whole_of,
)
from rbpx.store.imports.faults import Faults, Mask, always
from rbpx.store.imports.plausible import check_attempts, check_sizes
from rbpx.store.schema import OBSERVATIONS, TRAINING, varied, with_varied

FIELDS: Final = tuple(name for name in OBSERVATIONS.names if name != "run_id")
RUN: Final = ("source", "family", "size", "revision", "dataset", "text_hash", "protocol", "dtype")  # names of a run
MODEL: Final = (*RUN, "model", *TRAINING.names)  # and which of its trainings, and how far along; what it varies too
QUANTITIES: Final = ("cross_entropy_nats", "bits_per_byte", "accuracy")  # beside RBP_k; each with a standard error
STATED: Final = (*QUANTITIES, "n_correct")  # what a row may say without RBP_k
ROW: Final = pa.field("row", pa.int64())
_FLOAT32 = 2.0**-24  # relative, what a share may be off that was computed in single precision
_WHOLES: Final = ("training_tokens", "training_step", "unique_tokens", "training_seed")
_ALONG: Final = ("training_tokens", "training_flops", "training_step")  # how far a training is
_MOST_TOKENS: Final = 2.0**62
_RBP_IS_EMPTY: Final = "is empty; give a share in [0, 1], or leave the row out"


@dataclass(frozen=True)
class Reading:
    """A file of results as it was read.

    Attributes:
        observations: of the rows that have a value and no fault, in order.
        faults: of the others.
        n_empty: rows without a value.
        n_missing: losses and accuracies that are empty or NaN, in rows that have another value.
        steps: the first and the last row, where rows count as steps since nothing says how far a training is.
        rounded: column -> counts in it that were no whole numbers.
    """

    observations: pa.Table
    faults: Faults
    n_empty: int
    n_missing: int
    rounded: dict[str, int]
    steps: tuple[int, int] | None


def read_observations(table: ColumnTable, columns: Columns, config: ImportConfig) -> Reading:
    """The observations of a file.

    A value has a fault where it is missing, is not a number, is out of its range, differs from what the request says,
    or is a share that no count of its tokens gives.
    """
    return _Reader(table, columns, config).read()


class _Reader:
    """A file while its columns are checked."""

    def __init__(self, table: ColumnTable, columns: Columns, config: ImportConfig) -> None:
        self.table, self.columns, self.config = table, columns, config
        self.faults = Faults()
        self.has_value = np.zeros(table.n_rows, bool)
        self.n_missing = np.zeros(table.n_rows, np.int64)
        self.rounded: dict[str, int] = {}
        self.varied = varied(columns.named)
        self.facts = config.wide_runs()
        # of runs side by side, whose rows must differ in something
        self.counts_steps = bool(columns.runs) and table.n_rows > 1 and not set(_ALONG) & set(columns.named)

    def read(self) -> Reading:
        shared = self.of_all()
        parts: list[pa.Table] = []
        if self.columns.runs:
            for run, of_run in self.columns.runs.items():
                parts += self.of_text(of_run, self.of_run(run, shared))
        elif self.columns.texts:
            check_sizes(shared, self.columns, self.faults)
            for text, of_text in self.columns.texts.items():
                parts += self.of_text(of_text, shared | {"dataset": self.repeated(text, "dataset")})
        else:
            check_sizes(shared, self.columns, self.faults)
            parts = self.of_text(self.columns, shared)
            if self.columns.has_rbp:
                self.check_filled()
        faulty = self.faults.rows(self.table.n_rows)
        empty = ~self.has_value & ~(faulty & self.columns.has_rbp)
        whole = pa.concat_tables(parts)
        ordered = whole if len(parts) == 1 else whole.take(np.argsort(whole["row"].to_numpy(), kind="stable"))
        if faulty.any():
            ordered = ordered.filter(pa.array(~faulty[ordered["row"].to_numpy()]))
        n_missing, numbers = int(self.n_missing[~empty].sum()), self.table.numbers
        steps = (int(numbers[0]), int(numbers[-1])) if self.counts_steps else None
        return Reading(ordered, self.faults.only(~empty), int(empty.sum()), n_missing, self.rounded, steps)

    def of_all(self) -> dict[str, pa.Array]:
        """What the rows say of models, trainings and how they were measured, whatever the text."""
        config, has_text = self.config, not self.columns.texts
        ties = None if config.ties is None else config.ties.value
        fields = {
            "source": self.repeated(config.source, "source"),
            "ties": self.names("ties", ties, needed=self.columns.has_rbp, check=check_ties),
            "family": self.names("family", config.family, needed=True),
            "model": self.names("model"),
            "size": self.names("size"),
            "revision": self.names("revision", config.revision),
            "non_embedding_params": self.positive("non_embedding_params", needed=not self.columns.runs),
            "protocol": self.names("protocol", config.protocol),
            "dtype": self.names("dtype", config.dtype),
            "active_params": self.positive("active_params"),
            "total_params": self.positive("total_params"),
            "training_flops": self.positive("training_flops"),
            "variant": self.names("variant", config.variant),
            "weight": self.positive("weight"),
            "schedule": self.names("schedule", config.schedule),
            "schedule_tokens": self.wholes("schedule_tokens"),
            "lr": self.checked(self.columns.named.get("lr"), rate_of, pa.float64()),
            **{name: self.checked(self.columns.named[name], number_of_knob, pa.float64()) for name in self.varied},
            **{name: self.wholes(name) for name in _WHOLES},
        }
        self.count_tokens(fields, self.wholes("tokens_per_step"))
        if not self.columns.runs and config.tokens_per_step is not None:
            self.count_tokens(fields, self.repeated(config.tokens_per_step, "training_tokens"))
        if has_text:
            fields |= {"dataset": self.names("dataset", config.dataset, needed=True)}
            fields |= {"text_hash": self.names("text_hash")}
        return fields

    def of_run(self, name: str, shared: dict[str, pa.Array]) -> dict[str, pa.Array]:
        """The same of a run that has a column of its own: what is known of it stands in the request."""
        facts = dict(self.facts[name].facts)
        per_step = facts.pop("tokens_per_step", self.config.tokens_per_step)
        own = {field: self.repeated(value, field) for field, value in ({"model": name} | facts).items()}
        fields = shared | own
        if self.counts_steps:
            fields["training_step"] = pa.array(self.table.numbers)
        own_lr = self.columns.runs[name].named.get("lr")
        if own_lr is not None:
            fields["lr"] = self.checked(own_lr, rate_of, pa.float64())
        if per_step is not None:
            self.count_tokens(fields, self.repeated(per_step, "training_tokens"))
        check_sizes(fields, self.columns, self.faults)
        return fields

    def count_tokens(self, fields: dict[str, pa.Array], per_step: pa.Array) -> None:
        """Fill in D where steps and the tokens of one are known, and D is not."""
        steps = fields["training_step"]
        counts = [pc.fill_null(each, 0).to_numpy(zero_copy_only=False).astype(np.float64) for each in (steps, per_step)]
        beyond = counts[0] * counts[1] > _MOST_TOKENS
        what = f"{self.columns.shown('training_step')} times tokens_per_step is no number of tokens"
        self.faults.add(np.flatnonzero(beyond), partial(always, what))
        product = pc.multiply(pc.if_else(pa.array(beyond), None, steps), per_step)
        fields["training_tokens"] = pc.coalesce(fields["training_tokens"], product)

    def of_text(self, columns: Columns, fields: dict[str, pa.Array]) -> list[pa.Table]:
        """What the rows say of one text: RBP where it is given, the rest alone where it is not."""
        n, rows = self.table.n_rows, pa.array(np.arange(self.table.n_rows))
        fields = fields | {"n_tokens": self.wholes("n_tokens", columns)} | self.quantities(columns)
        fields |= self.attempts(columns)
        shares, ks, names = self.shares(columns)
        self.check_counts(shares, names, fields["n_tokens"])
        lengths = pc.fill_null(self.wholes("n", columns), 1)
        parts = [
            _part(fields | {"k": k, "n": lengths, "rbp": rbp}, rows, pc.is_valid(rbp))
            for rbp, k in zip(shares, ks, strict=True)
        ]
        alone = np.zeros(n, bool)
        for name in STATED:
            alone |= _valid(fields[name])
        for share in shares:
            alone &= ~_valid(share)
        if alone.any() or not parts:
            without = {name: array for name, array in fields.items() if name != "ties"}
            parts.append(_part(without, rows, pa.array(alone)))
        return parts

    def quantities(self, columns: Columns) -> dict[str, pa.Array]:
        """Losses and accuracies with their standard errors; a loss in bits per token becomes nats per token."""
        read = {}
        for name in QUANTITIES:
            for field in (name, f"{name}_stderr"):
                read[field] = self.numbers(columns.named.get(field), field)
        if "loss_bits" in columns.named:
            for field in ("", "_stderr"):
                values = self.numbers(columns.named.get(f"loss_bits{field}"), f"loss_bits{field}")
                read[f"cross_entropy_nats{field}"] = pc.multiply(values, np.log(2))
        return read

    def attempts(self, columns: Columns) -> dict[str, pa.Array]:
        """Items with how often they were tried, and how often that was right; a row has all three or none."""
        fields = {
            "item": self.names("item", columns=columns),
            "n_samples": self.wholes("n_samples", columns),
            "n_correct": self.wholes("n_correct", columns),
        }
        for name in ("n_samples", "n_correct"):
            column = self.column(columns.named.get(name))
            self.has_value |= ~np.array([is_empty(value) for value in column.values])[column.codes]
        check_attempts(fields, columns, self.faults)
        return fields

    def check_filled(self) -> None:
        """Refuse a row that says nothing, where RBP is expected."""
        empty = np.flatnonzero(~self.has_value & ~self.faults.rows(self.table.n_rows))
        self.faults.add(empty, partial(always, f"{self.columns.shown('rbp')} {_RBP_IS_EMPTY}"))

    def repeated(self, value: Any, field: str) -> pa.Array:
        """One value in all rows."""
        kind = _SCHEMA.field(field).type if field in _SCHEMA.names else pa.float64()
        return pa.repeat(pa.scalar(value, kind), self.table.n_rows)

    def column(self, name: str | None) -> Column:
        """The column of a name; one that the file lacks is empty in every row."""
        return Column(np.zeros(self.table.n_rows, np.int64), [None]) if name is None else self.table.columns[name]

    def checked(self, name: str | None, check: Callable[[Any], Any], kind: pa.DataType) -> pa.Array:
        """What a check makes of each cell of a column; null of those that it refuses, which are faults."""
        column, checked, wrong = self.column(name), list[Any](), dict[int, str]()
        for code, value in enumerate(column.values):
            try:
                checked.append(check(value))
            except Wrong as problem:
                checked.append(None)
                wrong[code] = str(problem)
        if wrong:
            rows = np.flatnonzero(np.isin(column.codes, list(wrong)))
            self.faults.add(rows, lambda at: f"{name} {wrong[int(column.codes[rows[at]])]}")
        return pa.array(checked, kind).take(pa.array(column.codes))

    def names(
        self,
        field: str,
        default: str | None = None,
        needed: bool = False,
        check: Callable[[str | None], None] = lambda name: None,
        columns: Columns | None = None,
    ) -> pa.Array:
        """Names from the rows, or the one given for all rows; they must not differ."""

        def checked(cell: Any) -> str | None:
            name = name_of(cell)
            check(name)
            if name is not None and default is not None and name != default:
                raise Wrong(f"is {quoted(name)}, but {field}={default} was given; leave one of them out")
            if name is None and default is None and needed:
                rule = "pessimistic, optimistic or mid" if field == "ties" else "NAME"
                raise Wrong(f"is empty; fill in the {field}, or give {field}={rule}")
            return default if name is None else name

        return self.checked((columns or self.columns).named.get(field), checked, pa.string())

    def wholes(self, field: str, columns: Columns | None = None) -> pa.Array:
        """Whole numbers; null where a cell is empty."""
        name = (columns or self.columns).named.get(field)
        column = self.column(name)
        rounded = np.array([is_rounded(value, field) for value in column.values], bool)[column.codes]
        if name is not None and rounded.any():
            self.rounded[name] = int(rounded.sum())
        return self.checked(name, partial(whole_of, field=field), pa.int64())

    def positive(self, field: str, needed: bool = False) -> pa.Array:
        """Numbers above 0; null where a cell is empty."""
        return self.checked(
            self.columns.named.get(field), partial(positive_of, field=field, needed=needed), pa.float64()
        )

    def numbers(self, name: str | None, field: str) -> pa.Array:
        """Shares in [0, 1], or losses from 0; null where a cell is empty or NaN."""
        column = self.column(name)
        plain = plain_shares(column.values)
        if not field.endswith("_stderr"):
            missing = np.array([is_missing(value, field) for value in column.values])[column.codes]
            self.has_value |= ~missing
            if field != "rbp" and not missing.all():
                self.n_missing += missing
        pairs = iter(zip(column.values, plain, strict=True))

        def share(_: Any) -> float | None:
            cell, quick = next(pairs)
            return quick if quick is not None else share_or_loss(cell, field)

        return self.checked(name, share, pa.float64())

    def shares(self, columns: Columns) -> tuple[list[pa.Array], list[pa.Array], list[str]]:
        """RBP, k and the column of RBP: one of each where rows name their k, one for each column of RBP at one k."""
        n = self.table.n_rows
        if columns.wide:
            names = list(columns.wide.values())
            return [self.numbers(each, "rbp") for each in names], [pa.array(np.full(n, k)) for k in columns.wide], names
        if "rbp" not in columns.named:
            return [], [], []
        name = columns.named["rbp"]
        share, k = self.numbers(name, "rbp"), self.wholes("k", columns)
        known = ~self.faults.rows(n)
        for missing, there, what in (
            (share, k, f"{name} {_RBP_IS_EMPTY}"),
            (k, share, f"{columns.shown('k')} {MISSING_K}"),
        ):
            self.faults.add(np.flatnonzero(known & ~_valid(missing) & _valid(there)), partial(always, what))
        return [share], [k], [name]

    def check_counts(self, shares: list[pa.Array], names: list[str], n_tokens: pa.Array) -> None:
        """Refuse shares that are no count of n_tokens: 0.333 of 10 lies between 3 and 4 of 10.

        A share is as exact as its last digit, rounded or cut off, and as single precision.
        """
        n = pc.fill_null(n_tokens, 0).to_numpy(zero_copy_only=False).astype(np.float64)
        for share, name in zip(shares, names, strict=True):
            column = self.table.columns[name]
            p = pc.fill_null(share, 0).to_numpy(zero_copy_only=False)
            off = np.abs(p - np.rint(p * n) / np.maximum(n, 1)) * (n > 0)
            rows = np.flatnonzero(off > np.maximum(_FLOAT32 * p, 2.0**-52))
            cells, cell_of_row = np.unique(column.codes[rows], return_inverse=True)
            last_digits = np.array([last_digit(column.values[cell]) for cell in cells])
            self.faults.add(
                wrong := rows[off[rows] > last_digits[cell_of_row]], partial(_no_count, name, column, wrong, p, n)
            )


_SCHEMA: Final = pa.schema([*(OBSERVATIONS.field(name) for name in FIELDS), ROW])


def _no_count(
    name: str,
    column: Column,
    rows: npt.NDArray[np.int64],
    p: npt.NDArray[np.float64],
    n: npt.NDArray[np.float64],
    at: int,
) -> str:
    row = rows[at]
    count = int(np.floor(p[row] * n[row]))
    return (
        f"{name} is {as_written(column.values[column.codes[row]])}, which is no count of n_tokens={int(n[row]):,}: "
        f"{count:,} are {count / n[row]:.6g}, {count + 1:,} are {(count + 1) / n[row]:.6g}; correct one of them"
    )


def _valid(array: pa.Array) -> Mask:
    return np.asarray(pc.is_valid(array).to_numpy(zero_copy_only=False))


def _part(fields: dict[str, pa.Array], rows: pa.Array, kept: pa.Array) -> pa.Table:
    """Some rows of the relation; what is not among the fields is null."""
    columns, known = with_varied(_SCHEMA, fields), fields | {"row": rows}
    whole = [known.get(column.name, pa.nulls(len(rows), column.type)) for column in columns]
    return pa.table(whole, names=columns.names).cast(columns).filter(kept)


def written(S: float) -> str:
    """A size as a label: all its digits, none after the point where it is whole."""
    return str(int(S)) if S == int(S) and S < 1e18 else repr(S)
