"""The configuration of a dataset, as a file of conf/dataset or overrides give it.

The configuration of a protocol: how documents become windows, as a file of conf/protocol gives it.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rbpx.config.keys.key import name_of
from rbpx.config.options import Chunk, Draw, Padding
from rbpx.config.text.items import FILE_MIB, ROW_MIB, ItemKeys, RowChoice
from rbpx.errors import RbpxError

SHORTEST = 2  # tokens; the first one is never predicted
HARNESS: Final = "harness"  # the protocol of items, and of texts that are to compare with them
ROLLING_WINDOW: Final = 1024  # of conf/protocol/rolling.yaml
_OF_TEXTS: Final = ("paper", "rolling")


@dataclass
class ProtocolConfig:
    """How documents become windows (conf/protocol/*.yaml).

    Attributes:
        name: of the protocol.
        window: tokens that the model reads at once, at most its context; null is its context.
        whole: whether documents are read to their end, window after window, instead of their first window alone.
        stride: tokens from one window of a whole document to the next; None is half a window.
        padding: whether vocabulary rows without a token count.
    """

    name: str = "paper"
    window: int | None = 512
    whole: bool = False
    stride: int | None = None
    padding: Padding = Padding.counted

    def __post_init__(self) -> None:
        """Refuse windows that would leave out a token.

        Raises:
            RbpxError: a window or stride that is too short, a stride as long as its window, or one without `whole`.
        """
        if self.window is None and self.name != HARNESS:
            raise RbpxError(f"protocol.window=null is the model's context in protocol={HARNESS} alone; give a number")
        if self.window is not None and self.window < SHORTEST:
            raise RbpxError(f"protocol.window={self.window} predicts nothing; give {SHORTEST} tokens or more")
        if self.stride is None:
            return
        if not self.whole:
            raise RbpxError(f"protocol.stride={self.stride} is for whole documents; use protocol=rolling")
        if self.window is not None and not 0 < self.stride < self.window:
            raise RbpxError(
                f"protocol.stride={self.stride} is not below protocol.window={self.window}, so the first token of each "
                "window would be predicted from nothing; give a smaller one"
            )

    def of_items(self) -> "ProtocolConfig":
        """How items are read: as lm-evaluation-harness does, under whatever protocol of texts they are asked for.

        A window other than that of the paper's or the rolling protocol holds for items too.

        Raises:
            RbpxError: the protocol is that of the authors' documents, or has a stride.
        """
        if self.name == HARNESS:
            return self
        if self.name not in _OF_TEXTS or self.stride is not None:
            key = f"protocol={self.name}" if self.name not in _OF_TEXTS else f"protocol.stride={self.stride}"
            raise RbpxError(f"{key} is for texts, and the dataset has items; use protocol={HARNESS}, or drop it")
        own = self.window not in (ProtocolConfig.window, ROLLING_WINDOW)
        return ProtocolConfig(name=HARNESS, window=self.window if own else None, padding=self.padding)


UNNAMED: Final = "file"  # what every file was called before it had the name of its path


@dataclass
class DatasetConfig(ItemKeys):
    """A dataset (conf/dataset/*.yaml); the keys of `ItemKeys` make items of its rows.

    Attributes:
        name: the name it has in the store; empty takes that of the file at `path`: notes.jsonl is called notes, and
            notes-paragraph with that chunk.
        kind: `stdlib` and `pydoc` are built in, a `file` needs a path, a `hub` an id.
        path: a file to read instead of the named source, with the same fields, articles, where and longer_than.
        hub: id of a dataset repository, ORG/NAME.
        subset: its configuration, where it has several.
        split: one of its splits, or several, such as validation+test.
        revision: branch, tag or commit on the hub.
        draw: how the sample is drawn.
        fields: of a row, joined by newlines into a document.
        articles: rows are lines of a running text; documents begin at lines ` = Title = `.
        chunk: what of a text on this machine makes a document: none (all of it), paragraph (blocks between blank
            lines) or line.
        where: path of a column -> the value that a row must have there, such as {meta.pile_set_name: Github}.
        longer_than: characters that a document must exceed.
        row_mib: what one row, or one text, may hold, MiB (2^20 characters each): more is refused.
        file_mib: what a packed file (.gz, Parquet) may hold once it is unpacked, MiB.
    """

    name: str = ""
    kind: str = "file"
    path: str | None = None
    hub: str | None = None
    subset: Any = None
    split: Any = None
    revision: Any = None
    draw: Draw = Draw.whole
    fields: list[str] = field(default_factory=lambda: ["text"])
    articles: bool = False
    chunk: Chunk = Chunk.none
    where: Any = None  # a dict; Hydra adds no keys to one that is typed
    longer_than: int | None = None
    row_mib: int = ROW_MIB
    file_mib: int = FILE_MIB

    def __post_init__(self) -> None:
        """Refuse invalid names, fields, conditions and lengths.

        Raises:
            RbpxError: a number where a name is expected, no fields, a `where` that is not a mapping, or a key that is
                for the hub's datasets, or for those on this machine, alone.
        """
        for name in ("subset", "split", "revision"):
            name_of(f"dataset.{name}", getattr(self, name))
        for name in ("row_mib", "file_mib"):
            if getattr(self, name) < 1:
                raise RbpxError(f"dataset.{name}={getattr(self, name)} is below 1; give a whole number of MiB")
        self.name = self.name or self.file_name
        self._refuse_what_is_not_for_it()
        if not self.fields:
            raise RbpxError("dataset.fields=[] makes no text; name at least one field, as in dataset.fields='[text]'")
        if not isinstance(self.where, dict | None):
            raise RbpxError(f"dataset.where={self.where} is not a mapping; write dataset.where='{{column: value}}'")
        if self.longer_than is not None and self.longer_than < 0:
            raise RbpxError(f"dataset.longer_than={self.longer_than} is below 0; give a number of characters")
        self._check_items()

    def _check_items(self) -> None:
        if self.task() is None:
            return
        cuts = {
            "articles=true": self.articles,
            f"chunk={self.chunk.value}": self.chunk is not Chunk.none,
            f"longer_than={self.longer_than}": self.longer_than is not None,
        }
        for rule, given in cuts.items():
            if given:
                raise RbpxError(f"dataset.{rule} is for texts, and the rows of dataset {self.name} are items; drop it")

    def _refuse_what_is_not_for_it(self) -> None:
        if self.kind != "hub":
            for name in ("subset", "split", "revision"):
                if getattr(self, name) is not None:
                    raise RbpxError(
                        f"dataset.{name}={getattr(self, name)} is for datasets of the hub; dataset {self.name} has no "
                        f"{name}, so drop it, or name the hub's with dataset=hub dataset.hub=ORG/NAME"
                    )
        elif self.path is None and self.chunk is not Chunk.none:
            raise RbpxError(
                f"dataset.chunk={self.chunk.value} is for texts on this machine; a document of the hub is a row: drop "
                "it, or give a file with dataset.path=FILE"
            )

    @property
    def file_name(self) -> str:
        """The name of its file without .gz and the suffix before it, and how it is cut.

        `notes` of dir/notes.jsonl.gz, `notes-paragraph` of its paragraphs.
        """
        if self.path is None:
            return UNNAMED
        name = Path(self.path).name
        stem = Path(name[:-3] if name.lower().endswith(".gz") else name).stem or UNNAMED
        return stem if self.chunk is Chunk.none else f"{stem}-{self.chunk.value}"

    @property
    def has_file_name(self) -> bool:
        """Whether it is a user's file under the name of that file; earlier versions called such a dataset `file`."""
        return self.kind == "file" and self.path is not None and self.name == self.file_name

    def row_choice(self) -> RowChoice:
        """Which fields and rows of it are measured."""
        return RowChoice(
            fields=tuple(self.fields),
            articles=self.articles,
            where=dict(self.where or {}),
            longer_than=self.longer_than,
            chunk=self.chunk,
            row_mib=self.row_mib,
            file_mib=self.file_mib,
            task=self.task(),
        )
