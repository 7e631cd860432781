"""The configuration of an import: one file of other people's results, as `import` and the studies describe it.

What a request says of runs that have a column each in, each run with its columns and facts out.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from rbpx.config.keys.key import explained, name_of
from rbpx.config.model.training import number_from_0
from rbpx.config.options import Format
from rbpx.errors import RbpxError
from rbpx.ties import Ties
from rbpx.typed import typed

_NAMES: Final = ("size", "revision", "variant", "schedule")
_COUNTS: Final = ("training_seed", "unique_tokens", "tokens_per_step", "schedule_tokens")
_POSITIVE: Final = ("S", "active_params", "total_params")
_KNOWN: Final = ("column", *_POSITIVE, *_NAMES, *_COUNTS)
_RUN: Final = ("model", "run", "name")  # columns that name the run of a table of runs
_FIELDS: Final = {"S": "non_embedding_params"}


@dataclass
class WideRun:
    """One run of a table of steps.

    Attributes:
        columns: quantity -> its column in the file.
        facts: what is the same in all its rows, by field.
    """

    columns: dict[str, str] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)


def read_wide_runs(runs: Any) -> dict[str, WideRun]:
    """Run -> its columns and facts, of quantity -> run -> S, or what is known of it.

    Raises:
        RbpxError: it is not such a mapping, a run has no S, or two of its facts differ.
    """
    read: dict[str, WideRun] = {}
    for quantity, named in (told_runs(runs) or {}).items():
        for name, told in named.items():
            where = f"runs: {quantity}: {name}"
            known = dict(told) if isinstance(told, Mapping) else {"column": told} if quantity == "lr" else {"S": told}
            run = read.setdefault(str(name), WideRun())
            run.columns[quantity] = str(known.pop("column", name))
            for key, value in known.items():
                fact = _fact(where, key, value)
                if run.facts.setdefault(_FIELDS.get(key, key), fact) != fact:
                    raise RbpxError(f"{where}: {key} is {value}, but another under another quantity; give one of them")
    for name, run in read.items():
        if "non_embedding_params" not in run.facts:
            raise RbpxError(f"runs: {name} has no S, its parameters without embeddings; write {_how()}")
    return read


def _how() -> str:
    return f"{typed(runs={'loss_nats': {'COLUMN': '60M', 'OTHER': '1.2B'}})}, with the S of each"


def told_runs(runs: Any) -> Any:
    """`runs=` with what tables of runs say in place of their paths.

    Raises:
        RbpxError: it is not a mapping of quantities to mappings of runs.
    """
    told = {quantity: _told(named) for quantity, named in runs.items()} if isinstance(runs, Mapping) else runs
    if told is not None and not (isinstance(told, Mapping) and all(isinstance(of, Mapping) for of in told.values())):
        raise RbpxError(f"runs={runs} is not a mapping of quantities to runs; write {_how()}")
    return told


def _told(named: Any) -> Any:
    """What is known of each run, from the table where a text names one."""
    from rbpx.files.rows import format_of

    return read_facts(Path(named)) if isinstance(named, str) and format_of(Path(named)) else named


def read_facts(path: Path) -> dict[str, dict[str, Any]]:
    """Run -> what a table with a row for each run says of it, by the names of `runs=`; other columns are ignored.

    Raises:
        RbpxError: it cannot be read, has no column model, run or name, or says a run twice.
    """
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
    if key in _POSITIVE:
        return number_from_0(f"{where}: {key}", value, float, is_positive=True)
    if key in _COUNTS:
        return number_from_0(f"{where}: {key}", value, int)
    raise RbpxError(f"{where}: {key} is not known of a run; known: {', '.join(_KNOWN)}")


@dataclass
class ImportConfig:
    """One file of other people's results: what its columns mean, and the values for those it lacks.

    Attributes:
        file: CSV, Parquet, JSON or JSONL; in a named study, relative to the study's file.
        source: whose results they are.
        ties: tie rule of rows that name none; None where the file has a column `ties`.
        family: of rows that name none.
        dataset: of rows that name none.
        revision: of rows that name none.
        protocol: of rows that name none.
        dtype: of rows that name none.
        variant: of rows that name none.
        schedule: of the learning rate, of rows that name none.
        tokens_per_step: which makes D of the step, of rows that say neither.
        columns: field -> column of the file, where the column's name does not make it clear.
        texts: text -> field -> column, where several texts stand side by side in the columns of one file.
        runs: quantity -> run -> S, or what is known of the run, where each run has a column of its own.
        where: a condition of SQL on the file's own columns, which chooses rows.
    """

    file: str | None = None
    source: Any = explained(None, "NAME", "under which the observations are kept")
    ties: Ties | None = explained(
        None, "RULE", "of their ranks: pessimistic, optimistic, mid; unless a column says it; not for losses alone"
    )
    family: Any = explained(None, "NAME", "of the models, unless a column says it")
    dataset: Any = explained(None, "NAME", "of the text, unless a column says it")
    revision: Any = explained(None, "NAME", "if it is known")
    protocol: Any = explained(None, "NAME", "if it is known")
    dtype: Any = explained(None, "NAME", "if it is known")
    variant: Any = explained(None, "NAME", "how the models were trained, if it is known")
    schedule: Any = explained(
        None, "NAME", "of the learning rate, unless a column says it: constant, wsd, cosine or another that decays"
    )
    tokens_per_step: Any = explained(None, "N", "as 4M: makes D of the step, unless a column says it")
    columns: Any = explained(  # a dict; Hydra adds no keys to one that is typed
        None, "", "'{our name: their name}', for columns of other names: '{S: params, D: tokens, loss_nats: loss}'"
    )
    texts: Any = explained(  # as columns
        None, "", "'{text: {quantity: column}}', where several texts stand side by side in columns"
    )
    runs: Any = explained(  # as columns
        None,
        "",
        "'{quantity: {column: S}}', where each run has a column; {S: 60M, column: NAME, variant: x, "
        "tokens_per_step: 4M} in place of S says more of a run, and so does a table with a row for each: "
        "'{quantity: runs.csv}'",
    )
    where: Any = explained(
        None, "SQL", "a condition on the columns of the file: only rows for which it is true come in"
    )

    def __post_init__(self) -> None:
        """Refuse an import without a valid source, and columns that are not said.

        Raises:
            RbpxError: no source, an invalid or reserved one, or a number where a name is expected.
        """
        for each in fields(self):
            if each.metadata.get("shown") == "NAME":
                name_of(each.name, getattr(self, each.name))
        if not re.fullmatch(r"(?!measured$)[a-z0-9][a-z0-9._-]{0,63}", self.source or "", re.IGNORECASE):
            raise RbpxError(
                f"an import needs source=NAME, which says whose results they are, got source={self.source}; give "
                "letters, digits, '.', '_' and '-', at most 64, other than measured, which is rbpx itself"
            )
        if self.tokens_per_step is not None:
            self.tokens_per_step = number_from_0("tokens_per_step", self.tokens_per_step, int)
        choices = self.texts if isinstance(self.texts, dict) else {} if self.texts is None else {"each": self.texts}
        for text, choice in choices.items():
            name_of("texts", text)
            _check_columns(f"texts: {text}", choice, typed(texts={"c4": {"loss_nats": "NAME"}}))
        if self.columns:
            _check_columns("columns", self.columns, typed(columns={"rbp": "NAME", "k": "NAME"}))
        if (self.wide_runs() or self.dataset is not None) and self.texts:
            raise RbpxError("texts= names the texts that stand side by side; leave out dataset= and runs= beside it")

    def wide_runs(self) -> dict[str, WideRun]:
        """The runs that have a column each, by name.

        Raises:
            RbpxError: what is said of them is not valid.
        """
        return read_wide_runs(self.runs)


def _check_columns(where: str, columns: Any, how: str) -> None:
    """Refuse a choice of columns that is not field -> column."""
    pairs = columns.items() if isinstance(columns, dict) else ()
    if not pairs or not all(isinstance(name, str) for pair in pairs for name in pair):
        raise RbpxError(f"{where}={columns} is not a mapping of fields to columns; write {how}")


@dataclass
class ImportRequest(ImportConfig):
    """What `python -m rbpx import` can be asked.

    `dataset=`, `protocol=` and `engine=` are passed in `plain`: by their own names Hydra would look for files of conf/.
    """

    dataset: Any = explained("${plain.dataset}", "NAME", "of the text, unless a column says it")
    protocol: Any = explained("${plain.protocol}", "NAME", "if it is known")
    plain: dict[str, Any] = field(default_factory=lambda: {"dataset": None, "protocol": None, "engine": None})
    store: str = explained(
        "${oc.env:RBPX_STORE,store}", "DIR", "folder of the store (--store DIR), default $RBPX_STORE or store/"
    )
    format: Format = explained(Format.table, "table", "or csv, json: how --dry-run prints its rows")
    dry_run: bool = explained(
        False, "true", "says what would come in, by text and quantity, and writes nothing (--dry-run)"
    )
    engine: Any = explained("${plain.engine}", "NAME", "that told the rows of `import tokens FILE`")
    engine_version: Any = explained(None, "NAME", "of that engine")
    size: Any = explained(None, "NAME", "of the one model of `import tokens` and `import samples`")
    S: Any = explained(None, "N", "its non-embedding parameters, as 6.5B")
    vocab_size: int | None = explained(None, "N", "entries of its vocabulary")

    def __post_init__(self) -> None:
        """Refuse an import without a valid source; that of tokens is their engine.

        Raises:
            RbpxError: as for any import.
        """
        if self.source is None:
            self.source = self.engine
        if self.S is not None:
            self.S = number_from_0("S", self.S, int, is_positive=True)
        super().__post_init__()
