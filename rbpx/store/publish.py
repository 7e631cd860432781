"""Publishes a store as a dataset of a hub: Parquet by relation with a card, which `datasets` and DuckDB read."""

import html
import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from rbpx.errors import MeasureError, RbpxError, first_line, number_of
from rbpx.files.entries import atomic_write_text
from rbpx.store.checks.integrity import read_whole, sound_runs
from rbpx.store.schema import with_all
from rbpx.store.sql import relations
from rbpx.store.sql.queries import connect
from rbpx.store.store import Store
from rbpx.version import __version__

__all__ = ["Published", "publish"]

_PLACE: Final = re.compile(r"hf://datasets/([\w.-]+/[\w.-]+)/?")
_WHOLE: Final = ("observations", "runs", "fits", "vocab")  # a file each; the others have one for each run
_ABSOLUTE: Final = re.compile(r"(?:file:/|~?/|[A-Za-z]:[/\\]).*?([^/\\]*)[/\\]*", re.DOTALL)
_CARD: Final = Path(__file__).with_name("card.md")


@dataclass(frozen=True)
class Published:
    """What was published.

    Attributes:
        repo: ORG/NAME.
        n_runs: runs in it.
        n_tokens: rows of `tokens`.
        n_bytes: of all files.
    """

    repo: str
    n_runs: int
    n_tokens: int
    n_bytes: int


def publish(store: Store, place: str, advance: Callable[[], None] = lambda: None) -> Published:
    """Write the relations of a store as Parquet and send them in one commit; files of an earlier one that are gone, go.

    Args:
        store: the store; runs that are corrupt are left out, and logged.
        place: hf://datasets/ORG/NAME; the repository is made if there is none.
        advance: called after each run.

    Raises:
        RbpxError: it is not such a place, the store holds no runs, or the hub refuses.
        MeasureError: the hub does not answer, or the disk is full; nothing is published then.
    """
    named = _PLACE.fullmatch(place)
    if named is None:
        raise RbpxError(f"publish takes hf://datasets/ORG/NAME, got {place!r}")
    _check_name(named[1])
    run_ids = sound_runs(store)
    if not run_ids:
        raise RbpxError(f"store={store.name} holds no runs to publish; measure first, or name another with --store DIR")
    with store.scratch() as folder:
        try:
            tables = _write_whole(store, folder)
            for run_id in run_ids:
                for table, columns in relations.BY_FILE.items():
                    rows = with_all(read_whole(store.part(run_id, table)), columns)
                    _write(rows, folder / table / f"{run_id}.parquet")
                advance()
            atomic_write_text(folder / "README.md", _card(named[1], tables), durable=False)
        except OSError as problem:
            raise store.unwritten(problem) from None
        n_bytes = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        _send(folder, named[1])
    return Published(named[1], len(run_ids), sum(tables["runs"]["n_tokens"].to_pylist()), n_bytes)


def _write_whole(store: Store, folder: Path) -> dict[str, pa.Table]:
    """Write the relations that are small, and return them."""
    with connect(store) as connection:
        tables = {name: connection.sql(f"FROM {name}").to_arrow_table() for name in _WHOLE}
    tables = {name: table if name == "vocab" else _without_folders(table) for name, table in tables.items()}
    for name, table in tables.items():
        if table.num_rows:
            _write(table, folder / f"{name}.parquet")
    return {name: table for name, table in tables.items() if table.num_rows}


def _without_folders(table: pa.Table) -> pa.Table:
    """A relation in which a path of this machine is the name of its file alone."""
    for place, column in enumerate(table.schema):
        if pa.types.is_string(column.type):
            texts = [None if text is None else _without_folder(text) for text in table[column.name].to_pylist()]
            table = table.set_column(place, column, pa.array(texts, column.type))
    return table


def _without_folder(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_folder(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_without_folder(each) for each in value]
    if isinstance(value, str) and value.startswith("{"):
        with suppress(ValueError, RecursionError):  # a name may begin so, too
            return json.dumps(_without_folder(json.loads(value)))
    path = _ABSOLUTE.fullmatch(value) if isinstance(value, str) else None
    return value if path is None else path[1]


def _write(table: pa.Table, path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    pq.write_table(table, path, compression="zstd")


def _card(repo: str, tables: Mapping[str, pa.Table]) -> str:
    """The card: what is in it and how to read it; its head is how `datasets` finds the files."""
    runs = tables["runs"]
    configs = [f"- config_name: {name}\n  data_files: {name}.parquet" for name in tables]
    configs += [f"- config_name: {name}\n  data_files: {name}/*.parquet" for name in relations.BY_FILE]
    sizes: dict[tuple[str, str, str], dict[str, None]] = {}
    for row in sorted(runs.to_pylist(), key=lambda row: row["non_embedding_params"]):
        sizes.setdefault((row["family"], row["dataset"], row["protocol"]), {})[row["size"]] = None
    rows = [(*names, ", ".join(of)) for names, of in sorted(sizes.items())]
    grid = [f"| {' | '.join(html.escape(cell).replace('|', '&#124;') for cell in row)} |" for row in rows]
    text = _CARD.read_text(encoding="utf-8")
    values = {
        "repo": repo,
        "configs": "\n".join(configs),
        "runs": number_of(runs.num_rows, "run"),
        "tokens": number_of(sum(runs["n_tokens"].to_pylist()), "token"),
        "grid": "\n".join(grid),
        "version": __version__,
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda name: values[name[1]], text)


def _check_name(repo: str) -> None:
    """Refuse a name that no repository can have, before anything is written."""
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils._validators import validate_repo_id

    try:
        validate_repo_id(repo)
    except HFValidationError as problem:
        raise RbpxError(f"publish: {first_line(problem).partition(': ')[2]}") from None


def _send(folder: Path, repo: str) -> None:
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError

    api: Any = HfApi()
    place = f"hf://datasets/{repo}"
    try:
        api.create_repo(repo, repo_type="dataset", exist_ok=True)
        api.upload_folder(
            repo_id=repo,
            repo_type="dataset",
            folder_path=folder,
            commit_message=f"rbpx {__version__}",
            delete_patterns=["*.parquet"],
        )
    except HfHubHTTPError as problem:
        status = problem.response.status_code
        if status in (401, 403) or isinstance(problem, RepositoryNotFoundError):
            raise RbpxError(
                f"{place} cannot be written ({status}); log in with `hf auth login`, or set HF_TOKEN"
            ) from None
        raise MeasureError(f"{place} cannot be written ({status}); run the same line again") from None
    except Exception as problem:  # whatever a network does
        raise MeasureError(f"{place} cannot be written ({first_line(problem)}); run the same line again") from None
