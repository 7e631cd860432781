"""Laws of models with experts in three sizes: the parameters that a token uses, all of them, and both.

With N the parameters that a token uses, S all of them and E how many times more experts there are than a token uses,

    active:   ln y = a + b ln N
    total:    ln y = a + b ln S
    bilinear: ln y = a + b ln N + c ln E + d ln N ln E

by least squares. The last is the law of arXiv 2202.01169 without its saturation in E: where d is above 0, c below it,
experts help less the larger a model is. All models saw equally many tokens. Models within 5 % of one N are one size.

Shapes: R models, H of them held out, B replicates, P constants.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rbpx.laws.intervals.estimate import Estimate, Recipe, estimate
from rbpx.laws.numeric import Floats

FORMS: Final = {"active": ("a", "b"), "total": ("a", "b"), "bilinear": ("a", "b", "c", "d")}
"""The constants of each form."""
_ONE_SIZE: Final = 1.05
_FEWEST: Final = 3  # sizes that laws are fitted to


@dataclass(frozen=True)
class RoutedLaw:
    """One form, fitted to the smaller sizes.

    Attributes:
        form: of `FORMS`.
        constants: by name, fitted to all models.
        error: mean of |ln y - prediction| over the models that are held out.
        error_of: the same for each size that is held out, in their order.
    """

    form: str
    constants: dict[str, Estimate]
    error: Estimate
    error_of: tuple[float, ...]


@dataclass(frozen=True)
class Routed:
    """Which size foretells larger models.

    Attributes:
        laws: each form.
        held_out: the sizes N that are held out.
        n_fitted: models that the forms are fitted to.
        n_held_out: models whose y they foretell.
        difference: error of the law in S minus that of the law in N; above 0, N foretells better.
        alpha_difference: exponent of the law in S minus that of the law in N, alpha = -b, of all models.
    """

    laws: tuple[RoutedLaw, ...]
    held_out: tuple[float, ...]
    n_fitted: int
    n_held_out: int
    difference: Estimate
    alpha_difference: Estimate

    @property
    def better(self) -> str | None:
        """`active` or `total`, whichever foretells better; None where the interval of the difference holds 0."""
        if not self.difference.leaves_out_0:
            return None
        return "active" if (self.difference.value or 0.0) > 0 else "total"


def sizes_of(N: ArrayLike) -> NDArray[np.int64]:
    """[R], the number of the size of each model, from the smallest."""
    N_R = np.asarray(N, np.float64)
    order = np.argsort(N_R, kind="stable")
    is_new_R = np.concatenate([[False], N_R[order][1:] > _ONE_SIZE * N_R[order][:-1]])
    size_R = np.empty(len(N_R), np.int64)
    size_R[order] = np.cumsum(is_new_R)
    return size_R


def compare_sizes(
    N: ArrayLike, S: ArrayLike, E: ArrayLike, y: ArrayLike, n_held_out: int = 2, n_replicates: int = 1000, seed: int = 0
) -> Routed | None:
    """Fit each form to the models of the smaller sizes, and foretell those of the largest.

    Intervals are over replicates of E, each power of two with its models of all sizes, fitted and held out alike:
    models of one E share what a law leaves out. The sizes stay, so they say nothing about sizes beyond those held out.

    Args:
        N: parameters that a token uses, shape [R], positive.
        S: all parameters, shape [R].
        E: how many times more experts there are than a token uses, shape [R]; 1 of a dense model.
        y: the loss of each model, positive.
        n_held_out: how many of the largest sizes are held out.
        n_replicates: B.
        seed: of the replicates.

    Returns:
        None where fewer than three sizes are left to fit, or the models all have one E.
    """
    ln_N_R, ln_S_R, ln_E_R, ln_y_R = (np.log(np.asarray(each, np.float64)) for each in (N, S, E, y))
    size_R = sizes_of(N)
    n_fitted_sizes = int(size_R.max(initial=-1)) + 1 - n_held_out
    if n_fitted_sizes < _FEWEST or np.ptp(ln_E_R) == 0:
        return None
    designs = {
        "active": _columns(ln_N_R),
        "total": _columns(ln_S_R),
        "bilinear": _columns(ln_N_R, ln_E_R, ln_N_R * ln_E_R),
    }
    is_held_R = size_R >= n_fitted_sizes
    power_R = np.unique(np.rint(ln_E_R / np.log(2)), return_inverse=True)[1]
    drawn_BR = _replicate_weights(power_R, n_replicates, seed)
    weights_BR = np.vstack([np.ones(len(size_R)), drawn_BR])  # the models themselves first
    laws, errors, b = [], {}, {}
    for form, X_RP in designs.items():
        fitted_BP = _fits(X_RP, ln_y_R, weights_BR * ~is_held_R)
        off_BH = np.abs(ln_y_R - fitted_BP @ X_RP.T)[:, is_held_R]
        held_BH = weights_BR[:, is_held_R]
        errors[form] = (off_BH * held_BH).sum(axis=1) / held_BH.sum(axis=1)
        held = size_R[is_held_R]
        constants = _fits(X_RP, ln_y_R, weights_BR)
        b[form] = constants[:, 1]
        named = {name: _estimate(constants[:, at]) for at, name in enumerate(FORMS[form])}
        of_sizes = tuple(float(off_BH[0, held == size].mean()) for size in np.unique(held))
        laws.append(RoutedLaw(form, named, _estimate(errors[form]), of_sizes))
    N_R = np.asarray(N, np.float64)
    held_out = tuple(float(N_R[size_R == size].min()) for size in np.unique(size_R[is_held_R]))
    n_held = int(is_held_R.sum())
    difference = _estimate(errors["total"] - errors["active"])
    alpha_difference = _estimate(b["active"] - b["total"])
    return Routed(tuple(laws), held_out, len(size_R) - n_held, n_held, difference, alpha_difference)


def _columns(*terms: Floats) -> Floats:
    return np.column_stack([np.ones(len(terms[0])), *terms])


def _replicate_weights(number_R: NDArray[np.int64], n_replicates: int, seed: int) -> Floats:
    """[B, R], how often each model is drawn, with all others of its number."""
    n = int(number_R.max()) + 1
    drawn_BE = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=n_replicates)
    return np.asarray(drawn_BE[:, number_R], np.float64)


def _fits(X_RP: Floats, ln_y_R: Floats, weights_BR: Floats) -> Floats:
    """[B, P], the constants by weighted least squares, of least norm where a replicate leaves some open."""
    roots: Sequence[Floats] = list(np.sqrt(weights_BR))
    return np.array([np.linalg.lstsq(X_RP * root[:, None], ln_y_R * root)[0] for root in roots])


def _estimate(value_B: Floats) -> Estimate:
    """The first value, with the interval of the others."""
    return estimate(float(value_B[0]), value_B[1:], None, Recipe.expanded)
