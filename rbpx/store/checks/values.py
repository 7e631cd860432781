"""Checks records and manifests: whether their values have the types of their columns, and their files the right names.

A record that rbpx sealed always passes. One that fails was written by hand, by another program, or by no version of
rbpx: a seal is no secret, and records of early versions have none. A file under another name than its own is a copy, as
programs that synchronise folders make them, and is not counted.
"""

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from rbpx.files.cells import quoted
from rbpx.files.digest import digest, read_sealed
from rbpx.store import schema
from rbpx.store.files.inside import FOLDERS, TABLES_OF_RUN, is_harmless, is_plain

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
            return "it has no predictions"
        return next((fault for each in of_each if (fault := _row_fault(kind, {**record, **each}))), None)
    return _row_fault(kind, record)


def _row_fault(kind: str, record: Mapping[str, Any]) -> str | None:
    columns = _RELATIONS[kind]
    for name in _NEEDED[kind]:
        if record.get(name) is None and not (name == "n_bytes" and record.get("engine") is not None):
            return f"it has no {name}"
    for column in columns:
        value = record.get(column.name)
        expected, is_so = _CHECKS["an object" if column.name in _JSON else str(column.type)]
        if value is not None and not is_so(value):
            return f"its {column.name} is not {expected}"
    return None


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


_CHECKS: Final[dict[str, tuple[str, Callable[[Any], bool]]]] = {  # type -> what is expected, and whether it is that
    "string": ("text", _is_text),
    "int32": ("a whole number", _is_whole(32)),
    "int64": ("a whole number", _is_whole(64)),
    "double": ("a finite number", _is_real),
    "bool": ("true or false", lambda value: isinstance(value, bool)),
    "timestamp[us]": ("a time", is_time),
    "list<item: string>": ("a list of texts", lambda value: isinstance(value, list) and all(map(_is_text, value))),
    "an object": ("an object", lambda value: isinstance(value, dict)),
}


COPY_OF: Final = "it is a copy of "  # a fault that begins so is cured by removing the file
_KIND: Final = re.compile(rf"(?<![a-z_])({'|'.join(FOLDERS)})(?![a-z_])")
_KEY: Final = re.compile(r"[0-9a-f]{16}")
SAMPLE_FACTS: Final = b"rbpx"  # in the metadata of a sample: its request, the commit of the hub and the time
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_FORECAST: Final = re.compile(rf".+-{_KEY.pattern}")


def own_name(kind: str, record: Mapping[str, Any]) -> str | None:
    """The name under which a record of any kind was written; None if it says none.

    That of a forecast ends in a digest of all that it says, so a forecast cannot change and keep its name.
    """
    if kind == "forecasts":
        name: Any = f"{record['name']}-{digest(dict(record))}" if isinstance(record.get("name"), str) else None
    elif kind == "rank_fits":
        parts = [record.get(name) for name in ("run_id", "ties", "distribution")]
        name = None if None in parts else "-".join(map(str, parts))
    else:
        name = record.get({"cells": "cell_key", "fits": "fit_id", "failures": "failure_key"}[kind])
    return name if isinstance(name, str) and is_plain(name) else None


class RecordError(Exception):
    """A record that is whole, but has another's name or values that no version of rbpx writes.

    Attributes:
        remedy: what to do about it.
    """

    def __init__(self, fault: str, remedy: str) -> None:
        """Say what is wrong."""
        super().__init__(fault)
        self.remedy = remedy


def read_record(path: Path) -> dict[str, Any]:
    """A record of a store, checked.

    Raises:
        FileNotFoundError: it does not exist.
        OSError, ValueError: it is corrupt.
        RecordError: its name or its values are wrong.
    """
    record, kind = read_sealed(path), path.parent.name
    wrong = misnamed(path, record)
    if wrong is not None:
        raise RecordError(*wrong)
    fault = value_fault(kind, record)
    if fault is None and kind in ("cells", "rank_fits") and not is_plain(record["run_id"]):
        fault = "its run is not a valid name"
    if fault is not None:
        raise RecordError(fault, f"remove {kind}/{path.name}, then run the line that made it again")
    return record


def misnamed(path: Path, record: Mapping[str, Any]) -> tuple[str, str] | None:
    """What is wrong with a record that is not the one of its file's name, and what to do; None where it is."""
    kind, own = path.parent.name, own_name(path.parent.name, record)
    if own == path.stem or (own is None and kind == "failures" and _KEY.fullmatch(path.stem)):
        return None  # failures of older versions do not say under which key they were written
    if own is None and kind != "failures":
        return f"it is not a record of {kind}", f"remove {kind}/{path.name}"
    if kind == "forecasts" and _FORECAST.fullmatch(path.stem) and not path.with_name(f"{own}.json").exists():
        remedy = "put back the file from a copy, or remove it and rbpx store merge OTHER from a store that has it"
        return "it has changed since it was registered", remedy
    if own is not None and not path.with_name(f"{own}.json").exists():
        return f"it is the record {own} under another name", f"rename {kind}/{path.name} to {own}.json"
    return f"{COPY_OF}{'another failure' if own is None else f'{kind}/{own}.json'}", f"remove {kind}/{path.name}"


def file_misnamed(path: Path, table: pa.Table) -> str | None:
    """What is wrong with a Parquet file outside of runs whose rows are not those of its name; None where they are."""
    kind = path.parent.name
    if kind == "imports":
        from rbpx.files.output import digest_of_rows

        own = "-".join(sorted(map(str, table["source"].unique().to_pylist()))) + f"-{digest_of_rows(table)}"
        wrong = "its rows are not those that its name was made from"
    elif kind in ("vocab", "temperatures", "best"):
        column, what = ("tokenizer_hash", "tokenizer") if kind == "vocab" else ("run_id", "run")
        own = "-".join(map(str, table[column].unique().to_pylist()))
        wrong = f"it belongs to another {what} than its name says"
    elif kind == "samples":
        own, wrong = digest(_request_of(table)), "it is another sample than its name says"
    else:
        return None
    if own == path.stem:
        return None
    return f"{COPY_OF}{kind}/{own}.parquet" if own and path.with_name(f"{own}.parquet").is_file() else wrong


def _request_of(table: pa.Table) -> Any:
    """What was asked of a hub for the documents of a sample.

    Raises:
        ValueError: it does not say.
    """
    try:
        return json.loads((table.schema.metadata or {})[SAMPLE_FACTS])["request"]
    except (LookupError, TypeError, RecursionError):
        raise ValueError("it does not say what was asked for") from None


def named_tables(manifest: object) -> dict[str, str]:
    """The tables that a manifest names: file -> SHA-256. Whatever acts on these names takes them from here.

    Raises:
        ValueError: it names something else, in words.
    """
    files = manifest.get("files") if isinstance(manifest, dict) else None
    if not isinstance(files, dict):
        raise ValueError("its files is not an object")
    for name, sha256 in files.items():
        if name not in TABLES_OF_RUN:
            raise ValueError(f"its files names {quoted(name)}, which is no table of a run")
        if not isinstance(sha256, str) or _SHA256.fullmatch(sha256) is None:
            raise ValueError(f"its files gives no SHA-256 of {name}")
    return files


def copied_folders(root: Path) -> Iterator[tuple[Path, str]]:
    """Folders beside those of a store that look like copies of one of them (`cells 2`, `fits - Copy`), with its kind.

    They are not read. A folder counts where it holds what one of the kind would: records, Parquet files or runs.
    """
    if not root.is_dir():
        return
    for path in sorted(root.iterdir()):
        kind = _KIND.search(path.name.lower())
        if kind and path.name not in FOLDERS and not is_harmless(path.name) and path.is_dir() and _holds(path, kind[1]):
            yield path, kind[1]


def _holds(folder: Path, kind: str) -> bool:
    patterns = {"runs": ("*/manifest.json",), "vocab": ("*.parquet",)}.get(kind, ("*.json", "*.parquet"))
    return any(next(folder.glob(pattern), None) is not None for pattern in patterns)


def copy_of_run(run_id: str, facts: Mapping[str, Any], root: Path) -> str | None:
    """What is wrong with a run's folder that has the manifest of another run; None where it is its own."""
    own = facts.get("run_id")
    if own == run_id:
        return None
    here = isinstance(own, str) and (root / "runs" / Path(own).name / "manifest.json").is_file()
    return f"{COPY_OF}run {own}" if here else f"manifest.json is that of run {json.dumps(own)}"
