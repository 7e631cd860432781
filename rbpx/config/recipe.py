"""What a ladder is trained on and how: plain values, read from a configuration file."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rbpx.config.options import Device


@dataclass(frozen=True)
class Shape:
    """The shape of one GPT-NeoX model; its feed-forward width is four times `hidden`.

    `rotary` is the share of a head's dimensions that tell positions; heads of 16 dimensions need most of theirs.
    `learning_rate` replaces the recipe's for this size; None keeps it.
    """

    hidden: int
    layers: int
    heads: int
    rotary: float = 0.25
    learning_rate: float | None = None


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


@dataclass
class TextConfig:
    """Where the training text comes from; keys as in `Recipe`."""

    site: str | None = None
    packages: dict[str, str] = field(default_factory=dict)
    package_bytes: int = 3_000_000
    exclude_parts: list[str] = field(default_factory=list)
    span: int = 50


@dataclass
class TrainRequest:
    """What `python -m rbpx train` can be asked; keys as in `Recipe`."""

    family: str = "ladder"
    text: TextConfig = field(default_factory=TextConfig)
    shapes: dict[str, Any] = field(default_factory=dict)
    vocab_size: int = 4096
    tokens: int = 10_000_000
    context: int = 512
    windows_per_step: int = 16
    learning_rate: float = 0.04
    warmup_steps: int = 100
    weight_decay: float = 0.1
    seed: int = 42
    size: Any = "all"
    output: str = "ladder"
    device: Device = Device.auto
    threads: int = 0
    checkpoint_s: float = 60.0
    study: Any = None

    def recipe(self) -> Recipe:
        """The part that decides the weights."""
        return Recipe(
            family=self.family,
            packages=tuple(self.text.packages),
            versions=dict(self.text.packages),
            shapes={size: Shape(**shape) for size, shape in self.shapes.items()},
            site=None if self.text.site is None else Path(self.text.site),
            package_bytes=self.text.package_bytes,
            exclude_parts=tuple(self.text.exclude_parts),
            span=self.text.span,
            vocab_size=self.vocab_size,
            tokens=self.tokens,
            context=self.context,
            windows_per_step=self.windows_per_step,
            learning_rate=self.learning_rate,
            warmup_steps=self.warmup_steps,
            weight_decay=self.weight_decay,
            seed=self.seed,
        )
