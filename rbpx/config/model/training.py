"""How a model was trained, as far as it is known: from a family's file, from keys, from what lies beside the model.

Nothing is computed from anything else, but the tokens of a step where a family's file says how many a step has: what is
not known stays unknown.
"""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Final

from rbpx.errors import RbpxError

__all__ = ["RAW", "UNKNOWN", "Training", "checked_training", "is_raw"]

_RELEASED: Final = (None, "main")  # revisions that name the finished model
RAW: Final = "raw"  # the variant of checkpoints on the way, whose learning rate had not decayed


def is_raw(variant: str | None) -> bool:
    """Whether a variant is that of checkpoints on the way, of the plain objective or of another (`OBJECTIVE_raw`)."""
    return variant is not None and f"_{variant}".endswith(f"_{RAW}")


@dataclass(frozen=True)
class Training:
    """Facts of one training; None where they are not known.

    Attributes:
        training_tokens: D, tokens trained on, repeated ones included.
        training_flops: C, as its source states it.
        training_step: steps of the optimizer.
        unique_tokens: tokens of the text that it was trained on, each counted once.
        training_seed: what tells this training from others of the same shape; models of one S with different seeds are
            replicates.
        variant: what is being compared, such as an optimizer or the data.
    """

    training_tokens: int | None = None
    training_flops: float | None = None
    training_step: int | None = None
    unique_tokens: int | None = None
    training_seed: int | None = None
    variant: str | None = None

    def over(self, other: "Training") -> "Training":
        """These facts, and those of another source where these are unknown."""
        return replace(other, **self.known())

    def known(self) -> dict[str, Any]:
        """The facts that are known, by name."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def at_revision(self, revision: str | None, tokens_per_step: int | None, steps: int | None) -> "Training":
        """The facts of a checkpoint of this training: these are of the finished model, which `main` is too.

        Args:
            revision: as requested; `stepN` is the state after N steps in a family that has tokens_per_step. Of any
                other revision it is not known how far it was trained.
            tokens_per_step: tokens of one step, the same throughout.
            steps: of the whole training.
        """
        step = steps if revision in _RELEASED else None
        if tokens_per_step is None:
            at = Training(training_step=step)
        else:
            named = re.fullmatch(r"step(\d+)", revision or "")
            step = int(named[1]) if named else step
            at = Training(training_tokens=None if step is None else step * tokens_per_step, training_step=step)
        if revision in _RELEASED:
            return self.over(at)
        return replace(at, training_seed=self.training_seed, variant=self.variant)


UNKNOWN: Final = Training()


def checked_training(values: Mapping[str, Any], where: str, names: Mapping[str, str] | None = None) -> Training:
    """Facts from outside, by the names of `Training`; whole numbers may be written as 3e9.

    Args:
        values: from a file or keys, None where nothing is said.
        where: they stand, for errors.
        names: what a fact is called there, where that is another name.

    Raises:
        RbpxError: a value is not what its name says.
    """
    checked: dict[str, Any] = {}
    for fact in (each.name for each in fields(Training)):
        value, name = values.get(fact), (names or {}).get(fact, fact)
        if value is None:
            continue
        if fact == "variant":
            checked[fact] = str(value)
            continue
        known = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 2.0**1000
        if not known or (fact != "training_flops" and (value != int(value) or value >= 2**63)):
            what = "a number" if fact == "training_flops" else "a whole number"
            raise RbpxError(f"{where}: {name} is {value!r}; give {what} from 0, or leave it out")
        checked[fact] = float(value) if fact == "training_flops" else int(value)
    return Training(**checked)
