"""The configuration of a dataset (conf/dataset) and of a protocol (conf/protocol), which cuts texts into windows."""

import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

from rbpx.config.keys.key import key, name_of, names_of, text_or_list
from rbpx.config.options import Chunk, Draw, Padding
from rbpx.config.text.items import OF_ITEMS, ItemKeys
from rbpx.errors import RbpxError
from rbpx.files.folders import folder_and_pattern
from rbpx.spelling import typed

SHORTEST = 2  # tokens; the first one is never predicted
HARNESS: Final = "harness"  # the protocol of items, and of texts to be compared with them
ROLLING_WINDOW: Final = 1024  # of conf/protocol/rolling.yaml
_OF_TEXTS: Final = ("paper", "rolling")
_OF_CONTEXT: Final = "context template target choices delimiter description clean category fewshot".split()


@dataclass
class ProtocolConfig:
    """How documents become windows (conf/protocol/*.yaml).

    Attributes:
        window: tokens that the model reads at once; null is its context.
        whole: reads documents to their end, window after window, not their first window alone.
        stride: tokens from one window to the next, with `whole`; null is half a window.
    """

    name: str = "paper"
    window: int | None = 512
    whole: bool = False
    stride: int | None = None
    padding: Padding = key(
        Padding.counted, "or masked: rows of the vocabulary without a token (Pythia has 27 or more)", shown="counted"
    )
    prefix: str | None = key(
        None,
        "begins each window of protocol=rolling: bos, eos, the text of a token, or its id; by default the first window "
        "alone begins with what the tokenizer puts before a text",
        shown="TOKEN",
    )

    def __post_init__(self) -> None:
        """Checks that the windows score every token, and that `stride` and `prefix` have `whole`."""
        if self.window is None and self.name != HARNESS:
            raise RbpxError(f"protocol.window=null is the model's context in protocol={HARNESS} alone; give a number")
        if self.stride is not None and not self.whole:
            raise RbpxError(f"protocol.stride={self.stride} is for whole documents; use protocol=rolling")
        if self.prefix is not None and not self.whole:
            raise RbpxError(
                f"protocol.prefix={self.prefix} begins each window of whole documents; use protocol=rolling, or "
                "model.bos=add for a BOS at the beginning of a text"
            )
        stride = 1 if self.stride is None else self.stride
        if stride < 1 or (self.window is not None and self.window <= stride):
            raise RbpxError(
                f"protocol.window={self.window} and protocol.stride={self.stride} leave out tokens, since the first of "
                f"each window is not predicted; give a window of {SHORTEST} or more, and a stride from 1 and below it"
            )

    def of_items(self) -> "ProtocolConfig":
        """That of lm-evaluation-harness, for items, with any window set by the user.

        Raises:
            RbpxError: the protocol is of texts alone, or has a stride or a prefix.
        """
        if self.name == HARNESS:
            return self
        if self.name not in _OF_TEXTS or (self.stride, self.prefix) != (None, None):
            raise RbpxError(
                f"protocol={self.name} is for texts, and the dataset has items; use protocol={HARNESS} without a "
                "stride or a prefix"
            )
        own = self.window not in (ProtocolConfig.window, ROLLING_WINDOW)
        return ProtocolConfig(name=HARNESS, window=self.window if own else None, padding=self.padding)


# A book has 1 MiB, and tokens of 10 MiB take 2 GiB of memory.
ROW_MIB: Final = 16
FILE_MIB: Final = 1024
UNNAMED: Final = "file"  # the name of every file in versions before names came from paths


@dataclass
class DatasetConfig(ItemKeys):
    """A dataset (conf/dataset/*.yaml).

    Attributes:
        name: in the store; by default that of the file or folder at `path`, with its chunk: notes-paragraph.
        kind: `stdlib` and `pydoc` are built in, a `file` needs a path, a `hub` an id.
        path: a file, a folder or a glob to read instead of the named source.
        hub: ORG/NAME of a dataset.
        subset: the configuration of the repository, if it has several.
        split: one, or several, such as validation+test.
        revision: branch, tag or commit on the hub.
        fields: of a row, joined by newlines into a document.
        articles: rows are lines of a running text; documents begin at lines ` = Title = `.
        where: column -> the value that a row must have there, such as {meta.pile_set_name: Github}.
        longer_than: characters that a document must exceed.
        row_mib: limit of one row or text.
        file_mib: limit of a packed file (.gz, Parquet, .xlsx) after unpacking.
    """

    name: str = ""
    kind: str = "file"
    path: str | None = None
    hub: str | None = None
    subset: Any = text_or_list()
    split: Any = text_or_list()
    revision: Any = text_or_list()
    draw: Draw = key(
        Draw.whole,
        "whole: load, shuffle, take the first; parts, stream: the same documents, with less loaded; first: the first "
        "rows, shuffled. What was drawn stays in the store, in samples/",
        shown="HOW",
    )
    fields: Any = key(  # a list once read
        ["text"],
        "columns that make a document, '[question,answer]'; dataset.where='{column: value}' and "
        "dataset.longer_than=N choose rows, dataset.articles=true joins lines into articles",
    )
    articles: bool = False
    chunk: Chunk = key(
        Chunk.none,
        "or paragraph, line: what of a text on this machine makes a document; dataset.name=NAME names it",
        shown="none",
    )
    where: Any = None  # a dict; Hydra adds no keys to one that is typed
    longer_than: int | None = None
    row_mib: int = ROW_MIB
    file_mib: int = FILE_MIB

    def __post_init__(self) -> None:
        """Checks the values, that no key is without effect, and that items can be made."""
        self.fields = names_of("dataset.fields", self.fields)
        for name in ("subset", "split", "revision", "fewshot_split"):
            name_of(f"dataset.{name}", getattr(self, name))
        for name, example in (("where", {"column": "value"}), ("domains", {"domain": ["category"]})):
            if not isinstance(getattr(self, name), dict | None):
                how = typed(keys={f"dataset.{name}": example})
                raise RbpxError(f"dataset.{name}={getattr(self, name)} is not a mapping; write {how}")
        if not self.fields:
            raise RbpxError("dataset.fields=[] makes no text; name at least one field")
        self.name = self.name or self.file_name
        plain = {each.name: each.default for each in fields(self)}
        for name, what in self._not_for_it().items():
            value = getattr(self, name)
            if value != plain[name]:
                raise RbpxError(f"dataset.{name}={getattr(value, 'value', value)} is for {what}; drop it")
        self.task = self._task()

    def _not_for_it(self) -> dict[str, str]:
        """Keys that have no effect on this dataset, and what they are for."""
        keys: dict[str, str] = {}
        if self.kind != "hub":
            keys |= dict.fromkeys(("subset", "split", "revision"), f"datasets of the hub, and {self.name} is none")
        elif self.path is None:
            keys["chunk"] = "texts on this machine, as dataset.path=FILE; a document of the hub is a row"
        if self.has_items:
            keys |= dict.fromkeys(("articles", "chunk", "longer_than"), f"texts, and the rows of {self.name} are items")
        else:
            keys |= dict.fromkeys(OF_ITEMS, "items, which have a target: dataset.target=COLUMN, or dataset.choices=")
        if self.messages is not None:
            what = f"items of a context and a target, and the rows of {self.name} are conversations"
            keys |= dict.fromkeys(_OF_CONTEXT, what)
        if self.choices is None:
            keys |= dict.fromkeys(("right", "labels"), "items with choices: dataset.choices=COLUMN")
        if self.category is None:
            keys["domains"] = "items with categories: dataset.category=COLUMN"
        return keys

    @property
    def file_name(self) -> str:
        """`notes` of dir/notes.jsonl.gz, of notes/ and of notes/*.txt; `notes-paragraph` of its paragraphs."""
        if self.path is None:
            return UNNAMED
        several = folder_and_pattern(Path(self.path))
        if several is None:
            name = Path(self.path).name
            stem = Path(name[:-3] if name.lower().endswith(".gz") else name).stem or UNNAMED
        else:
            stem = Path(os.path.abspath(several[0])).name or UNNAMED
        return stem if self.chunk is Chunk.none else f"{stem}-{self.chunk.value}"

    @property
    def has_file_name(self) -> bool:
        """Whether a user's file is named after its path; earlier versions called each one `file`."""
        return self.kind == "file" and self.path is not None and self.name == self.file_name

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a row that are read."""
        return tuple(self.fields) if self.task is None else self.task.columns

    @property
    def takes_every_row(self) -> bool:
        """Whether rows can be drawn without reading the others, as each is one text."""
        whole = not self.articles and self.chunk is Chunk.none and (self.task is None or self.task.messages is None)
        return whole and not self.where and self.longer_than is None
