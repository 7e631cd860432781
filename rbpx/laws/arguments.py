"""Arguments of `rbpx.laws`: lists, arrays, masked arrays, Series or names of columns in, checked numbers out."""

from collections.abc import Collection, Mapping
from math import isfinite
from numbers import Real
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
        if not 1 <= len(parts) <= 2 or not all(isinstance(of, Real) and isfinite(of) for of in parts):
            raise ValueError(f"given={{{name!r}: {each!r}}} is neither a value nor (value, standard deviation)")
        priors[known("given", name, names)] = prior = Prior(*map(float, parts))
        if prior.sd < 0:
            raise ValueError(f"given={{{name!r}: {each!r}}} has a standard deviation below 0")
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


def real(name: str, values: ArrayLike) -> Floats:
    """Real numbers, NaN where a mask hides them.

    Raises:
        ValueError: they are none.
    """
    try:
        each = np.asanyarray(values)
        if np.iscomplexobj(each):
            raise ValueError(f"got {each.reshape(-1)[np.argmax(np.imag(each) != 0)]}")
        found = np.array(np.ma.getdata(each), np.float64)
    except (TypeError, ValueError) as problem:
        raise ValueError(f"{name} must be real numbers: {problem}") from None
    found[np.ma.getmaskarray(each)] = np.nan
    return found


def numbers(data: Any, **columns: ArrayLike | None) -> dict[str, Floats]:
    """Converts arguments but None to numbers of one shape, without the points that a mask hides in any of them.

    Replicates, [B, N], are named so, and what a mask hides of them alone is NaN.

    Raises:
        ValueError: they are no real numbers, or shapes disagree.
    """
    given = {name: column(name, values, data) for name, values in columns.items() if values is not None}
    found = {name: real(name, each) for name, each in given.items()}
    replicates = {name for name in found if name.endswith("_replicates")}
    shapes = {name: each.shape for name, each in found.items() if name not in replicates}
    if len({*shapes.values()}) > 1 or any(len(shape) != 1 for shape in shapes.values()):
        said = ", ".join(f"{name} {list(shape)}" for name, shape in shapes.items())
        raise ValueError(f"columns need one shape [N], got {said}")
    shown_N = ~np.any([np.ma.getmaskarray(given[name]) for name in shapes], axis=0)
    for name in replicates:
        if found[name].ndim != 2 or found[name].shape[1] != len(shown_N):
            raise ValueError(f"{name} needs the shape [B, {len(shown_N)}], got {found[name].shape}")
    return {name: each[..., shown_N] for name, each in found.items()}


def places(**axes: ArrayLike) -> list[Floats]:
    """Converts places to positive numbers of the shape to which they broadcast, without those that a mask hides.

    Raises:
        ValueError: one is not positive and finite, or shapes disagree.
    """
    found = [real(name, each) for name, each in axes.items()]
    try:
        arrays = np.broadcast_arrays(*found)
    except ValueError:
        raise ValueError(f"{' and '.join(axes)} need one shape, got {[each.shape for each in found]}") from None
    hidden = np.any(np.broadcast_arrays(*(np.ma.getmaskarray(np.asanyarray(each)) for each in axes.values())), axis=0)
    arrays = tuple(each[~hidden] if hidden.any() else each for each in arrays)
    positive(**dict(zip(axes, arrays, strict=True)))
    return [*arrays]


def positive(**columns: Floats) -> None:
    """Checks that all numbers are positive and finite.

    Raises:
        ValueError: one is not; it is named.
    """
    for name, each in columns.items():
        _all_are("positive and finite", name, each, (each > 0) & np.isfinite(each))


def one_sign(**columns: Floats) -> None:
    """Checks that all numbers are finite, not 0, and have the sign of the first.

    Raises:
        ValueError: one does not; it is named.
    """
    for name, each_N in columns.items():
        of_first_N = np.sign(each_N) * np.sign(each_N[:1]) > 0
        _all_are("finite, of one sign and not 0", name, each_N, of_first_N & np.isfinite(each_N))


def _all_are(what: str, name: str, each: Floats, are_right: NDArray[np.bool_]) -> None:
    if not np.all(are_right):
        at = int(np.argmin(are_right))
        raise ValueError(f"{name} must be {what}, got {each.reshape(-1)[at]} (number {at + 1} of {each.size})")


def counted(n_effective: float | None) -> float | None:
    """An effective sample size, or ValueError."""
    if n_effective is not None:
        positive(n_effective=real("n_effective", n_effective))
    return n_effective


def numbered(runs_N: NDArray[Any]) -> NDArray[Any]:
    """Names or numbers of runs as numbers from 0; a mask stays.

    Raises:
        ValueError: some are neither.
    """
    names_N = np.ma.getdata(runs_N)
    try:
        place_N = np.unique(names_N, return_inverse=True)[1].reshape(runs_N.shape)
    except TypeError as problem:
        raise ValueError(f"runs must all have names, or all numbers: {problem}") from None
    if names_N.dtype.kind == "f":
        _all_are("known", "runs", names_N, ~np.isnan(names_N) | np.ma.getmaskarray(runs_N))
    return np.ma.masked_array(place_N, np.ma.getmaskarray(runs_N))


def bounded(bounds: tuple[float, float]) -> tuple[float, float]:
    """Two bounds that rise.

    Raises:
        ValueError: they are none.
    """
    found = real("bounds", bounds)
    if found.shape != (2,) or not np.isfinite(found).all() or not found[0] < found[1]:
        raise ValueError(f"bounds are two numbers that rise, as (0, 1); got {bounds}")
    return bounds


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
