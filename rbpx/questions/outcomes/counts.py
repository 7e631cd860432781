"""Counts the sequences that pass, from the runs of a store, and recovers laws from the counts.

Sequences of N scored tokens pass if all are hits. The fit sees passes alone; the tokens then give the bias of its law.

Shapes: T tokens, K values of k, M sizes, L lengths, D documents, B replicates over them, Q sequences; C cells, each one
size and one length, ordered by size.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import duckdb
import numpy as np
import numpy.typing as npt

from rbpx.laws.counts.fit import Correction, OutcomeFit, Outcomes, fit_outcomes
from rbpx.laws.counts.passing import correlation
from rbpx.laws.intervals.estimate import Estimate, Recipe, Replicates, by_name, estimate
from rbpx.laws.names import MLE
from rbpx.laws.numeric import Floats, line, neg_ln
from rbpx.laws.power.law import PowerLaw, fit_power_law
from rbpx.laws.prediction.verdict import trend_warnings, with_reasons
from rbpx.questions.outcomes import OutcomesKeys
from rbpx.questions.outcomes.learners import sequences
from rbpx.runs.documents import text_ranks
from rbpx.runs.fits import of_one_document, record_of, with_document_doubts
from rbpx.runs.group import Group
from rbpx.status import Status
from rbpx.store.store import Record

Sizes = Mapping[float, str]
"""Names of the models by their S, rising."""


@dataclass(frozen=True, eq=False)
class TrueValues:
    """Counted from the tokens: the share of hits by S, its law, and alpha in each replicate."""

    rbp: Mapping[float, float]
    law: PowerLaw
    alpha_B: Floats | None


def counts_of(
    connection: duckdb.DuckDBPyConnection,
    group: Group,
    k_grid: Sequence[int],
    lengths: Sequence[int],
    request: OutcomesKeys,
) -> Iterator[tuple[int, Outcomes, TrueValues]]:
    """The sequences at each k, and the tokens, which are sequences of length 1."""
    of_runs, with_1 = [], sorted({1, *lengths})
    for run in group.runs:
        doc_T, rank_T = text_ranks(connection, run.run_id, group.ties)
        of_runs.append(cut_sequences(doc_T, rank_T, k_grid, with_1, group.n_documents))
    weights_BD = np.zeros((0, group.n_documents)) if group.n_resampled == 1 else group.weights(request)
    weights_BD = np.vstack([np.ones(group.n_documents), weights_BD])  # all documents once, then the replicates
    S = [run.non_embedding_params for run in group.runs]
    for k, counts_4MLD in zip(k_grid, np.stack(of_runs, axis=2).swapaxes(0, 1), strict=True):
        total_4BML = np.moveaxis(counts_4MLD @ weights_BD.T, -1, 1)
        with np.errstate(invalid="ignore", divide="ignore"):  # a replicate without a token is left out
            y_BM = neg_ln(total_4BML[2, :, :, 0] / total_4BML[0, :, :, 0])
            alpha_B = np.asarray(line(np.log(S), np.log(y_BM[1:]))[:, 1])
        replicates = None if len(y_BM) == 1 else Replicates.of(y_BM[1:], group.n_effective)
        fit = of_one_document(group, fit_power_law(S, y_BM[0], replicates))
        law = with_reasons(fit, [fit.status, *trend_warnings(fit.alpha)])
        rbp = dict(zip(S, np.exp(-y_BM[0]).tolist(), strict=True))
        tokens = TrueValues(rbp, with_document_doubts(group, law), None if replicates is None else alpha_B)
        at = [with_1.index(length) for length in lengths]
        yield k, _outcomes(S, lengths, total_4BML[..., at], group.n_effective), tokens


def _outcomes(S: Sequence[float], lengths: Sequence[int], total_4BML: Floats, n_effective: float) -> Outcomes:
    N_C = np.tile(np.asarray(lengths, np.float64), len(S))
    trials_BC, passed_BC, hits_BC, pairs_BC = total_4BML.reshape((*total_4BML.shape[:2], -1))
    n_BC = trials_BC * N_C
    r_BC = np.where(N_C == 1, 0.0, correlation(n_BC, hits_BC, n_BC * (N_C - 1), pairs_BC, hits_BC * (N_C - 1)))
    cells = Outcomes(np.repeat(np.asarray(S, np.float64), len(lengths)), N_C, passed_BC[0], trials_BC[0], r_C=r_BC[0])
    if len(passed_BC) == 1:
        return cells
    return replace(cells, passed_BC=passed_BC[1:], trials_BC=trials_BC[1:], n_effective=n_effective, r_BC=r_BC[1:])


def cut_sequences(
    doc_T: npt.NDArray[np.int64], rank_T: Floats, k_grid: Sequence[int], lengths: Sequence[int], n_documents: int
) -> Floats:
    """Counts sequences, passes (all ranks at most k), hits and ordered pairs of hits by document: [4, K, L, D].

    A document is cut from its first scored token on; its remainder is dropped.
    """
    hits_upto_KT = np.zeros((len(k_grid), len(doc_T) + 1), np.int64)
    np.cumsum(rank_T <= np.asarray(k_grid)[:, None], axis=1, out=hits_upto_KT[:, 1:])
    counts_4KLD = np.zeros((4, len(k_grid), len(lengths), n_documents))
    for at, n in enumerate(lengths):
        first_Q = sequences(doc_T, n)
        document_Q = doc_T[first_Q]
        counts_4KLD[0, :, at] = np.bincount(document_Q, minlength=n_documents)
        for of_k, upto_T in enumerate(hits_upto_KT):
            hits_Q = upto_T[first_Q + n] - upto_T[first_Q]
            for c, of_Q in enumerate((hits_Q == n, hits_Q, hits_Q * (hits_Q - 1)), start=1):
                counts_4KLD[c, of_k, at] = np.bincount(document_Q, of_Q, n_documents)
    return counts_4KLD


def recover(k: int, sizes: Sizes, cells: Outcomes, group: Group, tokens: TrueValues) -> Iterator[Record]:
    """Rows of outcomes, laws, and RBP_k of every size by each law."""
    about = group.names() | {"k": k}
    named = {S: {"size": size, "non_embedding_params": S} for S, size in sizes.items()}
    lengths = sorted({int(N) for N in cells.N_C})
    for at in np.lexsort((cells.S_C, cells.N_C)):
        row = {"kind": "outcomes", "n": int(cells.N_C[at]), **about, **named[cells.S_C[at]]}
        row |= {"n_sequences": int(cells.trials_C[at]), "n_passed": int(cells.passed_C[at])}
        yield row | {"correlation": None if cells.r_C is None else float(cells.r_C[at])}
    for n in (*lengths, *([None] if len(lengths) > 1 else [])):
        own = cells if n is None else cells.of(cells.N_C == n)
        can = {Correction.measured: n != 1, Correction.free: n is None}
        for fit in (fit_outcomes(own, each) for each in Correction if can.get(each, True)):
            fit = _of_one_document(fit) if group.n_resampled == 1 else fit
            bias = _bias(fit, tokens, cells.n_effective)
            params = fit.record() | {"S": [*sizes], "bias_against_tokens": None if bias is None else bias.record()}
            params |= {"cells": own.record(), "n": n}  # allows refitting
            apart = [n, fit.correction.value, *([] if n is not None else lengths)]
            law = record_of(group, "rbp", fit, group.run_ids, MLE, k=k, n=apart, params=params)
            of = {"n": n, "correction": fit.correction.value}
            yield {"kind": "law", **of, **law}
            for S, size in named.items() if fit.alpha.value is not None else ():
                row = {"kind": "rbp", **of, **about, **size, **by_name(rbp=fit.rbp(S))}
                yield row | {"rbp_tokens": tokens.rbp[S]}


def _of_one_document(fit: OutcomeFit) -> OutcomeFit:
    if fit.alpha.value is None:
        return fit
    alpha, r = Estimate(fit.alpha.value), Estimate(fit.r.value)
    reasons = (Status.one_document,)
    return replace(fit, alpha=alpha, r=r, interval=None, status=reasons[0], reasons=reasons)


def _bias(fit: OutcomeFit, tokens: TrueValues, n_effective: float | None) -> Estimate | None:
    """Alpha of a fit minus that of the tokens; None where either is unknown."""
    if fit.alpha.value is None or tokens.law.alpha.value is None:
        return None
    value = fit.alpha.value - tokens.law.alpha.value
    if fit.alpha_B is None or fit.alpha.lo is None or tokens.alpha_B is None:
        return Estimate(value)
    return estimate(value, fit.alpha_B - tokens.alpha_B, n_effective, Recipe.uncentred)
