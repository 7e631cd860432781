"""Arguments of `rbpx.laws`: lists, arrays, masked arrays, Series or names of columns in, checked numbers out."""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rbpx.laws.intervals.estimate import LEVEL
from rbpx.laws.numeric import Floats
from rbpx.laws.priors import Prior


def known(name: str, value: str, of: Collection[str]) -> str:
    """A name that is one of those known.

    Raises:
        ValueError: it is none of them.
    """
    if value not in of:
        raise ValueError(f"{name}={value!r} is unknown; known: {', '.join(of)}")
    return value


def fixed(given: Mapping[str, float | tuple[float, float]], names: Collection[str]) -> dict[str, Prior]:
    """The fixed parameters and priors of `given=`.

    Raises:
        ValueError: it is no mapping of known names to a value, or to a value and its standard deviation.
    """
    if not isinstance(given, Mapping):
        raise ValueError(f"given= maps names to values, as given={{'E': 1.7}}; got {given!r}")
    priors = {}
    for name, each in given.items():
        parts = np.asarray(each, dtype=object).reshape(-1).tolist()
        if not 1 <= len(parts) <= 2 or not all(isinstance(of, int | float) and np.isfinite(of) for of in parts):
            raise ValueError(f"given={{{name!r}: {each!r}}} is neither a value nor (value, standard deviation)")
        priors[known("given", name, names)] = Prior(*parts)
    return priors


def column(name: str, values: ArrayLike, data: Any) -> NDArray[Any]:
    """The values of an argument, perhaps the name of a column of `data`, or ValueError; a mask stays."""
    if not isinstance(values, str):
        return np.asanyarray(values)
    columns = [] if data is None else list(getattr(data, "columns", data))
    if values not in columns:
        raise ValueError(
            f"{name}={values!r} is no column of data=, which has: {', '.join(map(str, columns)) or 'none'}"
        )
    return np.asanyarray(data[values])


def numbers(data: Any, **columns: ArrayLike | None) -> dict[str, Floats]:
    """Converts arguments but None to numbers of one shape, without the points that a mask hides in any of them.

    Raises:
        ValueError: they are no real numbers, or shapes disagree.
    """
    found = {name: column(name, values, data) for name, values in columns.items() if values is not None}
    hidden = {name: np.ma.getmaskarray(each) for name, each in found.items() if np.ma.is_masked(each)}
    for name, each in found.items():
        if np.iscomplexobj(each):
            raise ValueError(f"{name} must be real numbers, got {each.reshape(-1)[0]}")
        try:
            found[name] = np.asarray(np.ma.getdata(each)).astype(np.float64)
        except (TypeError, ValueError) as problem:
            raise ValueError(f"{name} must be numbers: {problem}") from None
    shapes = {name: each.shape for name, each in found.items()}
    if len({*shapes.values()}) > 1 or any(len(shape) != 1 for shape in shapes.values()):
        said = ", ".join(f"{name} {list(shape)}" for name, shape in shapes.items())
        raise ValueError(f"columns need one shape [N], got {said}")
    shown_N = ~np.any([*hidden.values()], axis=0) if hidden else np.s_[:]
    return {name: each[shown_N] for name, each in found.items()}


def positive(**columns: Floats) -> None:
    """Checks that all numbers are positive and finite.

    Raises:
        ValueError: one is not; it is named.
    """
    for name, each_N in columns.items():
        wrong_N = ~((each_N > 0) & np.isfinite(each_N))
        if wrong_N.any():
            at = int(np.argmax(wrong_N))
            raise ValueError(f"{name} must be positive and finite, got {each_N[at]} (number {at + 1} of {len(each_N)})")


def level_of(level: float, given: Collection[Any] = ()) -> float:
    """The probability outside intervals of a level.

    Raises:
        ValueError: the level is not between 0 and 1, or not .95 beside parameters that are given.
    """
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, as .95; got {level}")
    if given and level != LEVEL:
        raise ValueError(f"level={level} goes without given=, whose intervals are at .95")
    return 1 - level
