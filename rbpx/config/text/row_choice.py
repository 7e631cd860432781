"""Which fields of a dataset's rows make a text, and which rows are measured."""

from dataclasses import dataclass, field
from typing import Any, Final

from rbpx.config.options import Chunk
from rbpx.config.text.items import Task

# A book has 1 MiB, and tokens of 10 MiB take 2 GiB of memory.
ROW_MIB: Final = 16
FILE_MIB: Final = 1024


@dataclass(frozen=True)
class RowChoice:
    """Which texts of a dataset are measured.

    Attributes:
        fields: of a row, joined by newlines into its text.
        articles: the rows are lines of a running text, which is split at its titles.
        chunk: what of a text, or of an article, makes a document.
        where: path of a column, such as `meta.pile_set_name` -> the value that a row must have there.
        longer_than: characters that a document must exceed; None takes every one.
        task: how rows become items in place of texts; None where they are texts.
    """

    fields: tuple[str, ...] = ("text",)
    articles: bool = False
    where: dict[str, Any] = field(default_factory=dict)
    longer_than: int | None = None
    chunk: Chunk = Chunk.none
    row_mib: int = ROW_MIB
    file_mib: int = FILE_MIB
    task: Task | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a row that are read."""
        return self.fields if self.task is None else self.task.columns

    @property
    def takes_every_row(self) -> bool:
        """Whether every row is one text, so that a row can be drawn without reading the others."""
        whole = not self.articles and self.chunk is Chunk.none
        return whole and not self.where and self.longer_than is None
