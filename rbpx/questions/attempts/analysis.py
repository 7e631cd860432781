"""Finds how often attempts at items succeed: of each run, then laws of all in what the group varies in.

Shapes: I items of all runs, B resamples of them, K numbers of attempts, N sizes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

import duckdb
import numpy as np
import numpy.typing as npt

from rbpx.config.request import Request
from rbpx.config.text.dataset import HARNESS
from rbpx.errors import RbpxError
from rbpx.laws.exchange import STEP, Exchange, exchange_of
from rbpx.laws.intervals.estimate import NO_ESTIMATE, Estimate, Recipe, by_name, document_weights, estimate
from rbpx.laws.names import Axis, Method
from rbpx.laws.numeric import Floats, line, neg_ln
from rbpx.laws.power.law import PowerLaw, finite_or_none
from rbpx.laws.temperature import loss_at
from rbpx.questions.attempts.bounds import exact_matches, rank_bounds
from rbpx.questions.attempts.discrete import discrete_tail
from rbpx.questions.attempts.forecasts import FARTHER, WAYS, forecast
from rbpx.questions.attempts.goodness import goodness_p
from rbpx.questions.attempts.mixing import Shape
from rbpx.questions.attempts.passing import Counted, Items, Known, grid_to, slope_in_k, slopes_at
from rbpx.questions.attempts.tails import Tail, fit_tail
from rbpx.runs.fits import Law, doubted, fit_points
from rbpx.runs.group import Group, Run, labels_of
from rbpx.runs.points.items import Answers, item_answers
from rbpx.runs.points.sizes import Points
from rbpx.runs.points.tempered import loss_curves
from rbpx.status import Status, first_of, in_order
from rbpx.store.store import Record
from rbpx.typed import typed

DEFAULT_K: Final = (1, 10, 100, 1000, 10_000)
LEAST_SQUARES, DISCRETE = "least_squares", "discrete"
_MISFIT_P: Final = 0.05
_HEAVY: Final = 1.0  # a up to which the mean of 1/p, the attempts that an item takes, is infinite


@dataclass(frozen=True, eq=False)
class Tried:
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


def tried(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> list[Tried]:
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
        Tried(run, label, items, answers, weights_BI[:, [every[name] for name in items.names]])
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
            f"again: {typed('temperature', family=run.family, dataset=run.dataset)}, or drop T="
        )
    least, most = 1 / float(curves.beta_J[-1]), 1 / float(curves.beta_J[0])
    if not least <= T <= most:
        raise RbpxError(f"T={T:g} is outside of what was measured, {least:g} to {most:g}; give one between, or drop T=")
    of_I = curves.sums_D3J[: len(answers.nats_I)]
    return np.minimum(0.0, -loss_at(1 / T, of_I, curves.beta_J))


def rows_of_run(group: Group, read: Tried, request: Request) -> Iterator[Record]:
    """What is known of one run, by kind.

    A `pass` is pass@k with its interval over items and their samples; its standard error over these very items, whose
    samples alone are drawn anew, None where p is known; and both slopes about k. A `forecast` is pass@k at k beyond the
    samples, by each way; a `bound` is what ranks say at each k, of which there is none of imported counts.
    """
    items, n_items = read.items, len(read.items.names)
    is_counted, counted = isinstance(items, Counted), items if isinstance(items, Counted) else None
    about = {**group.names(), **read.run.names(), "n_items": n_items}
    about |= {"n_samples": items.most if is_counted else None, "T": None if is_counted else request.T}
    all_samples = [items.most] if is_counted else []
    asked = grid_to(items.most) if request.k.is_log else request.k.listed((*DEFAULT_K, *all_samples))
    measured = [k for k in asked if not is_counted or k <= items.most]
    passes_IK = items.passes(measured)
    drawn_BK = read.drawn(passes_IK)
    of_samples = np.full(len(measured), np.nan) if counted is None else counted.stderr_of_samples(measured)
    for at, (k, stderr) in enumerate(zip(measured, finite_or_none(of_samples), strict=True)):
        passes = estimate(float(passes_IK[:, at].mean()), drawn_BK[:, at], n_items, Recipe.percentile)
        row = {"kind": "pass", **about, "k": k, **by_name(passes=passes), "passes_stderr_of_samples": stderr}
        slopes = slopes_at(items, k)
        yield row | {"slope_neg_ln": slopes.neg_ln, "slope_failures": slopes.failures}
    tails = [fit_tail(shape, items) for shape in Shape]
    yield from ({"kind": "exponent", **about, **row} for row in _exponents(read, tails, request))
    if counted is not None:
        beyond = {k for k in asked if k > items.most} | (set() if request.k.by_number else {items.most * FARTHER})
        for k, way in product(sorted(beyond), WAYS):
            passes = forecast(way, counted, k, next((tail for tail in tails if tail.shape == way), None))
            yield {"kind": "forecast", **about, "way": way, "k": k, **by_name(passes=passes)}
    if read.answers is not None:
        bounds = rank_bounds(read.answers, items, measured, read.run.vocab_size, group.ties)
        yield from ({"kind": "bound", **about, **vars(bound)} for bound in bounds)


def _exponents(read: Tried, tails: Sequence[Tail], request: Request) -> Iterator[Record]:
    """The exponents: of -ln pass@k by least squares over all k that were measured, then of the left tail of p.

    Each has the k that it speaks of, `k_to` None for a limit; `b`, the other constant of its distribution; the AIC of
    beta and Kumaraswamy, which may be compared; the p of its goodness of fit; and every status that holds.
    """
    items, n_items = read.items, len(read.items.names)
    grid = grid_to(items.most)
    passes_IK = items.passes(grid)
    only = [Status.one_outcome] if not 0 < passes_IK.mean() < 1 else []
    of_beta = next(tail for tail in tails if tail.shape is Shape.beta)
    light = [Status.no_heavy_tail] if of_beta.all_alike or (of_beta.a.lo or 0.0) > _HEAVY else []

    def row(how: str, k: tuple[float | None, float | None], alpha: Estimate, doubts: Sequence[Status],
            b: Estimate = NO_ESTIMATE, aic: float | None = None, fit_p: float | None = None) -> Record:  # fmt: skip
        reasons = in_order([*only, *doubts, *light])
        named: Record = {"how": how, "k_from": k[0], "k_to": k[1], **by_name(alpha=alpha, b=b)}
        named |= {"aic": aic, "fit_p": fit_p, "status": first_of(reasons).value}
        return named | {"reasons": [each.value for each in reasons]}

    value = float(slope_in_k(grid, passes_IK.mean(axis=0))) if len(grid) > 1 else float("nan")
    alpha = estimate(value, slope_in_k(grid, read.drawn(passes_IK)), n_items, Recipe.uncentred)
    unknown = [Status.not_positive] if alpha.value is None and not only else []
    yield row(LEAST_SQUARES, (1, items.most), alpha, unknown)
    for tail in tails:
        fit_p = goodness_p(tail, items, request.seed)
        doubts = [Status.not_converged] if tail.theta is None and not light and not only else []
        doubts += [Status.misfit] if fit_p is not None and fit_p < _MISFIT_P else []
        at = tail.b.value if tail.shape is Shape.beta else None
        yield row(tail.shape.value, (at, None), tail.a, doubts, tail.b, tail.aic, fit_p)
    alpha, (least, top) = discrete_tail(items, read.weights_BI)
    doubts = [] if alpha.value is not None or only or light else [Status.not_identified]
    yield row(DISCRETE, (1 / top, 1 / least), alpha, doubts)


def laws(group: Group, read: Sequence[Tried], of_runs: Sequence[Sequence[Record]]) -> Iterator[Law]:
    """The laws of -ln pass@k at the k that all runs have, and of the exponents, where there are two places or more."""
    runs, n_items = tuple(each.run for each in read), len({name for each in read for name in each.items.names})
    if len({run.x for run in runs}) < 2 or is_without_law(group):
        return
    of_k = [[row["k"] for row in rows if row["kind"] == "pass"] for rows in of_runs]
    ks = [k for k in of_k[0] if all(k in of for of in of_k)]
    passes = [each.items.passes(ks) for each in read]
    for at, k in enumerate(ks):
        y_N = np.array([float(neg_ln(of.mean(axis=0)[at])) for of in passes])
        y_BN = np.stack([neg_ln(each.drawn(of)[:, at]) for each, of in zip(read, passes, strict=True)], axis=1)
        yield doubted(group, fit_points(Points("pass_at", k, runs, y_N, y_BN, None, n_items), Method.ols))
    for how in (LEAST_SQUARES, *(shape.value for shape in Shape)):
        a_N = np.array([row["alpha"] for rows in of_runs for row in rows if row.get("how") == how], np.float64)
        doubt = None if np.isfinite(a_N).all() else Status.not_known
        yield doubted(group, fit_points(Points(f"tail_{how}", None, runs, a_N, None, doubt), Method.ols))


def is_without_law(group: Group) -> bool:
    """Whether models of one size were trained on different numbers of tokens, so that size alone has no law."""
    return group.axis is Axis.S and group.has_trainings


def _first_match(read: Sequence[Tried]) -> PowerLaw | None:
    """The law of -ln exact match at rank 1, beside that of pass@1; None of imported counts."""
    if any(each.answers is None for each in read) or len({each.run.x for each in read}) < 2:
        return None
    of_each = [exact_matches(each.answers, [1]) for each in read if each.answers is not None]
    y_N = np.array([float(neg_ln(of.mean())) for of in of_each])
    y_BN = np.stack([neg_ln(each.drawn(of)[:, 0]) for each, of in zip(read, of_each, strict=True)], axis=1)
    points = Points("exact_match", 1, tuple(each.run for each in read), y_N, y_BN, None, len(of_each[0]))
    return fit_points(points, Method.ols).fit


def exchanges(group: Group, read: Sequence[Tried], found: Sequence[Law]) -> Iterator[list[Record]]:
    """Of each run what ten attempts, and a rank of ten in place of one, are worth in size; nothing without a law."""
    first = next((law.fit for law in found if (law.law, law.k) == ("pass_at", 1)), None)
    matched = None if is_without_law(group) else _first_match(read)
    for at in range(len(read)):
        both = {"attempts": _exchange(read, at, first), "ranks": _exchange(read, at, matched, True)}
        yield [{"kind": "exchange", "of": of, "k": STEP, **vars(each)} for of, each in both.items() if each is not None]


def _exchange(read: Sequence[Tried], at: int, of_S: PowerLaw | None, by_rank: bool = False) -> Exchange | None:
    """What ten attempts, or a rank of ten in place of one, are worth in size at one run."""

    def y(each: Tried, ks: Sequence[int]) -> tuple[Floats, Floats]:
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
