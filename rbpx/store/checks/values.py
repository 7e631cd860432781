"""Values of records and manifests: whether they are of the types of their columns, on which what reads them relies.

A record that was sealed by rbpx always passes. What does not pass was written by hand, by another program, or by no
version of this one; a seal is no secret, and records of early versions have none.
"""

import math
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

import pyarrow as pa

from rbpx.store import schema

_RELATIONS: Final = {
    "runs": schema.RUNS,
    "cells": schema.RUNS,
    "fits": schema.FITS,
    "rank_fits": schema.RANK_FITS,
    "failures": schema.FAILURES,
    "forecasts": schema.FORECASTS,
}
_NEEDED: Final = {
    "runs": (
        *("protocol", "dtype", "text_hash", "tokenizer_hash", "vocab_size", "cross_entropy_nats"),
        *("n_documents", "n_skipped", "n_tokens", "n_bytes"),
    ),
    "cells": ("run_id", "cell_key", "family", "size", "dataset"),
    "fits": ("fit_id", "run_ids", "params"),
    "rank_fits": ("run_id", "distribution", "ties"),
    "failures": ("family", "size", "dataset", "error", "at"),
    "forecasts": ("name", "registered_at", "family", "dataset", "law", "S", "y", "lo", "hi", "follows"),
}
_JSON: Final = ("config", "versions", "params", "weights")  # columns of text in which any JSON is kept


def value_fault(kind: str, record: Mapping[str, Any]) -> str | None:
    """What is wrong with the values of a record, None if nothing is.

    Args:
        kind: `cells`, `fits`, `rank_fits`, `failures` or `forecasts`; `runs` for a manifest.
        record: as it was read.
    """
    if kind == "forecasts":
        of_each = record.get("predictions")
        if not isinstance(of_each, list) or not of_each or not all(isinstance(each, dict) for each in of_each):
            return "it does not say predictions"
        return next((fault for each in of_each if (fault := _row_fault(kind, {**record, **each}))), None)
    return _row_fault(kind, record)


def _row_fault(kind: str, record: Mapping[str, Any]) -> str | None:
    columns = _RELATIONS[kind]
    for name in _NEEDED[kind]:
        if record.get(name) is None and not (name == "n_bytes" and record.get("engine") is not None):
            return f"it does not say {name}"
    for column in columns:
        value = record.get(column.name)
        if value is not None and not _fits(column, value):
            return f"its {column.name} is not {_EXPECTED[_type(column)]}"
    return None


def _fits(column: pa.Field, value: Any) -> bool:
    return _CHECKS[_type(column)](value)


def _type(column: pa.Field) -> str:
    return "an object" if column.name in _JSON else str(column.type)


def _is_text(value: Any) -> bool:
    """Whether a value is text that can be written: JSON can hold halves of characters, files and tables cannot."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_whole(bits: int) -> Callable[[Any], bool]:
    def check(value: Any) -> bool:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return is_number and -(2 ** (bits - 1)) <= value < 2 ** (bits - 1) and value == int(value)

    return check


def _is_real(value: Any) -> bool:
    """Whether a value is a finite number that a float holds exactly."""
    if isinstance(value, int) and not isinstance(value, bool):
        return abs(value) <= 2**53
    return isinstance(value, float) and math.isfinite(value)


def is_time(value: Any) -> bool:
    """Whether a value is a time as `datetime.isoformat` writes it."""
    try:
        datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return False
    return True


_CHECKS: Final[dict[str, Callable[[Any], bool]]] = {
    "string": _is_text,
    "int32": _is_whole(32),
    "int64": _is_whole(64),
    "double": _is_real,
    "bool": lambda value: isinstance(value, bool),
    "timestamp[us]": is_time,
    "list<item: string>": lambda value: isinstance(value, list) and all(map(_is_text, value)),
    "an object": lambda value: isinstance(value, dict),
}
_EXPECTED: Final = {
    "string": "text",
    "int32": "a whole number",
    "int64": "a whole number",
    "double": "a finite number",
    "bool": "true or false",
    "timestamp[us]": "a time",
    "list<item: string>": "a list of texts",
    "an object": "an object",
}
