"""Which model a forecast is about: the names of its group, a size and perhaps tokens in; whether a run is of it out."""

from collections.abc import Mapping
from typing import Any, Final

from rbpx.groups.group import ALIKE, Run
from rbpx.groups.select.checkpoints import tokens_of

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
