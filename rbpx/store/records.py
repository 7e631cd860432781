"""Reads and writes the JSON records of a store: manifests, cells, fits, rank fits, failures, forecasts, heartbeats.

A record ends in its seal, the SHA-256 of the text before it, which every reader checks; those of earlier versions have
none that is checked. What a record says has the types that its readers need, or it is left out.
"""

import hashlib
import json
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from sys import float_info
from typing import Any, Final

import pyarrow as pa

from rbpx.files.cells import as_written
from rbpx.store import schema

Record = dict[str, Any]
NEEDED: Final[dict[str, dict[str, type]]] = {  # keys that readers of each kind of record need, and their types
    "cells": dict.fromkeys(("run_id", "cell_key", "family", "size", "dataset"), str),
    "fits": {"fit_id": str, "run_ids": list, "params": dict},
    "rank_fits": dict.fromkeys(("run_id", "distribution", "ties"), str),
    "failures": dict.fromkeys(("family", "size", "dataset", "error", "at"), str),
    "forecasts": {"name": str, "predictions": list},
}
RECORDS: Final = tuple(NEEDED)
MANIFEST: Final = "manifest.json"  # of a run
MANIFESTS: Final = "runs"  # the kind of record that each run has one of
NAMED_BY: Final = {"cells": "cell_key", "fits": "fit_id"}  # the key that names a record and its file
RUN_TABLES: Final = ("tokens", "rank_counts", "documents")
BESIDE: Final = ("best",)  # sidecars of a run, measured on request, named after it
NO_ROWS: Final = "_columns"  # an empty Parquet file, since a glob without files is an error
_NAMES: Final = ("run_id", "cell_key", "fit_id", "failure_key", "tokenizer_hash")  # of files and folders of a store
_NAME: Final = re.compile(r"[^./\\\x00-\x1f\x7f][^/\\\x00-\x1f\x7f]*")
_LONGEST_BYTES: Final = 200  # of a name without its ending; file systems take 255
_SEAL_LENGTH: Final = 77
_SEAL: Final = re.compile(r', "[^"]{4}": "[^"]{64}"\}')  # a bit may have flipped in its name too
_SHA256: Final = re.compile("[0-9a-f]{64}")


def is_name(name: object) -> bool:
    """Whether a text is safe as a name of a file or folder."""
    return (
        isinstance(name, str) and bool(_NAME.fullmatch(name)) and len(name.encode(errors="replace")) <= _LONGEST_BYTES
    )


def ending_of(kind: str) -> str:
    """How the files of a kind end."""
    return f"/{MANIFEST}" if kind == MANIFESTS else ".json" if kind in RECORDS else ".parquet"


def place_of(kind: str, name: str) -> str:
    """Where a record, a manifest (by its run) or a Parquet file outside the runs lies in a store."""
    return f"{kind}/{name}{ending_of(kind)}"


def sealed(record: Mapping[str, Any], indent: int | None = None) -> str:
    """The text of a record: JSON whose last key is `seal`, the SHA-256 of all that stands before it."""
    text = json.dumps(record, indent=indent, allow_nan=False).removesuffix("}").rstrip()
    return text + _seal_of(text)


def _seal_of(text: str) -> str:
    return f', "seal": "{hashlib.sha256(text.encode()).hexdigest()}"}}'


def read_json(path: Path) -> Record:
    """The object of a JSON file without its seal; OSError or ValueError for none, or one that changed."""
    if not stat.S_ISREG(path.stat().st_mode):  # to open a pipe would wait for its writer
        raise ValueError("it is no regular file")
    text = path.read_bytes().decode()
    try:
        record = _JSON.decode(text)
    except json.JSONDecodeError as problem:
        raise ValueError(f"it is no JSON ({problem})") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(record, dict):
        raise ValueError("it is not an object")
    if "\\ud" in text.lower():  # half a pair of surrogates is no text
        json.dumps(record, ensure_ascii=False).encode()
    end, is_sealed = text[-_SEAL_LENGTH:], len(str(record.pop("seal", ""))) == 64
    if (is_sealed or _SEAL.fullmatch(end)) and end != _seal_of(text[:-_SEAL_LENGTH]):
        raise ValueError("it has changed since it was written (its seal is not its content's)")
    return record


def read_record(kind: str, name: str, path: Path) -> Record:
    """As `read_json`, for a record of a kind under its name, of which nothing is wrong.

    Raises:
        OSError, ValueError: it cannot be read, or something is wrong with it.
        RbpxError: it is the manifest of a run with a newer format than this version reads.
    """
    record = read_json(path)
    fault = manifest_fault(name, record) if kind == MANIFESTS else record_fault(kind, name, record)
    if fault is not None:
        raise ValueError(fault)
    return record


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not a number of JSON")


_JSON: Final = json.JSONDecoder(parse_constant=_refuse)

# ------------------------------------------------------------------------------------------------------------- faults


def need_fault(record: Record, needed: Mapping[str, type]) -> str | None:
    """The first key that a record lacks, or whose value has another type."""
    for key, kind in needed.items():
        value = record.get(key)
        if value is None:
            return f"it has no {key}"
        if not isinstance(value, kind):
            return f"its {key} is {as_written(value)}"
    return None


def record_fault(kind: str, name: str, record: Record) -> str | None:
    """The fault of a record; without one every name in it is a plain file name, and its own is that of its file."""
    fault = need_fault(record, NEEDED[kind])
    if fault is not None:
        return fault
    if any(record.get(key) is not None and not is_name(record[key]) for key in _NAMES):
        return "it names what is no name"
    if kind == "fits" and not all(map(is_name, record["run_ids"])):
        return "its run_ids are no names"
    predictions = record["predictions"] if kind == "forecasts" else [{}]
    if not (predictions and all(isinstance(each, dict) for each in predictions)):
        return "it has no predictions"
    own = NAMED_BY.get(kind)
    if own is not None and record[own] != name:
        return f"it is the record {record[own]} under another name"
    return None


def _values_of(column: pa.Field) -> tuple[tuple[type, ...], float, float]:
    least = 1 if column.name in schema.FROM_1 else 0
    if pa.types.is_integer(column.type):
        return (int,), least, 2 ** (column.type.bit_width - 1) - 1
    if pa.types.is_floating(column.type):
        return (int, float), least, float_info.max
    return (bool,) if pa.types.is_boolean(column.type) else (str,), 0, 1


_FACTS: Final = {
    column.name: _values_of(column) for column in schema.RUNS if column.name not in (*schema.ASKED, *schema.ANY_JSON)
}


def manifest_fault(run_id: str, facts: Record) -> str | None:
    """The fault of a manifest, whose facts have the types and ranges of their columns; raises as `check_format`."""
    if facts.get("run_id") != run_id:
        return f"manifest.json is that of run {as_written(facts.get('run_id'))}"
    if not isinstance(facts.get("format", 1), int):
        return f"manifest.json says that format is {as_written(facts['format'])}"
    schema.check_format(run_id, facts.get("format"))
    for name, (types, least, most) in _FACTS.items():
        value = facts.get(name)
        if value is None:
            if name in schema.KNOWN:
                return f"manifest.json has no {name}"
        elif type(value) not in types or not (str in types or least <= value <= most):
            return f"manifest.json says that {name} is {as_written(value)}"
    if not is_name(facts["tokenizer_hash"]):
        return "manifest.json has no tokenizer_hash that is a name"
    files = facts.get("files")
    hashes = files if isinstance(files, dict) else {}
    if sorted(hashes) != sorted(f"{table}.parquet" for table in RUN_TABLES):
        return "manifest.json does not name the tables of a run"
    if not all(isinstance(each, str) and _SHA256.fullmatch(each) for each in hashes.values()):
        return "manifest.json does not give the SHA-256 of each table"
    return None


def contradiction(cell: Record, facts: Record) -> str | None:
    """How a cell contradicts the manifest of the run that it names."""
    said = [(name, cell.get(name)) for name in _FACTS]
    said.append(("protocol", _within(cell, "config", "protocol", "name")))
    S = "non_embedding_params"
    said.append((S, _within(cell, "config", "model", "sizes", cell["size"], S)))
    for name, value in said:
        if value is not None and value != facts.get(name):
            return f"it says that {name} is {as_written(value)}, and its run {as_written(facts.get(name))}"
    return None


def _within(value: Any, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value
