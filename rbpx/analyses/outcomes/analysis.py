"""Recovers the law of single tokens from outcomes (verb outcomes): of the runs in a store, or of a user's benchmark.

Each document of a run is cut into sequences of N scored tokens, a sequence passes if all are hits, and the tokens are
discarded, as in the results of a benchmark. The store still has the tokens, so the bias of the recovered law is
measured. The rows of a user's benchmark say how many sequences of N tokens passed for each model.

Shapes: T tokens, K values of k, M sizes, L lengths, D documents or groups, B resamples of them, Q sequences, d
documents that have tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np
import numpy.typing as npt

from rbpx.analyses.outcomes.recovery import Counts, OutcomeLaws, OutcomesResult, Tokens, records, recover
from rbpx.config.request import Request
from rbpx.errors import RbpxError
from rbpx.files.cells import whole_number
from rbpx.files.rows import Row, Rows, read_table
from rbpx.groups.documents import text_ranks
from rbpx.groups.fits import keep_fits, of_dependent_documents, of_one_document
from rbpx.groups.group import Group
from rbpx.laws.counts.fit import OutcomeFit
from rbpx.laws.intervals.estimate import Resampled, document_weights
from rbpx.laws.numeric import Floats, line, neg_ln
from rbpx.laws.power.law import fit_power_law
from rbpx.laws.predict.verdict import judged
from rbpx.status import Status
from rbpx.store.imports.columns import ALIASES, TRIAL_FIELDS, named_columns
from rbpx.store.store import Record, Store

_NEEDED: Final = ("non_embedding_params", "n", "passed")
_YES, _NO = ("true", "yes"), ("false", "no")
_LARGEST: Final = 2**53
_LONGEST: Final = 1_000_000  # tokens of a sequence


@dataclass(frozen=True)
class Trial:
    """One row of a benchmark: how many of the sequences of N tokens passed.

    Attributes:
        size: name of the model; S where it has no name.
        S: non-embedding parameters.
        N: tokens of a sequence.
        passed: sequences that passed.
        trials: all sequences.
        group: the document or task that they come from; None where the file has no such column.
        k: a hit is a rank of at most k; None where it is not given.
    """

    size: str
    S: int
    N: int
    passed: int
    trials: int
    group: str | None
    k: int | None


def read_trials(table: Rows) -> list[Trial]:
    """Read each row of a file, and check it.

    Raises:
        RbpxError: a column is missing, or a value is not a number, out of its range, or contradicts another row.
    """
    columns = _columns(table.columns, str(table.path))
    trials, sizes = [], dict[str, tuple[int, str]]()
    for row in table.rows:
        trial = _trial(row, columns)
        S, place = sizes.setdefault(trial.size, (trial.S, row.place))
        if trial.S != S:
            raise RbpxError(
                f"{row.place}: {trial.size} has S = {trial.S:,}, but {S:,} in {place}; a model has one S: fix it"
            )
        trials.append(trial)
    names = {S: name for name, (S, _) in sizes.items()}
    twin = next(((name, names[S]) for name, (S, _) in sizes.items() if names[S] != name), None)
    if twin is not None:
        raise RbpxError(f"{table.path}: {twin[0]} and {twin[1]} have the same S; leave one of them out")
    return trials


def _columns(columns: Sequence[str], file: str) -> dict[str, str]:
    named = named_columns(columns, TRIAL_FIELDS)
    missing = next((field for field in _NEEDED if field not in named), None)
    if missing is not None:
        raise RbpxError(
            f"{file} has no column {' or '.join(ALIASES[missing])}; it has: {', '.join(columns)}; name the columns "
            "model, non_embedding_params, n, passed, and trials where passed is a count"
        )
    return named


def _trial(row: Row, columns: dict[str, str]) -> Trial:
    value = {field: row.values.get(column) for field, column in columns.items()}
    S = _whole(row, value, "non_embedding_params", "give parameters, not millions")
    trials = _whole(row, value, "trials", "a count from 1") if "trials" in columns else 1
    passed = _passed(row, value, trials, counts="trials" in columns)
    group = value.get("group")
    if "group" in columns and group is None:
        raise RbpxError(f"{row.place}: {columns['group']} is empty; name the group of every row, or drop the column")
    k = None if value.get("k") is None else _whole(row, value, "k", "a rank from 1")
    N = _whole(row, value, "n", f"tokens of a sequence, from 1 to {_LONGEST:,}", most=_LONGEST)
    size = next((value[field] for field in ("size", "model") if value.get(field) is not None), S)
    return Trial(str(size), S, N, passed, trials, None if group is None else str(group), k)


def _passed(row: Row, value: dict[str, Any], trials: int, counts: bool) -> int:
    text = str(value["passed"]).strip().lower()
    if not counts and text in (*_YES, *_NO):
        return int(text in _YES)
    what = f"sequences that passed, 0 to {trials}" if counts else "true or false, 1 or 0, unless a column trials counts"
    return whole_number(row.place, "passed", value["passed"], what, least=0, most=trials)


def _whole(row: Row, value: dict[str, Any], field: str, meaning: str, most: int = _LARGEST) -> int:
    return whole_number(row.place, field, value[field], f"a whole number is expected: {meaning}", most=most)


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
    return OutcomesResult(group, group.title, laws)


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
    begin_d = np.flatnonzero(np.diff(doc_T, prepend=-1))
    doc_d, n_tokens_d = doc_T[begin_d], np.diff(begin_d, append=len(doc_T))
    hits_upto_KT = np.zeros((len(k_grid), len(doc_T) + 1), np.int64)
    np.cumsum(rank_T <= np.asarray(k_grid)[:, None], axis=1, out=hits_upto_KT[:, 1:])
    counts_4KLD = np.zeros((4, len(k_grid), len(lengths), n_documents))
    for at, n in enumerate(lengths):
        n_sequences_d = n_tokens_d // n
        which_Q = np.repeat(np.arange(len(doc_d)), n_sequences_d)
        nth_Q = np.arange(len(which_Q)) - (np.cumsum(n_sequences_d) - n_sequences_d)[which_Q]
        first_Q = begin_d[which_Q] + n * nth_Q
        counts_4KLD[0, :, at, doc_d] = n_sequences_d[:, None]
        for of_k, upto_T in zip(range(len(k_grid)), hits_upto_KT, strict=True):
            hits_Q = upto_T[first_Q + n] - upto_T[first_Q]
            for c, of_Q in enumerate((hits_Q == n, hits_Q, hits_Q * (hits_Q - 1)), start=1):
                counts_4KLD[c, of_k, at, doc_d] = np.bincount(which_Q, of_Q, len(doc_d))
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
