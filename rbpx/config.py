"""What the files of conf/ hold (families, datasets, protocols, studies, imports): the shape of the YAML, its checks."""

import re
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from rbpx.errors import RbpxError
from rbpx.texts import Wanted
from rbpx.ties import Ties

SHORTEST = 2  # tokens; the first one is never predicted


class Dtype(Enum):
    """Precision of the weights and activations; logits are float32 in each."""

    float32 = "float32"
    bfloat16 = "bfloat16"
    float16 = "float16"


class Device(Enum):
    """Where the model runs; `auto` takes an accelerator if there is one, `split` all of them, memory and disk."""

    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"
    split = "split"


class Format(Enum):
    """How results are printed; the last five are those of a report."""

    table = "table"
    csv = "csv"
    json = "json"
    html = "html"
    md = "md"
    tex = "tex"
    svg = "svg"
    pdf = "pdf"


class Bos(Enum):
    """Which special tokens begin a document: those of the tokenizer, exactly one BOS, or none."""

    tokenizer = "tokenizer"
    add = "add"
    none = "none"


class Draw(Enum):
    """How the sample of a hub's dataset is come by; the first three give the same documents.

    Attributes:
        whole: the dataset is loaded into the cache of `datasets`, shuffled, and the first `limit` are kept.
        parts: only the row groups of its Parquet files that hold the drawn rows are read.
        stream: all rows pass by, those that count are kept in memory and drawn from.
        first: the first `limit` that count are streamed, then shuffled: other documents.
    """

    whole = "whole"
    parts = "parts"
    stream = "stream"
    first = "first"


@dataclass
class SizeConfig:
    """One size of a family.

    Attributes:
        id: hub id, folder or bundled name.
        non_embedding_params: S, counted from the shape where there is one; recounted on load.
        shape: keys of a transformers configuration that S depends on, beside those of the family.
        source: where the shape is published, where the family's source does not hold it.
        verified: whether S was held against a count of the released weights, not only computed from the shape.
    """

    id: str
    non_embedding_params: int | None = None
    shape: dict[str, Any] = field(default_factory=dict)
    source: str | None = None
    verified: bool = False


@dataclass
class ModelConfig:
    """A family of models (conf/model/*.yaml).

    Attributes:
        family: its name.
        id: hub ids or folders in place of the sizes.
        revision: branch, tag or commit on the hub, as Pythia's step1000.
        bos: which special tokens begin a document.
        pickled: whether tensors may be read from pytorch_model.bin where there are no safetensors; no code is run.
        shape: keys of a transformers configuration that all sizes share, `model_type` among them.
        source: where the shapes are published.
        sizes: label -> model, from the smallest.
    """

    family: str | None = None
    id: Any = None
    revision: Any = None
    bos: Bos = Bos.tokenizer
    pickled: bool = False
    shape: dict[str, Any] = field(default_factory=dict)
    source: str | None = None
    sizes: dict[str, SizeConfig] = field(default_factory=dict)

    def shape_of(self, size: str) -> dict[str, Any]:
        """The whole shape of one size, as `AutoConfig.for_model(**shape)` takes it; empty where none is known."""
        return {**self.shape, **self.sizes[size].shape}


@dataclass
class DatasetConfig:
    """A dataset (conf/dataset/*.yaml).

    Attributes:
        name: under which it is kept.
        kind: `stdlib` and `pydoc` are built in, a `file` needs a path, a `hub` an id.
        path: a file, read in place of what the name says, with the same fields, articles, where and longer_than.
        hub: id of a dataset repository, ORG/NAME.
        subset: its configuration, where it has several.
        split: one of its splits, or several, as validation+test.
        revision: branch, tag or commit on the hub.
        draw: how the sample is come by.
        fields: of a row, joined by newlines into a document.
        articles: rows are lines of a running text; documents begin at lines ` = Title = `.
        where: path of a column -> the value that a row must have there, as {meta.pile_set_name: Github}.
        longer_than: characters that a document must exceed.
    """

    name: str = "file"
    kind: str = "file"
    path: str | None = None
    hub: str | None = None
    subset: Any = None
    split: Any = None
    revision: Any = None
    draw: Draw = Draw.whole
    fields: list[str] = field(default_factory=lambda: ["text"])
    articles: bool = False
    where: Any = None  # a dict; Hydra adds no keys to one that is typed
    longer_than: int | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be a name, a column or a length.

        Raises:
            RbpxError: a number where a name is meant, no fields, or a `where` that is no mapping.
        """
        for name in ("subset", "split", "revision"):
            check_name(f"dataset.{name}", getattr(self, name))
        if not self.fields:
            raise RbpxError("dataset.fields=[] makes no text; name at least one field, as in dataset.fields='[text]'")
        if not isinstance(self.where, dict | None):
            raise RbpxError(f"dataset.where={self.where} is no mapping; write dataset.where='{{column: value}}'")
        if self.longer_than is not None and self.longer_than < 0:
            raise RbpxError(f"dataset.longer_than={self.longer_than} is below 0; give a number of characters")

    def wanted(self) -> Wanted:
        """What of its rows is measured."""
        return Wanted(tuple(self.fields), self.articles, dict(self.where or {}), self.longer_than)


class Padding(Enum):
    """Whether rows of the vocabulary that no token has, as Pythia's last 27, compete for ranks and probability."""

    counted = "counted"
    masked = "masked"


@dataclass
class ProtocolConfig:
    """How documents become windows (conf/protocol/*.yaml).

    Attributes:
        name: of the protocol.
        window: tokens that the model reads at once, its context at most.
        whole: whether documents are read to their end, window after window, instead of their first window alone.
        stride: tokens from one window of a whole document to the next; None is half a window.
        padding: whether rows of the vocabulary without a token count.
    """

    name: str = "paper"
    window: int = 512
    whole: bool = False
    stride: int | None = None
    padding: Padding = Padding.counted

    def __post_init__(self) -> None:
        """Refuse windows that would leave a token out.

        Raises:
            RbpxError: a window or stride that reads nothing, a stride as long as its window, or one without `whole`.
        """
        if self.window < SHORTEST:
            raise RbpxError(f"protocol.window={self.window} predicts nothing; give {SHORTEST} tokens or more")
        if self.stride is None:
            return
        if not self.whole:
            raise RbpxError(f"protocol.stride={self.stride} is for whole documents; use protocol=rolling")
        if not 0 < self.stride < self.window:
            raise RbpxError(
                f"protocol.stride={self.stride} is not below protocol.window={self.window}, so the first token of each "
                "window would be predicted from nothing; give a smaller one"
            )


@dataclass
class StudyConfig:
    """A named study (experiments/*.yaml).

    Attributes:
        name: of its file.
        question: what it asks.
        grid: what was measured where it was published, and what is measured here.
        published: what was published, with its source.
        result: a SELECT over `found`, the rows of its analyses: what `record` writes into its file.
    """

    name: str | None = None
    question: str | None = None
    grid: str | None = None
    published: str | None = None
    result: str | None = None


@dataclass
class ImportConfig:
    """One file of other people's results, and what its columns and their absence mean.

    Attributes:
        file: CSV, Parquet, JSON or JSONL; in a named study, relative to the folder of the studies.
        source: whose results they are.
        ties: tie rule of rows that name none; None where the file has a column `ties`.
        family: of rows that name none.
        dataset: of rows that name none.
        revision: of rows that name none.
        protocol: of rows that name none.
        dtype: of rows that name none.
        columns: field -> column of the file, where its name alone does not tell.
    """

    file: str | None = None
    source: Any = None
    ties: Ties | None = None
    family: Any = None
    dataset: Any = None
    revision: Any = None
    protocol: Any = None
    dtype: Any = None
    columns: Any = None  # a dict; Hydra adds no keys to one that is typed

    def __post_init__(self) -> None:
        """Refuse an import that nobody could be asked about.

        Raises:
            RbpxError: no source, one that cannot be a file's name or is taken, or a number where a name is meant.
        """
        if self.source is None:
            raise RbpxError("an import needs source=NAME, whose results they are, as in source=rbp_paper")
        for name in ("source", "family", "dataset", "revision", "protocol", "dtype"):
            check_name(name, getattr(self, name))
        if not isinstance(self.columns, dict | None):
            raise RbpxError(f"columns={self.columns} is no mapping; write columns='{{rbp: NAME, k: NAME}}'")
        for name, column in (self.columns or {}).items():
            if not isinstance(name, str) or not isinstance(column, str):
                raise RbpxError(
                    f"columns: {name}: {column} is no pair of names; write columns='{{rbp: NAME, k: NAME}}'"
                )
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", self.source):
            raise RbpxError(
                f"source={self.source} is no plain name; give letters, digits, '.', '_' and '-', at most 64"
            )
        if self.source.lower() == "measured":
            raise RbpxError("source=measured is what rbpx measured itself; name whose results these are")


@dataclass
class ImportRequest(ImportConfig):
    """What `python -m rbpx import` can be asked.

    `dataset=` and `protocol=` arrive in `plain`: under their own names Hydra would look for files of conf/.
    """

    dataset: Any = "${plain.dataset}"
    protocol: Any = "${plain.protocol}"
    plain: dict[str, Any] = field(default_factory=lambda: {"dataset": None, "protocol": None})
    store: str = "${oc.env:RBPX_STORE,store}"
    format: Format = Format.table


def check_name(key: str, value: Any) -> None:
    """Refuse a name that YAML read as a number.

    Raises:
        RbpxError: it did.
    """
    if value is not None and not isinstance(value, str):
        raise RbpxError(f"{key}={value} was read as a number; quote it to keep it as typed: '{key}=\"...\"'")
