"""Reads the texts of a dataset on this machine, built in or from a file, and draws `Document`s from it reproducibly."""

import hashlib
import math
import os
import sysconfig
import tokenize
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from rbpx.config.options import Chunk
from rbpx.config.row_choice import RowChoice
from rbpx.data.texts import Text, bounds_of, texts
from rbpx.errors import RbpxError
from rbpx.files.rows import format_of, read_rows
from rbpx.files.unpacked import read_bytes

# Tests, IDLE, the 2to3 converter, build machinery and the data of pydoc are not library code.
_NOT_STDLIB = {
    "test", "tests", "idlelib", "lib2to3", "distutils", "pydoc_data", "site-packages", "dist-packages", "__pycache__"
}  # fmt: skip


@dataclass(frozen=True)
class Document:
    """One text of a dataset: `doc_id` is its index in the drawn sample, `source_id` its name in the source."""

    doc_id: int
    source_id: str
    text: str


Source = Sequence[Text]


def read_stdlib() -> Source:
    """(path, source) of each module of the running interpreter's standard library, in path order."""
    root = Path(sysconfig.get_paths()["stdlib"])
    sources = []
    for name in sorted(_modules(root), key=lambda name: name.parts):
        if name.parts[0].startswith(
            ("config-", "_sysconfigdata", "sitecustomize", "usercustomize")
        ):  # machine-specific
            continue
        with tokenize.open(root / name) as source:  # honours the encoding that the file declares
            sources.append((name.as_posix(), source.read()))
    return sources


def _modules(root: Path) -> Iterator[PurePath]:
    """The .py files of library code below a folder, relative to it; other folders are not even listed."""
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in _NOT_STDLIB]
        within = PurePath(folder).relative_to(root)
        yield from (within / name for name in names if name.endswith(".py"))


def read_pydoc() -> Source:
    """(topic, text) of the language topics that `pydoc` shows, in topic order."""
    from pydoc_data.topics import topics

    return sorted(topics.items())


def read_file(path: Path, fields: Sequence[str], wanted: RowChoice | None = None) -> Source:
    """The texts of a JSONL, CSV or Parquet file, by row number from 1; any other file is one text, or its articles.

    Args:
        path: the file.
        fields: the fields of a row that make its text, joined by newlines.
        wanted: the same fields with further conditions on a row; None takes every row.

    Raises:
        RbpxError: the file is missing, cannot be read as what its name says, or a row lacks a field.
    """
    if not path.is_file():
        raise RbpxError(f"dataset.path={path} is not a file; give the path of a text, JSONL, CSV or Parquet file")
    wanted = wanted or RowChoice(tuple(fields))
    if format_of(path) is None:
        return _read_plain(path, wanted)
    rows = {str(row.number): row for row in read_rows(path, one_object=True, bounds=bounds_of(wanted)).rows}

    def place(name: str) -> str:
        line = rows[name].line
        return f"row {name} of {path}" + ("" if line is None else f" (line {line})")

    is_csv = format_of(path) == ".csv"
    named = ((name, _with_nan(row.values, wanted.fields) if is_csv else row.values) for name, row in rows.items())
    return list(texts(named, wanted, place))


def _with_nan(values: dict[str, Any], fields: Sequence[str]) -> dict[str, Any]:
    """A row of a CSV file, where a program that wrote no text has left the word NaN."""
    return {
        name: math.nan if name in fields and value.strip().lower() == "nan" else value for name, value in values.items()
    }


def _read_plain(path: Path, wanted: RowChoice) -> Source:
    in_pieces = wanted.articles or wanted.chunk is not Chunk.none
    try:
        content, _ = read_bytes(path, bounds_of(wanted), None if in_pieces else wanted.row_mib)
        whole = content.decode("utf-8-sig")
    except (OSError, EOFError, zlib.error, ValueError) as problem:
        raise RbpxError(f"dataset.path={path} cannot be read: {problem}; check that it is what its name says") from None
    if wanted.where:
        raise RbpxError(f"dataset.path={path} is a plain text without the columns of dataset.where; drop dataset.where")
    pieces = whole.split("\n") if wanted.articles else [whole]
    rows = ((path.name, {"text": piece}) for piece in pieces)
    return list(texts(rows, replace(wanted, fields=("text",)), str(path)))


def read_source(kind: str, path: Path | None, fields: Sequence[str], wanted: RowChoice | None = None) -> Source:
    """All texts of a dataset on this machine: a file where a path is given, else the built-in text of that kind."""
    if path is not None:
        return read_file(path, fields, wanted)
    if kind == "file":
        raise RbpxError("dataset=file needs dataset.path=FILE, a text, JSONL, CSV or Parquet file")
    source = {"stdlib": read_stdlib, "pydoc": read_pydoc}[kind]()
    if wanted is None or wanted.takes_every_row:
        return source
    rows = ((name, {"text": text}) for name, text in source)
    return list(texts(rows, replace(wanted, fields=("text",)), f"dataset {kind}"))


def draw(texts: Source, limit: int, seed: int) -> list[Document]:
    """Shuffle with numpy's default generator, as `datasets.Dataset.shuffle(seed)` does, and keep the first `limit`."""
    return [Document(doc_id, *texts[index]) for doc_id, index in enumerate(drawn_rows(len(texts), limit, seed))]


def drawn_rows(n: int, limit: int, seed: int) -> list[int]:
    """Which of n rows are drawn, in their order in the sample."""
    return [int(row) for row in np.random.default_rng(seed).permutation(n)[:limit]]


def text_hash(documents: Iterable[Document]) -> str:
    """Hash of the drawn texts in their order: equal hashes mean the same tokens for the same tokenizer."""
    digest = hashlib.sha256()
    for document in documents:
        encoded = document.text.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return digest.hexdigest()[:16]
