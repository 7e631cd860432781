"""The configuration of an import: one file of other people's results, as `import` and the studies describe it."""

import re
from dataclasses import dataclass, field
from typing import Any

from rbpx.config.options import Format, check_name
from rbpx.errors import RbpxError
from rbpx.files.numbers import large_number
from rbpx.files.wide_runs import WideRun, read_wide_runs
from rbpx.ties import Ties


@dataclass
class ImportConfig:
    """One file of other people's results: what its columns mean, and the values for those it lacks.

    Attributes:
        file: CSV, Parquet, JSON or JSONL; in a named study, relative to the folder of the studies.
        source: whose results they are.
        ties: tie rule of rows that name none; None where the file has a column `ties`.
        family: of rows that name none.
        dataset: of rows that name none.
        revision: of rows that name none.
        protocol: of rows that name none.
        dtype: of rows that name none.
        variant: of rows that name none.
        columns: field -> column of the file, where the column's name does not make it clear.
        texts: text -> field -> column, where several texts stand side by side in the columns of one file.
        runs: quantity -> run -> S, or what is known of the run, where each run has a column of its own.
        where: a condition of SQL on the file's own columns, which chooses rows.
    """

    file: str | None = None
    source: Any = None
    ties: Ties | None = None
    family: Any = None
    dataset: Any = None
    revision: Any = None
    protocol: Any = None
    dtype: Any = None
    variant: Any = None
    columns: Any = None  # a dict; Hydra adds no keys to one that is typed
    texts: Any = None  # as columns
    runs: Any = None  # as columns
    where: Any = None

    def __post_init__(self) -> None:
        """Refuse an import without a valid source.

        Raises:
            RbpxError: no source, an invalid or reserved one, or a number where a name is expected.
        """
        if self.source is None:
            raise RbpxError("an import needs source=NAME, which says whose results they are, as in source=rbp_paper")
        for name in ("source", "family", "dataset", "revision", "protocol", "dtype", "variant"):
            check_name(name, getattr(self, name))
        _check_choice("columns", self.columns, "columns='{rbp: NAME, k: NAME}'")
        if self.texts is not None:
            how = "texts='{c4: {loss_nats: NAME}, hellaswag: {bits_per_byte: NAME, accuracy: NAME}}'"
            if not isinstance(self.texts, dict) or not self.texts:
                raise RbpxError(f"texts={self.texts} is not a mapping; write {how}")
            for text, fields in self.texts.items():
                check_name("texts", text)
                if not fields:
                    raise RbpxError(f"texts: {text} has no columns; write {how}")
                _check_choice(f"texts: {text}", fields, how)
            if self.dataset is not None:
                raise RbpxError(f"dataset={self.dataset} and texts= both name texts; leave one of them out")
        if self.where is not None and (not isinstance(self.where, str) or not self.where.strip()):
            raise RbpxError(f"where={self.where} is no condition; write one of SQL, as in where='loss < 5'")
        if self.wide_runs() and self.texts is not None:
            raise RbpxError("texts= and runs= both say what stands side by side; import one text at a time")
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", self.source):
            raise RbpxError(
                f"source={self.source} is not a valid name; give letters, digits, '.', '_' and '-', at most 64"
            )
        if self.source.lower() == "measured":
            raise RbpxError("source=measured is reserved for what rbpx measured itself; name whose results these are")

    def wide_runs(self) -> dict[str, WideRun]:
        """The runs that have a column each, by name.

        Raises:
            RbpxError: what is said of them is not valid.
        """
        return read_wide_runs(self.runs)


def _check_choice(where: str, choice: Any, how: str) -> None:
    """Refuse a choice of columns that is not field -> column."""
    if not isinstance(choice, dict | None):
        raise RbpxError(f"{where}={choice} is not a mapping; write {how}")
    for name, column in (choice or {}).items():
        if not isinstance(name, str) or not isinstance(column, str):
            raise RbpxError(f"{where}: {name}: {column} is not a pair of names; write {how}")


@dataclass
class ImportRequest(ImportConfig):
    """What `python -m rbpx import` can be asked.

    `dataset=`, `protocol=` and `engine=` are passed in `plain`: by their own names Hydra would look for files of conf/.
    """

    dataset: Any = "${plain.dataset}"
    protocol: Any = "${plain.protocol}"
    plain: dict[str, Any] = field(default_factory=lambda: {"dataset": None, "protocol": None, "engine": None})
    store: str = "${oc.env:RBPX_STORE,store}"
    format: Format = Format.table
    dry_run: bool = False
    engine: Any = "${plain.engine}"  # this and what follows: of `import tokens`; size and S of `import samples` too
    engine_version: Any = None
    size: Any = None
    S: Any = None
    vocab_size: int | None = None

    def __post_init__(self) -> None:
        """Refuse an import without a valid source; that of tokens is their engine.

        Raises:
            RbpxError: as for any import.
        """
        for name in ("engine", "engine_version", "size"):
            check_name(name, getattr(self, name))
        if self.source is None:
            self.source = self.engine
        if self.S is not None:
            exact = large_number(self.S)
            if exact is None or exact != exact.to_integral_value() or not 0 < exact < 2**63:
                raise RbpxError(
                    f"S={self.S} is not a number of parameters; give those without embeddings, as S=6.5B or S=6.5e9"
                )
            self.S = int(exact)
        super().__post_init__()
