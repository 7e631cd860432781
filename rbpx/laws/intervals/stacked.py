"""Points of several families in one vector, with what tells which family and which size each is of.

Shapes: F families, M points of all families, B resamples of the documents.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rbpx.laws.intervals.bootstrap import Resampled
from rbpx.laws.numeric.arrays import Floats

Whole = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Stacked:
    """Points of F families, one family after the other.

    Attributes:
        x_M: ln(S / S_ref).
        ln_S_ref: mean of ln S over all points.
        ln_y_M: logarithms of the values.
        family_M: 0 .. F-1.
        size_M: number of the size; equal where S is.
        change_BM: change of ln y under resampled documents, drawn alike for all families; None where that is not known.
        n_documents: that were resampled; None where they are not counted.
    """

    x_M: Floats
    ln_S_ref: float
    ln_y_M: Floats
    family_M: Whole
    size_M: Whole
    change_BM: Floats | None
    n_documents: int | None = None

    @property
    def n_families(self) -> int:
        """Number of families."""
        return int(self.family_M.max()) + 1

    @property
    def of_family_MF(self) -> Floats:
        """1 where a point is of a family."""
        return np.asarray(self.family_M[:, None] == np.arange(self.n_families), np.float64)

    @property
    def of_size_MG(self) -> Floats:
        """1 where a point is of a size, for each size."""
        return np.asarray(self.size_M[:, None] == np.unique(self.size_M), np.float64)

    @property
    def of_shared_size_MG(self) -> Floats:
        """1 where a point is of a size; only the G sizes that were trained more than once."""
        sizes, counts = np.unique(self.size_M, return_counts=True)
        return np.asarray(self.size_M[:, None] == sizes[counts > 1], np.float64)

    @property
    def same_size_MM(self) -> Floats:
        """1 where two points have the same size."""
        return np.asarray(self.size_M[:, None] == self.size_M, np.float64)


def stack_one(ln_S_M: ArrayLike, ln_y_M: ArrayLike, change_BM: Floats | None = None) -> Stacked:
    """One family, in which a size may occur more than once, by logarithms of sizes and values."""
    x_M = np.asarray(ln_S_M, np.float64)
    size_M = np.unique(x_M, return_inverse=True)[1].astype(np.int64)
    ln_S_ref, family_M = float(x_M.mean()), np.zeros(len(x_M), np.int64)
    return Stacked(x_M - ln_S_ref, ln_S_ref, np.asarray(ln_y_M, np.float64), family_M, size_M, change_BM)


def stack(
    S_F: Sequence[ArrayLike],
    y_F: Sequence[ArrayLike],
    y_resampled_F: Sequence[ArrayLike | None] | None = None,
    n_documents: int | None = None,
) -> Stacked:
    """Put families one after the other.

    Args:
        S_F: sizes of each family, shape [N_f].
        y_F: its values, shape [N_f], positive.
        y_resampled_F: its values under B resamples of the same documents for all families, shape [B, N_f]; those of
            one family alone say nothing. Rows with a value that is not positive and finite are left out.
        n_documents: that were resampled; None where they are not counted.

    Raises:
        ValueError: numbers of families, sizes or values disagree.
    """
    sizes, values = ([np.asarray(each, np.float64) for each in of] for of in (S_F, y_F))
    if len(sizes) != len(values) or any(S.shape != y.shape or S.ndim != 1 for S, y in zip(sizes, values, strict=False)):
        raise ValueError("each family needs as many values as sizes")
    ln_S_M, y_M = np.log(np.concatenate(sizes)), np.concatenate(values)
    family_M = np.repeat(np.arange(len(sizes)), [len(S) for S in sizes])
    size_M = np.unique(ln_S_M, return_inverse=True)[1].astype(np.int64)
    ln_S_ref = float(ln_S_M.mean())
    ln_y_M = np.log(y_M)
    change_BM = _changes(ln_y_M, y_resampled_F, n_documents)
    return Stacked(ln_S_M - ln_S_ref, ln_S_ref, ln_y_M, family_M, size_M, change_BM, n_documents)


def _changes(
    ln_y_M: Floats, y_resampled_F: Sequence[ArrayLike | None] | None, n_documents: int | None
) -> Floats | None:
    drawn = [None if y is None else np.asarray(y, np.float64) for y in y_resampled_F or [None]]
    known = [y_BN for y_BN in drawn if y_BN is not None]
    if len(known) < len(drawn) or len({len(y_BN) for y_BN in known}) > 1:
        return None
    y_BM = np.concatenate(known, axis=1)
    resampled = Resampled.of(y_BM, n_documents)
    return resampled.ln_y_BN - ln_y_M if resampled.suffices else None
