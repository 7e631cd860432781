"""The configuration of a family of models, as a file of conf/model or overrides give it.

The checkpoints that a family publishes: as its file writes their steps, and those of them that a request names.

The checkpoints that a family's file lists for a size: their names, and which of them a request means.

They lie in folders beside the size's own model, which is the finished one that stands for the size and is meant where
nothing is asked for. A name that begins with `raw-` is of a checkpoint on the way, whose learning rate had not decayed:
its loss lies above that of a finished model of as many tokens, so the two never stand in one group.
"""

import fnmatch
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from rbpx.config.keys.key import name_of
from rbpx.config.model.training import Training, checked_training
from rbpx.config.options import Bos, Quantise, did_you_mean
from rbpx.errors import RbpxError

__all__ = [
    "GGUF",
    "Checkpoint",
    "ModelConfig",
    "checkpoints",
    "chosen_revisions",
    "is_gguf",
    "listed_steps",
    "log_spaced",
    "named_revisions",
]

GGUF: Final = ".gguf"

_EVERY: Final = ("all", "log")
_RATIO: Final = 1.9  # of a step to the one before it; 512 and 1,000 of Pythia are neighbours
_HOW: Final = "give steps and ranges, as in checkpoints: [0, 1, 2, 4, {from: 1000, to: 143000, by: 1000}]"


def is_gguf(name: object) -> bool:
    """Whether a model's id or path names a GGUF file."""
    return str(name).lower().endswith(GGUF)


def listed_steps(checkpoints: Sequence[Any], family: str | None) -> list[int]:
    """The steps that a family's file lists, each a whole number or a range {from: , to: , by: }, ascending.

    Raises:
        RbpxError: an entry is neither.
    """
    steps: set[int] = set()
    for entry in checkpoints:
        if isinstance(entry, int) and not isinstance(entry, bool) and entry >= 0:
            steps.add(entry)
            continue
        is_range = isinstance(entry, dict) and len(entry) == 3
        ends: list[Any] = [entry.get(name) for name in ("from", "to", "by")] if is_range else []
        whole = len(ends) == 3 and all(isinstance(end, int) and not isinstance(end, bool) for end in ends)
        if not whole or not 0 <= ends[0] <= ends[1] or not 0 < ends[2] or (ends[1] - ends[0]) // ends[2] > 100_000:
            raise RbpxError(f"checkpoints of family {family}: {entry} is not a step, nor a range of steps; {_HOW}")
        steps |= set(range(ends[0], ends[1] + 1, ends[2]))
    return sorted(steps)


def log_spaced(steps: Sequence[int]) -> list[int]:
    """Some of the steps, each about twice the one before it or more, with the first and the last."""
    chosen: list[int] = []
    for step in steps:
        if not chosen or step >= _RATIO * chosen[-1]:
            chosen.append(step)
    return sorted({*chosen, *steps[-1:]})


def chosen_revisions(revision: Any, checkpoints: Sequence[Any], family: str | None) -> list[str | None]:
    """The revisions that `model.revision` names: one, a list, or all or log-spaced ones of those that a file lists.

    Raises:
        RbpxError: a name was read as a number, a list is empty or names one twice, or the family lists no checkpoints.
    """
    names = revision if isinstance(revision, list) else [revision]
    for name in names:
        name_of("model.revision", name)
    if not names or len(set(names)) < len(names) or (isinstance(revision, list) and {None, *_EVERY} & set(names)):
        raise RbpxError(
            f"model.revision={revision} is not a list of different revisions; write model.revision='[step1000,main]'"
        )
    if revision not in _EVERY:
        return names
    steps = listed_steps(checkpoints, family)
    if not steps:
        raise RbpxError(
            f"model.revision={revision}: family {family} lists no checkpoints; name them, as in "
            "model.revision='[step1000,step2000]', or list their steps under checkpoints: in its file"
        )
    return [f"step{step}" for step in (steps if revision == "all" else log_spaced(steps))]


_RAW: Final = "raw-"
_WORDS: Final[
    Mapping[str, Callable[[str], bool]]
] = {  # which of the names, the size's own among them, a word stands for
    "all": lambda name: True,
    "finished": lambda name: not name.startswith(_RAW),
    "raw": lambda name: name.startswith(_RAW),
    "log": lambda name: name.startswith(_RAW),  # they are log-spaced
}


@dataclass(frozen=True)
class Checkpoint:
    """One checkpoint of a size; the revision is None where it is the one that stands for the size."""

    revision: str | None
    id: str


def named_revisions(revision: Any) -> list[str]:
    """What a request names: nothing, one name, word or pattern, or several.

    Raises:
        RbpxError: a name is none.
    """
    names = [] if revision is None else revision if isinstance(revision, list) else [revision]
    for name in names:
        if not isinstance(name, str) or not name:
            raise RbpxError(f"model.revision={name} was read as no name; quote it: 'model.revision=\"...\"'")
    return list(names)


def checkpoints(
    entries: Mapping[str, tuple[str, Sequence[str]]], wanted: Any, family: str
) -> dict[str, list[Checkpoint]]:
    """The checkpoints of each size that a request means, in the order in which the family lists them.

    Args:
        entries: size -> the id of the model that stands for it, and the names of the others.
        wanted: `model.revision`: a name, a pattern such as `raw-*`, one of all, finished, raw and log, or a list; None
            for the model that stands for its size, which has the name of its folder too.
        family: for errors.

    Raises:
        RbpxError: no size has a checkpoint of that name.
    """
    names = named_revisions(wanted)
    used: set[str] = set()
    found: dict[str, list[Checkpoint]] = {}
    for size, (own_id, others) in entries.items():
        folder, _, own = own_id.rpartition("/")
        found[size] = [] if names else [Checkpoint(None, own_id)]
        for name in [own, *others] if names else []:
            matching = {each for each in names if _means(each, name)}
            used |= matching
            if matching:
                revision = None if name == own else name
                found[size].append(Checkpoint(revision, own_id if revision is None else f"{folder}/{name}"))
    unknown = [name for name in names if name not in used]
    if unknown:
        known = "; ".join(f"{size} has {', '.join(others)}" for size, (_, others) in entries.items() if others)
        raise RbpxError(f"model.revision={unknown[0]} names no checkpoint of {family}: {known}; or all, finished, raw")
    return {size: chosen for size, chosen in found.items() if chosen}


def _means(wanted: str, name: str) -> bool:
    return _WORDS[wanted](name) if wanted in _WORDS else fnmatch.fnmatchcase(name, wanted)


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
        id: hub ids, folders or GGUF files in place of the sizes.
        gguf: names of GGUF files in the folder `id`.
        revision: branch, tag or commit on the hub, such as Pythia's step1000; a list of them; `all` or `log`, all or
            log-spaced ones of the checkpoints; where these lie in folders also a pattern, `finished` or `raw`.
        checkpoints: steps at which a state was published as revision stepN: whole numbers, and ranges
            {from: 1000, to: 143000, by: 1000}.
        bos: which special tokens begin a document.
        pickled: whether tensors may be read from pytorch_model.bin where there are no safetensors; no code is run.
        quantise: what the weights of linear layers are rounded to, int8, int4 or nf4, by torchao; where runs of a store
            are asked about also what those of GGUF files are, as Q4_1.
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
    gguf: Any = None
    revision: Any = None
    bos: Bos = Bos.tokenizer
    pickled: bool = False
    quantise: Any = None
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

    def rounding(self) -> Quantise | None:
        """What weights are rounded to when they are loaded; None for not at all.

        Raises:
            RbpxError: they cannot be rounded so.
        """
        kinds = [kind.value for kind in Quantise]
        if self.quantise not in (None, *kinds):
            raise RbpxError(
                f"model.quantise={self.quantise} is unknown; {did_you_mean(self.quantise, kinds)}known: "
                f"{', '.join(kinds)}; a GGUF file is rounded already, and measured as it is"
            )
        return None if self.quantise is None else Quantise(self.quantise)

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
        return {**self.shape, **self.sizes[size].shape} if size in self.sizes else {}


def _one_of(value: Any, place: int, n_models: int, key: str) -> Any:
    """The value of a key for one model: its own of a list, or the one for all."""
    if not isinstance(value, list):
        return value
    if len(value) != n_models:
        raise RbpxError(
            f"model.{key} lists {len(value)} values for {n_models} models; give one for each, null where it is unknown"
        )
    return value[place]
