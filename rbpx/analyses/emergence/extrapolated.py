"""Crossings outside the sizes: where the prediction over forms reaches a level, with what the law alone says beside it.

Within the sizes any form that fits the points reaches a level at about the same size, and the law answers, with its
documents and models. Outside of them the form decides, so the answer is over forms, as that of `predict` is; it is the
size of a new model, measured on the same documents.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from rbpx.analyses.emergence.crossing import Crossing
from rbpx.laws.averaged import Reached, reach_over_forms
from rbpx.laws.logarithms import neg_ln
from rbpx.laws.verdict import FAR
from rbpx.status import Status, first_of

__all__ = ["Extrapolation"]


class Extrapolation:
    """The shares of one window length, extrapolated over forms once for all laws and levels, where one asks."""

    def __init__(self, S: ArrayLike, p_M: ArrayLike, levels: Sequence[float]) -> None:
        """Keep what is to be extrapolated.

        Args:
            S: sizes, shape [M].
            p_M: shares of windows of hits, shape [M]; with one of 0 or 1 nothing can be extrapolated over forms.
            levels: shares that are to be reached.
        """
        self._S_M, self._y_M, self._levels = np.asarray(S, dtype=np.float64), neg_ln(p_M), tuple(levels)
        self._reached: dict[float, Reached] | None = None

    def of(self, law: Crossing, status: Status) -> Crossing:
        """The answer for a crossing of a law: over forms if it lies outside the sizes, else as it is.

        Args:
            law: where the law alone reaches a level.
            status: of the law.
        """
        if law.ln_S is None or self._outside(law.ln_S) <= 1:
            return law
        if self._reached is None:
            found = reach_over_forms(self._S_M, self._y_M, [-math.log(level) for level in self._levels])
            self._reached = dict(zip(self._levels, found or (), strict=False))
        reached = self._reached.get(law.share)
        if reached is None:
            return law
        is_beyond = reached.ln_S is None or self._outside(reached.ln_S) > FAR
        reasons = [status, *([Status.beyond] if is_beyond else [])]
        return Crossing(law.share, reached.ln_S, reached.ln_lo, reached.ln_hi, first_of(reasons), is_beyond, law)

    def _outside(self, ln_S: float) -> float:
        """The factor by which a size lies outside the sizes, 1 within them."""
        ends = math.log(self._S_M.min()), math.log(self._S_M.max())
        return math.exp(min(max(ends[0] - ln_S, ln_S - ends[1], 0.0), 700.0))
