"""From outcomes to tokens (verb outcomes): a group of runs in, the law told by passing sequences beside the tokens' out.

Each document is cut into sequences of N scored tokens, a sequence passes if all are hits, and the tokens are forgotten:
what a benchmark leaves. The store still has the tokens, so the bias of what is recovered is measured.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import duckdb
import numpy as np
import numpy.typing as npt

from rbpx.analyses.selection import Group
from rbpx.analyses.size_laws import record_of
from rbpx.config import Request
from rbpx.laws import MLE
from rbpx.laws.emergence import neg_ln
from rbpx.laws.outcomes import Correction, OutcomeFit, Outcomes, fit_outcomes, implied_rbp
from rbpx.laws.power import PowerLawFit, fit_power_law
from rbpx.queries import ask
from rbpx.resample import document_weights
from rbpx.status import Status
from rbpx.store import Record, Store

Floats = npt.NDArray[np.float64]

DEFAULT_K: Final = (1, 10)
DEFAULT_N: Final = (1, 2, 5, 10, 20, 50)


@dataclass(frozen=True, eq=False)
class Recovered:
    """The law that outcomes tell.

    Attributes:
        n: tokens of a sequence; None where all lengths are fitted at once.
        fit: the law.
        bias_lo: lower end of the 95 % interval of its alpha less the tokens', over the documents; None without one.
        bias_hi: upper end.
    """

    n: int | None
    fit: OutcomeFit


@dataclass(frozen=True, eq=False)
class OutcomeLaws:
    """Outcomes at one k, M sizes and L lengths, and what they tell.

    Attributes:
        lengths: tokens of a sequence.
        trials_ML: sequences.
        passed_ML: those that passed.
        r_ML: mean correlation of two hits of a sequence, measured; NaN at N = 1.
        rbp_M: share of hits of all tokens.
        truth: the law of the tokens themselves.
        recovered: what the outcomes tell, by length (None: all) and correction.
    """

    k: int
    lengths: tuple[int, ...]
    trials_ML: Floats
    passed_ML: Floats
    r_ML: Floats
    rbp_M: Floats
    truth: PowerLawFit
    recovered: dict[tuple[int | None, Correction], OutcomeFit]


@dataclass(frozen=True, eq=False)
class OutcomesFound:
    """The laws of one group at every k asked for; runs in order of S."""

    group: Group
    found: tuple[OutcomeLaws, ...]


def analyse(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> OutcomesFound:
    """Cut, count, and fit at each k; nothing is known of imported runs, which have no tokens to cut."""
    if not group.is_measured:
        return OutcomesFound(group, ())
    k_grid = request.k_grid(min(run.vocab_size or 0 for run in group.runs), DEFAULT_K)
    lengths = request.n_listed(DEFAULT_N)
    weights_BD = None if group.n_documents == 1 else document_weights(group.n_documents, request.resamples, request.seed)
    return OutcomesFound(group, tuple(_laws(connection, group, k, lengths, weights_BD) for k in k_grid))


def _laws(
    connection: duckdb.DuckDBPyConnection, group: Group, k: int, lengths: Sequence[int], weights_BD: Any
) -> OutcomeLaws:
    counted = sorted({1, *lengths})
    counts_4MLD = _count(connection, group, k, counted)
    total_4ML = counts_4MLD.sum(axis=-1)
    total_4BML = None if weights_BD is None else np.moveaxis(counts_4MLD @ weights_BD.T.astype(np.float64), -1, 1)
    S = [run.non_embedding_params for run in group.runs]
    rbp_M = total_4ML[2, :, 0] / total_4ML[0, :, 0]
    with np.errstate(invalid="ignore"):  # a resample without a token has no share, and is left out
        rbp_BM = None if total_4BML is None else total_4BML[2, :, :, 0] / total_4BML[0, :, :, 0]
    truth = fit_power_law(S, neg_ln(rbp_M), None if rbp_BM is None else neg_ln(rbp_BM))
    r_ML, r_BML = _correlation(total_4ML, counted), None if total_4BML is None else _correlation(total_4BML, counted)
    recovered = {}
    for n in (*lengths, None):
        at = [counted.index(length) for length in (lengths if n is None else [n])]
        outcomes = _outcomes(S, counted, at, total_4ML, total_4BML, r_ML, r_BML)
        for correction in Correction:
            if (correction is Correction.free) <= (n is None):
                recovered[n, correction] = fit_outcomes(outcomes, correction)
    at = [counted.index(length) for length in lengths]
    return OutcomeLaws(
        k, tuple(lengths), total_4ML[0][:, at], total_4ML[1][:, at], r_ML[:, at], rbp_M, truth, recovered
    )


def _count(connection: duckdb.DuckDBPyConnection, group: Group, k: int, lengths: Sequence[int]) -> Floats:
    """Sequences, passes, hits and pairs of hits, of each run, length and document: [4, M, L, D]."""
    counts_4MLD = np.zeros((4, len(group.runs), len(lengths), group.n_documents))
    for m, run in enumerate(group.runs):
        asked: dict[str, Any] = {"run_id": run.run_id, "k": k, "ties": group.ties.value, "lengths": list(lengths)}
        found = ask(connection, "sequences", **asked)
        at = np.searchsorted(lengths, found["n"].to_numpy())
        for c, name in enumerate(("n_sequences", "n_passed", "n_hits", "n_pairs")):
            counts_4MLD[c, m, at, found["doc_id"].to_numpy()] = found[name].to_numpy()
    return counts_4MLD


def _correlation(total_4ML: Floats, lengths: Sequence[int]) -> Floats:
    """Mean correlation of two hits of a sequence: (E[x_i x_j] - q^2) / (q (1 - q)), q their share; 0 at N = 1."""
    N_L = np.asarray(lengths, dtype=np.float64)
    n_sequences, _, n_hits, n_pairs = total_4ML
    with np.errstate(divide="ignore", invalid="ignore"):  # NaN says that there is none
        q = n_hits / (n_sequences * N_L)
        r = (n_pairs / (n_sequences * N_L * (N_L - 1)) - q**2) / (q * (1 - q))
    return np.where(N_L == 1, 0.0, r)


def _outcomes(
    S: Sequence[int],
    lengths: Sequence[int],
    at: list[int],
    total_4ML: Floats,
    total_4BML: Floats | None,
    r_ML: Floats,
    r_BML: Floats | None,
) -> Outcomes:
    """The cells of some lengths, size after size."""
    n_sizes, N = len(S), np.asarray(lengths, dtype=np.float64)[at]
    resampled: dict[str, Floats] = {}
    if total_4BML is not None and r_BML is not None:
        flat = (len(r_BML), -1)
        resampled = {
            "trials_BC": total_4BML[0][:, :, at].reshape(flat),
            "passed_BC": total_4BML[1][:, :, at].reshape(flat),
            "r_BC": r_BML[:, :, at].reshape(flat),
        }
    return Outcomes(
        S_C=np.repeat(np.asarray(S, dtype=np.float64), len(at)),
        N_C=np.tile(N, n_sizes),
        trials_C=total_4ML[0][:, at].ravel(),
        passed_C=total_4ML[1][:, at].ravel(),
        r_C=r_ML[:, at].ravel(),
        **resampled,
    )
