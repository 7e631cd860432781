"""Turns rows of a dataset into texts: which fields make a text, which rows count, which lines form an article."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from rbpx.config.options import Chunk
from rbpx.config.row_choice import RowChoice
from rbpx.data.articles import split_articles
from rbpx.errors import RbpxError

Text = tuple[str, str]  # (source_id, text)


def texts(rows: Iterable[tuple[str, Any]], wanted: RowChoice, place: str) -> Iterator[Text]:
    """The texts of rows, which come with their ids, in order.

    Raises:
        RbpxError: a row lacks a field or a column of `where`, or a field is not text.
    """
    chosen = ((name, row) for name, row in rows if _meets(row, wanted.where, name, place))
    all_texts: Iterable[Text] = ((name, text_of(row, wanted.fields, name, place)) for name, row in chosen)
    if wanted.articles:
        all_texts = split_articles(line for _, line in all_texts)
    if wanted.chunk is not Chunk.none:
        all_texts = (chunk for name, text in all_texts for chunk in chunks(name, text, wanted.chunk))
    least = wanted.longer_than
    return ((name, text) for name, text in all_texts if least is None or len(text) > least)


def chunks(name: str, text: str, chunk: Chunk) -> Iterator[Text]:
    """The paragraphs of a text, blocks between blank lines, or its lines that are not blank.

    Args:
        name: of the text; a chunk is NAME:LINE, with the line on which it begins, from 1.
        text: whose line breaks are LF or CR LF; those at the end of a chunk are left out.
        chunk: paragraph or line.
    """
    numbered = enumerate(text.split("\n"), 1)
    for is_blank, block in groupby(numbered, key=lambda one: not one[1].strip()):
        if is_blank:
            continue
        lines = list(block)
        for part in [[one] for one in lines] if chunk is Chunk.line else [lines]:
            yield f"{name}:{part[0][0]}", "\n".join(line for _, line in part).removesuffix("\r")


def text_of(row: Any, fields: Sequence[str], name: str, place: str) -> str:
    """The fields of one row, joined by newlines.

    Raises:
        RbpxError: the row is not a record, or one of the fields is not text.
    """
    if not isinstance(row, dict):
        raise RbpxError(f"row {name} of {place} is not a record with fields; one JSON object per row is expected")
    missing = [f for f in fields if not isinstance(row.get(f), str)]
    if missing:
        raise RbpxError(
            f"row {name} of {place} has no text in field '{missing[0]}' (it has: {', '.join(map(str, row))}); "
            f"name the fields with dataset.fields='[...]'"
        )
    return "\n".join(row[f] for f in fields)


def _meets(row: Any, where: dict[str, Any], name: str, place: str) -> bool:
    for path, value in where.items():
        node = row
        for step in path.split("."):
            if not isinstance(node, dict) or step not in node:
                has = f"it has: {', '.join(map(str, node))}" if isinstance(node, dict) else "it is not a record"
                raise RbpxError(
                    f"row {name} of {place} has no '{step}' for dataset.where, which needs {path} ({has}); "
                    "name the column with dataset.where='{column: value}'"
                )
            node = node[step]
        if node != value:
            return False
    return True
