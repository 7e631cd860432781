"""Says which runs measure what a forecast is about."""

from collections.abc import Mapping
from typing import Any, Final

from rbpx.runs.run import ALIKE, Run, tokens_of

NAMES: Final = (*ALIKE, "ties")  # the columns by which a forecast names its group
NEAR: Final = 0.005  # S and D may be rounded to three digits
BESIDE: Final = 0.05  # no forecast closer than this to a measured model, whose named size may be rounded
_OF_MODEL: Final = ("family", "dataset", "variant")


def is_about(names: Mapping[str, Any], S: float, D: float | None, run: Run, near: float = NEAR) -> bool:
    """Whether a run measures the model and text of a forecast, with any protocol or dtype, S and D as near as `near`.

    `names` are those of the group that it was fitted to; D is None where it is about the size alone.
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
    """Whether a run measures a forecast: same model, measured as the models that it was fitted to."""
    alike = (name for name in ALIKE if name != "revision")  # `is_about` compares revisions itself
    return is_about(names, S, D, run) and all(names[name] == getattr(run, name) for name in alike)


def _near(value: float, target: float, near: float) -> bool:
    return abs(value / target - 1) <= near
