"""Options with a few values each: precision, device, format, special tokens, drawing, padding.

Suggests the known name that was probably meant by an unknown one.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from enum import Enum

_SYNONYMS = {
    "gpu": "cuda",
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp32": "float32",
    "half": "float16",
    "strict": "optimistic",
}


def near(name: str, known: Iterable[str]) -> str | None:
    """The closest known name, ignoring case; None where none is close."""
    by_lower = {each.lower(): each for each in known}
    synonym = _SYNONYMS.get(name.lower())
    if synonym in by_lower:
        return by_lower[synonym]
    matches = get_close_matches(name.lower(), by_lower, n=1)
    return by_lower[matches[0]] if matches else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The question, followed by a space; empty where no name is close."""
    suggestion = near(name, known)
    return "" if suggestion is None else f"did you mean {suggestion}? "


class Dtype(Enum):
    """Precision of the weights and activations; logits are float32 in each."""

    float32 = "float32"
    bfloat16 = "bfloat16"
    float16 = "float16"


class Quantise(Enum):
    """What the weights of linear layers are rounded to, by torchao."""

    int8 = "int8"
    int4 = "int4"
    nf4 = "nf4"


class Device(Enum):
    """Where the model runs; `auto` takes an accelerator if there is one, `split` all of them, memory and disk."""

    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"
    split = "split"


class Format(Enum):
    """How results are told; `jobs` is of a plan."""

    table = "table"
    csv = "csv"
    json = "json"
    jobs = "jobs"
    html = "html"
    md = "md"
    tex = "tex"
    svg = "svg"
    pdf = "pdf"
    png = "png"

    @property
    def is_figures(self) -> bool:
        """Whether it is of figures alone, a file each."""
        return self in (Format.svg, Format.pdf, Format.png)


class Legend(Enum):
    """Where the legend of a figure stands."""

    top = "top"
    right = "right"
    bottom = "bottom"
    left = "left"
    none = "none"


class Bos(Enum):
    """Which special tokens begin a document: those of the tokenizer, exactly one BOS, or none."""

    tokenizer = "tokenizer"
    add = "add"
    none = "none"


class Joined(Enum):
    """What becomes of items of which a target joins its context: they are left out and counted, or the cell fails."""

    skip = "skip"
    refuse = "refuse"


class FewshotDraw(Enum):
    """Which items share their examples.

    Attributes:
        fixed: all of them, or all of a category.
        item: none; each item has examples of its own, which no other item decides.
    """

    fixed = "fixed"
    item = "item"


class Draw(Enum):
    """How the sample of a hub's dataset is drawn; the first three give the same documents.

    Attributes:
        whole: the dataset is loaded into the cache of `datasets`, shuffled, and the first `limit` are kept.
        parts: only the row groups of its Parquet files that contain drawn rows are read.
        stream: all rows are streamed; those that meet the conditions are kept in memory and drawn from.
        first: the first `limit` that meet the conditions are streamed, then shuffled: other documents.
    """

    whole = "whole"
    parts = "parts"
    stream = "stream"
    first = "first"


class Chunk(Enum):
    """What of a text makes a document: all of it, its paragraphs (blocks between blank lines), or its lines."""

    none = "none"
    paragraph = "paragraph"
    line = "line"


class Checkpoints(Enum):
    """Which points of a training count: all of its checkpoints that are there, or the last alone."""

    all = "all"
    last = "last"


class Outliers(Enum):
    """Whether runs that lie outside what the others allow are kept out of what laws in size and tokens say."""

    drop = "drop"
    keep = "keep"


class Padding(Enum):
    """Whether vocabulary rows without a token, such as Pythia's last 27, compete for ranks and probability."""

    counted = "counted"
    masked = "masked"
