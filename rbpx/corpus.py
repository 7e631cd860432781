"""Where a text enters: a dataset's name or file in, a list of `Document`s out, drawn reproducibly."""

import csv
import gzip
import hashlib
import io
import json
import sys
import sysconfig
import tokenize
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rbpx.errors import RbpxError

# Tests, IDLE, the 2to3 converter, build machinery and the data of pydoc are no library code.
_NOT_STDLIB = {
    "test", "tests", "idlelib", "lib2to3", "distutils", "pydoc_data", "site-packages", "dist-packages", "__pycache__"
}  # fmt: skip


@dataclass(frozen=True)
class Document:
    """One text of a dataset: `doc_id` is its index in the drawn sample, `source_id` its name in the source."""

    doc_id: int
    source_id: str
    text: str


Source = Sequence[tuple[str, str]]  # (source_id, text)


def read_stdlib() -> Source:
    """(path, source) of each module of the running interpreter's standard library, in path order."""
    root = Path(sysconfig.get_paths()["stdlib"])
    found = []
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root)
        of_this_machine = name.parts[0].startswith(("config-", "_sysconfigdata", "sitecustomize", "usercustomize"))
        if of_this_machine or _NOT_STDLIB.intersection(name.parts):
            continue
        with tokenize.open(path) as source:  # honours the encoding that the file declares
            found.append((name.as_posix(), source.read()))
    return found


def read_pydoc() -> Source:
    """(topic, text) of the language topics that `pydoc` shows, in topic order."""
    from pydoc_data.topics import topics

    return sorted(topics.items())


def read_file(path: Path, fields: Sequence[str]) -> Source:
    """(row number from 1, fields joined by newlines) of a JSONL, CSV or Parquet file; any other file is one text.

    Raises:
        RbpxError: the file is missing, cannot be read as what its name says, or a row lacks a field.
    """
    if not path.is_file():
        raise RbpxError(f"dataset.path={path} is no file; give the path of a text, JSONL, CSV or Parquet file")
    suffixes = [suffix.lower() for suffix in path.suffixes]
    kind = next((s for s in reversed(suffixes) if s != ".gz"), "")
    try:
        if kind not in {".jsonl", ".json", ".csv", ".parquet"}:
            return [(path.name, _read_text(path))]
        rows = _read_rows(path, kind)
    except (OSError, EOFError, zlib.error, ValueError, csv.Error) as problem:
        raise RbpxError(f"dataset.path={path} cannot be read: {problem}; check that it is what its name says") from None
    return [(str(number), _join(row, fields, path, number)) for number, row in enumerate(rows, 1)]


def _read_text(path: Path) -> str:
    raw = path.read_bytes()
    return (gzip.decompress(raw) if path.suffix.lower() == ".gz" else raw).decode("utf-8-sig")


def _read_rows(path: Path, kind: str) -> list[dict[str, Any]]:
    if kind == ".parquet":
        import pyarrow.parquet

        rows: list[dict[str, Any]] = pyarrow.parquet.read_table(path).to_pylist()
        return rows
    if kind == ".csv":
        csv.field_size_limit(sys.maxsize)  # documents are longer than the 128 KiB that csv allows a field
        return list(csv.DictReader(io.StringIO(_read_text(path), newline="")))
    text = _read_text(path)
    if kind == ".json":
        whole = json.loads(text)
        return whole if isinstance(whole, list) else [whole]
    return [_read_row(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]


def _read_row(number: int, line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError as problem:
        raise ValueError(f"row {number} is no JSON ({problem})") from None


def _join(row: Any, fields: Sequence[str], path: Path, number: int) -> str:
    if not isinstance(row, dict):
        raise RbpxError(f"row {number} of {path} is no record with fields; one JSON object a row is expected")
    missing = [f for f in fields if not isinstance(row.get(f), str)]
    if missing:
        raise RbpxError(
            f"row {number} of {path} has no text in field '{missing[0]}' (it has: {', '.join(map(str, row))}); "
            f"name the fields with dataset.fields='[...]'"
        )
    return "\n".join(row[f] for f in fields)


def read_source(kind: str, path: Path | None, fields: Sequence[str]) -> Source:
    """All texts of a dataset: a file where a path is given, else the built-in text of that kind."""
    if path is not None:
        return read_file(path, fields)
    if kind == "file":
        raise RbpxError("dataset=file needs dataset.path=FILE, a text, JSONL, CSV or Parquet file")
    return {"stdlib": read_stdlib, "pydoc": read_pydoc}[kind]()


def draw(texts: Source, limit: int, seed: int) -> list[Document]:
    """Shuffle with numpy's default generator, as `datasets.Dataset.shuffle(seed)` does, and keep the first `limit`."""
    order = np.random.default_rng(seed).permutation(len(texts))[:limit]
    return [Document(doc_id, *texts[index]) for doc_id, index in enumerate(order)]


def text_hash(documents: Iterable[Document]) -> str:
    """Hash of the drawn texts in their order: equal hashes mean the same tokens for the same tokenizer."""
    digest = hashlib.sha256()
    for document in documents:
        encoded = document.text.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return digest.hexdigest()[:16]
