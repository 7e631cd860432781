"""Asks how often attempts at items succeed (verb attempts): each run, then laws of all in what the group varies in.

Shapes: I items of all runs, B resamples of them, K numbers of attempts, N sizes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import duckdb
import numpy as np
import numpy.typing as npt

from rbpx.config.request import Request
from rbpx.config.text.dataset import HARNESS
from rbpx.errors import RbpxError
from rbpx.laws.exchange import STEP, Exchange, exchange_of
from rbpx.laws.intervals.estimate import Estimate, Recipe, by_name, document_weights, estimate
from rbpx.laws.names import Axis, Method
from rbpx.laws.numeric import Floats, line, neg_ln
from rbpx.laws.power.law import PowerLawFit
from rbpx.laws.temperature import loss_at
from rbpx.questions.attempts.bounds import Bound, exact_matches, rank_bounds
from rbpx.questions.attempts.discrete import discrete_tail
from rbpx.questions.attempts.forecasts import FARTHER, WAYS, Forecast, Hidden, forecast, hide
from rbpx.questions.attempts.goodness import goodness_p
from rbpx.questions.attempts.mixing import Shape
from rbpx.questions.attempts.passing import Counted, Items, Known, Slopes, grid_to, slope_in_k, slopes_at
from rbpx.questions.attempts.tails import Tail, fit_tail
from rbpx.runs.fits import Law, alike, doubted, fit_points, fit_record, keep_fits
from rbpx.runs.group import Group, Run, labels_of
from rbpx.runs.points.items import Answers, item_answers
from rbpx.runs.points.sizes import Points
from rbpx.runs.points.tempered import loss_curves
from rbpx.status import Status, first_of, in_order
from rbpx.store.store import Record, Store

DEFAULT_K: Final = (1, 10, 100, 1000, 10_000)
LEAST_SQUARES, DISCRETE = "least_squares", "discrete"
_MISFIT_P: Final = 0.05
_HEAVY: Final = 1.0  # a up to which the mean of 1/p, the attempts that an item takes, is infinite


@dataclass(frozen=True)
class Pass:
    """Pass@k of one run.

    Attributes:
        k: attempts.
        passes: the share, with its interval over items and their samples.
        of_samples: standard error of these very items, whose samples alone are drawn anew; None where p is known.
        slopes: the local exponents about k.
    """

    k: int
    passes: Estimate
    of_samples: float | None
    slopes: Slopes


@dataclass(frozen=True)
class Exponent:
    """One exponent of attempts.

    Attributes:
        how: least_squares, of -ln pass@k over all k that were measured; or that of the left tail of p by a
            distribution: beta, kumaraswamy or discrete.
        k: from and to which k it speaks of; the end is None for a limit.
        alpha: the exponent.
        b: the other constant of the distribution.
        aic: of beta and Kumaraswamy alone, which may be compared.
        fit_p: of its goodness of fit.
        reasons: every status that holds.
    """

    how: str
    k: tuple[float | None, float | None]
    alpha: Estimate
    b: Estimate
    aic: float | None
    fit_p: float | None
    reasons: tuple[Status, ...]

    @property
    def status(self) -> Status:
        """The first of the reasons."""
        return first_of(self.reasons)


@dataclass(frozen=True, eq=False)
class RunAttempts:
    """The items of one run.

    Attributes:
        run: the run.
        label: its size, as far as it tells it apart.
        items: as they were tried, or their probabilities.
        passes: at each k.
        exponents: by each way.
        forecasts: at k beyond the samples; none where p is known.
        bounds: what ranks say, at each k; none of imported counts.
        exchange: what ten attempts are worth in size; None without a law of pass@1.
        of_ranks: the same of exact match at rank 10.
    """

    run: Run
    label: str
    items: Items
    passes: tuple[Pass, ...]
    exponents: tuple[Exponent, ...]
    forecasts: tuple[Forecast, ...]
    bounds: tuple[Bound, ...]
    exchange: Exchange | None = None
    of_ranks: Exchange | None = None


@dataclass(frozen=True, eq=False)
class Attempts:
    """The runs of one group, in order.

    Attributes:
        group: the runs.
        runs: of which items are known.
        laws: in what the group varies in: of -ln pass@k at each k, then of the exponents.
        hidden: how each way of foretelling did; empty where few samples were made, or p is known.
        resamples: of the items.
        T: temperature of the attempts, where their probabilities are known.
    """

    group: Group
    runs: tuple[RunAttempts, ...]
    laws: tuple[Law, ...]
    hidden: tuple[Hidden, ...]
    resamples: int
    T: float = 1.0


@dataclass(frozen=True, eq=False)
class _Read:
    """A run with its items, its answers where it was measured, and how often each item is drawn, [B, I]."""

    run: Run
    label: str
    items: Items
    answers: Answers | None
    weights_BI: npt.NDArray[np.int64]

    def drawn(self, passes_IK: Floats) -> Floats:
        """The mean over items under each resample, [B, K]."""
        with np.errstate(invalid="ignore", divide="ignore"):  # a resample may draw none of them
            return np.asarray(self.weights_BI @ passes_IK / self.weights_BI.sum(axis=1, keepdims=True))


def analyse(connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: Request) -> list[Attempts]:
    """Look at the items of each group that has any."""
    return [found for group in groups for found in _analyse(connection, group, request)]


def _analyse(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> Iterator[Attempts]:
    read = _read(connection, group, request)
    if not read:
        return
    found = [_attempts(each, request, group) for each in read]
    laws = tuple(_laws(group, read, found))
    first = next((law.fit for law in laws if (law.law, law.k) == ("pass_at", 1)), None)
    matched = None if is_without_law(group) else _first_match(group, read)
    runs = [
        replace(of, exchange=_exchange(read, at, first), of_ranks=_exchange(read, at, matched, True))
        for at, of in enumerate(found)
    ]
    counted = [each.items for each in read if isinstance(each.items, Counted)]
    yield Attempts(group, tuple(runs), laws, tuple(hide(counted, request.seed)), request.resamples, request.T)


def _read(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> list[_Read]:
    """The items of each run that has any; resamples are the same for an item in every run."""
    if group.first.protocol != HARNESS if group.is_measured else request.T != 1:  # counts have their own temperature
        return []
    known: list[tuple[Run, str, Items, Answers | None]] = []
    for run, label in zip(group.runs, labels_of(group.runs), strict=True):
        if group.is_measured:
            answers = item_answers(connection, run.run_id, group.ties)
            if answers.of_items:
                names = tuple(map(str, range(len(answers.nats_I))))
                known.append((run, label, Known(names, _ln_p(connection, group, run, answers, request)), answers))
        elif run.attempts:
            names = tuple(sorted(run.attempts))
            right, tried = np.array([run.attempts[name] for name in names]).T
            known.append((run, label, Counted(names, right, tried), None))
    every = {name: at for at, name in enumerate(sorted({name for _, _, items, _ in known for name in items.names}))}
    if not every:
        return []
    weights_BI = document_weights(len(every), request.resamples, request.seed)
    return [
        _Read(run, label, items, answers, weights_BI[:, [every[name] for name in items.names]])
        for run, label, items, answers in known
    ]


def _ln_p(connection: duckdb.DuckDBPyConnection, group: Group, run: Run, answers: Answers, request: Request) -> Floats:
    """The logarithms of the probabilities of the exact answers at a temperature."""
    T = request.T
    if T == 1:
        return np.minimum(-answers.nats_I, 0.0)  # sums of single precision may round to more than 0
    curves = loss_curves(connection, run.run_id, group.n_documents)
    if curves is None:
        raise RbpxError(
            f"T={T:g}: {group.title} was measured at temperature 1 alone, and a store holds no logits; measure "
            f"again: python -m rbpx temperature family={run.family} dataset={run.dataset}, or drop T="
        )
    least, most = 1 / float(curves.beta_J[-1]), 1 / float(curves.beta_J[0])
    if not least <= T <= most:
        raise RbpxError(f"T={T:g} is outside of what was measured, {least:g} to {most:g}; give one between, or drop T=")
    of_I = curves.sums_D3J[: len(answers.nats_I)]
    return np.array([min(0.0, -float(loss_at(1 / T, loss_3J, curves.beta_J)[0])) for loss_3J in of_I])


def _attempts(read: _Read, request: Request, group: Group) -> RunAttempts:
    items = read.items
    asked = grid_to(items.most) if request.k.is_log else request.k.listed((*DEFAULT_K, *_all_samples(items)))
    measured = [k for k in asked if isinstance(items, Known) or k <= items.most]
    passes_IK = items.passes(measured)
    drawn_BK, n_items = read.drawn(passes_IK), len(items.names)
    of_samples = items.stderr_of_samples(measured) if isinstance(items, Counted) else np.full(len(measured), np.nan)
    passes = tuple(
        Pass(
            k,
            estimate(float(passes_IK[:, at].mean()), drawn_BK[:, at], n_items, Recipe.percentile),
            float(of_samples[at]) if np.isfinite(of_samples[at]) else None,
            slopes_at(items, k),
        )
        for at, k in enumerate(measured)
    )
    tails = [fit_tail(shape, items) for shape in Shape]
    beyond = [] if isinstance(items, Known) else [k for k in asked if k > items.most]
    beyond += [items.most * FARTHER] if isinstance(items, Counted) and not request.k.by_number else []
    forecasts = [
        forecast(way, items, k, next((tail for tail in tails if tail.shape == way), None))
        for k in sorted(set(beyond))
        for way in WAYS
        if isinstance(items, Counted)
    ]
    bounds = () if read.answers is None else rank_bounds(read.answers, items, measured, read.run.vocab_size, group.ties)
    exponents = tuple(_exponents(read, tails, request))
    return RunAttempts(read.run, read.label, items, passes, exponents, tuple(forecasts), tuple(bounds))


def _all_samples(items: Items) -> list[int]:
    return [items.most] if isinstance(items, Counted) else []


def _exponents(read: _Read, tails: Sequence[Tail], request: Request) -> Iterator[Exponent]:
    """The exponent over all k that were measured, and those of the tail."""
    items, n_items = read.items, len(read.items.names)
    grid = grid_to(items.most)
    passes_IK = items.passes(grid)
    only = [Status.one_outcome] if not 0 < passes_IK.mean() < 1 else []
    of_beta = next(tail for tail in tails if tail.shape is Shape.beta)
    light = [Status.no_heavy_tail] if of_beta.all_alike or (of_beta.a.lo or 0.0) > _HEAVY else []
    value = float(slope_in_k(grid, passes_IK.mean(axis=0))) if len(grid) > 1 else float("nan")
    alpha = estimate(value, slope_in_k(grid, read.drawn(passes_IK)), n_items, Recipe.uncentred)
    reasons = only or ([Status.not_positive] if alpha.value is None else [])
    yield Exponent(LEAST_SQUARES, (1, items.most), alpha, Estimate(), None, None, in_order([*reasons, *light]))
    for tail in tails:
        fit_p = goodness_p(tail, items, request.seed)
        reasons = [Status.not_converged] if tail.theta is None and not light and not only else []
        reasons += [Status.misfit] if fit_p is not None and fit_p < _MISFIT_P else []
        at = tail.b.value if tail.shape is Shape.beta else None
        found = in_order([*only, *reasons, *light])
        yield Exponent(tail.shape.value, (at, None), tail.a, tail.b, tail.aic, fit_p, found)
    alpha, (least, top) = discrete_tail(items, read.weights_BI)
    reasons = [] if alpha.value is not None or only or light else [Status.not_identified]
    yield Exponent(DISCRETE, (1 / top, 1 / least), alpha, Estimate(), None, None, in_order([*only, *reasons, *light]))


def _laws(group: Group, read: Sequence[_Read], found: Sequence[RunAttempts]) -> Iterator[Law]:
    """The laws of -ln pass@k at the k that all runs have, and of the exponents, where there are two places or more."""
    runs, n_items = tuple(each.run for each in read), len({name for each in read for name in each.items.names})
    if len({run.x for run in runs}) < 2 or is_without_law(group):
        return
    ks = [k for k in dict.fromkeys(p.k for of in found for p in of.passes)]
    ks = [k for k in ks if all(any(p.k == k for p in of.passes) for of in found)]
    for at, k in enumerate(ks):
        passes = [each.items.passes(ks) for each in read]
        y_N = np.array([float(neg_ln(of.mean(axis=0)[at])) for of in passes])
        y_BN = np.stack([neg_ln(each.drawn(of)[:, at]) for each, of in zip(read, passes, strict=True)], axis=1)
        yield doubted(group, fit_points(Points("pass_at", k, runs, y_N, y_BN, None, n_items), Method.ols))
    for how in (LEAST_SQUARES, *(shape.value for shape in Shape)):
        of_way = [next(each for each in of.exponents if each.how == how) for of in found]
        a_N = np.array([np.nan if each.alpha.value is None else each.alpha.value for each in of_way])
        doubt = None if np.isfinite(a_N).all() else Status.not_known
        yield doubted(group, fit_points(Points(f"tail_{how}", None, runs, a_N, None, doubt), Method.ols))


def is_without_law(group: Group) -> bool:
    """Whether models of one size were trained on different numbers of tokens, so that size alone has no law."""
    return group.axis is Axis.S and group.has_trainings


def _first_match(group: Group, read: Sequence[_Read]) -> PowerLawFit | None:
    """The law of -ln exact match at rank 1, beside that of pass@1; None of imported counts."""
    if any(each.answers is None for each in read) or len({each.run.x for each in read}) < 2:
        return None
    of_each = [exact_matches(each.answers, [1]) for each in read if each.answers is not None]
    y_N = np.array([float(neg_ln(of.mean())) for of in of_each])
    y_BN = np.stack([neg_ln(each.drawn(of)[:, 0]) for each, of in zip(read, of_each, strict=True)], axis=1)
    points = Points("exact_match", 1, tuple(each.run for each in read), y_N, y_BN, None, len(of_each[0]))
    return fit_points(points, Method.ols).fit


def _exchange(read: Sequence[_Read], at: int, of_S: PowerLawFit | None, by_rank: bool = False) -> Exchange | None:
    """What ten attempts, or a rank of ten in place of one, are worth in size at one run."""

    def y(each: _Read, ks: Sequence[int]) -> tuple[Floats, Floats]:
        hits_IK = exact_matches(each.answers, ks) if by_rank and each.answers is not None else each.items.passes(ks)
        return neg_ln(hits_IK.mean(axis=0)), neg_ln(each.drawn(hits_IK))

    ks = [1, STEP]
    if of_S is None or (isinstance(read[at].items, Counted) and read[at].items.most < STEP):
        return None
    y_K, y_BK = y(read[at], ks)
    if not (np.isfinite(y_K) & (y_K > 0)).all():
        return None
    y_BN = np.stack([y(each, [1])[1][:, 0] for each in read], axis=1)
    alpha_k = float(line(np.log(ks), np.log(y_K))[1])
    return exchange_of(ks, y_K, alpha_k, of_S, (y_BK, y_BN), len(read[at].items.names), is_local=True)


def keep(store: Store, result: Attempts) -> list[Record]:
    """Write the laws to the store; return them, and rows of kind pass, exponent, forecast, hidden, bound, exchange."""
    rows: list[Record] = []
    for each in result.runs:
        about = {**result.group.names(), **each.run.names(), "n_items": len(each.items.names)}
        is_counted = isinstance(each.items, Counted)
        about |= {"n_samples": each.items.most if is_counted else None, "T": None if is_counted else result.T}
        rows += [{"kind": "pass", **about, **_of_pass(of)} for of in each.passes]
        rows += [{"kind": "exponent", **about, **_of_exponent(of)} for of in each.exponents]
        rows += [
            {"kind": "forecast", **about, "way": of.way, "k": of.k, **by_name(passes=of.passes)}
            for of in each.forecasts
        ]
        rows += [{"kind": "bound", **about, **vars(of)} for of in each.bounds]
        rows += [
            {"kind": "exchange", **about, "of": of, "k": STEP, **vars(exchange)}
            for of, exchange in (("attempts", each.exchange), ("ranks", each.of_ranks))
            if exchange is not None
        ]
    rows += [{"kind": "hidden", **result.group.names(), **vars(of)} for of in result.hidden]
    own: Record = {} if result.T == 1 else {"T": result.T}
    laws = keep_fits(store, [fit_record(result.group, law, result.resamples, own) for law in result.laws])
    return alike([*rows, *({"kind": "law", **law} for law in laws)])


def _of_pass(of: Pass) -> Record:
    named = {"k": of.k, **by_name(passes=of.passes), "passes_stderr_of_samples": of.of_samples}
    return named | {"slope_neg_ln": of.slopes.neg_ln, "slope_failures": of.slopes.failures}


def _of_exponent(of: Exponent) -> Record:
    named = {"how": of.how, "k_from": of.k[0], "k_to": of.k[1], **by_name(alpha=of.alpha, b=of.b), "aic": of.aic}
    return named | {"fit_p": of.fit_p, "status": of.status.value, "reasons": [each.value for each in of.reasons]}
