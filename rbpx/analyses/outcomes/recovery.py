"""Laws recovered from the counts of passing sequences, for each length and correction, beside that of the tokens.

Shapes: M sizes, L lengths of a sequence, C cells, each one size and one length, B resamples of the documents.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rbpx.groups.fits import record_of
from rbpx.groups.group import Group
from rbpx.laws.bootstrap import Recipe, estimate
from rbpx.laws.interval import Estimate
from rbpx.laws.names import MLE
from rbpx.laws.outcome_counts import Correction, Outcomes
from rbpx.laws.outcomes import OutcomeFit, fit_outcomes, implied_rbp
from rbpx.laws.power_fit import PowerLawFit
from rbpx.store.store import Record

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Tokens:
    """The true values, counted from the tokens.

    Attributes:
        rbp_M: share of hits of all tokens.
        law: fitted to it, by least squares.
        r_ML: mean correlation of two hits of a sequence.
        n_documents: number of resampled documents.
        alpha_B: exponent of the law under resampled documents.
    """

    rbp_M: Floats
    law: PowerLawFit
    r_ML: Floats
    n_documents: int
    alpha_B: Floats | None


@dataclass(frozen=True, eq=False)
class OutcomeLaws:
    """Outcomes at one k, and the laws recovered from them.

    Attributes:
        k: a hit is a rank of at most k; None where it is unknown.
        sizes: names of the models, in order of S.
        S: their non-embedding parameters.
        lengths: tokens of a sequence.
        trials_ML: sequences.
        passed_ML: those that passed.
        fits: what is recovered, by length (None: all at once) and correction.
        tokens: the truth; None where only outcomes are known.
    """

    k: int | None
    sizes: tuple[str, ...]
    S: tuple[float, ...]
    lengths: tuple[int, ...]
    trials_ML: Floats
    passed_ML: Floats
    fits: dict[tuple[int | None, Correction], OutcomeFit]
    tokens: Tokens | None

    def bias(self, fit: OutcomeFit) -> Estimate | None:
        """Alpha of a fit minus that of the tokens, with an interval over documents; None where either is unknown."""
        if self.tokens is None or fit.alpha is None or self.tokens.law.alpha is None:
            return None
        value = fit.alpha - self.tokens.law.alpha
        if fit.alpha_B is None or fit.alpha_lo is None or self.tokens.alpha_B is None:
            return Estimate(value, None, None)
        return estimate(value, fit.alpha_B - self.tokens.alpha_B, self.tokens.n_documents, Recipe.uncentred)


@dataclass(frozen=True, eq=False)
class OutcomesResult:
    """The laws of one group at every requested k; `group` is None where rows of a file were given."""

    group: Group | None
    title: str
    by_k: tuple[OutcomeLaws, ...]


def recover(
    S: Sequence[float],
    lengths: Sequence[int],
    total_4ML: Floats,
    total_4BML: Floats | None,
    correlation: tuple[Floats, Floats | None] | None,
    n_documents: int,
) -> dict[tuple[int | None, Correction], OutcomeFit]:
    """Fit each length separately and all at once; cells are ordered by size."""
    fits = {}
    ways: list[int | None] = [*lengths, *([None] if len(lengths) > 1 else [])]
    for n in ways:
        at = [*range(len(lengths))] if n is None else [lengths.index(n)]
        optional: dict[str, Any] = {}
        if total_4BML is not None:
            optional |= {name: _cells(total_4BML[c], at) for c, name in enumerate(("trials_BC", "passed_BC"))}
            optional |= {"n_documents": n_documents}
        if correlation is not None:
            optional |= {"r_C": _cells(correlation[0], at)}
            optional |= {} if correlation[1] is None else {"r_BC": _cells(correlation[1], at)}
        N_ML = np.broadcast_to(np.asarray(lengths, dtype=np.float64), total_4ML[0].shape)
        S_ML = np.broadcast_to(np.asarray(S, dtype=np.float64)[:, None], total_4ML[0].shape)
        S_C, N_C, passed_C, trials_C = (_cells(each, at) for each in (S_ML, N_ML, total_4ML[1], total_4ML[0]))
        outcomes = Outcomes(S_C, N_C, passed_C, trials_C, **optional)
        fits[n, Correction.none] = fit_outcomes(outcomes)
        if correlation is not None and n != 1:
            fits[n, Correction.measured] = fit_outcomes(outcomes, Correction.measured)
        if n is None:
            fits[n, Correction.free] = fit_outcomes(outcomes, Correction.free)
    return fits


def _cells(values_ML: Floats, at: list[int]) -> Floats:
    chosen = values_ML[..., at]
    return chosen.reshape((*chosen.shape[:-2], -1))


def records(result: OutcomesResult) -> list[Record]:
    """The outcomes, the laws, and RBP_k of every size that each law implies, a row each, for programs."""
    rows: list[Record] = []
    for laws in result.by_k:
        about = ({} if result.group is None else result.group.names()) | {"k": laws.k}
        for m, S in enumerate(laws.S):
            for at, length in enumerate(laws.lengths):
                row = {"kind": "outcomes", "n": length, **about, "size": laws.sizes[m], "non_embedding_params": S}
                row |= {"n_sequences": int(laws.trials_ML[m, at]), "n_passed": int(laws.passed_ML[m, at])}
                r = None if laws.tokens is None else float(laws.tokens.r_ML[m, at])
                rows.append(row | {"correlation": r})
        for (n, correction), fit in laws.fits.items():
            more = {"kind": "law", "n": n, "correction": correction.value}
            rows.append(
                more | (about | _columns(fit, laws) if result.group is None else _record(result.group, laws, n, fit))
            )
            for m, S in enumerate(laws.S if fit.alpha is not None else ()):
                row = {"kind": "rbp", "n": n, "correction": correction.value, **about, "size": laws.sizes[m]}
                rbp, lo, hi = implied_rbp(fit, S)
                row |= {"non_embedding_params": S, "rbp": rbp, "rbp_lo": lo, "rbp_hi": hi}
                rows.append(row | {"rbp_tokens": None if laws.tokens is None else float(laws.tokens.rbp_M[m])})
    return rows


def _record(group: Group, laws: OutcomeLaws, n: int | None, fit: OutcomeFit) -> Record:
    params = _params(fit, laws) | {"cells": _cells_of(laws, n), "n": n}
    apart = [n, fit.correction.value, *([] if n is not None else laws.lengths)]
    return record_of(group, "rbp", fit, group.run_ids, MLE, k=laws.k, n=apart, params=params)


def _cells_of(laws: OutcomeLaws, n: int | None) -> Record:
    """The counts that a law was fitted to, from which it can be fitted again."""
    at = [*range(len(laws.lengths))] if n is None else [laws.lengths.index(n)]
    shape = laws.trials_ML.shape
    of = {"S": np.broadcast_to(np.array(laws.S)[:, None], shape), "N": np.broadcast_to(np.array(laws.lengths), shape)}
    of |= {"passed": laws.passed_ML, "trials": laws.trials_ML}
    cells: Record = {name: _cells(values_ML, at).tolist() for name, values_ML in of.items()}
    r_C = None if laws.tokens is None else _cells(laws.tokens.r_ML, at)
    return cells | {"r": None if r_C is None else [float(r) if np.isfinite(r) else None for r in r_C]}


def _columns(fit: OutcomeFit, laws: OutcomeLaws) -> Record:
    """A fit in the columns of any law; what it has beyond them goes into params."""
    shared = ("C", "alpha", "alpha_stderr", "alpha_lo", "alpha_hi", "aic", "bic", "status", "n_points")
    return {name: getattr(fit, name) for name in shared} | {"params": _params(fit, laws)}


def _params(fit: OutcomeFit, laws: OutcomeLaws) -> Record:
    bias = laws.bias(fit)
    more: Record = {name: getattr(fit, name) for name in ("r", "r_lo", "r_hi", "n_sequences", "n_passed")}
    more |= {"S": list(laws.S), "bias_against_tokens": None if bias is None else vars(bias)}
    return fit.record() | more
