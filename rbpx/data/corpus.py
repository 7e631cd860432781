"""Reads a local dataset, built-in or from files, and draws `Document`s from it reproducibly."""

import hashlib
import json
import os
import sysconfig
import tokenize
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from rbpx.config.text.dataset import DatasetConfig
from rbpx.data.items import Part, in_order
from rbpx.data.texts import Content, Source, Text, texts
from rbpx.errors import AbsentTextError, RbpxError, reason
from rbpx.files.folders import files_of
from rbpx.files.rows import format_of, read_rows, unpacked

_ITEMS = "python_"  # prefix of the kinds of items that come with rbpx
_TEXTS = DatasetConfig()

# No library code: tests, IDLE, 2to3, build machinery, pydoc's data.
_NOT_STDLIB = {
    "test", "tests", "idlelib", "lib2to3", "distutils", "pydoc_data", "site-packages", "dist-packages", "__pycache__"
}  # fmt: skip
_OF_THIS_MACHINE = ("config-", "_sysconfigdata", "sitecustomize", "usercustomize")


Turn = tuple[str, str]
"""A message of a conversation: its role and its text."""


@dataclass(frozen=True)
class Document:
    """A text of a dataset, or a context and a target of an item.

    Attributes:
        doc_id: its index in the drawn sample; for the target or right choice of an item, the item's.
        text: including an item's context.
        turns: the conversation before an item's target, for a chat template.
    """

    doc_id: int
    source_id: str
    text: str
    part: Part | None = None
    turns: tuple[Turn, ...] = ()

    @property
    def is_true(self) -> bool:
        """Whether it is a text, a target or a right choice, not a wrong choice."""
        return self.part is None or self.part.is_true


def read_stdlib() -> Sequence[Text]:
    """(path, source) of each module of the running interpreter's standard library, in path order."""
    return _read_modules(Path(sysconfig.get_paths()["stdlib"]))


@cache
def _read_modules(root: Path) -> Sequence[Text]:
    sources = []
    for name in sorted(_modules(root), key=lambda name: name.parts):
        if name.parts[0].startswith(_OF_THIS_MACHINE):
            continue
        with tokenize.open(root / name) as source:  # honours the encoding that the file declares
            sources.append((name.as_posix(), source.read()))
    return sources


def _modules(root: Path) -> Iterator[PurePath]:
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in _NOT_STDLIB]
        within = PurePath(folder).relative_to(root)
        yield from (within / name for name in names if name.endswith(".py"))


def read_pydoc() -> Sequence[Text]:
    """(topic, text) of the language topics that `pydoc` shows, in topic order."""
    from pydoc_data.topics import topics

    return sorted(topics.items())


@cache
def read_items(kind: str) -> Sequence[tuple[str, dict[str, Any]]]:
    """(module:line, row) of each item of a kind, of modules of Python 3.11.7 that no bundled model has read."""
    rows = read_rows(Path(__file__).parent / "python_items" / f"{kind.removeprefix(_ITEMS)}.jsonl.gz").rows
    return [(f"{row.values['file']}:{row.values['line']}", row.values) for row in rows]


def read_path(path: Path, wanted: DatasetConfig = _TEXTS) -> Source:
    """The texts of a file, or of each file of a folder or glob, with its name in there.

    A file that is one text has that name (letters/a.txt), its chunks NAME:LINE; rows and articles NAME/ROW and
    NAME/TITLE.

    Raises:
        AbsentTextError: there is no file.
        RbpxError: as `files_of` and `read_file`.
    """
    files = files_of(path)
    if files is None:
        return read_file(path, wanted)
    named: list[tuple[str, Content]] = []
    for name, file in files:
        is_text = format_of(file) is None and not wanted.articles
        for own, content in read_file(file, wanted):
            named.append((name + own.removeprefix(file.name) if is_text else f"{name}/{own}", content))
    return named


def read_file(path: Path, wanted: DatasetConfig = _TEXTS) -> Source:
    """The texts of a JSONL, CSV or Parquet file, by row number from 1; any other file is one text, or its articles.

    Raises:
        AbsentTextError: the file is missing.
        RbpxError: it cannot be read as what its name says, or a row lacks a field.
    """
    if not path.is_file():
        raise AbsentTextError(
            f"dataset.path={path.absolute()} is not a file; give the path of a text, JSONL, CSV or Parquet file, of a "
            "folder of them, or a glob"
        )
    if format_of(path) is None:
        return _read_plain(path, wanted)
    rows = {str(row.number): row for row in read_rows(path, wanted.file_mib).rows}

    def place(name: str) -> str:
        line = rows[name].line
        return f"row {name} of {path}" + ("" if line is None else f" (line {line})")

    return list(texts(((name, row.values) for name, row in rows.items()), wanted, place))


def _read_plain(path: Path, wanted: DatasetConfig) -> Source:
    try:
        whole = unpacked(path, wanted.file_mib).decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise RbpxError(f"dataset.path={path} is not UTF-8 ({reason(problem)}); save it in that encoding") from None
    except (OSError, EOFError, zlib.error, ValueError) as problem:
        raise RbpxError(f"dataset.path={path} cannot be read: {problem}; check that it is what its name says") from None
    pieces = whole.split("\n") if wanted.articles else [whole]
    rows = ((path.name, {"text": piece}) for piece in pieces)
    return list(texts(rows, replace(wanted, fields=["text"]), str(path)))


def read_source(kind: str, path: Path | None, wanted: DatasetConfig = _TEXTS) -> Source:
    """All texts of a local dataset: of files where a path is given, else the built-in text of that kind."""
    if path is not None:
        return read_path(path, wanted)
    if kind == "file":
        raise RbpxError(
            "dataset=file needs dataset.path=FILE, a text, JSONL, CSV or Parquet file, a folder of them, or a glob"
        )
    if kind.startswith(_ITEMS):
        return list(texts(read_items(kind), wanted, f"dataset {kind}"))
    source = {"stdlib": read_stdlib, "pydoc": read_pydoc}[kind]()
    if wanted.takes_every_row:
        return source
    plain = ((name, {"text": text}) for name, text in source)
    return list(texts(plain, replace(wanted, fields=["text"]), f"dataset {kind}"))


def draw(texts: Source, limit: int, seed: int | None) -> list[Document]:
    """Shuffle with numpy's default generator, as `datasets.Dataset.shuffle(seed)` does, and keep the first `limit`."""
    return documents_of([texts[index] for index in drawn_rows(len(texts), limit, seed)])


def documents_of(drawn: Sequence[tuple[str, Content]]) -> list[Document]:
    """The documents of drawn texts, or of drawn items: the true ones in order, then those of wrong choices."""
    items = {at: content for at, (_, content) in enumerate(drawn) if not isinstance(content, str)}
    if not items:
        return [Document(doc_id, name, str(text)) for doc_id, (name, text) in enumerate(drawn)]
    documents = []
    for doc_id, (at, choice) in enumerate(in_order(list(items.values()))):
        text = "".join(items[at].pairs[choice])
        documents.append(Document(doc_id, drawn[at][0], text, items[at].part(at, choice)))
    return documents


def drawn_rows(n: int, limit: int, seed: int | None) -> list[int]:
    """The drawn row numbers of n, in sample order; without a seed the first ones."""
    if seed is None:
        return list(range(min(n, limit)))
    return [int(row) for row in np.random.default_rng(seed).permutation(n)[:limit]]


def text_hash(documents: Iterable[Document], with_names: bool = False) -> str:
    """Hash of the drawn texts in their order: equal hashes mean equal tokens for the same tokenizer.

    Context lengths and right choices of items count, and the names of several files.

    Raises:
        RbpxError: a text holds half of a surrogate pair, as JSON can.
    """
    digest = hashlib.sha256()
    for document in documents:
        try:
            encoded = document.text.encode()
        except UnicodeEncodeError as problem:
            raise RbpxError(
                f"row {document.source_id} of its text has {document.text[problem.start]!a} at character "
                f"{problem.start}, half of a surrogate pair, which no tokenizer reads; write the whole character there"
            ) from None
        if with_names:
            digest.update(json.dumps(document.source_id).encode())
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
        if document.part is not None:
            digest.update(repr(document.part.identity()).encode())
    return digest.hexdigest()[:16]
