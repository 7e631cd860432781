"""Recovers laws from the counts of passing sequences, for each length and correction, beside that of the tokens.

Shapes: M sizes, L lengths of a sequence, C cells, each one size and one length, B resamples of the documents.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from rbpx.laws.counts.fit import Correction, OutcomeFit, Outcomes, fit_outcomes, implied_rbp
from rbpx.laws.intervals.estimate import Estimate, Recipe, estimate, flat
from rbpx.laws.names import MLE
from rbpx.laws.numeric import Floats
from rbpx.laws.power.law import PowerLawFit
from rbpx.questions.outcomes.learners import Learner
from rbpx.runs.fits import record_of
from rbpx.runs.group import Group
from rbpx.store.store import Record


@dataclass(frozen=True, eq=False)
class Counts:
    """How many sequences there are of each size and length.

    Attributes:
        S: non-embedding parameters, rising.
        lengths: tokens of a sequence.
        n_2ML: sequences, and those that passed.
        n_2BML: the same under resamples of the documents; None where there are none.
        r_ML: mean correlation of two hits of a sequence; None where only outcomes are known.
        r_BML: the same under the resamples.
        n_documents: documents (or groups) that were resampled.
    """

    S: tuple[float, ...]
    lengths: tuple[int, ...]
    n_2ML: Floats
    n_2BML: Floats | None
    r_ML: Floats | None
    r_BML: Floats | None
    n_documents: int

    def cells(self, n: int | None) -> Outcomes:
        """The counts of one length, or (None) of all, ordered by size."""
        at = self._places(n)

        def flat(values_ML: Floats | None) -> Any:
            return None if values_ML is None else values_ML[..., at].reshape((*values_ML.shape[:-2], -1))

        S_C = np.repeat(np.array(self.S, np.float64), len(at))
        N_C = np.tile(np.array(self.lengths, np.float64)[at], len(self.S))
        trials_C, passed_C = flat(self.n_2ML)
        trials_BC, passed_BC = (None, None) if self.n_2BML is None else flat(self.n_2BML)
        n_documents = None if self.n_2BML is None else self.n_documents
        r = flat(self.r_ML), flat(self.r_BML)
        return Outcomes(S_C, N_C, passed_C, trials_C, passed_BC, trials_BC, *r, n_documents)

    def record(self, n: int | None) -> Record:
        """The same counts for programs, which can fit a law to them again."""
        at, cells = self._places(n), self.cells(n)
        record: Record = {"S": np.repeat(self.S, len(at)).tolist(), "N": [self.lengths[i] for i in at] * len(self.S)}
        r = None if cells.r_C is None else [float(r) if np.isfinite(r) else None for r in cells.r_C]
        return record | {"passed": cells.passed_C.tolist(), "trials": cells.trials_C.tolist(), "r": r}

    def _places(self, n: int | None) -> list[int]:
        return [*range(len(self.lengths))] if n is None else [self.lengths.index(n)]


@dataclass(frozen=True, eq=False)
class Tokens:
    """The true values, counted from the tokens.

    Attributes:
        rbp_M: share of hits of all tokens.
        law: the law fitted to that share, by least squares.
        alpha_B: exponent of the law under resampled documents.
    """

    rbp_M: Floats
    law: PowerLawFit
    alpha_B: Floats | None


@dataclass(frozen=True, eq=False)
class OutcomeLaws:
    """Outcomes at one k, and the laws recovered from them.

    Attributes:
        k: a hit is a rank of at most k; None where it is unknown.
        sizes: names of the models, in order of S.
        counts: their sequences.
        fits: the recovered laws, by length (None: all at once) and correction.
        tokens: the true values; None where only outcomes are known.
    """

    k: int | None
    sizes: tuple[str, ...]
    counts: Counts
    fits: dict[tuple[int | None, Correction], OutcomeFit]
    tokens: Tokens | None

    def bias(self, fit: OutcomeFit) -> Estimate | None:
        """Alpha of a fit minus that of the tokens, with an interval over documents; None where either is unknown."""
        if self.tokens is None or fit.alpha is None or self.tokens.law.alpha is None:
            return None
        value = fit.alpha - self.tokens.law.alpha
        if fit.alpha_B is None or fit.alpha_lo is None or self.tokens.alpha_B is None:
            return Estimate(value)
        return estimate(value, fit.alpha_B - self.tokens.alpha_B, self.counts.n_documents, Recipe.uncentred)

    def rbp_of_tokens(self, m: int) -> float | None:
        """The share of hits of all tokens of a size."""
        return None if self.tokens is None else float(self.tokens.rbp_M[m])


@dataclass(frozen=True, eq=False)
class OutcomesResult:
    """The laws of one group at every requested k, and the learners of its largest model.

    `group` is None where rows of a file were given, from which no single hits are learned.
    """

    group: Group | None
    title: str
    by_k: tuple[OutcomeLaws, ...]
    learners: tuple[Learner, ...] = ()


def recover(counts: Counts) -> dict[tuple[int | None, Correction], OutcomeFit]:
    """Fit each length separately and all at once."""
    fits = {}
    for n in (*counts.lengths, *([None] if len(counts.lengths) > 1 else [])):
        outcomes = counts.cells(n)
        fits[n, Correction.none] = fit_outcomes(outcomes)
        if counts.r_ML is not None and n != 1:
            fits[n, Correction.measured] = fit_outcomes(outcomes, Correction.measured)
        if n is None:
            fits[n, Correction.free] = fit_outcomes(outcomes, Correction.free)
    return fits


def records(result: OutcomesResult) -> list[Record]:
    """Rows for programs: the outcomes, the laws, RBP_k of every size that each law implies, and the learners."""
    rows = [row for laws in result.by_k for row in _records(result.group, laws)]
    if result.group is None:
        return rows
    smaller, run = result.group.runs[-2:]
    about = {"kind": "learner", **result.group.names(), "size": run.size, "smaller": smaller.size}
    about["run_ids"] = [run.run_id, smaller.run_id]
    return [*rows, *(about | flat(vars(each)) for each in result.learners)]


def _records(group: Group | None, laws: OutcomeLaws) -> Iterator[Record]:
    about, counts = ({} if group is None else group.names()) | {"k": laws.k}, laws.counts
    sizes = [{"size": size, "non_embedding_params": S} for size, S in zip(laws.sizes, counts.S, strict=True)]
    for m, size in enumerate(sizes):
        for at, length in enumerate(counts.lengths):
            n_sequences, n_passed = (int(each) for each in counts.n_2ML[:, m, at])
            r = None if counts.r_ML is None else float(counts.r_ML[m, at])
            row = {"kind": "outcomes", "n": length, **about, **size, "n_sequences": n_sequences}
            yield row | {"n_passed": n_passed, "correlation": r}
    for (n, correction), fit in laws.fits.items():
        of = {"n": n, "correction": correction.value}
        yield {"kind": "law", **of, **(about | _columns(fit, laws) if group is None else _row(group, laws, n, fit))}
        for m, size in enumerate(sizes if fit.alpha is not None else ()):
            rbp, lo, hi = implied_rbp(fit, counts.S[m])
            row = {"kind": "rbp", **of, **about, **size, "rbp": rbp, "rbp_lo": lo, "rbp_hi": hi}
            yield row | {"rbp_tokens": laws.rbp_of_tokens(m)}


def _row(group: Group, laws: OutcomeLaws, n: int | None, fit: OutcomeFit) -> Record:
    """The row of `fits` of a law."""
    params = _params(fit, laws) | {"cells": laws.counts.record(n), "n": n}
    apart = [n, fit.correction.value, *([] if n is not None else laws.counts.lengths)]
    return record_of(group, "rbp", fit, group.run_ids, MLE, k=laws.k, n=apart, params=params)


def _columns(fit: OutcomeFit, laws: OutcomeLaws) -> Record:
    """A fit in the columns of any law; what it has beyond them goes into params."""
    shared = ("C", "alpha", "alpha_stderr", "alpha_lo", "alpha_hi", "aic", "bic", "status", "n_points")
    return {name: getattr(fit, name) for name in shared} | {"params": _params(fit, laws)}


def _params(fit: OutcomeFit, laws: OutcomeLaws) -> Record:
    bias = laws.bias(fit)
    more: Record = {name: getattr(fit, name) for name in ("r", "r_lo", "r_hi", "n_sequences", "n_passed")}
    more |= {"S": list(laws.counts.S), "bias_against_tokens": None if bias is None else vars(bias)}
    return fit.record() | more
