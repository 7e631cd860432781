"""Other people's results: a CSV, JSON or Parquet file in, checked observations out; one wrong row and there are none.

An observation is RBP_k (or p_{N,k}, the share of windows of N tokens with all ranks <= k) of one model on one text.
"""

import csv
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from rbpx import schema
from rbpx.content import digest
from rbpx.errors import RbpxError
from rbpx.ties import Ties

Row = dict[str, Any]

ALIASES: Final[Mapping[str, tuple[str, ...]]] = {
    "family": ("family",),
    "size": ("size",),
    "model": ("model", "hub_id", "model_name"),
    "revision": ("revision",),
    "non_embedding_params": ("non_embedding_params", "s"),
    "dataset": ("dataset",),
    "text_hash": ("text_hash",),
    "protocol": ("protocol",),
    "dtype": ("dtype",),
    "k": ("k",),
    "n": ("n",),
    "ties": ("ties",),
    "rbp": ("rbp", "p_all_n_in_topk", "p_nk", "p"),
    "n_tokens": ("n_tokens",),
    "cross_entropy_nats": ("cross_entropy_nats", "mean_cross_entropy_nats", "cross_entropy", "ce"),
}
"""Names under which a column is known, best first, in lower case."""

_IDENTITY: Final = (
    "source",
    "family",
    "size",
    "revision",
    "dataset",
    "text_hash",
    "protocol",
    "dtype",
    "k",
    "n",
    "ties",
)
_MODEL: Final = ("source", "family", "size", "revision", "dataset", "text_hash", "protocol", "dtype")
_WIDE: Final = re.compile(r"rbp_(\d+)")


@dataclass(frozen=True)
class Given:
    """What is said beside the file, for what it does not say itself.

    Attributes:
        source: name under which the observations are kept.
        ties: the tie rule of the ranks, unless a column says it.
        family: of the models, unless a column says it.
        dataset: name of the text, unless a column says it.
        protocol: how the text was cut, if known.
        dtype: precision, if known.
        revision: of the models, if known.
        columns: {our name: name in the file}, before any alias.
    """

    source: str
    ties: Ties | None
    family: str | None
    dataset: str | None
    protocol: str | None
    dtype: str | None
    revision: str | None
    columns: Mapping[str, str]


def read_observations(path: Path, given: Given) -> tuple[list[Row], list[str]]:
    """The observations of a file, each with its `run_id`, and the columns that were not understood.

    Raises:
        RbpxError: the file cannot be read, lacks a column, or has a row that is wrong; its line is named.
    """
    if given.source == "measured" or not re.fullmatch(r"[\w.-]+", given.source):
        raise RbpxError(
            f"source={given.source} cannot name imported observations; give another name, letters, digits, _ . -"
        )
    lines = list(_read(path))
    if not lines:
        raise RbpxError(f"{path} has no rows; nothing to import")
    names = list(dict.fromkeys(name for _, row in lines for name in row))
    columns, wide = _match(path, names, given)
    found: dict[tuple[Any, ...], Row] = {}
    sizes: dict[tuple[Any, ...], int] = {}
    for line, raw in lines:
        for row in _rows(f"{path}, {line}", raw, columns, wide, given):
            key, model = tuple(row[name] for name in _IDENTITY), (row["family"], row["size"])
            if found.setdefault(key, row) != row:
                raise RbpxError(f"{path}, {line}: {_name(row)} stands there twice with different values; keep one")
            if sizes.setdefault(model, row["non_embedding_params"]) != row["non_embedding_params"]:
                raise RbpxError(
                    f"{path}, {line}: {row['family']} {row['size']} has non_embedding_params="
                    f"{row['non_embedding_params']}, and {sizes[model]} above; a model has one size"
                )
    understood = {*columns.values(), *wide}
    return _with_run_ids(list(found.values())), [name for name in names if name not in understood]


def without_known(rows: list[Row], known: list[Row], path: Path) -> list[Row]:
    """The rows that are new; those that are known are left out.

    Raises:
        RbpxError: a row is known with other values.
    """
    values = {tuple(row[name] for name in _IDENTITY): row for row in known}
    fresh = []
    for row in rows:
        before = values.get(tuple(row[name] for name in _IDENTITY))
        if before is None:
            fresh.append(row)
        elif _values(before) != _values(row):
            raise RbpxError(
                f"{path}: {_name(row)} is there from source={row['source']} with other values; import under another "
                f"source, or drop the old one: python -m rbpx store rm {row['source']}"
            )
    return fresh


def table(rows: list[Row]) -> pa.Table:
    """Rows as they are stored."""
    return pa.Table.from_pylist(rows, schema=schema.OBSERVATIONS)


def _values(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("non_embedding_params", "rbp", "n_tokens", "cross_entropy_nats"))


def _name(row: Row) -> str:
    length = "" if row["n"] == 1 else f" n={row['n']}"
    return f"{row['family']} {row['size']} on {row['dataset']} at k={row['k']}{length} ties={row['ties']}"


def _with_run_ids(rows: list[Row]) -> list[Row]:
    """All observations of one model on one text are one run: its id is a hash of names and values."""
    runs: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        runs.setdefault(tuple(row[name] for name in _MODEL), []).append(row)
    for names, members in runs.items():
        values = sorted([r["k"], r["n"], r["ties"], *map(str, _values(r))] for r in members)
        run_id = digest([*names, values])
        for row in members:
            row["run_id"] = run_id
    return rows


# ------------------------------------------------------------------------------------------------------ reading


def _read(path: Path) -> Iterator[tuple[str, Row]]:
    """Rows with the name of their place, missing values None."""
    if not path.is_file():
        raise RbpxError(f"{path} is no file; give the path of a CSV, JSON, JSONL or Parquet file")
    suffix = path.suffix.lower()
    try:
        if suffix == ".csv":
            with path.open(encoding="utf-8-sig", newline="") as file:
                reader = csv.DictReader(file)
                for row in reader:
                    if None in row or None in row.values():
                        raise RbpxError(
                            f"{path}, line {reader.line_num}: not as many values as columns; repair the row"
                        )
                    yield f"line {reader.line_num}", {name: value or None for name, value in row.items()}
        elif suffix in (".json", ".jsonl"):
            text = path.read_text(encoding="utf-8")
            rows = json.loads(text) if suffix == ".json" else [json.loads(x) for x in text.splitlines() if x.strip()]
            if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
                raise RbpxError(f"{path} is no list of objects; give [{{...}}, ...]")
            yield from ((f"row {number}", row) for number, row in enumerate(rows, 1))
        elif suffix == ".parquet":
            yield from ((f"row {number}", row) for number, row in enumerate(pq.read_table(path).to_pylist(), 1))
        else:
            raise RbpxError(f"{path} ends in {suffix or 'nothing'}; known: .csv, .json, .jsonl, .parquet")
    except (OSError, ValueError, csv.Error, pa.ArrowException) as problem:
        raise RbpxError(f"{path} cannot be read: {' '.join(str(problem).split())}") from None


def _match(path: Path, names: list[str], given: Given) -> tuple[dict[str, str], dict[str, int]]:
    """{our name: column} and {column: k} of the wide ones."""
    lower = {name.lower(): name for name in names}
    columns = {}
    for ours, column in given.columns.items():
        if ours not in ALIASES:
            raise RbpxError(f"columns={ours} is no column of observations; known: {', '.join(ALIASES)}")
        if column not in names:
            raise RbpxError(f"columns: {path} has no column {column}; it has {', '.join(names)}")
        columns[ours] = column
    for ours, aliases in ALIASES.items():
        known = [lower[alias] for alias in aliases if alias in lower]
        if known and ours not in columns:
            columns[ours] = known[0]
    bits = [name for name in names if re.search(r"(^|_)(bits?|bpb)($|_)", name.lower())]
    if bits:
        raise RbpxError(
            f"{path}: column {bits[0]} is in bits; convert to nats (times ln 2) and name it cross_entropy_nats"
        )
    wide = {lower[name]: int(match[1]) for name in lower if (match := _WIDE.fullmatch(name))}
    if "rbp" in columns and "k" in columns:
        wide = {}
    elif not wide:
        lacking = next(name for name in ("rbp", "k") if name not in columns)
        raise RbpxError(f"{path} has no column {lacking} (or rbp_1, rbp_10, ...); it has {', '.join(names)}")
    if "non_embedding_params" not in columns:
        raise RbpxError(f"{path} has no column non_embedding_params (or S); it has {', '.join(names)}")
    if "model" not in columns and "size" not in columns:
        raise RbpxError(f"{path} has neither a column model nor size; it has {', '.join(names)}")
    return columns, wide


# ----------------------------------------------------------------------------------------------------- checking


def _rows(place: str, raw: Row, columns: Mapping[str, str], wide: Mapping[str, int], given: Given) -> Iterator[Row]:
    value = {ours: raw.get(column) for ours, column in columns.items()}
    model = _text(value.get("model"))
    size = _text(value.get("size")) or (None if model is None else model.rstrip("/").split("/")[-1])
    if size is None:
        raise RbpxError(f"{place}: the model has no name; fill in model or size")
    shared: Row = {
        "source": given.source,
        "family": _either(place, "family", value, given.family),
        "size": size,
        "model": model,
        "revision": _text(value.get("revision")) or given.revision,
        "non_embedding_params": _count(place, "non_embedding_params", value.get("non_embedding_params")),
        "dataset": _either(place, "dataset", value, given.dataset),
        "text_hash": _text(value.get("text_hash")),
        "protocol": _text(value.get("protocol")) or given.protocol,
        "dtype": _text(value.get("dtype")) or given.dtype,
        "ties": _ties(place, value.get("ties"), given.ties),
        "n_tokens": _optional_count(place, "n_tokens", value.get("n_tokens")),
        "cross_entropy_nats": _nats(place, value.get("cross_entropy_nats")),
    }
    n = 1 if value.get("n") is None else _count(place, "n", value["n"])
    if wide:
        for column, k in wide.items():
            if raw.get(column) is not None:
                yield shared | {"k": k, "n": n, "rbp": _share(place, column, raw[column])}
    else:
        k = _count(place, "k", value["k"])
        yield shared | {"k": k, "n": n, "rbp": _share(place, columns["rbp"], value["rbp"])}


def _text(value: Any) -> str | None:
    return None if value is None or str(value).strip() == "" else str(value).strip()


def _either(place: str, name: str, value: Row, given: str | None) -> str:
    found = _text(value.get(name)) or given
    if found is None:
        raise RbpxError(f"{place}: {name} is not known; fill in a column {name}, or say {name}=NAME")
    return found


def _ties(place: str, value: Any, given: Ties | None) -> str:
    said = _text(value)
    if said is not None:
        if said not in list(Ties):
            raise RbpxError(f"{place}: ties={said} is unknown; known: {', '.join(Ties)}")
        return said
    if given is None:
        raise RbpxError(f"{place}: the tie rule of these ranks is not known; say ties=RULE, one of {', '.join(Ties)}")
    return given.value


def _number(place: str, name: str, value: Any) -> float:
    try:
        found = float(str(value).replace("_", ""))
    except ValueError:
        raise RbpxError(f"{place}: {name}={value} is no number; repair the row") from None
    if not math.isfinite(found):
        raise RbpxError(f"{place}: {name}={value} is not finite; leave unknown values empty")
    return found


def _count(place: str, name: str, value: Any) -> int:
    if value is None or value == "":
        raise RbpxError(f"{place}: {name} is empty; fill it in")
    found = _number(place, name, value)
    if found < 1 or found != int(found):
        unit = "parameters, not millions" if name == "non_embedding_params" else "a whole number from 1"
        raise RbpxError(f"{place}: {name}={value} is no count; give {unit}")
    return int(found)


def _optional_count(place: str, name: str, value: Any) -> int | None:
    return None if value is None or value == "" else _count(place, name, value)


def _share(place: str, name: str, value: Any) -> float:
    if value is None or value == "":
        raise RbpxError(f"{place}: {name} is empty; fill it in or drop the row")
    found = _number(place, name, value)
    if not 0 <= found <= 1:
        raise RbpxError(f"{place}: {name}={value} is outside 0 to 1; give shares, not percent")
    return found


def _nats(place: str, value: Any) -> float | None:
    if value is None or value == "":
        return None
    found = _number(place, "cross_entropy_nats", value)
    if found < 0:
        raise RbpxError(f"{place}: cross_entropy_nats={value} is below 0; give mean -ln p in nats")
    return found
