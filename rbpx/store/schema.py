"""Columns and types of the relations in a store; `meanings` has their units."""

from typing import Any, Final

import pyarrow as pa

FORMAT = 2  # of the run folders; part of run_id, so that under a new format everything is measured again

TOKENS = pa.schema(
    [
        ("run_id", pa.string()),
        ("doc_id", pa.int32()),
        ("position", pa.int32()),
        ("token_id", pa.int32()),
        ("greater", pa.int32()),
        ("ties", pa.int32()),
        ("logprob", pa.float32()),
        ("first_byte", pa.int32()),  # null, as is the next, in runs of earlier versions
        ("n_bytes", pa.int32()),
    ]
)
ITEMS_TOKENS = pa.schema(  # of a run on items; null in a run on texts
    [*TOKENS, ("item", pa.int32()), ("choice", pa.int32()), ("correct", pa.bool_())]
)
RANK_COUNTS = pa.schema(
    [
        ("run_id", pa.string()),
        ("greater", pa.int32()),
        ("ties", pa.int32()),
        ("n_tokens", pa.int64()),
        ("sum_logprob", pa.float64()),
    ]
)
DOCUMENTS = pa.schema(
    [
        ("run_id", pa.string()),
        ("doc_id", pa.int32()),
        ("source_id", pa.string()),
        ("n_bytes", pa.int64()),
        ("n_tokens", pa.int32()),
        ("n_scored", pa.int32()),
        ("n_bytes_scored", pa.int64()),
    ]
)
ITEMS_DOCUMENTS = pa.schema(
    [
        *DOCUMENTS,
        ("item", pa.int32()),
        ("choice", pa.int32()),
        ("correct", pa.bool_()),
        ("n_characters", pa.int32()),
        ("n_answer_bytes", pa.int32()),
        ("category", pa.string()),
        ("domain", pa.string()),
        ("n_words", pa.int32()),
    ]
)
TEMPERATURES = pa.schema(
    [
        ("run_id", pa.string()),
        ("doc_id", pa.int32()),
        ("beta", pa.float64()),
        ("n_tokens", pa.int64()),
        ("sum_loss_nats", pa.float64()),
        ("sum_slope_nats", pa.float64()),
        ("sum_curvature_nats", pa.float64()),
    ]
)
BEST = pa.schema(
    [
        ("run_id", pa.string()),
        ("doc_id", pa.int32()),
        ("position", pa.int32()),
        ("token_ids", pa.list_(pa.int32())),
        ("logprobs", pa.list_(pa.float32())),
    ]
)
VOCAB = pa.schema([("tokenizer_hash", pa.string()), ("token_id", pa.int32()), ("text", pa.string())])
TRAINING = pa.schema(  # of the model, as far as it is known; null in runs of earlier versions
    [
        ("training_tokens", pa.int64()),
        ("training_flops", pa.float64()),
        ("training_step", pa.int64()),
        ("unique_tokens", pa.int64()),
        ("training_seed", pa.int64()),
        ("variant", pa.string()),
    ]
)
RUNS = pa.schema(
    [
        ("run_id", pa.string()),
        ("cell_key", pa.string()),
        ("family", pa.string()),
        ("size", pa.string()),
        ("model", pa.string()),
        ("revision", pa.string()),
        ("dataset", pa.string()),
        ("dataset_commit", pa.string()),
        ("protocol", pa.string()),
        ("window", pa.int32()),
        ("stride", pa.int32()),
        ("padding", pa.string()),
        ("bos", pa.string()),
        ("dtype", pa.string()),
        ("quantise", pa.string()),
        ("deterministic", pa.bool_()),
        ("head", pa.string()),
        ("non_embedding_params", pa.int64()),
        ("total_params", pa.int64()),
        ("vocab_size", pa.int32()),
        *TRAINING,
        ("n_documents", pa.int32()),
        ("n_skipped", pa.int32()),
        ("n_tokens", pa.int64()),
        ("n_bytes", pa.int64()),
        ("n_bytes_scored", pa.int64()),
        ("cross_entropy_nats", pa.float64()),
        ("text_hash", pa.string()),
        ("tokenizer_hash", pa.string()),
        ("weights_hash", pa.string()),
        ("engine", pa.string()),  # null, as is the next, where rbpx measured itself
        ("engine_version", pa.string()),
        ("device", pa.string()),
        ("n_processes", pa.int32()),
        ("tokens_per_s", pa.float64()),
        ("wall_s", pa.float64()),
        ("peak_mib", pa.float64()),
        ("started_at", pa.timestamp("us")),
        ("asked_at", pa.timestamp("us")),
        ("config", pa.string()),
        ("versions", pa.string()),
    ]
)
OBSERVATIONS = pa.schema(
    [
        ("source", pa.string()),
        ("family", pa.string()),
        ("size", pa.string()),
        ("model", pa.string()),
        ("revision", pa.string()),
        ("non_embedding_params", pa.float64()),
        ("dataset", pa.string()),
        ("text_hash", pa.string()),
        ("protocol", pa.string()),
        ("dtype", pa.string()),
        ("k", pa.int32()),
        ("n", pa.int32()),
        ("ties", pa.string()),
        ("rbp", pa.float64()),
        ("n_tokens", pa.int64()),
        ("cross_entropy_nats", pa.float64()),
        ("cross_entropy_nats_stderr", pa.float64()),
        ("bits_per_byte", pa.float64()),
        ("bits_per_byte_stderr", pa.float64()),
        ("accuracy", pa.float64()),
        ("accuracy_stderr", pa.float64()),
        *TRAINING,
        ("run_id", pa.string()),
    ]
)
FITS = pa.schema(
    [
        ("fit_id", pa.string()),
        ("law", pa.string()),
        ("source", pa.string()),
        ("family", pa.string()),
        ("size", pa.string()),
        ("model", pa.string()),  # null, as is all that is not the same for all runs of a law
        ("non_embedding_params", pa.float64()),
        ("dataset", pa.string()),
        ("dataset_b", pa.string()),
        ("text_hash", pa.string()),
        ("protocol", pa.string()),
        ("window", pa.int32()),
        ("stride", pa.int32()),
        ("padding", pa.string()),
        ("bos", pa.string()),
        ("dtype", pa.string()),
        ("revision", pa.string()),
        *TRAINING,
        ("engine", pa.string()),
        ("k", pa.int32()),
        ("ties", pa.string()),
        ("method", pa.string()),
        ("axis", pa.string()),
        ("form", pa.string()),
        ("objective_name", pa.string()),
        ("delta", pa.float64()),
        ("n_points", pa.int32()),
        ("C", pa.float64()),
        ("alpha", pa.float64()),
        ("alpha_stderr", pa.float64()),
        ("alpha_lo", pa.float64()),
        ("alpha_hi", pa.float64()),
        ("r2", pa.float64()),
        ("aic", pa.float64()),
        ("bic", pa.float64()),
        ("backtest_error", pa.float64()),
        ("status", pa.string()),
        ("params", pa.string()),
        ("run_ids", pa.list_(pa.string())),
        ("created_at", pa.timestamp("us")),
    ]
)
RANK_FITS = pa.schema(
    [
        ("run_id", pa.string()),
        ("distribution", pa.string()),
        ("ties", pa.string()),
        ("params", pa.string()),
        ("loglik", pa.float64()),
        ("aic", pa.float64()),
        ("bic", pa.float64()),
        ("distance", pa.float64()),
        ("status", pa.string()),
        ("created_at", pa.timestamp("us")),
    ]
)
FAILURES = pa.schema(
    [
        ("cell_key", pa.string()),
        ("family", pa.string()),
        ("size", pa.string()),
        ("dataset", pa.string()),
        ("error", pa.string()),
        ("at", pa.timestamp("us")),
        ("traceback", pa.string()),
    ]
)
FORECASTS = pa.schema(  # a row for each prediction of a record
    [
        ("forecast_id", pa.string()),
        ("name", pa.string()),
        ("registered_at", pa.timestamp("us")),
        ("seen_at", pa.timestamp("us")),  # not of the record: when the store first had it, null where that is not known
        ("source", pa.string()),
        ("family", pa.string()),
        ("dataset", pa.string()),
        ("text_hash", pa.string()),
        ("protocol", pa.string()),
        ("window", pa.int32()),
        ("stride", pa.int32()),
        ("padding", pa.string()),
        ("bos", pa.string()),
        ("dtype", pa.string()),
        ("revision", pa.string()),
        ("variant", pa.string()),
        ("engine", pa.string()),
        ("ties", pa.string()),
        ("law", pa.string()),
        ("k", pa.int32()),
        ("S", pa.float64()),
        ("D", pa.float64()),
        ("y", pa.float64()),
        ("lo", pa.float64()),
        ("hi", pa.float64()),
        ("beyond", pa.float64()),
        ("status", pa.string()),
        ("weights", pa.string()),
        ("fit_id", pa.string()),
        ("n_points", pa.int32()),
        ("points_hash", pa.string()),
        ("run_ids", pa.list_(pa.string())),
        ("follows", pa.list_(pa.string())),
        ("versions", pa.string()),
    ]
)


# Measured (benchmarks/README.md): 5.7 bytes a token, and 1.3 for its place in the text; dictionaries for all columns
# take 8.1 and 2. Readers need not know.
LAYOUT: Final[dict[str, Any]] = {
    "tokens": {
        "use_dictionary": ["run_id", "token_id", "greater", "ties", "n_bytes", "choice"],
        "column_encoding": {
            "doc_id": "DELTA_BINARY_PACKED",
            "item": "DELTA_BINARY_PACKED",
            "position": "DELTA_BINARY_PACKED",
            "logprob": "BYTE_STREAM_SPLIT",
            "first_byte": "DELTA_BINARY_PACKED",
        },
    },
    "rank_counts": {
        "use_dictionary": ["run_id", "ties", "n_tokens"],
        "column_encoding": {"greater": "DELTA_BINARY_PACKED", "sum_logprob": "BYTE_STREAM_SPLIT"},
    },
    "documents": {},
}
