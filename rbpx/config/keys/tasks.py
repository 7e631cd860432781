"""Keys of questions about tasks (features, the sigmoid from a feature to success) and about single tokens."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from rbpx.config.keys.key import checked_names, is_number, key, name_of, names_of, positive, whole
from rbpx.config.keys.laws import Choice
from rbpx.config.places import folder
from rbpx.errors import RbpxError

__all__ = ["FEATURES", "ITEM_SLICES", "N_AVERAGED", "SLICES", "TaskKeys", "TokenKeys", "chance_of"]

N_AVERAGED: Final = 5  # checkpoints of a training whose mean predicts success (OLMo ladder, arXiv 2412.04403)
FEATURES: Final = ("cross_entropy", "bits_per_byte", "rbp", "exact_match", "error_entropy", "soft_accuracy")
_CONSTANTS: Final = ("a", "x0", "h", "b")


def _features(key: str, value: Any) -> Choice:
    names = checked_names(key, value, FEATURES, " (rbp at each k=)")
    return Choice(FEATURES, False) if "all" in names else Choice(tuple(dict.fromkeys(names)), True)


def _share(key: str, value: float) -> float:
    if not 0 <= value < 1:
        raise RbpxError(f"drop={value} is not a share of the checkpoints; give one in [0, 1), as in drop=0.1")
    return value


def _anchor(key: str, value: Any) -> tuple[float, float] | None:
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != 2 or not all(is_number(each) for each in value):
        raise RbpxError(f"anchor={value} is not a point; give a feature and a share, as in anchor='[0,1]', or null")
    x, y = value
    if x < 0 or not 0 <= y <= 1:
        raise RbpxError(f"anchor={value} is no feature from 0 with a share in [0, 1]; give one, as in anchor='[0,1]'")
    return float(x), float(y)


def _starts(key: str, value: Any) -> dict[str, float]:
    how = "starts='{x0: 0.9, h: 3}'"
    for name, number in _constants(key, value, how).items():
        if not is_number(number):
            raise RbpxError(f"{key}: {name}: {number} is not a number; give one, as in {how}")
    return {name: float(number) for name, number in (value or {}).items()}


def _bounds(key: str, value: Any) -> dict[str, tuple[float, float]]:
    how = "bounds='{b: [0.9, 1]}'"
    checked = {}
    for name, ends in _constants(key, value, how).items():
        if not isinstance(ends, list) or len(ends) != 2 or not all(each is None or is_number(each) for each in ends):
            raise RbpxError(
                f"bounds: {name}: {ends} is not a pair of ends; give two numbers (null: no end), as in {how}"
            )
        lower, upper = (-math.inf if ends[0] is None else ends[0], math.inf if ends[1] is None else ends[1])
        if lower > upper:
            raise RbpxError(f"bounds: {name}: {ends} ends before it begins; give the lower end first, as in {how}")
        checked[name] = float(lower), float(upper)
    return checked


def _constants(key: str, value: Any, how: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise RbpxError(f"{key}={value} is not a mapping of constants; write {how}")
    for name in value:
        if name not in _CONSTANTS:
            raise RbpxError(
                f"{key}: {name} is unknown; the constants of the sigmoid are {', '.join(_CONSTANTS)}: {how}"
            )
    return value


def _chance(key: str, value: Any) -> Any:
    for share in value.values() if isinstance(value, Mapping) else () if value is None else (value,):
        if not is_number(share) or not 0 <= share < 1:
            raise RbpxError(f"chance={share} is not a share in [0, 1); give that of guessing, as in chance=0.25")
    return value


def chance_of(task: str, given: Any) -> float | None:
    """Success of guessing: as given (a number, or task -> number), else as the task's file in conf/dataset says."""
    number = given.get(task) if isinstance(given, Mapping) else given
    if number is not None:
        return float(number)
    from omegaconf import OmegaConf

    known = {path.stem: path for path in (folder("conf") / "dataset").glob("*.yaml")}
    chance = OmegaConf.load(known[task]).get("chance") if task in known else None
    return None if chance is None else float(chance)


@dataclass(kw_only=True)
class TaskKeys:
    """The two steps from size to success."""

    features: Choice = key(
        "all",
        "or a list: cross_entropy, bits_per_byte, rbp, exact_match, error_entropy, soft_accuracy",
        _features,
        shown="all",
        values=("all", *FEATURES),
    )
    held_out: list[str] | None = key(
        None, "sizes that are predicted, not fitted, as in '[7B,13B]'; the largest if left out", names_of
    )
    drop: float = key(0.1, "share of the checkpoints, the first ones, that step 2 leaves out", _share, shown="0.1")
    smooth: int = key(5, "checkpoints in the trailing means of step 2", whole(1), shown="5")
    anchor: tuple[float, float] | None = key(
        [0, 1], "feature and success of one point more in step 2; null for none", _anchor, shown="'[0,1]'"
    )
    starts: dict[str, float] = key(
        None, "where the search for constants of the sigmoid begins, as in '{x0: 0.9, h: 3}'", _starts
    )
    bounds: dict[str, tuple[float, float]] = key(None, "ends of these constants, as in '{b: [0.9, 1]}'", _bounds)
    T: float = key(
        1.0,
        "temperature of the samples; any but 1 needs python -m rbpx temperature first",
        positive("a temperature, as in T=0.8"),
        shown="1",
    )
    # a number, or task -> number
    chance: Any = key(
        None, "success of guessing, where the task is not in conf/dataset; or '{task: C}'", _chance, shown="C"
    )


ITEM_SLICES: Final = ("category", "domain")  # of the items of a task
SLICES: Final = ("position", "frequency", *ITEM_SLICES)


def _slices(key: str, value: Any) -> str | dict[str, str] | None:
    how = f"give {', '.join(SLICES)}, or conditions by name: slices='{{early: \"position < 64\"}}'"
    if value is None or value in SLICES:
        built_in: str | None = value
        return built_in
    if not isinstance(value, Mapping) or not value:
        raise RbpxError(f"slices={value} is not a choice of tokens; {how}")
    for name, condition in value.items():
        if not isinstance(name, str) or not isinstance(condition, str) or not condition.strip():
            raise RbpxError(f"slices: {name}: {condition} is not a name with a condition in quotes; {how}")
    return dict(value)


@dataclass(kw_only=True)
class TokenKeys:
    """Which tokens of which models."""

    doc: int | None = key(None, "doc_id of the document that is shown", whole(0), shown="N")
    a: str | None = key(
        None, "one of two models: FAMILY/SIZE, with @REVISION and :DTYPE, or a run_id", name_of, shown="MODEL"
    )
    b: str | None = key(None, "the other one", name_of, shown="MODEL")
    base: str | None = key(
        None,
        "what variant= is compared with: FAMILY, or FAMILY:VARIANT where its models were trained in several ways",
        name_of,
        shown="FAMILY",
    )
    # a name or a dict; Hydra adds no keys to one that is typed
    slices: str | dict[str, str] | None = key(
        None, "position, frequency, category, domain, or SQL conditions by name: '{early: \"position < 64\"}'", _slices
    )
    least: int = key(20, "times that a token id must be scored to be listed", whole(1), shown="20")
    top: int = key(15, "rows that are printed", whole(1), shown="15")
    group: list[str] | None = key(
        None,
        "groups with sections of their own, as a report's table names them: one, a list or all",
        names_of,
        shown="NAME",
    )
    sql_timeout_s: float | None = key(
        60.0,
        "seconds that SQL of yours may compute, null for no limit",
        positive("seconds, or leave it out"),
        shown="60",
    )
    sql_memory_mib: int | None = key(
        None, "memory that SQL may hold, default half of the machine's or the container's", whole(1), shown="MIB"
    )
