"""Recovers laws from the counts of passing sequences, for each length and correction, beside that of the tokens."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from rbpx.laws.counts.fit import Correction, OutcomeFit, fit_outcomes, implied_rbp
from rbpx.laws.intervals.estimate import Estimate, Recipe, by_name, estimate
from rbpx.laws.names import MLE
from rbpx.questions.outcomes.counts import Counts, Tokens
from rbpx.runs.fits import record_of
from rbpx.runs.group import Group
from rbpx.status import Status
from rbpx.store.store import Record

_COLUMNS: Final = ("C", "alpha", "alpha_stderr", "alpha_lo", "alpha_hi", "aic", "bic", "status", "n_points")
"""Those of a law of which no runs are known."""


def recover(
    k: int | None, counts: Counts, group: Group | None = None, tokens: Tokens | None = None
) -> Iterator[Record]:
    """Rows of the outcomes, of the laws, and of RBP_k of every size that each law implies.

    Args:
        k: a hit is a rank of at most k; None where it is unknown.
        counts: the sequences at that k.
        group: the runs; None where rows of a file were given.
        tokens: the true values; None where only outcomes are known.
    """
    about: Record = ({} if group is None else group.names()) | {"k": k}
    sizes = [{"size": size, "non_embedding_params": S} for size, S in zip(counts.sizes, counts.S, strict=True)]
    for at, length in enumerate(counts.lengths):
        for m, size in enumerate(sizes):
            n_sequences, n_passed = (int(each) for each in counts.n_2ML[:, m, at])
            row = {"kind": "outcomes", "n": length, **about, **size, "n_sequences": n_sequences, "n_passed": n_passed}
            yield row | {"correlation": None if counts.r_ML is None else float(counts.r_ML[m, at])}
    for n, fit in _fits(counts, group is not None and group.n_resampled == 1):
        of, params = {"n": n, "correction": fit.correction.value}, _params(fit, counts, tokens)
        if group is None:
            law = about | {name: fit.columns()[name] for name in _COLUMNS} | {"params": params}
        else:
            params |= {"cells": counts.record(n), "n": n}  # to which it can be fitted again
            apart = [*of.values(), *([] if n is not None else counts.lengths)]
            law = record_of(group, "rbp", fit, group.run_ids, MLE, k=k, n=apart, params=params)
        yield {"kind": "law", **of, **law}
        for m, size in enumerate(sizes if fit.alpha.value is not None else ()):
            rbp = by_name(rbp=Estimate(*implied_rbp(fit, counts.S[m])))
            known = None if tokens is None else float(tokens.rbp_M[m])
            yield {"kind": "rbp", **of, **about, **size, **rbp, "rbp_tokens": known}


def _fits(counts: Counts, is_one_document: bool) -> Iterator[tuple[int | None, OutcomeFit]]:
    """Laws of each length, and (None) of all at once, with what can be assumed there; without intervals if so asked."""
    for n in (*counts.lengths, *([None] if len(counts.lengths) > 1 else [])):
        can = {Correction.measured: counts.r_ML is not None and n != 1, Correction.free: n is None}
        for correction in Correction:
            if can.get(correction, True):
                fit = fit_outcomes(counts.cells(n), correction)
                yield n, _without_interval(fit) if is_one_document else fit


def _without_interval(fit: OutcomeFit) -> OutcomeFit:
    if fit.alpha.value is None:
        return fit
    alpha, reasons = Estimate(fit.alpha.value), (Status.one_document,)
    return replace(fit, alpha=alpha, r_lo=None, r_hi=None, interval=None, status=reasons[0], reasons=reasons)


def _params(fit: OutcomeFit, counts: Counts, tokens: Tokens | None) -> Record:
    """What a fit has beyond the columns of any law."""
    bias = None if tokens is None else _bias(fit, tokens, counts.n_documents)
    more: Record = {name: getattr(fit, name) for name in ("r", "r_lo", "r_hi", "n_sequences", "n_passed")}
    more |= {"S": list(counts.S), "bias_against_tokens": None if bias is None else bias.record()}
    return fit.record() | more


def _bias(fit: OutcomeFit, tokens: Tokens, n_documents: int) -> Estimate | None:
    """Alpha of a fit minus that of the tokens, with an interval over documents; None where either is unknown."""
    if fit.alpha.value is None or tokens.law.alpha.value is None:
        return None
    value = fit.alpha.value - tokens.law.alpha.value
    if fit.alpha_B is None or fit.alpha.lo is None or tokens.alpha_B is None:
        return Estimate(value)
    return estimate(value, fit.alpha_B - tokens.alpha_B, n_documents, Recipe.uncentred)
