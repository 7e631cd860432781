"""The names of features, for tables, plots and the report."""

from typing import Final

__all__ = ["feature_name"]

_NAMES: Final = {
    "cross_entropy": "cross-entropy",
    "bits_per_byte": "bits per byte",
    "rbp": "-ln RBP_",
    "exact_match": "-ln exact match ",
    "error_entropy": "error-entropy",
    "soft_accuracy": "-ln soft accuracy",
}


def feature_name(name: str, k: int | None = None) -> str:
    """A feature with its k."""
    return f"{_NAMES[name]}{'' if k is None else k}"
