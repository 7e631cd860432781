"""Recovers the law of single tokens from outcomes (verb outcomes): of the runs in a store, or of a user's benchmark.

Each document of a run is cut into sequences of N scored tokens, a sequence passes if all are hits, and the tokens are
discarded, as in the results of a benchmark. The store still has the tokens, so the bias of the recovered law is
measured, and learners of single hits are judged. The rows of a user's benchmark say how many sequences of N tokens
passed for each model.

Shapes: T tokens, K values of k, M sizes, L lengths, D documents or groups, B resamples of them, Q sequences.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np
import numpy.typing as npt

from rbpx.config.request import Request
from rbpx.errors import RbpxError
from rbpx.files.rows import read_table
from rbpx.laws.counts.fit import OutcomeFit
from rbpx.laws.intervals.estimate import Resampled, document_weights
from rbpx.laws.numeric import Floats, line, neg_ln
from rbpx.laws.power.law import fit_power_law
from rbpx.laws.predict.verdict import judged
from rbpx.questions.outcomes.learners import learners, sequences
from rbpx.questions.outcomes.recovery import Counts, OutcomeLaws, OutcomesResult, Tokens, records, recover
from rbpx.questions.outcomes.trials import Trial, read_trials
from rbpx.runs.documents import text_ranks
from rbpx.runs.fits import keep_fits, of_dependent_documents, of_one_document
from rbpx.runs.group import Group
from rbpx.status import Status
from rbpx.store.store import Record, Store

DEFAULT_K: Final = (1, 10)
DEFAULT_N: Final = (1, 2, 5, 10, 20, 50)


def analyse(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> OutcomesResult:
    """Cut the documents of a measured group into sequences, count those that pass, and fit laws at each k."""
    k_grid, lengths = request.k.grid(group.vocab_size, DEFAULT_K), request.n.listed(DEFAULT_N)
    of_runs = []
    for run in group.runs:
        doc_T, rank_T = text_ranks(connection, run.run_id, group.ties)
        of_runs.append(cut_sequences(doc_T, rank_T, k_grid, sorted({1, *lengths}), group.n_documents))
    counts_4KMLD = np.stack(of_runs, axis=2)
    weights_BD = None if group.n_resampled == 1 else group.weights(request)
    laws = tuple(_measured(counts_4KMLD[:, at], group, k, lengths, weights_BD) for at, k in enumerate(k_grid))
    learned = learners(connection, group, k_grid, lengths, request.seed)
    return OutcomesResult(group, group.title, laws, learned)


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


def _measured(counts_4MLD: Floats, group: Group, k: int, lengths: Sequence[int], weights_BD: Any) -> OutcomeLaws:
    """The laws from the sequences at one k, and that of the tokens, which are the sequences of length 1."""
    at = [sorted({1, *lengths}).index(length) for length in lengths]
    total_4ML = counts_4MLD.sum(axis=-1)
    S = tuple(run.non_embedding_params for run in group.runs)
    rbp_M = total_4ML[2, :, 0] / total_4ML[0, :, 0]
    drawn_4BML = resampled = alpha_B = None
    if weights_BD is not None:
        total_4BML = _resampled(counts_4MLD, weights_BD)
        drawn_4BML = total_4BML[..., at]
        with np.errstate(invalid="ignore", divide="ignore"):  # a resample without a token has no share, and is left out
            y_BM = neg_ln(total_4BML[2, :, :, 0] / total_4BML[0, :, :, 0])
            alpha_B = np.asarray(line(np.log(S), np.log(y_BM))[:, 1])
        resampled = Resampled.of(y_BM, group.n_resampled)
    law = judged(of_one_document(group, fit_power_law(S, neg_ln(rbp_M), resampled)))
    r_ML = _correlation(total_4ML[..., at], lengths)
    r_BML = None if drawn_4BML is None else _correlation(drawn_4BML, lengths)
    drawn_2BML = None if drawn_4BML is None else drawn_4BML[:2]
    counts = Counts(S, tuple(lengths), total_4ML[:2, :, at], drawn_2BML, r_ML, r_BML, group.n_resampled)
    fits = recover(counts)
    if group.n_resampled == 1:
        fits = {key: _without_interval(fit) for key, fit in fits.items()}
    tokens = Tokens(rbp_M, of_dependent_documents(group, law), alpha_B)
    return OutcomeLaws(k, tuple(run.size for run in group.runs), counts, fits, tokens)


def _resampled(counts_MLD: Floats, weights_BD: Any) -> Floats:
    return np.moveaxis(counts_MLD @ weights_BD.T.astype(np.float64), -1, 1)


def _correlation(total_4ML: Floats, lengths: Sequence[int]) -> Floats:
    """Mean correlation of two hits of a sequence: (E[x_i x_j] - q^2) / (q (1 - q)), q their share; 0 at N = 1."""
    N_L = np.asarray(lengths, dtype=np.float64)
    n_sequences, _, n_hits, n_pairs = total_4ML
    with np.errstate(divide="ignore", invalid="ignore"):  # NaN says that there is none
        q = n_hits / (n_sequences * N_L)
        r = (n_pairs / (n_sequences * N_L * (N_L - 1)) - q**2) / (q * (1 - q))
    return np.where(N_L == 1, 0.0, r)


def _without_interval(fit: OutcomeFit) -> OutcomeFit:
    if fit.alpha is None:
        return fit
    unknown: dict[str, Any] = dict.fromkeys(("alpha_stderr", "alpha_lo", "alpha_hi", "r_lo", "r_hi", "interval"))
    return replace(fit, **unknown, status=Status.one_document, reasons=(Status.one_document,))


def keep(store: Store, result: OutcomesResult) -> list[Record]:
    """Write the laws to the store as laws `rbp` by method `mle`, and return all rows."""
    rows = records(result)
    laws = [row for row in rows if row["kind"] == "law"]
    keep_fits(store, [{name: row[name] for name in row if name not in ("kind", "n", "correction")} for row in laws])
    return rows


def analyse_file(path: Path, request: Request) -> OutcomesResult:
    """Fit the rows of a file, separately for each k; groups, where the file names them, are resampled whole.

    Raises:
        RbpxError: the file or a row is invalid.
    """
    trials = read_trials(read_table(path))
    wanted = None if not request.k.by_number else set(request.k.listed())
    k_grid = sorted({one.k for one in trials}, key=lambda k: k or 0)
    chosen = [k for k in k_grid if wanted is None or k in wanted]
    lengths = sorted({one.N for one in trials})
    has_length = bool(set(lengths) & set(request.n.listed(lengths)))
    for is_there, name, asked, values in ((chosen, "k", request.k, k_grid), (has_length, "n", request.n, lengths)):
        if not is_there:
            known = ", ".join("none" if value is None else str(value) for value in values)
            raise RbpxError(f"no row of {path} has {name}={asked}, which was asked for; it has {name} = {known}")
    if len({one.S for one in trials}) < 2:
        raise RbpxError(f"{path} has outcomes of one model, {trials[0].size}; a law needs 2 sizes or more")
    laws = [_laws_of_trials([one for one in trials if one.k == k], k, request) for k in chosen]
    return OutcomesResult(None, path.name, tuple(laws))


def _laws_of_trials(trials: Sequence[Trial], k: int | None, request: Request) -> OutcomeLaws:
    names = {one.S: one.size for one in sorted(trials, key=lambda one: one.S)}
    S, wanted = tuple(names), request.n.listed([one.N for one in trials])
    lengths = tuple(sorted({one.N for one in trials} & set(wanted)))
    groups = sorted({one.group or "" for one in trials})
    counts_2MLD = np.zeros((2, len(S), len(lengths), len(groups)))
    for one in trials:
        if one.N in lengths:
            at = (S.index(one.S), lengths.index(one.N), groups.index(one.group or ""))
            counts_2MLD[(slice(None), *at)] += (one.trials, one.passed)
    n_2BML = None
    if len(groups) > 1:
        n_2BML = _resampled(counts_2MLD, document_weights(len(groups), request.resamples, request.seed))
    counts = Counts(S, lengths, counts_2MLD.sum(axis=-1), n_2BML, None, None, len(groups))
    return OutcomeLaws(k, tuple(names.values()), counts, recover(counts), None)
