"""The units of a text that are resampled: its documents, or the texts that several were cut from.

Shapes: D documents, U units, B replicates.
"""

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from rbpx.errors import number_of
from rbpx.laws.intervals.estimate import Z, document_t, document_weights
from rbpx.laws.numeric import Floats

_NARROW: Final = Z / float(ndtri(0.95))  # ratio of the widths of 95 % and 90 % intervals


@dataclass(frozen=True, eq=False)
class Documents:
    """The documents of a text, for resampling.

    Attributes:
        unit_D: number of the unit of each document.
        n: units with a token.
        dependence: variance relative to that of independent units where neighbours in the source are alike, else 1.
        is_one_text: whether all are parts of one text; then each is a unit.
    """

    unit_D: npt.NDArray[np.int64]
    n: int
    effective: float
    dependence: float = 1.0
    is_one_text: bool = False

    @classmethod
    def alone(cls, n: int) -> "Documents":
        """Each document is a unit."""
        return cls(np.arange(n), n, n)

    def tokens_of_units(self, doc_N: npt.NDArray[Any], tokens_N: npt.NDArray[Any]) -> Floats:
        """Tokens of each unit, from those of documents."""
        return np.bincount(self.unit_D[doc_N], tokens_N).astype(np.float64)

    def weights(self, n_replicates: int, seed: int) -> Floats:
        """How often each document is drawn in each replicate, [B, D]; equal within a unit."""
        weights_BU = document_weights(int(self.unit_D.max()) + 1, n_replicates, seed).astype(np.float64)
        return weights_BU if weights_BU.shape[1] == len(self.unit_D) else weights_BU[:, self.unit_D]

    @property
    def notes(self) -> list[str]:
        """Notes on the documents, a line each."""
        lines, are_texts = [], self.unit_D.max() + 1 < len(self.unit_D)
        units, documents = number_of(self.n, "text" if are_texts else "document"), f"{len(self.unit_D):,} documents"
        if are_texts:
            lines.append(f"Resampled by text: {units}, cut into {documents}.")
        if self.is_one_text:
            lines.append(
                f"The {documents} are parts of one text, so intervals are over other parts of it, not over other texts."
            )
        if self.dependence > 1:
            n = max(round(self.n / self.dependence), 1)
            lines.append(
                f"neighbouring documents are alike, so {units} vary as about {n:,} and intervals are too narrow."
            )
        return lines

    def leave_too_narrow(self, half_width: float, variance: float) -> bool:
        """Whether dependent documents, of this variance, reduce the coverage of a 95 % interval below 90 %."""
        more = (self.dependence - 1) * document_t(self.effective) ** 2 * variance
        return math.sqrt(half_width**2 + more) > _NARROW * half_width
