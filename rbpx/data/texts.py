"""Turns rows of a dataset into texts: the fields that make a text, the rows that count, the lines of an article."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import Any

from rbpx.config.options import Chunk
from rbpx.config.text.dataset import DatasetConfig
from rbpx.data.items import Item, answers_in, item_of, value_in
from rbpx.errors import RbpxError
from rbpx.files.escapes import visible_line
from rbpx.files.rows import MIB
from rbpx.spelling import typed

Text = tuple[str, str]  # (source_id, text)
Content = str | Item  # what a row becomes
Source = Sequence[tuple[str, Content]]  # with its source_id
Place = str | Callable[[str], str]  # a source, or the place of a row in it by the row's id: for errors


def texts(rows: Iterable[tuple[str, Any]], wanted: DatasetConfig, place: Place) -> Iterator[tuple[str, Content]]:
    """The texts of rows, which come with their ids, in order; or their items.

    Raises:
        RbpxError: a row lacks a field or a column of `where`, or a field is not text.
    """
    chosen = ((name, row) for name, row in rows if _meets(row, wanted.where or {}, name, place))
    if wanted.task is not None and wanted.task.messages is not None:
        return (answer for name, row in chosen for answer in _answers(row, wanted, name, place))
    if wanted.task is not None:
        return ((name, content_of(row, wanted, name, place)) for name, row in chosen)
    all_texts: Iterable[Text] = ((name, text_of(row, wanted, name, place)) for name, row in chosen)
    if wanted.articles:
        all_texts = split_articles(line for _, line in all_texts)
    if wanted.chunk is not Chunk.none:
        all_texts = (chunk for name, text in all_texts for chunk in chunks(name, text, wanted.chunk))
    if wanted.articles or wanted.chunk is not Chunk.none:
        all_texts = ((name, _bounded(text, wanted, name, "the file")) for name, text in all_texts)
    least = wanted.longer_than
    return ((name, text) for name, text in all_texts if least is None or len(text) > least)


def chunks(name: str, text: str, chunk: Chunk) -> Iterator[Text]:
    """The paragraphs of a text (blocks between blank lines), or its non-blank lines, named NAME:LINE from 1."""
    numbered = enumerate(text.split("\n"), 1)
    for is_blank, block in groupby(numbered, key=lambda one: not one[1].strip()):
        if is_blank:
            continue
        lines = list(block)
        for part in [[one] for one in lines] if chunk is Chunk.line else [lines]:
            yield f"{name}:{part[0][0]}", "\n".join(line for _, line in part).removesuffix("\r")


def content_of(row: Any, wanted: DatasetConfig, name: str, place: Place) -> Content:
    """The text of one row, or its item.

    Raises:
        RbpxError: the row lacks a field or column.
    """
    if wanted.task is None:
        return text_of(row, wanted, name, place)
    return _bounded_item(item_of(row, wanted.task, lambda: _at(name, place)), wanted, name, place)


def _answers(row: Any, wanted: DatasetConfig, name: str, place: Place) -> Iterator[tuple[str, Item]]:
    assert wanted.task is not None, "conversations are items"
    for n, item in answers_in(row, wanted.task, lambda: _at(name, place)):
        yield f"{name}:{n}", _bounded_item(item, wanted, name, place)


def _bounded_item(item: Item, wanted: DatasetConfig, name: str, place: Place) -> Item:
    for context, target in item.pairs:
        _bounded(context + target, wanted, name, place)
    return item


def text_of(row: Any, wanted: DatasetConfig, name: str, place: Place) -> str:
    """The fields of one row, joined by newlines; RbpxError where one is missing or not text, or they hold too much."""
    for field in wanted.fields:
        if not isinstance(row.get(field), str):
            raise RbpxError(f"{_at(name, place)} {_not_text(row, field)}")
    text = "\n".join(row[field] for field in wanted.fields)
    return text if wanted.articles or wanted.chunk is not Chunk.none else _bounded(text, wanted, name, place)


def _bounded(text: str, wanted: DatasetConfig, name: str, place: Place) -> str:
    if len(text) > wanted.row_mib * MIB:
        raise RbpxError(
            f"{_at(name, place)} holds more than {wanted.row_mib:,} MiB; if that is meant, give dataset.row_mib=N with "
            "a larger N"
        )
    return text


def _at(name: str, place: Place) -> str:
    return f"row {name} of {place}" if isinstance(place, str) else place(name)


def _not_text(row: dict[Any, Any], field: str) -> str:
    if field not in row:
        texts = {len(value): name for name, value in row.items() if isinstance(name, str) and isinstance(value, str)}
        as_in = f", as in {typed(keys={'dataset.fields': [texts[max(texts)]]})}" if texts else ""
        return f"has no field '{field}' (it has: {visible_line(', '.join(map(str, row)))}); name the fields{as_in}"
    value = "null" if row[field] is None else str(row[field])[:40]
    return f"has {value} in field '{field}', not a text; put it in quotes, leave the row out, or name other fields"


def _meets(row: Any, where: dict[str, Any], name: str, place: Place) -> bool:
    return all(
        value_in(row, path.split("."), path, "where", lambda: _at(name, place)) == value
        for path, value in where.items()
    )


# WikiText sets a title in one `=` a side, sections in two and more: " = Robert Boulter = ", " = = Early life = = ".
_TITLE = re.compile(r" ?= (?!= )(.+?)(?<! =) = ?")


def split_articles(lines: Iterable[str]) -> list[tuple[str, str]]:
    """(title, text) of each article, in order; text before the first title is dropped.

    A title is a line ` = Title = ` between two blank lines, unlike a formula within a paragraph. Blank lines become
    empty, so WikiText's published file, whose blank lines contain a space, gives the same articles as the rows of the
    hub.
    """
    plain = [line if line.strip() else "" for line in (line.removesuffix("\n").removesuffix("\r") for line in lines)]
    borders = [i for i, line in enumerate(plain) if _is_title(plain, i, line)] + [len(plain)]
    articles = []
    for start, end in pairwise(borders):
        while not plain[end - 1]:
            end -= 1
        articles.append((plain[start].strip().removeprefix("= ").removesuffix(" ="), "\n".join(plain[start:end])))
    return articles


def _is_title(lines: list[str], i: int, line: str) -> bool:
    alone = (i == 0 or not lines[i - 1]) and (i + 1 == len(lines) or not lines[i + 1])
    return alone and _TITLE.fullmatch(line) is not None
