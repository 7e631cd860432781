"""Checkpoints: which runs are states of one training, how far each was trained, and the last ones of each training.

Which model a forecast is about: the names of its group, a size and perhaps tokens in; whether a run is of it out.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from rbpx.groups.group import ALIKE, Run

if TYPE_CHECKING:
    from rbpx.groups.group import Run


def tokens_of(run: "Run") -> float | None:
    """D: as known, else C / (6 S) where FLOPs are; None where neither is."""
    if run.training_tokens is not None:
        return float(run.training_tokens)
    return None if run.training_flops is None else run.training_flops / (6 * run.non_embedding_params)


def is_state(revision: str | None) -> bool:
    """Whether a revision names a state of a training; any other one is a model of its own.

    Those of a training are None, main, stepN and raw-D as `rbpx train` names them.
    """
    return revision is None or re.fullmatch(r"step\d+|main|raw-.*", revision) is not None


def training_of(run: "Run") -> tuple[Any, ...]:
    """What the checkpoints of one training have in common, and no two trainings have.

    Of imported rows without a model and a step nothing says which belong together, so each is a training.
    """
    of_size = (run.model, run.size, run.non_embedding_params, run.training_seed)
    if run.source != "measured" and run.model is None and run.training_step is None:
        return (*of_size, run.training_tokens, run.training_flops, run.revision)
    return (*of_size, None if is_state(run.revision) else run.revision)


def last_of_each(runs: Sequence["Run"], n_last: int = 1) -> "list[Run]":
    """The last runs of each training, at most so many of each, in order.

    Args:
        runs: alike in source, family, text, protocol, dtype and variant.
        n_last: how many.
    """
    by_training: dict[tuple[Any, ...], list[Run]] = {}
    for run in sorted(runs, key=_progress):
        by_training.setdefault(training_of(run), []).append(run)
    kept = {id(run) for members in by_training.values() for run in members[-n_last:]}
    return [run for run in runs if id(run) in kept]


def _progress(run: "Run") -> tuple[float, int, bool]:
    """How far a run was trained: by its tokens, then its steps; the released model is the end of its training."""
    is_released, tokens = run.revision in (None, "main"), tokens_of(run)
    if tokens is None:
        tokens = math.inf if is_released else 0.0
    return tokens, run.training_step or 0, is_released


NAMES: Final = (*ALIKE, "ties")  # what a forecast says of its group
NEAR: Final = 0.005  # S and D may be given in three digits
BESIDE: Final = 0.05  # nearer to a measured model, as by the rounded S of its name, nothing is forecast
_OF_MODEL: Final = ("family", "dataset", "variant")


def is_about(names: Mapping[str, Any], S: float, D: float | None, run: Run, near: float = NEAR) -> bool:
    """Whether a run is of the model that a forecast is about, on its text, however it was read.

    Args:
        names: of the group that the forecast rests on.
        S: the size.
        D: training tokens; None where the forecast is about the size alone.
        run: any run.
        near: how far S and D of the run may be from these, a share.
    """
    texts = {names["text_hash"], run.text_hash}
    if any(names[name] != getattr(run, name) for name in _OF_MODEL) or len(texts - {None}) > 1:
        return False
    if not _near(run.non_embedding_params, S, near):
        return False
    if D is None:
        return bool(names["revision"] == run.revision)
    tokens = tokens_of(run)
    return tokens is not None and _near(tokens, D, near)


def is_of(names: Mapping[str, Any], S: float, D: float | None, run: Run) -> bool:
    """Whether a run is what a forecast is of: of its model, and measured as the models that it rests on."""
    alike = (name for name in ALIKE if name != "revision")  # which `is_about` looks at
    return is_about(names, S, D, run) and all(names[name] == getattr(run, name) for name in alike)


def _near(value: float, target: float, near: float) -> bool:
    return abs(value / target - 1) <= near
