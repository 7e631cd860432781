"""What the two steps of `downstream` are asked for: values of keys in, checked ones out."""

import math
from collections.abc import Mapping
from typing import Any, Final

from rbpx.config.known_names import checked_names
from rbpx.config.places import folder
from rbpx.config.yaml_files import load_yaml
from rbpx.errors import RbpxError

__all__ = ["FEATURES", "chance_of", "checked_anchor", "checked_bounds", "checked_features", "checked_numbers"]

FEATURES: Final = ("cross_entropy", "bits_per_byte", "rbp", "exact_match", "error_entropy", "soft_accuracy")
CONSTANTS: Final = ("a", "x0", "h", "b")


def checked_features(value: Any) -> list[str]:
    """The features asked for, in order.

    Raises:
        RbpxError: one of them is unknown.
    """
    names = checked_names("features", value, FEATURES, " (rbp at each k=)")
    return list(FEATURES) if "all" in names else list(dict.fromkeys(names))


def checked_anchor(value: Any) -> tuple[float, float] | None:
    """The feature and the success of a point that is added to those of the models; None for none.

    Raises:
        RbpxError: it is not a feature from 0 and a share.
    """
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != 2 or not all(_is_number(each) for each in value):
        raise RbpxError(f"anchor={value} is not a point; give a feature and a share, as in anchor='[0,1]', or null")
    x, y = value
    if x < 0 or not 0 <= y <= 1:
        raise RbpxError(f"anchor={value} is no feature from 0 with a share in [0, 1]; give one, as in anchor='[0,1]'")
    return float(x), float(y)


def checked_numbers(key: str, value: Any) -> dict[str, float]:
    """Constants of the sigmoid by name, as in starts='{h: 3}'; none where none are given.

    Raises:
        RbpxError: a name is not one of its constants, or a value is not a number.
    """
    for name, number in _constants(key, value, "starts='{x0: 0.9, h: 3}'").items():
        if not _is_number(number):
            raise RbpxError(f"{key}: {name}: {number} is not a number; give one, as in starts='{{x0: 0.9, h: 3}}'")
    return {name: float(number) for name, number in (value or {}).items()}


def checked_bounds(value: Any) -> dict[str, tuple[float, float]]:
    """Ends of constants of the sigmoid by name, as in bounds='{b: [0.9, 1]}'; equal ends hold one.

    Raises:
        RbpxError: a name is not one of its constants, or a value is not a pair of ends in order.
    """
    how = "bounds='{b: [0.9, 1]}'"
    checked = {}
    for name, ends in _constants("bounds", value, how).items():
        if not isinstance(ends, list) or len(ends) != 2 or not all(each is None or _is_number(each) for each in ends):
            raise RbpxError(
                f"bounds: {name}: {ends} is not a pair of ends; give two numbers (null: no end), as in {how}"
            )
        lower, upper = (-math.inf if ends[0] is None else ends[0], math.inf if ends[1] is None else ends[1])
        if lower > upper:
            raise RbpxError(f"bounds: {name}: {ends} ends before it begins; give the lower end first, as in {how}")
        checked[name] = float(lower), float(upper)
    return checked


def chance_of(task: str, given: Any) -> float | None:
    """Success of guessing: as given (a number, or task -> number), else that of the file of the task in conf/dataset.

    Raises:
        RbpxError: what is given is not a share.
    """
    number = given.get(task) if isinstance(given, Mapping) else given
    if number is not None:
        if not _is_number(number) or not 0 <= number < 1:
            raise RbpxError(f"chance={number} is not a share in [0, 1); give that of guessing, as in chance=0.25")
        return float(number)
    known = {path.stem: path for path in (folder("conf") / "dataset").glob("*.yaml")}
    chance = load_yaml(known[task]).get("chance") if task in known else None
    return None if chance is None else float(chance)


def _constants(key: str, value: Any, how: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise RbpxError(f"{key}={value} is not a mapping of constants; write {how}")
    for name in value:
        if name not in CONSTANTS:
            raise RbpxError(f"{key}: {name} is unknown; the constants of the sigmoid are {', '.join(CONSTANTS)}: {how}")
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
