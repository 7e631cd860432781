"""Counts how many sequences pass: of the runs in a store, or as the rows of a user's benchmark say.

Each document of a run is cut into sequences of N scored tokens, a sequence passes if all are hits, and the tokens are
discarded, as in the results of a benchmark. The store still has the tokens, so the bias of the recovered law is
measured. The rows of a user's benchmark say how many sequences of N tokens passed for each model.

Shapes: T tokens, K values of k, M sizes, L lengths, D documents or groups, B resamples of them, Q sequences; C cells,
each one size and one length.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt

from rbpx.config.request import Request
from rbpx.laws.counts.fit import Outcomes
from rbpx.laws.intervals.estimate import Replicates, document_weights
from rbpx.laws.numeric import Floats, line, neg_ln
from rbpx.laws.power.law import PowerLaw, fit_power_law
from rbpx.laws.prediction.verdict import judged
from rbpx.questions.outcomes.learners import sequences
from rbpx.questions.outcomes.trials import Trial
from rbpx.runs.documents import text_ranks
from rbpx.runs.fits import of_dependent_documents, of_one_document
from rbpx.runs.group import Group
from rbpx.store.store import Record


@dataclass(frozen=True, eq=False)
class Counts:
    """How many sequences there are of each size and length.

    Attributes:
        sizes: names of the models, in order of S.
        S: non-embedding parameters, rising.
        lengths: tokens of a sequence.
        n_2ML: sequences, and those that passed.
        n_2BML: the same under resamples of the documents; None where there are none.
        r_ML: mean correlation of two hits of a sequence; None where only outcomes are known.
        r_BML: the same under the resamples.
        n_documents: documents (or groups) that were resampled.
    """

    sizes: tuple[str, ...]
    S: tuple[float, ...]
    lengths: tuple[int, ...]
    n_2ML: Floats
    n_2BML: Floats | None
    r_ML: Floats | None
    r_BML: Floats | None
    n_documents: int

    def cells(self, n: int | None) -> Outcomes:
        """The counts of one length, or (None) of all, ordered by size."""
        at = [*range(len(self.lengths))] if n is None else [self.lengths.index(n)]

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
        cells = self.cells(n)
        S, N = np.repeat(self.S, len(cells.S_C) // len(self.S)).tolist(), cells.N_C.astype(int).tolist()
        r = None if cells.r_C is None else [float(r) if np.isfinite(r) else None for r in cells.r_C]
        return {"S": S, "N": N, "passed": cells.passed_C.tolist(), "trials": cells.trials_C.tolist(), "r": r}


@dataclass(frozen=True, eq=False)
class Tokens:
    """The true values, counted from the tokens.

    Attributes:
        rbp_M: share of hits of all tokens.
        law: the law fitted to that share, by least squares.
        alpha_B: exponent of the law under resampled documents.
    """

    rbp_M: Floats
    law: PowerLaw
    alpha_B: Floats | None


def counts_of(
    connection: duckdb.DuckDBPyConnection, group: Group, k_grid: Sequence[int], lengths: Sequence[int], request: Request
) -> Iterator[tuple[int, Counts, Tokens]]:
    """The sequences of a measured group at each k, and its tokens, which are the sequences of length 1."""
    of_runs, with_1 = [], sorted({1, *lengths})
    for run in group.runs:
        doc_T, rank_T = text_ranks(connection, run.run_id, group.ties)
        of_runs.append(cut_sequences(doc_T, rank_T, k_grid, with_1, group.n_documents))
    weights_BD = None if group.n_resampled == 1 else group.weights(request)
    names = tuple(run.size for run in group.runs), tuple(run.non_embedding_params for run in group.runs), tuple(lengths)
    at = [with_1.index(length) for length in lengths]
    for k, counts_4MLD in zip(k_grid, np.stack(of_runs, axis=2).swapaxes(0, 1), strict=True):
        total_4ML = counts_4MLD.sum(axis=-1)
        rbp_M, S = total_4ML[2, :, 0] / total_4ML[0, :, 0], names[1]
        drawn_2BML = r_BML = replicates = alpha_B = None
        if weights_BD is not None:
            drawn_4BML = _replicates_of(counts_4MLD, weights_BD)
            drawn_2BML, r_BML = drawn_4BML[:2, ..., at], _correlation(drawn_4BML[..., at], lengths)
            with np.errstate(invalid="ignore", divide="ignore"):  # a resample without a token has no share: left out
                y_BM = neg_ln(drawn_4BML[2, :, :, 0] / drawn_4BML[0, :, :, 0])
                alpha_B = np.asarray(line(np.log(S), np.log(y_BM))[:, 1])
            replicates = Replicates.of(y_BM, group.n_resampled)
        law = judged(of_one_document(group, fit_power_law(S, neg_ln(rbp_M), replicates)))
        tokens = Tokens(rbp_M, of_dependent_documents(group, law), alpha_B)
        r_ML = _correlation(total_4ML[..., at], lengths)
        yield k, Counts(*names, total_4ML[:2, :, at], drawn_2BML, r_ML, r_BML, group.n_resampled), tokens


def cut_sequences(
    doc_T: npt.NDArray[np.int64], rank_T: Floats, k_grid: Sequence[int], lengths: Sequence[int], n_documents: int
) -> Floats:
    """Count the sequences, passes (all ranks at most k), hits and ordered pairs of hits of each document: [4, K, L, D].

    Each document is cut from its first scored token on. What is left at its end is dropped; positions that were not
    scored are skipped.

    Args:
        doc_T: the document of each scored token, from 0, tokens in the order of the text.
        rank_T: their ranks.
        k_grid: a hit is a rank of at most k.
        lengths: tokens of a sequence.
        n_documents: number of documents, including those without a token.
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


def _replicates_of(counts_MLD: Floats, weights_BD: Any) -> Floats:
    return np.moveaxis(counts_MLD @ weights_BD.T.astype(np.float64), -1, 1)


def _correlation(total_4ML: Floats, lengths: Sequence[int]) -> Floats:
    """Mean correlation of two hits of a sequence: (E[x_i x_j] - q^2) / (q (1 - q)), q their share; 0 at N = 1."""
    N_L = np.asarray(lengths, dtype=np.float64)
    n_sequences, _, n_hits, n_pairs = total_4ML
    with np.errstate(divide="ignore", invalid="ignore"):  # NaN says that there is none
        q = n_hits / (n_sequences * N_L)
        r = (n_pairs / (n_sequences * N_L * (N_L - 1)) - q**2) / (q * (1 - q))
    return np.where(N_L == 1, 0.0, r)


def counts_of_trials(trials: Sequence[Trial], request: Request) -> Counts:
    """The sequences of a file at one k; groups, where it names them, are resampled whole."""
    names = {one.S: one.size for one in sorted(trials, key=lambda one: one.S)}
    S = tuple(names)
    lengths = tuple(sorted({one.N for one in trials} & set(request.n.listed([one.N for one in trials]))))
    groups = sorted({one.group or "" for one in trials})
    counts_2MLD = np.zeros((2, len(S), len(lengths), len(groups)))
    for one in trials:
        if one.N in lengths:
            at = (S.index(one.S), lengths.index(one.N), groups.index(one.group or ""))
            counts_2MLD[(slice(None), *at)] += (one.trials, one.passed)
    n_2BML = None
    if len(groups) > 1:
        n_2BML = _replicates_of(counts_2MLD, document_weights(len(groups), request.resamples, request.seed))
    return Counts(tuple(names.values()), S, lengths, counts_2MLD.sum(axis=-1), n_2BML, None, None, len(groups))
