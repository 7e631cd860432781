"""The verbs `import` and `export`: other people's results into a store; any relation or answer out of it."""

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rbpx.cli.outcome import Outcome
from rbpx.config.imports import ImportConfig, ImportRequest
from rbpx.config.options import Format
from rbpx.config.places import folder
from rbpx.config.request import Request
from rbpx.errors import RbpxError
from rbpx.files.output import write_csv, write_json, write_parquet
from rbpx.store.imports import Imported, import_file
from rbpx.store.index import refresh_index
from rbpx.store.queries import RELATIONS, ask_user, connect
from rbpx.store.remote import open_store, own_store
from rbpx.store.store import Store


def import_one(request: ImportRequest, words: Sequence[str]) -> Outcome:
    """Bring one file into the store, and say what it brought."""
    named = [*words, *([] if request.file is None else [request.file])]
    if len(named) != 1:
        raise RbpxError(
            f"import takes one file, got {len(named)}: python -m rbpx import FILE source=NAME ties=optimistic"
        )
    store = own_store(request.store)
    _report(import_file(store, Path(named[0]).expanduser(), request), store, request, named[0])
    refresh_index(store)
    return Outcome()


def import_study(imports: Sequence[ImportConfig], store: Store, quiet: bool) -> None:
    """Bring in the files of a named study; paths start at the folder of the studies.

    Processes that measure together all come here: the first brings in, the others find nothing new, and a file that is
    wrong stops them all.
    """
    for number, config in enumerate(imports, 1):
        if config.file is None:
            raise RbpxError(f"import {number} of the study names no file; give it file: PATH")
        path = folder("experiments") / Path(config.file).expanduser()
        imported = import_file(store, path, config)
        if not quiet:
            _report(imported, store, config, path.name)
    if imports:
        refresh_index(store)


def _report(imported: Imported, store: Store, config: ImportConfig, file: str) -> None:
    ones = imported.observations
    models, datasets = len({(one.family, one.size) for one in ones}), len({one.dataset for one in ones})
    brought = (
        f"{len(ones):,} observations of {models} model(s) on {datasets} dataset(s) at {len({o.k for o in ones})} k"
    )
    known = len(ones) - imported.n_new
    there = f" ({known:,} of them were there already)" if known else ""
    if imported.ignored:
        print(f"ignored columns of {file}: {', '.join(imported.ignored)}", file=sys.stderr)
    if imported.n_new:
        print(f"imported {brought} from {file} into {store.root} as {config.source}{there}", file=sys.stderr)
    else:
        print(f"nothing new in {file}: its {brought} are in {store.root} as {config.source}", file=sys.stderr)


# ---------------------------------------------------------------------------------------------------------- export

_WRITERS: dict[str, Any] = {".csv": write_csv, ".json": write_json, ".parquet": write_parquet}


def export(request: Request, words: Sequence[str]) -> Outcome:
    """Write a relation, or the answer to a query, to a file or to stdout."""
    if len(words) != 1:
        raise RbpxError(
            f"export takes one relation, or one query in quotes, got {len(words)}: python -m rbpx export observations "
            f"--output FILE; relations: {', '.join(RELATIONS)}"
        )
    suffix = _suffix(request)
    query = words[0]
    if re.fullmatch(r"[^\s()]+", query):
        if query not in RELATIONS:
            raise RbpxError(f"{query} is no relation; known: {', '.join(RELATIONS)}; or give a query in quotes")
        query = f"SELECT * FROM {query}"
    store = open_store(request.store)
    if not store.root.is_dir():
        raise RbpxError(f"store={request.store} does not exist; measure or import first, or name it with --store DIR")
    with connect(store) as connection:
        answer = ask_user(connection, query)
    _WRITERS[suffix](answer, request.output)
    return Outcome(request)


def _suffix(request: Request) -> str:
    """The kind of file: what the output's name says, else the format asked for, else CSV."""
    asked = None if request.format is Format.table else f".{request.format.value}"
    if request.output is None:
        return asked or ".csv"
    suffix = Path(request.output).suffix.lower()
    if suffix in _WRITERS and asked not in (None, suffix):
        raise RbpxError(f"output={request.output} and format={request.format.value} differ; leave one of them out")
    if suffix not in _WRITERS and asked is None:
        known = ", ".join(_WRITERS)
        raise RbpxError(f"output={request.output} does not tell its format; end it in {known}, or give --format csv")
    return suffix if suffix in _WRITERS else str(asked)
