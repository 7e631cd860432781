"""Defines the columns and types of the relations in a store; docs/reference has their units."""

from collections.abc import Iterable
from typing import Any, Final

import pyarrow as pa

from rbpx.errors import RbpxError
from rbpx.spelling import typed

FORMAT = 2  # of the run folders; part of run_id, so that a new format measures everything again


def check_format(run_id: str, number: object) -> None:
    """Raises RbpxError for a run whose format is newer than this version reads."""
    if isinstance(number, int) and number > FORMAT:
        raise RbpxError(
            f"run {run_id} has format {number}, but this rbpx reads formats up to {FORMAT}; update rbpx, or name "
            f"another store: {typed(store='DIR')}"
        )


_TYPES: Final = {  # of a column: in Arrow and in SQL
    "text": (pa.string(), "VARCHAR"),
    "int32": (pa.int32(), "INTEGER"),
    "int64": (pa.int64(), "BIGINT"),
    "float": (pa.float32(), "FLOAT"),
    "double": (pa.float64(), "DOUBLE"),
    "bool": (pa.bool_(), "BOOLEAN"),
    "time": (pa.timestamp("us"), "TIMESTAMP"),
    "texts": (pa.list_(pa.string()), "VARCHAR[]"),
    "int32s": (pa.list_(pa.int32()), "INTEGER[]"),
    "floats": (pa.list_(pa.float32()), "FLOAT[]"),
}
SQL_TYPES: Final = dict(_TYPES.values())


def columns_of(*parts: str | pa.Field) -> pa.Schema:
    """Parse columns from text as `name` or `name type`; the default type is text."""
    fields: list[pa.Field] = []
    for part in parts:
        fields += map(_field, part.split(",")) if isinstance(part, str) else [part]
    return pa.schema(fields)


def _field(column: str) -> pa.Field:
    name, *kind = column.split()
    return pa.field(name, _TYPES[kind[0] if kind else "text"][0])


def with_all(table: pa.Table, columns: pa.Schema) -> pa.Table:
    """Rows with exactly these columns; missing ones, as of earlier versions, are null."""
    own, n = set(table.column_names), table.num_rows
    each = [table[column.name] if column.name in own else pa.nulls(n, column.type) for column in columns]
    return pa.table(each, names=columns.names).cast(columns)


VARY: Final = "vary_"  # prefix of columns of observations that only some files have: what a sweep varies


def varied(names: Iterable[str]) -> list[str]:
    """The sorted names of columns that hold what runs of one size and number of tokens vary."""
    return sorted({name for name in names if name.startswith(VARY)})


def with_varied(columns: pa.Schema, names: Iterable[str]) -> pa.Schema:
    """Append to columns those of `names` that hold what runs vary."""
    return pa.schema([*columns, *(pa.field(name, pa.float64()) for name in varied(names) if name not in columns.names)])


# `first_byte` and `n_bytes` are null in runs of earlier versions.
TOKENS = columns_of(
    "run_id, doc_id int32, position int32, token_id int32, greater int32, ties int32, logprob float, "
    "first_byte int32, n_bytes int32",
)
# Only for runs on items; null in a run on texts.
ITEMS_TOKENS = columns_of(*TOKENS, "item int32, choice int32, correct bool")
RANK_COUNTS = columns_of("run_id, greater int32, ties int32, n_tokens int64, sum_logprob double")
DOCUMENTS = columns_of(
    "run_id, doc_id int32, source_id, n_bytes int64, n_tokens int32, n_scored int32, n_bytes_scored int64",
)
ITEMS_DOCUMENTS = columns_of(
    *DOCUMENTS,
    "item int32, choice int32, correct bool, n_characters int32, n_answer_bytes int32, category, domain, n_words int32",
)
# Columns of a run's tables that its format lacked in earlier versions, or lacks for texts.
OPTIONAL: Final = {"tokens": ITEMS_TOKENS.names[7:], "rank_counts": [], "documents": ITEMS_DOCUMENTS.names[6:]}


def columns_fault(table: str, own: pa.Schema, columns: pa.Schema) -> str | None:
    """How the columns of a run's table differ from those of the format."""
    for column in own:
        if column.name not in columns.names or column.type != columns.field(column.name).type:
            return f"has a column {column.name} {column.type}, which is not of its format"
    lacking = [name for name in columns.names if name not in own.names and name not in OPTIONAL[table]]
    return f"has no column {lacking[0]}" if lacking else None


BEST = columns_of("run_id, doc_id int32, position int32, token_ids int32s, logprobs floats")
VOCAB = columns_of("tokenizer_hash, token_id int32, text")
# Of the model, as far as it is known; null in runs of earlier versions.
TRAINING = columns_of(
    "training_tokens int64, training_flops double, training_step int64, unique_tokens int64, training_seed int64, "
    "variant",
)
# `engine` and its version are null where rbpx measured, `active_params` in runs of earlier versions.
RUNS = columns_of(
    "run_id, cell_key, family, size, model, revision, dataset, dataset_commit, protocol, window int32, stride int32, "
    "padding, bos, dtype, quantise, deterministic bool, head, non_embedding_params int64, active_params int64, "
    "total_params int64, added_params int64, vocab_size int32",
    *TRAINING,
    "n_documents int32, n_skipped int32, n_tokens int64, n_bytes int64, n_bytes_scored int64, "
    "cross_entropy_nats double, text_hash, tokenizer_hash, weights_hash, engine, engine_version, device, "
    "n_processes int32, tokens_per_s double, wall_s double, peak_mib double, started_at time, asked_at time, config, "
    "versions",
)
# Of a cell, as it was asked for; all else is of the manifest of its run.
ASKED: Final = (
    *("cell_key", "family", "size", "model", "revision", "dataset", "dataset_commit", "asked_at", "config"),
    *TRAINING.names,
)
ANY_JSON: Final = ("config", "versions", "params", "weights")  # text columns that hold any JSON
KNOWN: Final = (  # in each manifest
    *("protocol", "dtype", "non_embedding_params", "vocab_size", "text_hash", "tokenizer_hash"),
    *("cross_entropy_nats", "n_documents", "n_skipped", "n_tokens"),
)
FROM_1: Final = (  # where a manifest has them; other numbers are from 0
    *("window", "non_embedding_params", "active_params", "total_params", "vocab_size", "n_documents", "n_tokens"),
    "n_processes",
)
OBSERVATIONS = columns_of(
    "source, family, size, model, revision, non_embedding_params double, dataset, text_hash, protocol, dtype, "
    "k int32, n int32, ties, rbp double, n_tokens int64, cross_entropy_nats double, "
    "cross_entropy_nats_stderr double, bits_per_byte double, bits_per_byte_stderr double, accuracy double, "
    "accuracy_stderr double",
    *TRAINING,
    "weight double, active_params double, total_params int64, schedule, schedule_tokens int64, lr double, "
    "warmup_tokens int64, decay_tokens int64, lr_decay, final_lr double, "
    "n_samples int64, n_correct int64, item, run_id",
)
# A column is null where the runs of a law differ in it, as `model` often is.
FITS = columns_of(
    "fit_id, law, source, family, size, model, non_embedding_params double, dataset, dataset_b, text_hash, protocol, "
    "window int32, stride int32, padding, bos, dtype, revision",
    *TRAINING,
    "engine, k int32, ties, method, axis, form, objective_name, delta double, n_points int32, C double, "
    "alpha double, alpha_stderr double, alpha_lo double, alpha_hi double, r2 double, aic double, bic double, "
    "backtest_error double, status, params, run_ids texts, created_at time",
)
RANK_FITS = columns_of(
    "run_id, distribution, ties, params, loglik double, aic double, bic double, distance double, status, "
    "created_at time",
)
FAILURES = columns_of("cell_key, family, size, dataset, error, at time, traceback")
# A row for each prediction of a record; seen_at is when the store first had it, null where unknown.
FORECASTS = columns_of(
    "forecast_id, name, registered_at time, seen_at time, source, family, dataset, text_hash, protocol, "
    "window int32, stride int32, padding, bos, dtype, revision, variant, engine, ties, law, k int32, S double, "
    "D double, y double, lo double, hi double, beyond double, status, weights, fit_id, n_points int32, points_hash, "
    "run_ids texts, follows texts, versions",
)

# Measured (benchmarks/README.md): 5.7 bytes a token, and 1.3 for its place in the text; 8.1 and 2 with dictionaries
# for all columns. Any reader understands both.
LAYOUT: Final[dict[str, Any]] = {
    "tokens": {
        "use_dictionary": ["run_id", "token_id", "greater", "ties", "n_bytes", "choice"],
        "column_encoding": dict.fromkeys(("doc_id", "item", "position", "first_byte"), "DELTA_BINARY_PACKED")
        | {"logprob": "BYTE_STREAM_SPLIT"},
    },
    "rank_counts": {
        "use_dictionary": ["run_id", "ties", "n_tokens"],
        "column_encoding": {"greater": "DELTA_BINARY_PACKED", "sum_logprob": "BYTE_STREAM_SPLIT"},
    },
    "documents": {},
}

# ----------------------------------------------------------------------------------------------------------- relations

BY_RECORD: Final = {"runs": RUNS, "fits": FITS, "rank_fits": RANK_FITS, "failures": FAILURES, "forecasts": FORECASTS}
BY_FILE: Final = {"tokens": ITEMS_TOKENS, "rank_counts": RANK_COUNTS, "documents": ITEMS_DOCUMENTS}  # of each run
ALONE: Final = {"vocab": VOCAB, "imported": OBSERVATIONS, "best": BEST}  # Parquet files outside the runs


def with_rank(columns: pa.Schema) -> pa.Schema:
    """Columns of a file as its relation shows them: `rank` follows `greater` and `ties`."""
    if "greater" not in columns.names:
        return columns
    return columns.insert(columns.get_field_index("ties") + 1, pa.field("rank", pa.int32()))


COLUMNS: Final = {
    name: with_rank(columns)
    for name, columns in {**BY_RECORD, **BY_FILE, "vocab": VOCAB, "observations": OBSERVATIONS, "best": BEST}.items()
}
"""Of each relation; those of observations without what runs vary."""
