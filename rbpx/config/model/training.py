"""Facts of a model's training, from the family's file, from keys, and from files beside the model.

Unknown facts stay unknown; only the tokens of a checkpoint are computed, from the family's tokens per step.
"""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Final, TypeVar

from rbpx.config.keys.key import name_of
from rbpx.errors import RbpxError
from rbpx.files.cells import large_number

N = TypeVar("N", bound=float)

_RELEASED: Final = (None, "main")  # revisions that name the finished model
RAW: Final = "raw"  # the variant of checkpoints whose learning rate had not decayed


def is_raw(variant: str | None) -> bool:
    """Whether a variant is that of raw checkpoints, `raw` or `OBJECTIVE_raw`."""
    return variant is not None and f"_{variant}".endswith(f"_{RAW}")


@dataclass(frozen=True)
class TrainingFacts:
    """Facts of one training; None if unknown.

    Attributes:
        training_tokens: D, repeated ones included.
        training_flops: C, as its source states it.
        unique_tokens: of the training text, each counted once.
        training_seed: tells trainings of one shape apart; models of one S with different seeds are replicates.
        variant: what is being compared, such as an optimizer or the data.
    """

    training_tokens: int | None = None
    training_flops: float | None = None
    training_step: int | None = None
    unique_tokens: int | None = None
    training_seed: int | None = None
    variant: str | None = None

    def over(self, other: "TrainingFacts") -> "TrainingFacts":
        """These facts, completed by those of another source."""
        return replace(other, **self.known())

    def known(self) -> dict[str, Any]:
        """The known facts by name."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def at_revision(self, revision: str | None, tokens_per_step: int | None, steps: int | None) -> "TrainingFacts":
        """The facts of a checkpoint, given those of the finished model, whose training has `steps`.

        `stepN` is the state after N steps in a family with tokens_per_step; how far others are is unknown.
        """
        named = None if tokens_per_step is None else re.fullmatch(r"step(\d+)", revision or "")
        step = int(named[1]) if named else steps if revision in _RELEASED else None
        n_tokens = None if step is None or tokens_per_step is None else step * tokens_per_step
        at = TrainingFacts(training_tokens=n_tokens, training_step=step)
        if revision in _RELEASED:
            return self.over(at)
        return replace(at, training_seed=self.training_seed, variant=self.variant)


UNKNOWN: Final = TrainingFacts()


def checked_training(values: Mapping[str, Any], where: str, names: Mapping[str, str] | None = None) -> TrainingFacts:
    """Checks facts; errors name them by `names`, behind `where`."""
    checked: dict[str, Any] = {}
    for fact in (each.name for each in fields(TrainingFacts) if values.get(each.name) is not None):
        name, value = f"{where}{(names or {}).get(fact, fact)}", values[fact]
        if fact == "variant":
            checked[fact] = name_of(name, value)
        else:
            checked[fact] = number_from_0(name, value, float if fact == "training_flops" else int)
    return TrainingFacts(**checked)


def number_from_0(name: str, value: Any, kind: type[N], is_positive: bool = False) -> N:
    """A number from 0 that a store can hold, also from 60M or 6e7; raises RbpxError for another."""
    exact = large_number(value)
    fits = exact is not None and 0 <= exact < (2**63 if kind is int else 10**300)
    if exact is None or not fits or (is_positive and not exact) or (kind is int and exact != exact.to_integral_value()):
        what = f"{'whole ' if kind is int else ''}number {'above' if is_positive else 'from'} 0"
        raise RbpxError(f"{name} is {value}; give a {what}, as 60M or 6e7")
    return kind(exact)
