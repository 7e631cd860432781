"""Checks other people's results and returns observations of RBP_k, p_{N,k}, losses and accuracies, in our units.

Observations are Arrow tables with the columns of the relation, without run_id, and `row`, the row of the file. A size
that a file does not name is null here.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rbpx.config.imports import FEW_PARAMS, ImportConfig
from rbpx.errors import RbpxError
from rbpx.files.cells import has_unit, large_number
from rbpx.files.rows import Rows
from rbpx.spelling import typed
from rbpx.store.imports.cells import MISSING_K, MISSING_RBP, CellError, ColumnError, is_rounded, type_of, value_of
from rbpx.store.imports.columns import OF_ITEM, Columns, shown_field
from rbpx.store.imports.faults import Faults, Mask
from rbpx.store.imports.plausible import check_attempts, check_sizes
from rbpx.store.schema import OBSERVATIONS, TRAINING, varied, with_varied

FIELDS: Final = tuple(name for name in OBSERVATIONS.names if name != "run_id")
RUN: Final = ("source", "family", "size", "revision", "dataset", "text_hash", "protocol", "dtype")  # names of a run
MODEL: Final = (*RUN, "model", *TRAINING.names)  # and its training, checkpoint and varied hyperparameters
QUANTITIES: Final = ("cross_entropy_nats", "bits_per_byte", "accuracy")  # besides RBP_k; each with a standard error
STATED: Final = (*QUANTITIES, "n_correct")  # values of rows without RBP_k
ROW: Final = pa.field("row", pa.int64())
_SCHEMA: Final = pa.schema([*(OBSERVATIONS.field(name) for name in FIELDS), ROW])
_OF_QUANTITIES: Final = tuple(f"{name}{part}" for name in QUANTITIES for part in ("", "_stderr"))
_OF_TEXT: Final = ("k", "n", "rbp", "n_tokens", *_OF_QUANTITIES, *OF_ITEM)  # fields of one text, in its own columns
_OF_ALL: Final = tuple(name for name in FIELDS if name not in _OF_TEXT)
_KEYS: Final = {field.name: field.name for field in dataclasses.fields(ImportConfig)} | {"lr_decay": "decay"}
_GIVEN: Final = {name: of for name, of in _KEYS.items() if name in _OF_ALL}  # for rows without the field
_ALONG: Final = ("training_tokens", "training_flops", "training_step")  # training progress
_LOSSES: Final = (*QUANTITIES, "loss_bits", "perplexity")
_FEW: Final = {"non_embedding_params": FEW_PARAMS, "training_tokens": 10_000, "training_flops": 10**9}  # likewise
_MILLIONS: Final = (1000, 1_000_000)  # all params between these: a table in millions, up to 1T
_VALUES: Final = (*_LOSSES, "rbp", "n_samples", "n_correct")  # a row needs one of these


@dataclass(frozen=True)
class ObservationFile:
    """The contents of a file of results.

    Attributes:
        observations: of the rows that have a value and no fault, in order.
        faults: of the other rows.
        n_empty: rows without a value.
        n_missing: losses and accuracies that are empty or NaN, in rows with another value.
        rounded: column -> its counts that were no whole numbers.
        few: field -> column with its least and largest number, where S, D or C are so small that the column may count
            millions or billions, and no unit is given.
        steps: the first and the last row, where rows count as steps because training progress is not given.
        n_planned: observations that have a rate and no value, which are of the plans of runs.
    """

    observations: pa.Table
    faults: Faults
    n_empty: int
    n_missing: int
    rounded: dict[str, int]
    few: dict[str, tuple[str, float, float]]
    steps: tuple[int, int] | None
    n_planned: int


def read_observations(table: Rows, columns: Columns, config: ImportConfig) -> ObservationFile:
    """The observations of a file.

    A value has a fault where it is missing, no number, out of range, or contradicts the request.
    """
    return _Reader(table, columns, config).read()


class _Reader:
    def __init__(self, table: Rows, columns: Columns, config: ImportConfig) -> None:
        self.table, self.columns, self.config = table, columns, config
        self.faults = Faults()
        self.n_rows = n_rows = len(table.rows)
        self.has_value = np.zeros(n_rows, bool)
        self.n_missing = np.zeros(n_rows, np.int64)
        self.is_planned = np.zeros(n_rows, bool)
        self.rounded: dict[str, int] = {}
        self.few: dict[str, tuple[str, float, float]] = {}
        # runs in columns, whose rows must differ in something
        self.counts_steps = bool(columns.runs) and n_rows > 1 and not set(_ALONG) & set(columns.named)

    def read(self) -> ObservationFile:
        columns, rows_of = self.columns, self.table.rows
        shared = self.of_all()
        parts: list[pa.Table] = []
        for run, of_run in columns.runs.items():
            parts += self.of_text(of_run, self.of_run(run, shared))
        if not columns.runs:
            check_sizes(shared, columns, self.faults)
        for text, of_text in columns.texts.items():
            parts += self.of_text(of_text, shared | {"dataset": self.repeated(text, "dataset")})
        if not columns.runs and not columns.texts:
            parts = self.of_text(columns, shared)
            if columns.has_rbp:  # each row must then have a value
                silent = ~self.has_value & ~self.faults.rows(self.n_rows)
                self.faults.add(np.flatnonzero(silent), f"{columns.shown('rbp')} {MISSING_RBP}")
        faulty = self.faults.rows(self.n_rows)
        only_planned = self.is_planned & ~self.has_value & ~faulty
        empty = ~self.has_value & ~only_planned & ~(faulty & columns.has_rbp)
        whole = pa.concat_tables(parts)
        rows = whole["row"].to_numpy()
        order = np.argsort(rows, kind="stable")
        observations = whole.take(order[~faulty[rows[order]]])
        says = np.any([_valid(observations[name]) for name in ("rbp", *STATED)], axis=0)
        n_planned = int(np.sum(~says))  # of a row that also has values of other runs, each has an empty one
        return ObservationFile(
            observations=observations,
            faults=self.faults.only(~empty),
            n_empty=int(empty.sum()),
            n_missing=int(self.n_missing[self.has_value].sum()) - n_planned + int(only_planned.sum()),
            rounded=self.rounded,
            few=self.few,
            steps=(rows_of[0].number, rows_of[-1].number) if self.counts_steps else None,
            n_planned=n_planned,
        )

    def of_all(self) -> dict[str, pa.Array]:
        """The fields of models, trainings and protocols, whatever the text."""
        columns = self.columns
        needed = {"family", "dataset"} - ({"dataset"} if columns.texts else set())
        needed |= {"ties"} if columns.has_rbp else set()
        needed |= set() if columns.runs else {"non_embedding_params"}
        names = (*_OF_ALL, *varied(columns.named))
        fields = {name: self.read_field(name, columns, needed=name in needed) for name in names}
        self.count_tokens(fields, self.read_field("tokens_per_step", columns))
        if not columns.runs and self.config.tokens_per_step is not None:
            self.count_tokens(fields, self.repeated(self.config.tokens_per_step, "training_tokens"))
        return fields

    def of_run(self, name: str, shared: dict[str, pa.Array]) -> dict[str, pa.Array]:
        """The same fields for a run that has its own column; they come from the request."""
        facts = {"model": name} | self.config.wide_runs()[name].facts
        per_step = facts.pop("tokens_per_step", self.config.tokens_per_step)
        fields = shared | {field: self.repeated(value, field) for field, value in facts.items()}
        if self.counts_steps:
            fields["training_step"] = pa.array([row.number for row in self.table.rows])
        if "lr" in self.columns.runs[name].named:
            fields["lr"] = self.read_field("lr", self.columns.runs[name])
        if per_step is not None:
            self.count_tokens(fields, self.repeated(per_step, "training_tokens"))
        check_sizes(fields, self.columns, self.faults)
        return fields

    def count_tokens(self, fields: dict[str, pa.Array], per_step: pa.Array) -> None:
        """Fill in D where it is unknown and steps and tokens per step are known."""
        product = pc.multiply_checked(fields["training_step"], per_step)
        D = fields["training_tokens"] = pc.coalesce(fields["training_tokens"], product)
        step = self.columns.shown("training_step")
        no_tokens = np.flatnonzero(np.array(pc.fill_null(pc.equal(D, 0), False)) & ~self.faults.rows(self.n_rows))
        self.faults.add(no_tokens, f"{step} is 0, and so is D; leave the row out with {typed(where=f'{step} > 0')}")

    def of_text(self, columns: Columns, fields: dict[str, pa.Array]) -> list[pa.Table]:
        """The observations of one text: one for each RBP_k, else one for the other values."""
        own = ("n_tokens", *_OF_QUANTITIES, *OF_ITEM)
        fields = fields | {name: self.read_field(name, columns) for name in own}
        for part in ("", "_stderr") if "loss_bits" in columns.named else ():
            bits = self.read_field(f"loss_bits{part}", columns)
            fields[f"cross_entropy_nats{part}"] = pc.multiply(bits, np.log(2))
        if "perplexity" in columns.named:
            fields["cross_entropy_nats"] = pc.ln(self.read_field("perplexity", columns))
        check_attempts(fields, columns, self.faults)
        shares = self.shares(columns)
        fields["n"] = pc.fill_null(self.read_field("n", columns), 1)
        parts = [self.part(fields | {"k": k, "rbp": share}, _valid(share)) for share, k in shares]
        is_planned = _valid(fields["lr"]) & (_valid(fields["training_step"]) | _valid(fields["training_tokens"]))
        is_planned &= not columns.has_rbp
        self.is_planned |= is_planned
        alone = np.any([is_planned, *(_valid(fields[name]) for name in STATED)], axis=0)
        for share, _ in shares:
            alone &= ~_valid(share)
        none = dict.fromkeys(("ties", "n"))  # of a row without RBP
        return [*parts, self.part({name: array for name, array in fields.items() if name not in none}, alone)]

    def shares(self, columns: Columns) -> list[tuple[pa.Array, pa.Array]]:
        """Each column of RBP with its k: one whose rows name their k, or one for each k."""
        if "rbp" not in columns.named:
            wide = columns.wide.items()
            of_k = {k: self.checked(name, "rbp", times=columns.times.get(f"rbp_{k}")) for k, name in wide}
            return [(of, pa.repeat(pa.scalar(k, pa.int64()), self.n_rows)) for k, of in of_k.items()]
        name = columns.named["rbp"]
        share, k = self.read_field("rbp", columns), self.read_field("k", columns)
        sound = ~self.faults.rows(self.n_rows)
        self.faults.add(np.flatnonzero(sound & ~_valid(share) & _valid(k)), f"{name} {MISSING_RBP}")
        self.faults.add(np.flatnonzero(sound & _valid(share) & ~_valid(k)), f"{columns.shown('k')} {MISSING_K}")
        return [(share, k)]

    def part(self, fields: dict[str, pa.Array], kept: Mask) -> pa.Table:
        """Some rows of the relation; missing fields are null."""
        rows = np.flatnonzero(kept)
        columns, known = with_varied(_SCHEMA, fields), fields | {"row": pa.array(np.arange(len(kept)))}
        whole = [
            known[each.name].take(rows) if each.name in known else pa.nulls(len(rows), each.type) for each in columns
        ]
        return pa.table(whole, names=columns.names).cast(columns)

    def repeated(self, value: Any, field: str) -> pa.Array:
        """One value in all rows."""
        return pa.repeat(pa.scalar(value, _SCHEMA.field(field).type), self.n_rows)

    def read_field(self, field: str, columns: Columns, needed: bool = False) -> pa.Array:
        """A field of every row, null where empty; without a column, the value given for all rows."""
        return self.checked(columns.named.get(field), field, needed, columns.times.get(field))

    def checked(self, name: str | None, field: str, needed: bool = False, times: Decimal | None = None) -> pa.Array:
        """A field from its column; refused cells become null and faults."""
        given = getattr(self.config, _GIVEN[field]) if field in _GIVEN else None
        codes, cells = (np.zeros(self.n_rows, int), [None]) if name is None else distinct(self.table.cells(name))
        values, wrong = [], dict[int, CellError]()
        for code, cell in enumerate(cells):
            try:
                values.append(value_of(cell, field, given, needed, times))
            except CellError as problem:
                values.append(None)
                wrong[code] = problem
        rows = np.flatnonzero(np.isin(codes, list(wrong)))
        is_once = len(wrong) > 1 and all(isinstance(problem, ColumnError) for problem in wrong.values())
        if is_once and not self.mended(name, field, wrong):  # decimal commas are of the whole file
            raise RbpxError(f"{self.table.rows[rows[0]].place}: {name} {wrong[codes[rows[0]]]}")
        self.faults.add(rows, lambda row: f"{name} {wrong[codes[row]]}{self.mended(name, field, wrong)}", is_once)
        read = pa.array(values, type_of(field)).take(pa.array(codes))
        rounded = [code for code, cell in enumerate(cells) if code not in wrong and is_rounded(cell, field, times)]
        if name is not None and rounded:
            self.rounded[name] = int(np.isin(codes, rounded).sum())
        if name is not None and field in _FEW and times is None:
            self.count_few(name, field, cells, [value for value in values if value is not None])
        if field in _VALUES:
            says = _valid(read)
            says[rows] = True
            self.has_value |= says
            self.n_missing += ~says & (field in _LOSSES and bool(says.any()))
        return read

    def mended(self, name: str | None, field: str, wrong: Mapping[int, CellError]) -> str:
        """The factor to type for a column whose faults one factor mends."""
        times = {getattr(problem, "times", None) for problem in wrong.values()}
        if None in times:
            return ""
        k = next((k for k, column in self.columns.wide.items() if column == name), None)
        shown = shown_field(field) if k is None else f"rbp_{k}"
        return f": {typed(columns={shown: {'column': name, 'times': times.pop()}})}"

    def count_few(self, name: str, field: str, cells: Sequence[Any], values: Sequence[float]) -> None:
        """Note a column whose numbers, refused ones included, are too small to have no unit."""
        below, most = _MILLIONS if field == "non_embedding_params" else (0, 0)
        if max(values, default=0) >= max(most, _FEW[field]) or any(map(has_unit, cells)):
            return
        numbers = [exact for cell in cells if (exact := large_number(cell)) is not None and exact > 0]
        if numbers and (max(numbers) < _FEW[field] or (min(numbers) < below and max(numbers) < most)):
            self.few[field] = (name, float(min(numbers)), float(max(numbers)))


def distinct(cells: Sequence[Any]) -> tuple[npt.NDArray[np.int64], list[Any]]:
    """The index of each row's distinct cell, [R], and the distinct cells; 1, 1.0 and true differ.

    A million rows have few names and few k, so each distinct cell is checked once.
    """
    keys = cells
    if not set(map(type, cells)) <= {str, type(None)}:
        keys = [(type(cell), cell) if cell.__hash__ is not None else (dict, id(cell)) for cell in cells]
    index = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    codes = np.fromiter(map(index.__getitem__, keys), np.int64, len(cells))
    return codes, [cells[row] for row in np.unique(codes, return_index=True)[1].tolist()]


def _valid(array: pa.Array) -> Mask:
    return np.array(pc.is_valid(array))


def written(S: float) -> str:
    """A size as a label: all its digits, none after the point where it is whole."""
    return str(int(S)) if S == int(S) and S < 1e18 else repr(S)
