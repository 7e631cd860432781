"""From outcomes to tokens (verb outcomes): runs, or the rows of a benchmark, in; the law of single tokens out.

Each document of a run is cut into sequences of N scored tokens, a sequence passes if all are hits, and the tokens are
discarded, as in the results of a benchmark. The store still has the tokens, so the bias of the recovered law is
measured. Shapes: K values of k, M sizes, L lengths, D documents or groups, B resamples of them.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np
import numpy.typing as npt

from rbpx.analyses.outcomes.recovery import OutcomeLaws, OutcomesResult, Tokens, records, recover
from rbpx.analyses.outcomes.sequences import cut_sequences
from rbpx.analyses.outcomes.trials import Trial, read_trials
from rbpx.config.request import Request
from rbpx.errors import RbpxError
from rbpx.files.rows import read_table
from rbpx.groups.fits import of_dependent_documents, of_one_document
from rbpx.groups.group import Group
from rbpx.groups.token_ranks import text_ranks
from rbpx.laws.bootstrap import document_weights
from rbpx.laws.logarithms import line, neg_ln
from rbpx.laws.outcomes import OutcomeFit
from rbpx.laws.power import fit_power_law
from rbpx.laws.resampled import Resampled
from rbpx.laws.verdict import judged
from rbpx.status import Status
from rbpx.store.store import Record, Store

Floats = npt.NDArray[np.float64]

DEFAULT_K: Final = (1, 10)
DEFAULT_N: Final = (1, 2, 5, 10, 20, 50)


def analyse(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> OutcomesResult:
    """Cut, count, and fit at each k, a measured group."""
    k_grid = request.k.grid(min(run.vocab_size or 0 for run in group.runs), DEFAULT_K)
    weights_BD = None if group.n_resampled == 1 else group.weights(request)
    lengths = request.n.listed(DEFAULT_N)
    counts_4KMLD = _count(connection, group, k_grid, sorted({1, *lengths}))
    laws = tuple(_measured(counts_4KMLD[:, at], group, k, lengths, weights_BD) for at, k in enumerate(k_grid))
    return OutcomesResult(group, group.title, laws)


def _measured(counts_4MLD: Floats, group: Group, k: int, lengths: Sequence[int], weights_BD: Any) -> OutcomeLaws:
    counted = sorted({1, *lengths})
    total_4ML = counts_4MLD.sum(axis=-1)
    total_4BML = None if weights_BD is None else _resampled(counts_4MLD, weights_BD)
    S = [run.non_embedding_params for run in group.runs]
    rbp_M = total_4ML[2, :, 0] / total_4ML[0, :, 0]
    y_BM = None
    if total_4BML is not None:
        with np.errstate(invalid="ignore"):  # a resample without a token has no share, and is left out
            y_BM = neg_ln(total_4BML[2, :, :, 0] / total_4BML[0, :, :, 0])
    n_documents = group.n_resampled
    resampled = None if y_BM is None else Resampled.of(y_BM, n_documents)
    law = of_dependent_documents(group, judged(of_one_document(group, fit_power_law(S, neg_ln(rbp_M), resampled))))
    at = [counted.index(length) for length in lengths]
    r_ML = _correlation(total_4ML[:, :, at], lengths)
    r_BML = None if total_4BML is None else _correlation(total_4BML[..., at], lengths)
    drawn_4BML = None if total_4BML is None else total_4BML[..., at]
    fits = recover(S, lengths, total_4ML[:, :, at], drawn_4BML, (r_ML, r_BML), n_documents)
    if n_documents == 1:
        fits = {key: _of_one_document(fit) for key, fit in fits.items()}
    names = tuple(run.size for run in group.runs)
    tokens = Tokens(rbp_M, law, r_ML, n_documents, None if y_BM is None else _exponents(S, y_BM))
    return OutcomeLaws(k, names, tuple(S), tuple(lengths), total_4ML[0][:, at], total_4ML[1][:, at], fits, tokens)


def _count(
    connection: duckdb.DuckDBPyConnection, group: Group, k_grid: Sequence[int], lengths: Sequence[int]
) -> Floats:
    """Sequences, passes, hits and pairs of hits, of each k, run, length and document: [4, K, M, L, D]."""
    of_runs = []
    for run in group.runs:
        doc_T, rank_T = text_ranks(connection, run.run_id, group.ties)
        of_runs.append(cut_sequences(doc_T, rank_T, k_grid, lengths, group.n_documents))
    return np.stack(of_runs, axis=2)


def _resampled(counts_4MLD: Floats, weights_BD: Any) -> Floats:
    return np.moveaxis(counts_4MLD @ weights_BD.T.astype(np.float64), -1, 1)


def _correlation(total_4ML: Floats, lengths: Sequence[int]) -> Floats:
    """Mean correlation of two hits of a sequence: (E[x_i x_j] - q^2) / (q (1 - q)), q their share; 0 at N = 1."""
    N_L = np.asarray(lengths, dtype=np.float64)
    n_sequences, _, n_hits, n_pairs = total_4ML
    with np.errstate(divide="ignore", invalid="ignore"):  # NaN says that there is none
        q = n_hits / (n_sequences * N_L)
        r = (n_pairs / (n_sequences * N_L * (N_L - 1)) - q**2) / (q * (1 - q))
    return np.where(N_L == 1, 0.0, r)


def _exponents(S: Sequence[float], y_BM: Floats) -> Floats:
    """Exponents of the tokens' law under each resample, in closed form; NaN where there is none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(line(np.log(S), np.log(y_BM))[:, 1])


def _of_one_document(fit: OutcomeFit) -> OutcomeFit:
    if fit.alpha is None:
        return fit
    unknown: dict[str, Any] = dict.fromkeys(("alpha_stderr", "alpha_lo", "alpha_hi", "r_lo", "r_hi"))
    status = Status.one_document
    return replace(fit, **unknown, status=status, interval=None, reasons=(status,))


def keep(store: Store, result: OutcomesResult) -> list[Record]:
    """Write the laws to the store as laws `rbp` by method `mle`, and return all rows."""
    rows = records(result)
    for row in rows:
        if row["kind"] == "law":
            record = {name: value for name, value in row.items() if name not in ("kind", "n", "correction")}
            store.write_record("fits", record["fit_id"], record)
    return rows


# ---------------------------------------------------------------------------------------------- rows of a benchmark


def analyse_file(path: Path, request: Request) -> OutcomesResult:
    """Fit the rows of a file, each k separately; groups, where the file names them, are resampled whole.

    Raises:
        RbpxError: the file or a row is invalid.
    """
    trials = read_trials(read_table(path))
    wanted = None if not request.k.by_number else set(request.k.listed())
    k_grid = sorted({one.k for one in trials}, key=lambda k: k or 0)
    chosen = [k for k in k_grid if wanted is None or k in wanted]
    if not chosen:
        available = ", ".join("none" if k is None else str(k) for k in k_grid)
        raise RbpxError(f"no row of {path} has the k asked for, k={request.typed['k']}; it has k = {available}")
    lengths = sorted({one.N for one in trials})
    if not set(lengths) & set(request.n.listed(lengths)):
        raise RbpxError(
            f"no row of {path} has the n asked for, n={request.n}; it has n = {', '.join(map(str, lengths))}"
        )
    if len({one.S for one in trials}) < 2:
        raise RbpxError(f"{path} has outcomes of one model, {trials[0].size}; a law needs those of 2 sizes or more")
    laws = [_laws_of_trials([one for one in trials if one.k == k], k, request) for k in chosen]
    return OutcomesResult(None, path.name, tuple(laws))


def _laws_of_trials(trials: Sequence[Trial], k: int | None, request: Request) -> OutcomeLaws:
    names = {one.S: one.size for one in trials}
    S, wanted = sorted(names), request.n.listed([one.N for one in trials])
    lengths = sorted({one.N for one in trials} & set(wanted))
    groups = sorted({one.group or "" for one in trials})
    counts_2MLD = np.zeros((2, len(S), len(lengths), len(groups)))
    for one in trials:
        if one.N in lengths:
            at = (S.index(one.S), lengths.index(one.N), groups.index(one.group or ""))
            counts_2MLD[(slice(None), *at)] += (one.trials, one.passed)
    total_2ML = counts_2MLD.sum(axis=-1)
    total_2BML = None
    if any(one.group is not None for one in trials) and len(groups) > 1:
        total_2BML = _resampled(counts_2MLD, document_weights(len(groups), request.resamples, request.seed))
    fits = recover(S, lengths, total_2ML, total_2BML, None, len(groups))
    sizes = tuple(names[each] for each in S)
    return OutcomeLaws(k, sizes, tuple(S), tuple(lengths), total_2ML[0], total_2ML[1], fits, None)
