"""Write a relation or a query as CSV, JSON or Parquet.

Takes the name of a relation or a SELECT. The suffix of --output gives the format; without it CSV is printed. `export
FILE.duckdb` copies all relations as tables into one file, to give away.
"""

from rbpx.cli.registry import Command, Verb
from rbpx.config.keys.output import QueryKeys
from rbpx.config.options import Format
from rbpx.errors import RbpxError

VERB = Verb(
    order=330,
    theme="store",
    examples=(
        "python -m rbpx export observations --output observations.parquet",
        "python -m rbpx export mine.duckdb",
        'python -m rbpx export "SELECT size, cross_entropy_nats FROM runs" --output runs.csv',
    ),
    takes_words=True,
    keys=QueryKeys,
)


def perform(asked: Command) -> None:
    """Writes a relation, or the answer to a query, to a file or to stdout."""
    from rbpx.store.export import export
    from rbpx.store.schema import COLUMNS
    from rbpx.store.sql import SqlLimits

    request, words = asked.request, asked.line.words
    if len(words) != 1:
        raise RbpxError(f"export takes one relation, or one query, got {len(words)}; relations: {', '.join(COLUMNS)}")
    suffix = None if request.format is Format.table else f".{request.format.value}"
    limits = SqlLimits(request.sql_timeout_s, request.sql_memory_mib)
    export(request.store, words[0], request.output, suffix, limits)
