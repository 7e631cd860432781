"""Finds up to which k the law of RBP_k holds, and whether noise ends it (verb regimes).

At large k only few tokens are misses, so their count is noisy: the binomial part is known from the count, the part
that comes from the choice of documents from resampling.

Source: RBP paper (arXiv 2510.20387), section 3.3, figure 6.
"""

import math
from dataclasses import dataclass, replace

import duckdb
import numpy as np

from rbpx.config.request import Request
from rbpx.laws.intervals.estimate import Resampled, flat
from rbpx.laws.power.law import PowerLawFit
from rbpx.questions.regimes.noise import AtK, NoiseModel, Predicted, noise_model, predict_noise
from rbpx.runs.fits import Law, doubted, fit_points, fit_record, keep_fits, stands, supported
from rbpx.runs.group import Group
from rbpx.runs.points.sizes import Points, known_points
from rbpx.store.store import Record, Store


@dataclass(frozen=True)
class Regime:
    """The law at one k.

    Attributes:
        law: its law in S.
        n_misses: tokens of the largest model with a rank above k; None where the tokens were not counted.
        signal: change of ln y from the smallest to the largest model, by the law.
        binomial_sd: standard deviation of ln y at the largest model, if its tokens were independent.
        document_sd: the same over resampled documents.
        stands: whether the law holds (`rbpx.runs.fits`).
        predicted: the R2 that the noise of so few misses would leave a law that goes on; None where it is not known.
    """

    law: Law
    n_misses: int | None
    signal: float | None
    binomial_sd: float | None
    document_sd: float | None
    stands: bool
    predicted: Predicted | None = None

    @property
    def k(self) -> int:
        """The k."""
        return self.law.k or 0

    @property
    def fit(self) -> PowerLawFit:
        """The numbers of its law."""
        return self.law.fit


@dataclass(frozen=True, eq=False)
class Regimes:
    """The laws of one group over k.

    Attributes:
        supported: the largest k up to which the law holds at every k of the grid; None if it fails at the smallest.
        noise: the noise of counts where the law holds; None where it holds nowhere, or no tokens are known.
    """

    group: Group
    regimes: tuple[Regime, ...]
    supported: int | None
    resamples: int
    noise: NoiseModel | None = None


def analyse(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> Regimes:
    """Fit the law at every k, log-spaced up to V unless the request names others."""
    points = known_points(connection, group, request if request.k.by_number else request.but(k="log"), {"rbp"})
    regimes = [_regime(series, doubted(group, fit_points(series, request.method[0]))) for series in points]
    noise = None
    if group.is_measured and group.n_resampled > 1:
        S = [run.x for run in group.runs if run.x is not None]
        measured = [_at_k(series, regime) for series, regime in zip(points, regimes, strict=True)]
        noise = noise_model(S, group.runs[-1].n_tokens or 0, measured)
        if noise is not None:
            predicted = [predict_noise(noise, at) for at in measured]
            regimes = [replace(regime, predicted=of_k) for regime, of_k in zip(regimes, predicted, strict=True)]
    reach = supported(regime.law for regime in regimes)
    return Regimes(group, tuple(regimes), reach, request.resamples, noise)


def _at_k(points: Points, regime: Regime) -> AtK:
    fit = regime.fit
    ln_y_BN = np.zeros((0, len(points.runs)))
    with np.errstate(divide="ignore", invalid="ignore"):  # a count of 0 has no logarithm, and is left out
        ln_y_N = np.log(points.y_N)
        if points.y_BN is not None:
            ln_y_BN = Resampled.of(points.y_BN, points.n_documents).ln_y_BN
    about = fit.uncertainty
    models = 0.0 if about is None else max(about.scatter**2 - about.text_scatter**2, 0.0) ** 0.5
    return AtK(ln_y_N, ln_y_BN, fit.alpha, fit.r2, models, regime.stands)


def _regime(points: Points, law: Law) -> Regime:
    n_misses = signal = binomial_sd = document_sd = None
    largest, y, fit = points.runs[-1], float(points.y_N[-1]), law.fit
    if largest.n_tokens is not None and 0 < y < math.inf:
        share = math.exp(-y)
        n_misses = round(largest.n_tokens * (1 - share))
        binomial_sd = math.sqrt((1 - share) / (share * largest.n_tokens)) / y
    if points.y_BN is not None and points.doubt is None:
        usable_B = Resampled.of(points.y_BN[:, -1:], points.n_documents).ln_y_BN
        document_sd = float(usable_B.std(ddof=1)) if len(usable_B) > 1 else None
    if fit.alpha is not None:
        signal = fit.alpha * math.log(max(points.S_N) / min(points.S_N))
    return Regime(law, n_misses, signal, binomial_sd, document_sd, stands(law))


def keep(store: Store, regimes: Regimes) -> list[Record]:
    """Write the laws to the store, each with what its regime of k adds, and return them."""
    records = []
    for regime in regimes.regimes:
        more = {name: value for name, value in vars(regime).items() if name not in ("law", "predicted")}
        more |= {"supported_up_to_k": regimes.supported}
        more |= {"predicted": None if regime.predicted is None else flat(vars(regime.predicted))}
        if regimes.noise is not None:
            clumping = float(np.diag(regimes.noise.dispersion_NN).mean())
            more |= {"law_alpha": regimes.noise.alpha, "clumping": clumping}
        record = fit_record(regimes.group, regime.law, regimes.resamples)
        records.append(record | {"params": record["params"] | {"regime": more}})
    return keep_fits(store, records)
