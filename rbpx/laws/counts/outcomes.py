"""Counts of the outcomes of sequences: their checks, the doubts they raise, and their form for a likelihood.

Shapes: C cells, each one size and one N; B resamples of the documents.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from rbpx.laws.counts.passing import Tally, separated
from rbpx.laws.numeric.arrays import Floats
from rbpx.status import Status


class Correction(StrEnum):
    """What is assumed of the hits of one sequence."""

    none = "none"  # independent
    measured = "measured"  # their mean correlation is known, for each size and N
    free = "free"  # one correlation for all, found from the outcomes of several N


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Counts of outcomes.

    Attributes:
        S_C: non-embedding parameters of each cell.
        N_C: tokens of its sequences.
        passed_C: sequences that passed.
        trials_C: all its sequences.
        passed_BC: under B resamples of the documents (or tasks), the same ones for every cell; None where the sequences
            are independent.
        trials_BC: all sequences, under the same.
        r_C: mean correlation of two hits of a sequence, where it was measured.
        r_BC: the same under the resamples.
        n_documents: documents (or tasks) that were resampled; None where they are not counted.
    """

    S_C: Floats
    N_C: Floats
    passed_C: Floats
    trials_C: Floats
    passed_BC: Floats | None = None
    trials_BC: Floats | None = None
    r_C: Floats | None = None
    r_BC: Floats | None = None
    n_documents: int | None = None


def doubt_of(one: Outcomes, correction: Correction) -> Status | None:
    """Why no law can be fitted; None if one can."""
    used_C = one.trials_C > 0
    if not used_C.any():
        return Status.too_short
    if len(np.unique(one.S_C[used_C])) < 2:
        return Status.too_few_sizes
    if one.passed_C.sum() in (0, one.trials_C.sum()):
        return Status.one_outcome
    if separated(tally_of(one, Correction.none, 0.0)).all():
        return Status.separated
    if correction is Correction.free and len(np.unique(one.N_C[used_C])) < 2:
        return Status.one_length
    if correction is Correction.measured and (one.r_C is None or not np.isfinite(one.r_C[used_C]).all()):
        return Status.not_known
    return None


def is_one_sided(one: Outcomes) -> bool:
    """Whether a law over 3 sizes or more rests on fewer: the others say no more than that RBP_k is small, or large."""
    sizes = np.unique(one.S_C[one.trials_C > 0])
    both = set(one.S_C[one.passed_C > 0]) & set(one.S_C[one.passed_C < one.trials_C])
    return len(sizes) > 2 and len(both) < 3


def tally_of(one: Outcomes, correction: Correction, ln_S_ref: float, resampled: bool = False) -> Tally:
    """The counts, or those of the resamples, as the likelihood takes them."""
    passed_BC, trials_BC = (one.passed_BC, one.trials_BC) if resampled else (one.passed_C[None], one.trials_C[None])
    assert passed_BC is not None and trials_BC is not None  # noqa: PT018
    r_BC: Floats | None = np.zeros_like(passed_BC)
    if correction is Correction.free:
        r_BC = None
    elif correction is Correction.measured:
        measured = one.r_BC if resampled else one.r_C
        r_BC = np.broadcast_to(np.asarray(measured, dtype=np.float64), passed_BC.shape)
    return Tally(np.log(one.S_C) - ln_S_ref, one.N_C, passed_BC, trials_BC, r_BC)


def checked(outcomes: Outcomes) -> Outcomes:
    """The same in float64.

    Raises:
        ValueError: if shapes disagree, a size or N is impossible, or more passed than there are.
    """
    counted = {name: v for name, v in vars(outcomes).items() if name != "n_documents"}
    arrays = {name: None if v is None else np.asarray(v, dtype=np.float64) for name, v in counted.items()}
    one = replace(outcomes, **arrays)  # type: ignore[arg-type]
    shapes = {v.shape[-1:] for v in arrays.values() if v is not None}
    if len(shapes) != 1 or one.S_C.ndim != 1 or (one.passed_BC is None) != (one.trials_BC is None):
        raise ValueError(f"outcomes have shapes {[None if v is None else v.shape for v in arrays.values()]}")
    if not np.all((one.S_C > 0) & np.isfinite(one.S_C)) or not np.all((one.N_C >= 1) & (one.N_C == np.floor(one.N_C))):
        raise ValueError(f"sizes must be positive and N whole, got {one.S_C.tolist()} and {one.N_C.tolist()}")
    if not np.all((one.passed_C >= 0) & (one.passed_C <= one.trials_C)):
        raise ValueError(f"{one.passed_C.tolist()} of {one.trials_C.tolist()} sequences cannot have passed")
    return one
