"""The verb `export`: any relation, or the answer to a query, out of a store into a file."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

from rbpx.cli.verb import Job, Verb
from rbpx.config.options import Format
from rbpx.errors import RbpxError

if TYPE_CHECKING:
    from rbpx.config.request import Request

VERB = Verb(
    order=330,
    summary="write a relation or a query as CSV, JSON or Parquet",
    help="""\
Takes the name of a relation or a SELECT. The suffix of --output gives the format; without it CSV is printed.""",
    examples=(
        "python -m rbpx export observations --output observations.parquet",
        'python -m rbpx export "SELECT size, cross_entropy_nats FROM runs" --output runs.csv',
    ),
    takes_words=True,
    keys=("format", "output"),
)

_SUFFIXES = (".csv", ".json", ".parquet")


def start(job: Job) -> None:
    """Write a relation, or the answer to a query, to a file or to stdout."""
    from rbpx.files.output import write_csv, write_json, write_parquet
    from rbpx.store.queries import RELATIONS, ask_user, connect
    from rbpx.store.remote import open_store

    request, words = job.request, job.words
    if len(words) != 1:
        raise RbpxError(
            f"export takes one relation, or one query in quotes, got {len(words)}: python -m rbpx export observations "
            f"--output FILE; relations: {', '.join(RELATIONS)}"
        )
    suffix = _suffix(request)
    query = words[0]
    if re.fullmatch(r"[^\s()]+", query):
        if query not in RELATIONS:
            raise RbpxError(f"{query} is not a relation; known: {', '.join(RELATIONS)}; or give a query in quotes")
        query = f"SELECT * FROM {query}"
    store = open_store(request.store)
    if not store.root.is_dir():
        raise RbpxError(f"store={request.store} does not exist; measure or import first, or name it with --store DIR")
    with connect(store) as connection:
        answer = ask_user(connection, query)
    if suffix == ".parquet":
        write_parquet(answer, request.output)
    else:
        (write_json if suffix == ".json" else write_csv)(answer, request.output)


def _suffix(request: "Request") -> str:
    """The kind of file: what the output's name says, else the format format_suffix for, else CSV."""
    format_suffix = None if request.format is Format.table else f".{request.format.value}"
    if request.output is None:
        return format_suffix or ".csv"
    suffix = Path(request.output).suffix.lower()
    if suffix in _SUFFIXES and format_suffix not in (None, suffix):
        raise RbpxError(f"output={request.output} and format={request.format.value} differ; leave one of them out")
    if suffix not in _SUFFIXES and format_suffix is None:
        known = ", ".join(_SUFFIXES)
        raise RbpxError(f"output={request.output} does not tell its format; end it in {known}, or give --format csv")
    return suffix if suffix in _SUFFIXES else str(format_suffix)
