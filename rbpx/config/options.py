"""Options with a few values each, and suggestions for a mistyped name."""

from collections.abc import Iterable
from difflib import get_close_matches
from enum import Enum
from pathlib import Path

_SYNONYMS = {
    "gpu": "cuda",
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp32": "float32",
    "half": "float16",
    "strict": "optimistic",
}


def near(name: str, known: Iterable[str]) -> str | None:
    """The closest known name, ignoring case; None if none is close."""
    by_lower = {each.lower(): each for each in known}
    synonym = _SYNONYMS.get(name.lower())
    if synonym in by_lower:
        return by_lower[synonym]
    matches = get_close_matches(name.lower(), by_lower, n=1)
    return by_lower[matches[0]] if matches else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Returns "did you mean ...?" and a space; empty if no name is close."""
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
    """Where the model runs; `auto`: on an accelerator if there is one; `split`: on all, memory and disk."""

    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"
    split = "split"


class Format(Enum):
    """Formats of results; `jobs` is for plans."""

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

    @classmethod
    def of_suffix(cls, output: str | None) -> "Format | None":
        """The format that the name of a file ends in, if any."""
        named = Path(output or "").suffix.removeprefix(".").lower()
        return next((each for each in cls if each.value == named and each not in (cls.table, cls.jobs)), None)

    @property
    def is_figures(self) -> bool:
        """Whether the format writes figures, a file each."""
        return self in (Format.svg, Format.pdf, Format.png)


class Legend(Enum):
    """Place of a figure's legend."""

    top = "top"
    right = "right"
    bottom = "bottom"
    left = "left"
    none = "none"


class Bos(Enum):
    """What begins a document: special tokens of the tokenizer, exactly one BOS, or nothing."""

    tokenizer = "tokenizer"
    add = "add"
    none = "none"


class Joined(Enum):
    """Whether items whose target joins its context are left out, or fail the cell."""

    skip = "skip"
    refuse = "refuse"


class FewshotDraw(Enum):
    """How examples are drawn."""

    fixed = "fixed"
    item = "item"


class Draw(Enum):
    """How a sample of a hub dataset is drawn; the first three draw the same documents.

    Attributes:
        whole: loads the dataset, shuffles it, and keeps the first `limit` documents.
        parts: reads only the row groups of its Parquet files that contain drawn rows.
        stream: draws from all rows that meet the conditions.
        first: the first `limit` that meet the conditions, shuffled.
    """

    whole = "whole"
    parts = "parts"
    stream = "stream"
    first = "first"


class Chunk(Enum):
    """The part of a text that makes a document; a paragraph lies between blank lines."""

    none = "none"
    paragraph = "paragraph"
    line = "line"


class Checkpoints(Enum):
    """Which checkpoints of a training count."""

    all = "all"
    last = "last"


class Outliers(Enum):
    """What becomes of outliers of laws in size and tokens."""

    drop = "drop"
    keep = "keep"


class Padding(Enum):
    """Whether vocabulary rows without a token, as Pythia's last 27, compete for ranks and probability."""

    counted = "counted"
    masked = "masked"
