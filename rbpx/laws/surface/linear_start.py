"""Constants of a sum of powers for given exponents: non-negative least squares, all exponents of a grid at once.

For given exponents y is linear in the constants, so the best of them are found without any search. Shapes: B sets of
exponents, T terms, N points.
"""

from itertools import combinations

import numpy as np

from rbpx.laws.arrays import Floats


def non_negative(terms_BTN: Floats, y_N: Floats) -> Floats:
    """The coefficients >= 0 [B, T] of the sum of terms that is closest to y, each point relative to its y.

    Every choice of terms that may count is solved; of those without a negative coefficient the closest is taken.
    """
    B, T, N = terms_BTN.shape
    relative_BTN = terms_BTN / y_N
    gram_BTT = relative_BTN @ relative_BTN.swapaxes(1, 2)
    sum_BT = relative_BTN.sum(axis=2)
    best_BT, best_B = np.zeros((B, T)), np.full(B, float(N))
    for n_terms in range(1, T + 1):
        for chosen in combinations(range(T), n_terms):
            gram = gram_BTT[:, chosen][:, :, chosen]
            usable_B = np.linalg.cond(gram) < 1e13
            coefficient = np.zeros((B, n_terms))
            coefficient[usable_B] = np.linalg.solve(gram[usable_B], sum_BT[usable_B][:, chosen, None])[..., 0]
            squares_B = N - (coefficient * sum_BT[:, chosen]).sum(axis=1)
            better_B = usable_B & (coefficient >= 0).all(axis=1) & (squares_B < best_B)
            best_B = np.where(better_B, squares_B, best_B)
            filled = np.zeros((B, T))
            filled[:, chosen] = coefficient
            best_BT = np.where(better_B[:, None], filled, best_BT)
    return best_BT
