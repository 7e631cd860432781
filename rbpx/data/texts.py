"""Rows of a dataset in, its texts out: which fields make a text, which rows count, which lines are one article."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rbpx.config.row_choice import RowChoice
from rbpx.data.articles import split_articles
from rbpx.errors import RbpxError

Text = tuple[str, str]  # (source_id, text)


def texts(rows: Iterable[tuple[str, Any]], wanted: RowChoice, place: str) -> Iterator[Text]:
    """The texts of rows that are given with their ids, in order.

    Raises:
        RbpxError: a row has no such field, no such column, or no text in it.
    """
    chosen = ((name, row) for name, row in rows if _meets(row, wanted.where, name, place))
    found: Iterable[Text] = ((name, text_of(row, wanted.fields, name, place)) for name, row in chosen)
    if wanted.articles:
        found = split_articles(line for _, line in found)
    least = wanted.longer_than
    return ((name, text) for name, text in found if least is None or len(text) > least)


def text_of(row: Any, fields: Sequence[str], name: str, place: str) -> str:
    """The fields of one row, joined by newlines.

    Raises:
        RbpxError: the row is no record, or holds no text in one of the fields.
    """
    if not isinstance(row, dict):
        raise RbpxError(f"row {name} of {place} is no record with fields; one JSON object a row is expected")
    missing = [f for f in fields if not isinstance(row.get(f), str)]
    if missing:
        raise RbpxError(
            f"row {name} of {place} has no text in field '{missing[0]}' (it has: {', '.join(map(str, row))}); "
            f"name the fields with dataset.fields='[...]'"
        )
    return "\n".join(row[f] for f in fields)


def _meets(row: Any, where: dict[str, Any], name: str, place: str) -> bool:
    for path, value in where.items():
        found = row
        for step in path.split("."):
            if not isinstance(found, dict) or step not in found:
                has = f"it has: {', '.join(map(str, found))}" if isinstance(found, dict) else "it is no record"
                raise RbpxError(
                    f"row {name} of {place} has no '{step}' for dataset.where, which asks {path} ({has}); "
                    "name the column with dataset.where='{column: value}'"
                )
            found = found[step]
        if found != value:
            return False
    return True
