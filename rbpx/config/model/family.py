"""The configuration of a family of models, from a file of conf/model or overrides, and its checkpoints.

Checkpoints are revisions on the hub, at the steps that the family's file lists, or folders beside the finished model of
a size. A name that begins with `raw-` is a checkpoint whose learning rate had not decayed: its loss is higher than that
of a finished model of as many tokens, so the two are never grouped together.
"""

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from operator import index
from typing import Any, Final

from rbpx.config.keys.key import key, names_of, text_or_list
from rbpx.config.model.training import UNKNOWN, TrainingFacts, checked_training
from rbpx.config.options import Bos, Quantise, did_you_mean
from rbpx.errors import RbpxError
from rbpx.spelling import typed

GGUF: Final = ".gguf"

_EVERY: Final = ("all", "log")
_RATIO: Final = 1.9  # ratio of a step to the one before; 512 and 1,000 of Pythia are neighbours
_RAW: Final = "raw-"


def is_gguf(name: object) -> bool:
    """Whether a model's id or path names a GGUF file."""
    return str(name).lower().endswith(GGUF)


def listed_steps(checkpoints: Sequence[Any], family: str | None) -> list[int]:
    """The steps that a family's file lists, whole numbers or ranges {from: , to: , by: }, ascending."""
    try:
        steps = [
            range(each["from"], each["to"] + 1, each["by"]) if isinstance(each, Mapping) else [index(each)]
            for each in checkpoints
        ]
    except (KeyError, TypeError, ValueError):
        raise RbpxError(
            f"checkpoints of family {family}: {checkpoints} are not all steps or ranges; write them as in checkpoints: "
            "[0, 1, 2, 4, {from: 1000, to: 143000, by: 1000}]"
        ) from None
    return sorted({step for each in steps for step in each})


def log_spaced(steps: Sequence[int]) -> list[int]:
    """The first and last step, and steps between them that at least about double."""
    chosen: list[int] = []
    for step in steps:
        if not chosen or step >= _RATIO * chosen[-1]:
            chosen.append(step)
    return sorted({*chosen, *steps[-1:]})


def chosen_revisions(revision: Any, checkpoints: Sequence[Any], family: str | None) -> list[str | None]:
    """The revisions that `model.revision` names; raises RbpxError if a family lists none for `all` or `log`."""
    names = names_of("model.revision", revision)
    if not names or revision not in _EVERY:
        return [*names] if names else [None]
    steps = listed_steps(checkpoints, family)
    if not steps:
        raise RbpxError(
            f"model.revision={revision}: family {family} lists no checkpoints; name them, as in "
            f"{typed(keys={'model.revision': ['step1000', 'step2000']})}, or list their steps under checkpoints: in "
            "its file"
        )
    return [f"step{step}" for step in (steps if revision == "all" else log_spaced(steps))]


@dataclass(frozen=True)
class Member:
    """One model of a family; revision None is the one that stands for its size."""

    size: str
    model: str
    non_embedding_params: int | None
    revision: str | None = None
    training: TrainingFacts = UNKNOWN
    adapter: str | None = None


def _means(wanted: str, name: str) -> bool:
    """Whether a word or pattern means a checkpoint in a folder; raw ones are log-spaced."""
    is_raw = name.startswith(_RAW)
    words = {"all": True, "finished": not is_raw, "raw": is_raw, "log": is_raw}
    return words.get(wanted, fnmatch.fnmatchcase(name, wanted))


_KEYS: Final = {each.name: each.name.removeprefix("training_") for each in fields(TrainingFacts)}


@dataclass
class SizeConfig:
    """One size of a family (model.sizes.NAME), with its training.

    Attributes:
        id: hub id, folder or bundled name.
        non_embedding_params: S; by default computed from the shape, counted again when the model is loaded.
        shape: keys besides those of the family.
        source: where the shape is published.
        verified: whether S was checked against the released weights.
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
        id: hub ids, folders or GGUF files, in place of `sizes`.
        revision: branch, tag or commit on the hub, such as step1000, or a list; `all` or `log` means all or log-spaced
            checkpoints. For checkpoints in folders also a pattern, `finished` or `raw`.
        system: text of the system's message, with `chat`; a conversation's own and a description follow it.
        shape: keys of a transformers configuration that all sizes share, including `model_type`.
        source: where the shapes are published.
        sizes: label -> model, from the smallest.
        checkpoints: steps published as revisions stepN: numbers, and ranges {from: 1000, to: 143000, by: 1000}.
        tokens_per_step: revision stepN has seen N times as many.
        steps: of the whole training, at revision main.
        training_source: where the training is described.
        tokens: training_tokens of the models of `id`, one number or a list; so are the facts that follow.
    """

    family: str | None = None
    id: Any = text_or_list()
    gguf: Any = text_or_list("GGUF files in the folder model.id, one or a list (pip install 'rbpx[gguf]')", "FILE")
    revision: Any = text_or_list()
    bos: Bos = key(
        Bos.tokenizer, "tokenizer (default): special tokens as the tokenizer adds them; add: exactly one BOS; none",
        shown="RULE",
    )  # fmt: skip
    chat: bool = key(
        False,
        "the tokenizer's chat template renders conversations of dataset.messages=COLUMN, or context and target as user "
        "and assistant; model.system=TEXT is the system's message",
        shown="true",
    )
    system: str | None = None
    pickled: bool = key(
        False, "take weights from pytorch_model.bin where there are no safetensors; tensors only, no code is run",
        shown="true",
    )  # fmt: skip
    quantise: Any = text_or_list(
        "weights of linear layers rounded to int8, int4 or nf4 by torchao (pip install 'rbpx[quantise]'), "
        "or of a question the type of a GGUF file",
        "KIND",
    )
    adapter: Any = text_or_list(
        "an adapter of peft on the model, or a list, in which null is the model (pip install 'rbpx[adapters]')",
        "FOLDER",
    )
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
    variant: Any = text_or_list()

    def rounding(self) -> Quantise | None:
        """The type to which weights are rounded on loading; raises RbpxError for one of a GGUF file."""
        kinds = [kind.value for kind in Quantise]
        if self.quantise not in (None, *kinds):
            raise RbpxError(
                f"model.quantise={self.quantise} is unknown; {did_you_mean(self.quantise, kinds)}known: "
                f"{', '.join(kinds)}; a GGUF file is measured as it is"
            )
        return None if self.quantise is None else Quantise(self.quantise)

    @property
    def lists_checkpoints(self) -> bool:
        """Whether checkpoints are folders that the family's file lists."""
        return self.id is None and any(size.revisions for size in self.sizes.values())

    def revisions(self) -> list[str | None]:
        """The revisions asked for; None is the model that stands for a size.

        Raises:
            RbpxError: a name is unknown, or the family lists no checkpoints.
        """
        if self.lists_checkpoints:
            return list(dict.fromkeys(member.revision for member in self.members_by_size()))
        if self.revision == "all" and self.id is None and not self.sizes:  # all in the store
            return [None]
        return chosen_revisions(self.revision, self.checkpoints, self.family)

    def members_by_size(self) -> list[Member]:
        """The models of `sizes` at the revisions asked for, in the file's order; raises as `revisions`.

        Where checkpoints are folders, the size's own model also has the name of its folder.
        """
        names = names_of("model.revision", self.revision)
        if not self.lists_checkpoints or not names:
            chosen = [None] if self.lists_checkpoints else self.revisions()
            return [self._member(size, each, entry.id) for size, entry in self.sizes.items() for each in chosen]
        found, unused = list[Member](), names
        for size, entry in self.sizes.items():
            folder, _, own = entry.id.rpartition("/")
            for name in [own, *entry.revisions]:
                if any(_means(each, name) for each in names):
                    of = (None, entry.id) if name == own else (name, f"{folder}/{name}")
                    found.append(self._member(size, *of))
                unused = [each for each in unused if not _means(each, name)]
        if unused:
            there = [f"{size} has {', '.join(of.revisions)}" for size, of in self.sizes.items() if of.revisions]
            raise RbpxError(
                f"model.revision={unused[0]} names no checkpoint of {self.family}: {'; '.join(there)}; or all, "
                "finished, raw"
            )
        return found

    def _member(self, size: str, revision: str | None, model: str) -> Member:
        training = self.training_of(size, list(self.sizes).index(size), len(self.sizes), revision)
        return Member(size, model, self.sizes[size].non_embedding_params, revision, training)

    def training_of(self, size: str | None, place: int, n_models: int, revision: str | None = None) -> TrainingFacts:
        """Facts of the training of one model at a revision: from keys, then from its entry and tokens_per_step.

        `size` is None for a model given by its id.
        """
        given = {fact: getattr(self, key) for fact, key in _KEYS.items()}
        for fact, value in given.items():
            if isinstance(value, list):
                if len(value) != n_models:
                    raise RbpxError(
                        f"model.{_KEYS[fact]} lists {len(value)} values for {n_models} models; give one for each, null "
                        "where it is unknown"
                    )
                given[fact] = value[place]
        by_key = checked_training(given, "model.", _KEYS)
        entry = UNKNOWN
        if size is not None:
            entry = TrainingFacts(**{fact: getattr(self.sizes[size], fact) for fact in _KEYS})
        return by_key.over(entry.at_revision(revision, self.tokens_per_step, self.steps))

    def shape_of(self, size: str) -> dict[str, Any]:
        """The complete shape of one size, for `AutoConfig.for_model(**shape)`; empty if unknown."""
        return {**self.shape, **self.sizes[size].shape} if size in self.sizes else {}
