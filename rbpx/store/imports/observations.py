"""Reads other people's results in one pass by the rules: observations of RBP_k, p_{N,k}, losses and accuracies.

Observations are Arrow tables with the columns of the relation, without run_id, and `row`, the row of the file. A size
that a file does not name is null here.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rbpx.config.imports import ImportConfig
from rbpx.errors import RbpxError
from rbpx.files.cells import has_unit, large_number
from rbpx.files.rows import Rows
from rbpx.spelling import typed
from rbpx.store.imports.cells import CellError, value_of
from rbpx.store.imports.columns import OF_ITEM, Columns
from rbpx.store.imports.columns import QUANTITIES as LOSSES
from rbpx.store.imports.faults import Faults, Mask
from rbpx.store.imports.plausible import check_attempts, check_sizes
from rbpx.store.imports.rules import RULES, field_of, rule_of
from rbpx.store.schema import OBSERVATIONS, TRAINING, varied, with_all, with_varied

FIELDS: Final = tuple(name for name in OBSERVATIONS.names if name != "run_id")
RUN: Final = ("source", "family", "size", "revision", "dataset", "text_hash", "protocol", "dtype")  # names of a run
MODEL: Final = (*RUN, "model", *TRAINING.names)  # and its training, checkpoint and varied hyperparameters
QUANTITIES: Final = ("cross_entropy_nats", "bits_per_byte", "accuracy")  # besides RBP_k; each with a standard error
STATED: Final = (*QUANTITIES, "n_correct")  # values of rows without RBP_k
ROW: Final = pa.field("row", pa.int64())
SAID: Final = pa.schema([OBSERVATIONS.field(name) for name in FIELDS])  # run_id follows from these
_SCHEMA: Final = SAID.append(ROW)
_OF_TEXT: Final = ("n_tokens", *(f"{name}{part}" for name in QUANTITIES for part in ("", "_stderr")), *OF_ITEM)
_OF_ALL: Final = tuple(name for name in FIELDS if name not in (*_OF_TEXT, "k", "n", "rbp"))
_KEYS: Final = {field.name: field.name for field in dataclasses.fields(ImportConfig)} | {"lr_decay": "decay"}
_ALONG: Final = ("training_tokens", "training_flops", "training_step")  # training progress
_MILLIONS: Final = (1000, 1_000_000)  # all params between these: a table in millions, up to 1T
_MISSING_K: Final = f"is empty; {RULES['k'].numbers.meaning}"  # type: ignore[union-attr]
_MISSING_RBP: Final = "is empty; give a share in [0, 1], or leave the row out"


@dataclass(frozen=True)
class ObservationFile:
    """The contents of a file of results.

    Attributes:
        observations: of the rows that have a value and no fault, in order.
        faults: of the other rows.
        n_empty: rows without a value.
        n_missing: losses and accuracies that are empty or NaN, in rows with another value.
        rounded: column -> its counts that were no whole numbers.
        steps: the first and the last row, where rows count as steps.
        n_planned: observations that have a rate and no value.
    """

    observations: pa.Table
    faults: Faults
    n_empty: int
    n_missing: int
    rounded: dict[str, int]
    steps: tuple[int, int] | None
    n_planned: int


def read_observations(table: Rows, columns: Columns, config: ImportConfig) -> ObservationFile:
    """The observations of a file; raises RbpxError where the unit of numbers, or a decimal comma, is not said."""
    return _Reader(table, columns, config).read()


class _Reader:
    def __init__(self, table: Rows, columns: Columns, config: ImportConfig) -> None:
        self.table, self.columns, self.config = table, columns, config
        self.faults = Faults()
        self.n_rows = n_rows = len(table.rows)
        self.has_value, self.is_planned = np.zeros((2, n_rows), bool)
        self.n_missing = np.zeros(n_rows, np.int64)
        self.rounded: dict[str, int] = {}
        self.few: dict[str, tuple[str, float, float]] = {}  # field -> its column, and the least and largest number
        # runs in columns, whose rows must differ in something
        self.counts_steps = columns.apart == "runs" and n_rows > 1 and not set(_ALONG) & set(columns.named)

    def read(self) -> ObservationFile:
        columns, rows_of = self.columns, self.table.rows
        parts = [part for of, fields in self.apart() for part in self.of_text(of, fields)]
        if self.few:
            raise self.too_few()
        if columns.has_rbp and columns.apart != "texts":  # each row must then have a value
            silent = ~self.has_value & ~self.faults.rows(self.n_rows)
            self.faults.add(np.flatnonzero(silent), f"{columns.shown('rbp')} {_MISSING_RBP}")
        faulty = self.faults.rows(self.n_rows)
        only_planned = self.is_planned & ~self.has_value & ~faulty
        empty = ~self.has_value & ~only_planned & ~(faulty & columns.has_rbp)
        whole = pa.concat_tables(parts)
        rows = whole["row"].to_numpy()
        order = np.argsort(rows, kind="stable")
        observations = whole.take(order[~faulty[rows[order]]])
        # Of a row that also has values of other runs, each has an empty one.
        n_planned = int(np.sum(~stated(observations)))
        return ObservationFile(
            observations=observations,
            faults=self.faults.only(~empty),
            n_empty=int(empty.sum()),
            n_missing=int(self.n_missing[self.has_value].sum()) - n_planned + int(only_planned.sum()),
            rounded=self.rounded,
            steps=(rows_of[0].number, rows_of[-1].number) if self.counts_steps else None,
            n_planned=n_planned,
        )

    def apart(self) -> Iterator[tuple[Columns, dict[str, pa.Array]]]:
        """The columns of each text and run, and the fields of models, trainings and protocols that it shares."""
        columns, per_step = self.columns, self.config.tokens_per_step
        needed = {"family", *(["ties"] if columns.has_rbp else []), *(["dataset"] if columns.apart != "texts" else [])}
        needed |= set() if columns.apart == "runs" else {"non_embedding_params"}
        shared = {name: self.field(name, columns, name in needed) for name in (*_OF_ALL, *varied(columns.named))}
        self.count_tokens(shared, self.field("tokens_per_step", columns))
        if columns.apart != "runs":
            self.count_tokens(shared, self.repeated(per_step, "training_tokens"))
            check_sizes(shared, columns, self.faults)
            for text, of_text in columns.parts.items():
                yield of_text, shared | {"dataset": self.repeated(text, "dataset")}
            yield from () if columns.parts else [(columns, shared)]
            return
        for run, told in self.config.wide_runs.items():
            facts, of_run = {"tokens_per_step": per_step, "model": run} | told.facts, columns.parts[run]
            steps = self.repeated(facts.pop("tokens_per_step"), "training_tokens")
            fields = shared | {name: self.repeated(value, name) for name, value in facts.items()}
            if self.counts_steps:
                fields["training_step"] = pa.array([row.number for row in self.table.rows])
            if "lr" in of_run.named:
                fields["lr"] = self.field("lr", of_run)
            self.count_tokens(fields, steps)
            check_sizes(fields, columns, self.faults)
            yield of_run, fields

    def count_tokens(self, fields: dict[str, pa.Array], per_step: pa.Array) -> None:
        """Fill in D where it is unknown and steps and tokens per step are known."""
        product = pc.multiply_checked(fields["training_step"], per_step)
        D = fields["training_tokens"] = pc.coalesce(fields["training_tokens"], product)
        step = self.columns.shown("training_step")
        no_tokens = np.flatnonzero(np.array(pc.fill_null(pc.equal(D, 0), False)) & ~self.faults.rows(self.n_rows))
        self.faults.add(no_tokens, f"{step} is 0, and so is D; leave the row out with {typed(where=f'{step} > 0')}")

    def of_text(self, columns: Columns, fields: dict[str, pa.Array]) -> list[pa.Table]:
        """The observations of one text: one for each RBP_k, else one for the other values."""
        fields = fields | {name: self.field(name, columns) for name in _OF_TEXT}
        for part in ("", "_stderr") if "loss_bits" in columns.named else ():
            bits = self.field(f"loss_bits{part}", columns)
            fields[f"cross_entropy_nats{part}"] = pc.multiply(bits, np.log(2))
        if "perplexity" in columns.named:
            fields["cross_entropy_nats"] = pc.ln(self.field("perplexity", columns))
        check_attempts(fields, columns, self.faults)
        shares = self.shares(columns)
        fields["n"] = pc.fill_null(self.field("n", columns), 1)
        parts = [self.part(fields | {"k": k, "rbp": share}, valid(share)) for share, k in shares]
        is_planned = valid(fields["lr"]) & (valid(fields["training_step"]) | valid(fields["training_tokens"]))
        is_planned &= not columns.has_rbp
        self.is_planned |= is_planned
        alone = np.any([is_planned, *(valid(fields[name]) for name in STATED)], axis=0)
        for share, _ in shares:
            alone &= ~valid(share)
        none = dict.fromkeys(("ties", "n"))  # of a row without RBP
        return [*parts, self.part({name: array for name, array in fields.items() if name not in none}, alone)]

    def shares(self, columns: Columns) -> list[tuple[pa.Array, pa.Array]]:
        """Each column of RBP with its k: one whose rows name their k, or one for each k."""
        if "rbp" not in columns.named:
            return [(self.field(name, columns), self.repeated(k, "k")) for name, k in columns.wide.items()]
        share, k = self.field("rbp", columns), self.field("k", columns)
        sound = ~self.faults.rows(self.n_rows)
        self.faults.add(np.flatnonzero(sound & ~valid(share) & valid(k)), f"{columns.named['rbp']} {_MISSING_RBP}")
        self.faults.add(np.flatnonzero(sound & valid(share) & ~valid(k)), f"{columns.shown('k')} {_MISSING_K}")
        return [(share, k)]

    def part(self, fields: dict[str, pa.Array], kept: Mask) -> pa.Table:
        """Some rows of the relation; missing fields are null."""
        columns = with_varied(_SCHEMA, fields)
        known = {name: array for name, array in fields.items() if name in columns.names}
        rows = pa.table(known | {"row": np.arange(len(kept))}).filter(pa.array(kept))
        return with_all(rows, columns)

    def repeated(self, value: Any, field: str) -> pa.Array:
        """One value in all rows."""
        return pa.repeat(pa.scalar(value, _SCHEMA.field(field).type), self.n_rows)

    def field(self, field: str, columns: Columns, needed: bool = False) -> pa.Array:
        """A field of every row, null where empty; refused cells become null and faults.

        Without a column it is the value given for all rows.
        """
        name, times, rule = columns.named.get(field), columns.times.get(field), rule_of(field)
        given = getattr(self.config, _KEYS[field]) if field in _OF_ALL and field in _KEYS else None
        codes, cells = (np.zeros(self.n_rows, int), [None]) if name is None else distinct(self.table.cells(name))
        values, wrong = [], dict[int, CellError]()
        for code, cell in enumerate(cells):
            try:
                values.append(value_of(cell, field, rule.numbers, given, needed, times))
            except CellError as problem:
                values.append(None)
                wrong[code] = problem
        rows = np.flatnonzero(np.isin(codes, list(wrong)))
        factors = {problem.times for problem in wrong.values()}
        factor = factors.pop() if len(factors) == 1 else None  # mends the whole column
        mended = f": {typed(columns={rule.shown: {'column': name, 'times': factor}})}" if factor else ""
        is_once = len(wrong) > 1 and all(problem.of_column for problem in wrong.values())
        if is_once and not mended:  # decimal commas are of the whole file
            raise RbpxError(f"{self.table.rows[rows[0]].place}: {name} {wrong[codes[rows[0]]]}")
        self.faults.add(rows, lambda row: f"{name} {wrong[codes[row]]}{mended}", is_once)
        read = pa.array(values, rule.type).take(pa.array(codes))
        if name is not None and rule.numbers is not None and rule.numbers.is_rounded:
            told = [(code, rule.numbers.exact(cells[code], times)) for code, of in enumerate(values) if of is not None]
            rounded = [code for code, exact in told if exact != values[code]]
            self.rounded |= {name: int(np.isin(codes, rounded).sum())} if rounded else {}
        if name is not None and times is None and rule.least:
            self.count_few(name, field, rule.least, cells, [value for value in values if value is not None])
        if field in (*LOSSES, *OF_ITEM[1:]) or field.startswith("rbp"):  # a row needs one of these
            says = valid(read)
            says[rows] = True
            self.has_value |= says
            self.n_missing += ~says & (field in LOSSES and bool(says.any()))
        return read

    def count_few(self, name: str, field: str, least: int, cells: Sequence[Any], values: Sequence[float]) -> None:
        """Note a column whose numbers, refused ones included, are too small to have no unit."""
        below, most = _MILLIONS if field == "non_embedding_params" else (0, 0)
        if max(values, default=0) >= max(most, least) or any(map(has_unit, cells)):
            return
        numbers = [exact for cell in cells if (exact := large_number(cell)) is not None and exact > 0]
        if numbers and (max(numbers) < least or (min(numbers) < below and max(numbers) < most)):
            self.few[field] = (name, float(min(numbers)), float(max(numbers)))

    def too_few(self) -> RbpxError:
        """The error of numbers so small that nobody knows what they count."""
        of = [(RULES[field].shown, *told) for field, told in self.few.items()]
        most = ", ".join(f"{shown} is {least:,g} to {largest:,g}" for shown, _, least, largest in of)
        told = {name: each for name, each in (self.config.columns or {}).items() if field_of(name) not in self.few}
        told |= {shown: {"column": column, "times": "TIMES"} for shown, column, *_ in of}
        units = ", ".join(f"{RULES[field].units} for {RULES[field].shown}" for field in self.few)
        return RbpxError(
            f"{self.table.path}: {most}, so it may count millions or billions; say so, as {typed(columns=told)}, where "
            f"TIMES is {units}, or 1 for what counts neither"
        )


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


def valid(array: pa.Array | pa.ChunkedArray) -> Mask:
    """Whether each value is known."""
    return np.array(pc.is_valid(array))


def stated(table: pa.Table) -> Mask:
    """Whether each observation has a value, as those of planned steps have not."""
    has: Mask = np.any([valid(table[name]) for name in ("rbp", *STATED)], axis=0)
    return has


def written(S: float) -> str:
    """A size as a label: all its digits, none after the point where it is whole."""
    return str(int(S)) if S == int(S) and S < 1e18 else repr(S)
