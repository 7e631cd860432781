"""Which fields of a dataset's rows make a text, and which rows are measured."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class RowChoice:
    """Which texts of a dataset are measured.

    Attributes:
        fields: of a row, joined by newlines into its text.
        articles: the rows are lines of a running text, which is split at its titles.
        where: path of a column, such as `meta.pile_set_name` -> the value that a row must have there.
        longer_than: characters that a text must exceed; None takes every text.
    """

    fields: tuple[str, ...] = ("text",)
    articles: bool = False
    where: dict[str, Any] = field(default_factory=dict)
    longer_than: int | None = None

    @property
    def takes_every_row(self) -> bool:
        """Whether every row is one text, so that a row can be drawn without reading the others."""
        return not self.articles and not self.where and self.longer_than is None
