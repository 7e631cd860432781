"""What a ladder is trained on and how: plain values, read from a configuration file."""

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Shape:
    """The shape of one GPT-NeoX model; its feed-forward width is four times `hidden`."""

    hidden: int
    layers: int
    heads: int


@dataclass(frozen=True)
class Recipe:
    """Everything that decides the weights of a ladder.

    Attributes:
        family: name of the family.
        packages: distributions whose Python sources are the training text.
        site: folder in which they are installed; None is the running interpreter's own.
        package_bytes: text taken from one package at most, in bytes.
        exclude_parts: a file with one of these words in its path is left out.
        span: a training file that shares this many consecutive tokens with an evaluation document is dropped.
        vocab_size: entries of the byte-level BPE.
        tokens: training tokens, the same ones in the same order for every size.
        context: tokens of a window.
        windows_per_step: windows in one optimizer step.
        learning_rate: peak rate at hidden width 1; the peak of a size is learning_rate / sqrt(hidden).
        warmup_steps: steps of linear warm-up before the cosine decay to a tenth.
        weight_decay: of matrices; vectors have none.
        seed: of the file order, the window order and the initial weights.
        shapes: size name -> shape.
    """

    family: str
    packages: tuple[str, ...]
    shapes: dict[str, Shape]
    site: Path | None = None
    package_bytes: int = 3_000_000
    exclude_parts: tuple[str, ...] = (
        "test", "tests", "testing", "conftest.py", "..", "vendor", "vendored", "_vendor", "_vendored", "third_party"
    )  # fmt: skip
    span: int = 50
    vocab_size: int = 4096
    tokens: int = 10_000_000
    context: int = 512
    windows_per_step: int = 16
    learning_rate: float = 0.04
    warmup_steps: int = 100
    weight_decay: float = 0.1
    seed: int = 42
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def n_steps(self) -> int:
        """Optimizer steps that consume `tokens`, rounded down."""
        return self.tokens // (self.context * self.windows_per_step)
