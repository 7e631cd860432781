"""Query the store in SQL, read-only.

Answers one SELECT (DuckDB's dialect) over the relations of the store; rbp_at(k, ties) gives RBP at any k. The table
shows the first rows; csv, json and files get all.

Relations are runs, tokens, rank_counts, documents, vocab, observations, fits, rank_fits, failures and forecasts.
"""

from rbpx.cli.registry import Command, Verb
from rbpx.config.keys.output import QueryKeys
from rbpx.errors import RbpxError
from rbpx.spelling import typed

VERB = Verb(
    order=310,
    theme="store",
    examples=(
        'python -m rbpx sql "SELECT size, n_tokens, cross_entropy_nats FROM runs"',
        "python -m rbpx sql \"SELECT size, rbp FROM rbp_at(42, 'mid')\" --format csv",
        'python -m rbpx sql "FROM tokens JOIN runs USING (run_id) JOIN vocab USING (tokenizer_hash, token_id) LIMIT 9"',
    ),
    takes_words=True,
    keys=QueryKeys,
)


def perform(asked: Command) -> None:
    """Answers the query."""
    from rbpx.display.records import print_table
    from rbpx.store.relations import write_views
    from rbpx.store.sql import SqlLimits, connect, user_rows
    from rbpx.store.store import Store

    request, words = asked.request, asked.line.words
    if len(words) != 1:
        raise RbpxError(f"sql takes one query in quotes, got {len(words)}: {typed('sql QUERY')}")
    store = Store(request.store)
    if not store.root.is_dir():
        raise RbpxError(f"store={request.store} does not exist; name another with {typed(store='DIR')}")
    write_views(store)
    limits = SqlLimits(request.sql_timeout_s, request.sql_memory_mib)
    with connect(store, limits=limits) as connection, user_rows(connection, words[0], limits) as rows:
        print_table(rows, request.format, request.output)
