"""The configuration of a family of models, as a file of conf/model or overrides give it."""

from dataclasses import dataclass, field
from typing import Any, Final

from rbpx.config.model.checkpoints import chosen_revisions
from rbpx.config.model.revisions import Checkpoint, checkpoints
from rbpx.config.model.training import Training, checked_training
from rbpx.config.options import Bos, Quantise
from rbpx.errors import RbpxError

_KEYS: Final = {
    "training_tokens": "tokens",
    "training_flops": "flops",
    "training_step": "step",
    "unique_tokens": "unique_tokens",
    "training_seed": "seed",
    "variant": "variant",
}


@dataclass
class SizeConfig:
    """One size of a family.

    Attributes:
        id: hub id, folder or bundled name.
        non_embedding_params: S, counted from the shape if there is one; counted again when the model is loaded.
        shape: keys of a transformers configuration that S depends on, in addition to those of the family.
        source: where the shape is published, if not in the family's source.
        verified: whether S was checked against a count of the released weights, not only computed from the shape.
        training_tokens: tokens that the released model was trained on.
        training_flops: of its training, as its source states them.
        training_step: steps of its training.
        unique_tokens: tokens of the text that it was trained on, each counted once.
        training_seed: what tells it from other trainings of its shape: sizes with one S and different seeds are
            replicates.
        variant: what is being compared, such as an optimizer or the data.
        revisions: names of further checkpoints of this size, in folders beside the one of `id`.
    """

    id: str
    non_embedding_params: int | None = None
    shape: dict[str, Any] = field(default_factory=dict)
    source: str | None = None
    verified: bool = False
    training_tokens: int | None = None
    training_flops: float | None = None
    training_step: int | None = None
    unique_tokens: int | None = None
    training_seed: int | None = None
    variant: str | None = None
    revisions: list[str] = field(default_factory=list)


@dataclass
class ModelConfig:
    """A family of models (conf/model/*.yaml).

    Attributes:
        family: its name.
        id: hub ids or folders in place of the sizes.
        revision: branch, tag or commit on the hub, such as Pythia's step1000; a list of them; `all` or `log`, all or
            log-spaced ones of the checkpoints; where these lie in folders also a pattern, `finished` or `raw`.
        checkpoints: steps at which a state was published as revision stepN: whole numbers, and ranges
            {from: 1000, to: 143000, by: 1000}.
        bos: which special tokens begin a document.
        pickled: whether tensors may be read from pytorch_model.bin where there are no safetensors; no code is run.
        quantise: what the weights of linear layers are rounded to, int8, int4 or nf4, by torchao.
        shape: keys of a transformers configuration that all sizes share, `model_type` among them.
        source: where the shapes are published.
        sizes: label -> model, from the smallest.
        tokens_per_step: training tokens of one step, the same for all sizes; a revision stepN then has N times as many.
        steps: of the whole training, which the revision main has.
        training_source: where the facts of the training are published.
        tokens: training_tokens of the model; a list has one for each, in their order, as for the keys below.
        flops: training_flops.
        step: training_step.
        unique_tokens: the same.
        seed: training_seed.
        variant: the same.
    """

    family: str | None = None
    id: Any = None
    revision: Any = None
    bos: Bos = Bos.tokenizer
    pickled: bool = False
    quantise: Quantise | None = None
    shape: dict[str, Any] = field(default_factory=dict)
    source: str | None = None
    sizes: dict[str, SizeConfig] = field(default_factory=dict)
    checkpoints: list[Any] = field(default_factory=list)
    tokens_per_step: int | None = None
    steps: int | None = None
    training_source: str | None = None
    tokens: Any = None
    flops: Any = None
    step: Any = None
    unique_tokens: Any = None
    seed: Any = None
    variant: Any = None

    @property
    def lists_checkpoints(self) -> bool:
        """Whether its file says which checkpoints there are in folders."""
        return self.id is None and any(size.revisions for size in self.sizes.values())

    def revisions(self) -> list[str | None]:
        """The revisions that are asked for, in order; None is what stands for a size.

        Raises:
            RbpxError: there is none of that name, `all` or `log` of a family that lists no checkpoints, or no names.
        """
        if self.lists_checkpoints:
            return list(dict.fromkeys(each.revision for of in self.chosen_checkpoints().values() for each in of))
        return chosen_revisions(self.revision, self.checkpoints, self.family)

    def chosen_checkpoints(self) -> dict[str, list[Checkpoint]]:
        """The checkpoints of each size that `revision` means; raises as `revisions`."""
        if not self.lists_checkpoints:
            chosen = self.revisions()
            return {size: [Checkpoint(each, entry.id) for each in chosen] for size, entry in self.sizes.items()}
        entries = {size: (entry.id, entry.revisions) for size, entry in self.sizes.items()}
        return checkpoints(entries, self.revision, self.family or "unnamed")

    def training_of(self, size: str | None, place: int, n_models: int, revision: str | None = None) -> Training:
        """What is known of the training of one model at its revision: keys first, then its entry and the rule of steps.

        Args:
            size: its label in `sizes`; None for a model that is given by its id.
            place: of the model in the family, from 0.
            n_models: of the family.
            revision: of the model.

        Raises:
            RbpxError: a key is not what its name says, or lists another number of values.
        """
        typed = {fact: _one_of(getattr(self, key), place, n_models, key) for fact, key in _KEYS.items()}
        by_key = checked_training(typed, "model", {fact: f"model.{key}" for fact, key in _KEYS.items()})
        entry = Training() if size is None else Training(**{fact: getattr(self.sizes[size], fact) for fact in _KEYS})
        return by_key.over(entry.at_revision(revision, self.tokens_per_step, self.steps))

    def shape_of(self, size: str) -> dict[str, Any]:
        """The complete shape of one size, as `AutoConfig.for_model(**shape)` takes it; empty if none is known."""
        return {**self.shape, **self.sizes[size].shape}


def _one_of(value: Any, place: int, n_models: int, key: str) -> Any:
    """The value of a key for one model: its own of a list, or the one for all."""
    if not isinstance(value, list):
        return value
    if len(value) != n_models:
        raise RbpxError(
            f"model.{key} lists {len(value)} values for {n_models} models; give one for each, null where it is unknown"
        )
    return value[place]
