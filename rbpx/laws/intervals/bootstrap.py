"""Bootstraps any statistic of sums over documents: arrays in, an estimate out."""

from collections.abc import Callable, Mapping
from itertools import permutations
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from rbpx.laws.arguments import level_of, real
from rbpx.laws.intervals.estimate import (
    LEVEL,
    Estimate,
    Recipe,
    document_weights,
    effective_number,
    estimate,
    of_counted_share,
)
from rbpx.laws.numeric import Floats

_TOKENS: Final = "tokens="  # no name of sums


def bootstrap(
    values: ArrayLike | Mapping[str, ArrayLike],
    statistic: Callable[..., float],
    n_replicates: int = 1000,
    seed: int = 0,
    recipe: Recipe = Recipe.normal,
    tokens: ArrayLike | None = None,
    level: float = LEVEL,
) -> Estimate:
    """A statistic of sums over documents with its interval: whole documents are drawn with replacement.

    theta = s(sum_d x_d), and for each bootstrap replicate theta_b = s(sum_d w_bd x_d), w_b ~ Multinomial(D; 1/D, ...,
    1/D). The same seed draws the same documents, so that differences of two statistics are paired.

    Args:
        values: sums over the tokens of each document, shape [D, ...], or several of these by name; what a mask
            hides is left out.
        statistic: of the sums over documents, or of these by name; replicates in which it is not finite are left out.
        n_replicates: number of replicates B.
        seed: of the documents that are drawn.
        recipe: how the replicates become an interval (`Recipe`).
        tokens: of each document, shape [D], where documents differ in length: gives their effective sample size.
        level: of the interval.

    Returns:
        The estimate, which for `normal` is corrected for its bias, with its interval; without one for one document, or
        below 20 usable replicates. The interval of a ratio of two counts by name, or of one minus such a ratio, lies in
        [0, 1], and is Clopper and Pearson's where few documents have all hits or all misses.

    Raises:
        ValueError: the arrays differ in their number of documents, a number is not finite, there are no documents or
            replicates, or a level is not between 0 and 1.

    Example:
        The share of hits among the tokens of four documents.

        >>> hits, tokens = [12, 30, 7, 21], [40, 80, 30, 50]
        >>> share = bootstrap({"hits": hits, "tokens": tokens}, lambda of: of["hits"] / of["tokens"], tokens=tokens)
        >>> print(f"{share.value:.3f}, {share.lo:.3f} to {share.hi:.3f}")
        0.353, 0.221 to 0.485

    Source:
        B. Efron and R. J. Tibshirani, An Introduction to the Bootstrap, 1993, chapter 6; A. C. Davison and D. V.
        Hinkley, Bootstrap Methods and their Application, 1997, section 3.8 (whole clusters are drawn).
    """
    columns = values if isinstance(values, Mapping) else {"": values}
    given = {**columns, **({} if tokens is None else {_TOKENS: tokens})}
    arrays = {name: real(name or "values", each) for name, each in given.items()}
    lengths = {each.shape[0] if each.ndim else 0 for each in arrays.values()}
    if len(lengths) != 1:
        raise ValueError(f"each array needs a row for each document, got {sorted(lengths)} rows")
    masks = [np.ma.getmaskarray(np.asanyarray(each)) for each in given.values()]
    shown_D = ~np.any([each.any(axis=tuple(range(1, each.ndim))) for each in masks], axis=0)
    D = int(shown_D.sum())
    for name, each in arrays.items():
        arrays[name] = each = each[shown_D]
        if not np.isfinite(each).all():
            raise ValueError(f"{name or 'values'} must be finite, got {each[~np.isfinite(each)][0]}")
    tokens = arrays.pop(_TOKENS, None)
    weights_BD = np.vstack([np.ones((1, D), np.int64), document_weights(D, n_replicates, seed)])
    sums = {name: np.tensordot(weights_BD, each, axes=1) for name, each in arrays.items()}
    with np.errstate(divide="ignore", invalid="ignore"):
        of_each = ({name: sum_B[b] for name, sum_B in sums.items()} for b in range(len(weights_BD)))
        theta_B = np.array([statistic(each if columns is values else each[""]) for each in of_each], np.float64)
    n = D if tokens is None else effective_number(tokens)
    found = estimate(float(theta_B[0]), theta_B[1:], n, recipe, p := level_of(level))
    for hits, of in permutations([name for name, each in arrays.items() if each.ndim == 1], 2):
        hits_D, of_D = arrays[hits], arrays[of]
        for part_D, part_B in ((hits_D, sums[hits]), (of_D - hits_D, sums[of] - sums[hits])):
            if _are_counts(part_D, of_D) and _is_ratio(theta_B, part_B, sums[of]):
                return of_counted_share(found, part_D, of_D, p)
    return found


def bootstrap_weights(n_runs: int, n_replicates: int, seed: int) -> Floats:
    """Exponential bootstrap weights of the runs, [n_replicates, n_runs]; each row sums to n_runs.

    Drawing few runs with replacement misses a third of them, and with them the design that a surface needs.

    Source:
        D. B. Rubin, The Bayesian Bootstrap, Annals of Statistics 9, 1981.
    """
    return np.random.default_rng(seed).dirichlet(np.ones(n_runs), n_replicates) * n_runs


def _are_counts(hits_D: Floats, of_D: Floats) -> bool:
    are_whole = np.all(hits_D == np.floor(hits_D)) and np.all(of_D == np.floor(of_D))
    return bool(are_whole and np.all((hits_D >= 0) & (hits_D <= of_D)))


def _is_ratio(theta_B: Floats, above_B: Floats, below_B: Floats) -> bool:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.allclose(theta_B, above_B / below_B, rtol=0.0, atol=1e-12, equal_nan=True)
