"""The request of `train`: the recipe that determines the weights of a ladder, and how and where it is trained."""

import math
from dataclasses import dataclass, field
from typing import Any, Final

from rbpx.config.keys.key import explained
from rbpx.config.options import Device
from rbpx.errors import RbpxError


@dataclass(frozen=True)
class LadderSize:
    """The shape of one GPT-NeoX model; its feed-forward width is four times `hidden`.

    `rotary` is the share of a head's dimensions that encode positions; heads of 16 dimensions need most of theirs.
    `learning_rate` replaces the recipe's for this size; None keeps it.
    """

    hidden: int
    layers: int
    heads: int
    rotary: float = 0.25
    learning_rate: float | None = None

    @property
    def non_embedding_params(self) -> int:
        """S: 12 d^2 + 13 d parameters in a layer, and 2 d in the last norm."""
        d = self.hidden
        return self.layers * (12 * d * d + 13 * d) + 2 * d


@dataclass(frozen=True)
class Mamba2Size:
    """The shape of one Mamba-2 model (arXiv 2405.21060), with one group of B and C.

    Attributes:
        hidden: width d of the stream.
        layers: of which each is one mixer; the parameters of about two make those of a transformer's layer.
        heads: of the scan; they share its inner width, expand * d.
        state: numbers that a channel of a head carries from token to token.
        expand: inner width in widths of the stream.
        convolution: tokens that the short convolution before the scan sees.
        chunk: tokens that the scan takes at once: how fast it is, not what it computes, but for rounding.
        learning_rate: replaces the recipe's for this size; None keeps it.
    """

    hidden: int
    layers: int
    heads: int
    state: int = 16
    expand: int = 2
    convolution: int = 4
    chunk: int = 32
    learning_rate: float | None = None

    @property
    def non_embedding_params(self) -> int:
        """S: projections in and out, the convolution with its bias; A, D and the bias of dt of each head; the norms."""
        d, inner, mixed = self.hidden, self.expand * self.hidden, self.expand * self.hidden + 2 * self.state
        projections = d * (inner + mixed + self.heads) + inner * d
        return self.layers * (projections + mixed * (self.convolution + 1) + 3 * self.heads + inner + d) + d


Shape = LadderSize | Mamba2Size
_ARCHITECTURES: Final[dict[str, type[Shape]]] = {"gpt_neox": LadderSize, "mamba2": Mamba2Size}


def _shape(name: str, fields: dict[str, Any]) -> Shape:
    """The shape that a recipe's mapping speaks of; `architecture` says of what, gpt_neox where it is absent.

    Raises:
        RbpxError: the architecture is unknown, or the heads cannot share the inner width.
    """
    architecture = fields.get("architecture", "gpt_neox")
    if architecture not in _ARCHITECTURES:
        raise RbpxError(
            f"shapes.{name}.architecture={architecture} is not built here; known: {', '.join(_ARCHITECTURES)}"
        )
    shape = _ARCHITECTURES[architecture](**{key: value for key, value in fields.items() if key != "architecture"})
    if isinstance(shape, Mamba2Size) and shape.expand * shape.hidden % shape.heads:
        raise RbpxError(
            f"shapes.{name}.heads={shape.heads} cannot share the inner width {shape.expand * shape.hidden} "
            "(expand * hidden) evenly; give a divisor of it"
        )
    return shape


@dataclass
class TextConfig:
    """Where the training text comes from.

    Attributes:
        site: folder in which the packages are installed; None is the running interpreter's own.
        packages: distributions whose Python sources are the text -> their versions; any version where it is empty.
        package_bytes: text taken from one package at most, in bytes.
        exclude_parts: a file with one of these words in its path is left out.
        span: a training file that shares this many consecutive tokens with an evaluation document is left out.
    """

    site: str | None = None
    packages: dict[str, str] = field(default_factory=dict)
    package_bytes: int = 3_000_000
    exclude_parts: list[str] = field(
        default_factory=lambda: [
            "test", "tests", "testing", "conftest.py", "..", "vendor", "vendored", "_vendor", "_vendored", "third_party"
        ]
    )  # fmt: skip
    span: int = 50


@dataclass
class Objective:
    """What a training minimises: cross-entropy, and what is asked beside it. Evaluation is plain always.

    Attributes:
        label_smoothing: share of each target that is spread evenly over the vocabulary, such as 0.1.
        z_loss: weight of the square of ln Z, Z the sum of exp(logits), such as 1e-4.
    """

    label_smoothing: float = 0.0
    z_loss: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what is no share or no weight.

        Raises:
            RbpxError: label_smoothing is not from 0 to below 1, or z_loss not a finite number from 0.
        """
        if not 0 <= self.label_smoothing < 1:
            raise RbpxError(
                f"objective.label_smoothing={self.label_smoothing} is not a share of the target; give one from 0 to "
                "below 1, such as 0.1"
            )
        if not 0 <= self.z_loss < math.inf:
            raise RbpxError(f"objective.z_loss={self.z_loss} is not a weight; give one from 0, such as 1e-4")

    @property
    def variant(self) -> str | None:
        """What models of it are called in `variant`; None for plain cross-entropy."""
        parts = [f"{name}_{value:g}" for name, value in vars(self).items() if value]
        return "_".join(parts) or None


@dataclass
class Recipe:
    """Everything that determines the weights of a ladder.

    Amounts of tokens are whole numbers, or text such as 8m, 1.24m and 930k; each is rounded down to whole steps. Where
    a value is per size, a mapping from size to value speaks of these sizes, anything else of all.

    Attributes:
        family: name of the family; None is that of the output's folder.
        text: where the training text comes from.
        shapes: size name -> `LadderSize` or `Mamba2Size`, or its fields as in a file of experiments/, there with
            `architecture: mamba2` for the latter.
        vocab_size: entries of the byte-level BPE.
        tokens: budget of the model that stands for its size, the default revision.
        budgets: further budgets, a list of tokens, per size.
        flops: budgets of compute C; each size gets a budget of C / (6 N) tokens, N parameters with the head, where
            that is in `flops_tokens`.
        flops_tokens: least and most tokens of a budget that comes from `flops`.
        checkpoints: how many log-spaced raw checkpoints of the trunk are kept, per size.
        seeds: further training seeds, a list, per size; each gives one more model of `tokens`.
        context: tokens of a window.
        windows_per_step: windows in one optimizer step.
        unique_tokens: of the text that are read, again and again where a budget is larger; None is all of it.
        learning_rate: peak rate at hidden width 1; the peak of a size is learning_rate / sqrt(hidden).
        warmup_steps: steps of linear warm-up before the rate stays at its peak.
        decay: share of a budget's steps, at its end, in which the rate decays to zero.
        weight_decay: of matrices; vectors have none.
        objective: what is minimised.
        seed: of the file order, the window order and the initial weights.
    """

    family: str | None = None
    text: TextConfig = explained(
        TextConfig(), "DIR", "folder with the installed packages, default this interpreter's", "text.site"
    )
    shapes: dict[str, Any] = field(default_factory=dict)
    vocab_size: int = 4096
    tokens: Any = explained(8_000_000, "8m", "budget of the model that stands for its size")
    budgets: Any = explained(None, "'[1m,2m]'", "further ones; '{3k: [1m,2m]}' for some sizes, null for none")
    flops: Any = explained(
        None,
        "'[1e12]'",
        "budgets of compute: C / (6 N) tokens for each size, where that is in flops_tokens='[0.5m,20m]'",
    )
    flops_tokens: Any = (500_000, 20_000_000)
    checkpoints: Any = explained(None, "8", "log-spaced raw checkpoints, before any decay; '{7k: 8}' for some sizes")
    seeds: Any = explained(None, "'[43,44]'", "further seeds at tokens=; '{3k: [43,44]}' for some sizes")
    context: int = 512
    windows_per_step: int = 16
    unique_tokens: Any = explained(None, "1m", "reads only so much of the text, again and again")
    learning_rate: float = 0.04
    warmup_steps: int = 100
    decay: float = 0.2
    weight_decay: float = 0.1
    objective: Objective = field(default_factory=Objective)
    seed: int = 42

    def __post_init__(self) -> None:
        """Make a shape of each mapping."""
        self.shapes = {
            name: size if isinstance(size, Shape) else _shape(name, size) for name, size in self.shapes.items()
        }

    @property
    def tokens_per_step(self) -> int:
        """Tokens that one optimizer step is trained on."""
        return self.context * self.windows_per_step


@dataclass
class TrainRequest(Recipe):
    """The request of `python -m rbpx train`: a recipe, and what does not determine the weights.

    Attributes:
        size: sizes to train, in this order, or all.
        output: folder of the models.
        device: where to train.
        threads: of the CPU; 0 leaves the choice to torch.
        checkpoint_s: seconds between saves of a training in progress.
        study: the named study that the recipe comes from.
    """

    size: Any = explained("all", "SIZE", "all (default), one, or a list")
    output: str = explained("ladder", "DIR", "where the models go, default ladder/")
    device: Device = explained(Device.auto, "auto", "or cpu, cuda")
    threads: int = explained(0, "N", "on a CPU")
    checkpoint_s: float = 60.0
    study: Any = None
