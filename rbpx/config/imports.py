"""The configuration of an import: one file of published results, as `import` and studies describe it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from decimal import Decimal
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from rbpx.config.keys.key import key, name_of
from rbpx.config.model.training import number_from_0
from rbpx.config.options import Format
from rbpx.errors import RbpxError
from rbpx.files.cells import has_unit, large_number
from rbpx.spelling import typed
from rbpx.ties import Ties

_NAMES: Final = ("size", "revision", "variant", "schedule", "decay")
_OF_PLAN: Final = ("tokens_per_step", "schedule_tokens", "warmup_tokens", "decay_tokens")
_COUNTS: Final = ("training_seed", "unique_tokens", *_OF_PLAN)
_POSITIVE: Final = ("S", "active_params", "total_params")
_KNOWN: Final = ("column", *_POSITIVE, *_NAMES, *_COUNTS, "final_lr")
_DECAYS: Final = ("linear", "exponential", "cosine")
_RUN: Final = ("model", "run", "name")  # columns that name the run of a table of runs
FEW_PARAMS: Final = 10_000  # least S of the largest model in a table whose sizes are plain counts
_FIELDS: Final = {"S": "non_embedding_params", "decay": "lr_decay"}


class Keep(StrEnum):
    """Which of several rows of one model at one step is kept."""

    first = "first"
    last = "last"


@dataclass
class WideRun:
    """A run whose values are columns of a table of steps: quantity -> column, and what its rows share."""

    columns: dict[str, str] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)


def _wide_runs(runs: Mapping[str, Mapping[str, Any]]) -> dict[str, WideRun]:
    read: dict[str, WideRun] = {}
    sizes: list[Any] = []  # as written
    for quantity, named in runs.items():
        for name, told in named.items():
            where = f"runs: {quantity}: {name}"
            known = dict(told) if isinstance(told, Mapping) else {"column": told} if quantity == "lr" else {"S": told}
            run = read.setdefault(str(name), WideRun())
            run.columns[quantity] = str(known.pop("column", name))
            sizes += [known["S"]] if "S" in known else []
            for of, value in known.items():
                fact = _fact(where, of, value)
                if run.facts.setdefault(_FIELDS.get(of, of), fact) != fact:
                    raise RbpxError(f"{where}: {of} is {value}, but another under another quantity; give one of them")
    for name, run in read.items():
        if "non_embedding_params" not in run.facts:
            raise RbpxError(f"runs: {name} has no S, its parameters without embeddings; write {_how()}")
    largest = max((run.facts["non_embedding_params"] for run in read.values()), default=FEW_PARAMS)
    if largest < FEW_PARAMS and not any(map(has_unit, sizes)):
        raise RbpxError(f"runs: S is at most {largest:,g}; write {largest:g}M or {largest:g}B, or 3k of one so small")
    return read


def _how() -> str:
    return f"{typed(runs={'loss_nats': {'COLUMN': '60M', 'OTHER': '1.2B'}})}, with the S of each"


def _told_runs(runs: Any) -> dict[str, Any]:
    """`runs=` with paths replaced by the facts in the tables of runs that they name."""
    from rbpx.files.rows import format_of

    told = {
        quantity: _read_facts(Path(named)) if isinstance(named, str) and format_of(Path(named)) else named
        for quantity, named in (runs.items() if isinstance(runs, Mapping) else ())
    }
    if not isinstance(runs, Mapping) or not all(isinstance(of, Mapping) for of in told.values()):
        raise RbpxError(f"runs={runs} is not a mapping of quantities to runs; write {_how()}")
    return told


def _read_facts(path: Path) -> dict[str, dict[str, Any]]:
    """Facts by run, under the names of `runs=`, from a table with a row for each run."""
    from rbpx.files.rows import read_table

    table = read_table(path.expanduser())
    by_name = {column.strip().lower(): column for column in table.columns}
    of_name = next((by_name[name] for name in _RUN if name in by_name), None)
    if of_name is None:
        raise RbpxError(f"{path} has no column {', '.join(_RUN[:-1])} or {_RUN[-1]}, which names the run of each row")
    given = {name: by_name[name.lower()] for name in _KNOWN if name.lower() in by_name}
    told: dict[str, dict[str, Any]] = {}
    for row in table.rows:
        run = str(row.values.get(of_name))
        if run in told or row.values.get(of_name) is None:
            raise RbpxError(f"{row.place}: {of_name} is {run}; give each run one row of its own")
        told[run] = {name: row.values[of] for name, of in given.items() if row.values.get(of) is not None}
    return told


def _fact(where: str, key: Any, value: Any) -> Any:
    if key in _NAMES:
        return name_of(f"{where}: {key}", value)
    if key not in _KNOWN:
        raise RbpxError(f"{where}: {key} is not known of a run; known: {', '.join(_KNOWN)}")
    return number_from_0(f"{where}: {key}", value, int if key in _COUNTS else float, is_positive=key in _POSITIVE)


@dataclass
class ImportConfig:
    """One file of published results: what its columns mean, and values for rows that do not name one.

    Attributes:
        file: in a named study, relative to the study's file.
    """

    file: str | None = None
    source: Any = key(None, "their name in the store", shown="NAME", text=True)
    ties: Ties | None = key(
        None,
        "tie rule of the ranks: pessimistic, optimistic, mid; not for losses alone",
        shown="RULE",
    )
    family: Any = key(None, "family of the models", shown="NAME", text=True)
    dataset: Any = key(None, "name of the text", shown="NAME", text=True)
    revision: Any = key(None, "revision of the models", shown="NAME", text=True)
    protocol: Any = key(None, "protocol of the measurement", shown="NAME", text=True)
    dtype: Any = key(None, "precision of the models", shown="NAME", text=True)
    variant: Any = key(None, "how the models were trained", shown="NAME", text=True)
    schedule: Any = key(
        None,
        "schedule of the learning rate: constant, wsd, cosine or another that decays",
        shown="NAME",
        text=True,
    )
    tokens_per_step: Any = key(None, "as 4M: makes D of the step", shown="N")
    schedule_tokens: Any = key(None, "as 100B: D at which the schedule ends", shown="N")
    warmup_tokens: Any = key(None, "D until which the rate rises, of the plan of a run (`trajectory`)", shown="N")
    decay_tokens: Any = key(None, "tokens of the decay at the end of schedule=wsd", shown="N")
    decay: Any = key(None, f"how wsd falls: {', '.join(_DECAYS)}; linear if left out", shown="NAME", text=True)
    final_lr: Any = key(
        None, "rate at the end of the plan, 0 if left out; a share of the highest where no lr is known", shown="RATE"
    )
    columns: Any = key(
        None,
        "'{our name: their name}', for columns of other names: '{S: params, D: tokens, loss_nats: loss}'; "
        "'{S: {column: Size, times: 1e9}}' of one that counts billions",
    )
    texts: Any = key(None, "'{text: {quantity: column}}', where several texts stand side by side in columns")
    runs: Any = key(
        None,
        "'{quantity: {column: S}}', where each run has a column; {S: 60M, column: NAME, variant: x, "
        "tokens_per_step: 4M} in place of S says more of a run, and so does a table with a row for each: "
        "'{quantity: runs.csv}'",
    )
    where: Any = key(
        None, "a condition on the columns of the file: only rows for which it is true come in", shown="SQL"
    )
    decimal: Any = key(None, "where decimals stand after a comma, as in 2,71", shown="','", text=True)
    sheet: Any = key(None, "of an .xlsx file where several hold something", shown="NAME", text=True)
    keep: Keep | None = key(
        None,
        "the last or the first row stays of a step that a restart wrote twice; without it they are refused",
        shown="last",
    )
    replace: bool = key(
        False, "what an earlier file of that name gave to that source goes, and this one stands for it", shown="true"
    )

    def __post_init__(self) -> None:
        for each in fields(self):
            if each.metadata.get("text"):
                name_of(each.name, getattr(self, each.name))
        if not re.fullmatch(r"(?!measured$)[a-z0-9][a-z0-9._-]{0,63}", self.source or "", re.IGNORECASE):
            others = [f"{name}=NAME" for name in ("family", "dataset") if getattr(self, name) is None]
            raise RbpxError(
                f"an import needs source=NAME, which says whose results they are, got source={self.source}; give "
                "letters, digits, '.', '_' and '-', at most 64, other than measured, which is rbpx itself"
                + (f"; and {' and '.join(others)} where no column says it" if others and not self.source else "")
            )
        if self.decimal not in (None, ".", ","):
            raise RbpxError(f"decimal={self.decimal} is no decimal sign; give {typed(decimal=',')} for 2,71")
        for name in (*_OF_PLAN, "final_lr"):
            if getattr(self, name) is not None:
                kind = float if name == "final_lr" else int
                setattr(self, name, number_from_0(name, getattr(self, name), kind))
        if self.decay is not None and (self.decay not in _DECAYS or (self.decay == _DECAYS[1] and not self.final_lr)):
            above = f"; {_DECAYS[1]} needs final_lr= above 0" * (self.decay in _DECAYS)
            raise RbpxError(f"decay={self.decay} is no way to fall; give {', '.join(_DECAYS)}{above}")
        choices = self.texts if isinstance(self.texts, dict) else {} if self.texts is None else {"each": self.texts}
        for text, choice in choices.items():
            name_of("texts", text)
            _check_columns(f"texts: {text}", choice, typed(texts={"c4": {"loss_nats": "NAME"}}))
        if self.columns:
            _check_columns("columns", self.columns, typed(columns={"rbp": "NAME", "k": "NAME"}))
        self.runs = None if self.runs is None else _told_runs(self.runs)
        if (self.wide_runs or self.dataset is not None) and self.texts:
            raise RbpxError("texts= names the texts that stand side by side; leave out dataset= and runs= beside it")

    @cached_property
    def wide_runs(self) -> dict[str, WideRun]:
        """The runs that have a column each, by name."""
        return _wide_runs(self.runs or {})


def choice_of(told: Any) -> tuple[str, Decimal | None]:
    """The column chosen for a field, and the factor of its numbers."""
    return (told["column"], large_number(told["times"])) if isinstance(told, Mapping) else (told, None)


def _check_columns(where: str, columns: Any, how: str) -> None:
    pairs = columns.items() if isinstance(columns, dict) else ()
    if not pairs or not all(isinstance(name, str) for name, _ in pairs):
        raise RbpxError(f"{where}={columns} is not a mapping of fields to columns; write {how}")
    for name, told in pairs:
        if isinstance(told, str):
            continue
        known = told if isinstance(told, Mapping) and {"column", "times"} == set(told) else {}
        times = large_number(known.get("times"))
        if not isinstance(known.get("column"), str) or times is None or not times > 0:
            both = typed(columns={"S": {"column": "Model Size (B)", "times": "1e9"}})
            raise RbpxError(f"{where}: {name} is {told}; give a column, or a column and a number above 0: {both}")


@dataclass
class ImportRequest(ImportConfig):
    """The request of `python -m rbpx import`; `dataset=`, `protocol=` and `engine=` are plain names here."""

    store: str = key(
        "${oc.env:RBPX_STORE,store}", "folder of the store (--store DIR), default $RBPX_STORE or store/", shown="DIR"
    )
    format: Format = key(Format.table, "or csv, json: how --dry-run prints its rows", shown="table")
    dry_run: bool = key(
        False, "says what would come in, by text and quantity, and writes nothing (--dry-run)", shown="true"
    )
    engine: Any = key(None, "the engine that computed the rows of `import tokens FILE`", shown="NAME", text=True)
    engine_version: Any = key(None, "version of that engine", shown="NAME", text=True)
    size: Any = key(None, "size of the one model of a file", shown="NAME", text=True)
    S: Any = key(None, "non-embedding parameters of that model, as 6.5B", shown="N")
    filter: Any = key(
        None,
        "filter of the answers of `import samples`, as strict-match, if the file has several",
        shown="NAME",
        text=True,
    )
    vocab_size: int | None = key(None, "entries of the vocabulary of that model", shown="N")

    def __post_init__(self) -> None:
        """Checks the values; the source of an import of tokens is their engine."""
        if self.source is None:
            self.source = self.engine
        if self.S is not None:
            self.S = number_from_0("S", self.S, int, is_positive=True)
        super().__post_init__()
