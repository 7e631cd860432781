"""How the columns of a run's tables are encoded in Parquet."""

from typing import Any, Final

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
