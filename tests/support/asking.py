"""Questions asked of a store in Python: their rows and words, without a command line, Hydra or an index."""

import contextlib
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, get_args

import pandas as pd
import pytest

from rbpx.cli.registry import asking
from rbpx.config.imports import ImportConfig
from rbpx.config.request import KEYS
from rbpx.config.text.dataset import DatasetConfig
from rbpx.errors import RbpxError
from rbpx.files.output import plain
from rbpx.questions import render
from rbpx.questions.ask import answer_all, groups_of
from rbpx.store.imports.table import import_file
from rbpx.store.messages import collected_messages
from rbpx.store.sql import connected_once
from rbpx.store.store import Store
from rbpx.ties import Ties

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Asked:
    """What a question answered: its rows as JSON has them, and what is said beside them."""

    verb: str
    rows: Rows
    results: list[Any]
    messages: list[str]

    def of_kind(self, kind: str) -> Rows:
        """The rows of a kind."""
        return [row for row in self.rows if row["kind"] == kind]

    def table(self, columns: int = 80, details: bool = True) -> str:
        """What a terminal of that width shows."""
        with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as shown:
            patch.setenv("COLUMNS", str(columns))
            render.show(self.verb, self.results, details)
        return shown.getvalue()

    @property
    def words(self) -> str:
        """All that a terminal shows, in one line."""
        return " ".join(self.table().split())


def ask(store: Path | Store, verb: str, **keys: Any) -> Asked:
    """Ask a question as its verb does; a key of an enumeration takes the word that is typed.

    Raises:
        RbpxError: the request is wrong, or nothing in the store matches it.
    """
    asked = request(store, verb, **keys)
    with connected_once(), collected_messages() as messages:
        found = answer_all([verb], [(asked, None)], {verb})[verb]
    if isinstance(found, RbpxError):
        raise found
    return Asked(verb, as_json(render.rows_of(found)), found, list(messages))


def request(store: Path | Store | str, verb: str = "report", **keys: Any) -> Any:
    """The keys of a verb about a store; a key of an enumeration takes the word that is typed.

    Raises:
        RbpxError: a value is not one that its key takes.
    """
    typed = {name: _typed(name, value) for name, value in keys.items()}
    return asking(verb).made({"store": str(store.root if isinstance(store, Store) else store), **typed})


def as_json(rows: Sequence[dict[str, Any]]) -> Rows:
    """Rows as a program reads them."""
    known = [{name: plain(value) for name, value in row.items()} for row in rows]
    return list(json.loads(json.dumps(known, default=str, allow_nan=False)))


def _typed(name: str, value: Any) -> Any:
    if name == "dataset" and isinstance(value, str):
        return DatasetConfig(name=value)
    kind = KEYS[name].kind
    kinds = [each for each in (kind, *get_args(kind)) if isinstance(each, type) and issubclass(each, Enum)]
    return kinds[0](value) if kinds and isinstance(value, str) else value


@contextlib.contextmanager
def refused(*says: str) -> Iterator[None]:
    """A request that is refused in one line, which says all of this."""
    with pytest.raises(RbpxError) as refusal:
        yield
    line = str(refusal.value)
    assert "\n" not in line
    assert [each for each in says if each not in line] == [], line


def answer_or_refusal(store: Path | Store, verb: str, **keys: Any) -> str:
    """What a terminal shows of a question, or the one line in which it is refused; nothing else may be raised."""
    try:
        return ask(store, verb, **keys).table()
    except RbpxError as refusal:
        line = str(refusal)
    assert "\n" not in line
    return line


def imported(store: Path, table: Any, source: str = "them", **keys: Any) -> Path:
    """The store, into which other people's results were brought, of the family `toy` where nothing says another.

    The table is a file, what is in one with commas, or what pandas makes a table of.

    Raises:
        RbpxError: it is not as it should be.
    """
    if not isinstance(table, str | Path):
        table = pd.DataFrame(table).to_csv(index=False)
    if isinstance(table, str):
        store.parent.mkdir(parents=True, exist_ok=True)
        path = store.with_name(f"{store.name}.csv")
        path.write_text(table, encoding="utf-8")
        keys = ({} if "family" in table.partition("\n")[0].split(",") else {"family": "toy"}) | keys
        table = path
    keys |= {"ties": Ties(keys["ties"])} if "ties" in keys else {}
    import_file(Store(store), table, ImportConfig(source=source, **keys))
    return store


def groups(store: Path | Store, verb: str, **keys: Any) -> list[Any]:
    """The groups of runs that a question would look at.

    Raises:
        RbpxError: as in `ask`.
    """
    with connected_once():
        return list(groups_of(verb, [(request(store, verb, **keys), None)]))
