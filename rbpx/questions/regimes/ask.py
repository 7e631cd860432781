"""Finds up to which k the law of RBP_k holds, and whether noise ends it (verb regimes).

At large k only few tokens are misses, so their count is noisy: the binomial part is known from the count, the part
that comes from the choice of documents from resampling.

Source: RBP paper (arXiv 2510.20387), section 3.3, figure 6.
"""

import math
from collections.abc import Sequence
from functools import partial
from typing import Final

import duckdb
import numpy as np

from rbpx.config.request import Request
from rbpx.display.law_columns import backtest, constant, determination, points_of
from rbpx.display.view import Cell, Column, View, magnitude, whole
from rbpx.display.vocabulary import AXES
from rbpx.laws.intervals.estimate import Replicates, flat
from rbpx.questions.question import of_each
from rbpx.questions.regimes.figures import ALPHA, BY_NOISE, K, figures
from rbpx.questions.regimes.noise import AtK, noise_model, predict_noise
from rbpx.questions.regimes.words import sentences, word
from rbpx.questions.result import Result
from rbpx.runs.fits import Law, doubted, fit_all, fit_record, stands, supported
from rbpx.runs.group import Group
from rbpx.runs.points.sizes import Points, known_points
from rbpx.runs.select.ways import in_size
from rbpx.status import Status
from rbpx.store.store import Record


def answer(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> Result:
    """Fit the law at every k, log-spaced up to V unless the request names others, and say what its regime of k adds."""
    points = known_points(connection, group, request if request.k.by_number else request.but(k="log"), {"rbp"})
    laws = [doubted(group, law) for law in fit_all(points, request.method[0], compares=False)] if points else []
    regimes = [_regime(of, law) for of, law in zip(points, laws, strict=True)]
    reach = supported(laws)
    for regime, noise in zip(regimes, _noise(group, points, laws), strict=True):
        regime |= {"supported_up_to_k": reach} | noise
    fits = [
        fit_record(group, law, request.resamples, {"regime": regime}) for law, regime in zip(laws, regimes, strict=True)
    ]
    rows = [_shown(row) for row in fits]
    words = AXES[group.axis]
    title, ties = f"−ln RBP_k = {words.constant} · {words.x}^−α over k", f"Ties {group.ties.value}."
    table = REGIMES.table(title, rows, group.title, group.axis, ties)
    return Result([group], fits, [table], sentences(rows, words), partial(figures, group, rows), fits)


def _shown(fit: Record) -> Record:
    """A law with what its regime adds beside its columns."""
    regime: Record = fit["params"]["regime"]
    noise = regime["predicted"] or {}
    by_noise = {f"r2_by_noise{end}": noise.get(f"r2{end}") for end in ("", "_lo", "_hi")}
    return fit | regime | by_noise | {"n_tokens_needed": noise.get("n_tokens")}


def _regime(points: Points, law: Law) -> Record:
    """What is known of the law at one k beside its numbers.

    Returns:
        n_misses: tokens of the largest model with a rank above k; None where the tokens were not counted.
        signal: change of ln y from the smallest to the largest model, by the law.
        binomial_sd: standard deviation of ln y at the largest model, if its tokens were independent.
        document_sd: the same over resampled documents.
        stands: whether the law holds (`rbpx.runs.fits`).
    """
    n_misses = signal = binomial_sd = document_sd = None
    largest, y, fit = points.runs[-1], float(points.y_N[-1]), law.fit
    if largest.n_tokens is not None and 0 < y < math.inf:
        share = math.exp(-y)
        n_misses = round(largest.n_tokens * (1 - share))
        binomial_sd = math.sqrt((1 - share) / (share * largest.n_tokens)) / y
    if points.y_BN is not None and points.doubt is None:
        usable_B = Replicates.of(points.y_BN[:, -1:], points.n_documents).ln_y_BN
        document_sd = float(usable_B.std(ddof=1)) if len(usable_B) > 1 else None
    if fit.alpha.value is not None:
        signal = fit.alpha.value * math.log(max(points.S_N) / min(points.S_N))
    known = {"n_misses": n_misses, "signal": signal, "binomial_sd": binomial_sd, "document_sd": document_sd}
    return known | {"stands": stands(law)}


def _noise(group: Group, points: Sequence[Points], laws: Sequence[Law]) -> list[Record]:
    """What the noise of few misses would do to the law at each k; predicted is None where it is not known."""
    model = None
    if group.is_measured and group.n_resampled > 1:
        S = [run.x for run in group.runs if run.x is not None]
        measured = [_at_k(of, law) for of, law in zip(points, laws, strict=True)]
        model = noise_model(S, group.runs[-1].n_tokens or 0, measured)
    if model is None:
        return [{"predicted": None} for _ in laws]
    of_all = {"law_alpha": model.alpha, "clumping": float(np.diag(model.dispersion_NN).mean())}
    predicted = [predict_noise(model, at) for at in measured]
    return [{"predicted": None if of_k is None else flat(vars(of_k)), **of_all} for of_k in predicted]


def _at_k(points: Points, law: Law) -> AtK:
    fit = law.fit
    ln_y_BN = np.zeros((0, len(points.runs)))
    with np.errstate(divide="ignore", invalid="ignore"):  # a count of 0 has no logarithm, and is left out
        ln_y_N = np.log(points.y_N)
        if points.y_BN is not None:
            ln_y_BN = Replicates.of(points.y_BN, points.n_documents).ln_y_BN
    about = fit.uncertainty
    models = 0.0 if about is None else max(about.scatter**2 - about.text_scatter**2, 0.0) ** 0.5
    return AtK(ln_y_N, ln_y_BN, fit.alpha.value, fit.r2.value, models, stands(law))


def _law(row: Record) -> Cell:
    said, status = word(row), Status(row["status"] or Status.ok)
    return Cell((said,), (said,), is_number=False, doubts=() if status is Status.ok else (status,))


REGIMES: Final = View[Record](
    "regimes",
    K,
    determination(ends_spare=7),
    ALPHA,
    constant(spare=5),
    points_of(spare=8),
    backtest(spare=6),
    whole("misses", "n_misses", means="tokens with a rank above k at the largest {x}"),
    magnitude("signal", "signal", means="change of ln(−ln RBP_k) by the law, over all {x}"),
    magnitude(
        "binomial", "binomial_sd", means="noise of ln(−ln RBP_k) at the largest {x}, from counting independent tokens",
        spare=2,
    ),
    magnitude("text", "document_sd", None, "noise of ln(−ln RBP_k) at the largest {x}, from document sampling", 1),
    BY_NOISE,
    Column(
        "law", ("law",), _law, "it holds where 0 < RBP_k < 1 at every {x}, in nearly all resamples too, the interval "
        "of α lies above 0, the points neither bend nor turn round, the backtest passes and α is determined",
    ),
)  # fmt: skip
QUESTION = of_each(answer, select=partial(in_size, sizes=3))
