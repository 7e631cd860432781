"""Answers `klaw`: the law in k of each run, one law for all, and the exchange rate of k and size.

Source: RBP paper (arXiv 2510.20387), appendix B, figure 9, table 1.
"""

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import duckdb
import numpy as np

from rbpx.display.chart.colours import MOST_SERIES
from rbpx.display.chart.figure import Figure, Scale, Undrawn, spread
from rbpx.display.chart.laws import law_figure
from rbpx.display.law_columns import paired_table, r2_and_slope, with_params
from rbpx.display.table import PLACE, SIZE, STATUS, Table, interval, table_of
from rbpx.display.vocabulary import AXES, AxisWords, decimals, in_digits, rough, short, whole
from rbpx.errors import number_of
from rbpx.laws.exchange import STEP, exchange_of
from rbpx.laws.in_k import MIN_K, JointLaw, KForm, fit_joint_law, fit_k_law
from rbpx.laws.intervals.estimate import NO_ESTIMATE, Estimate, by_name
from rbpx.laws.names import Method
from rbpx.laws.power.law import PowerLaw, fit_power_law
from rbpx.laws.prediction.verdict import with_reasons
from rbpx.questions.klaw import KlawKeys
from rbpx.questions.question import OfAll, OnPage, of_each
from rbpx.questions.result import Result
from rbpx.runs.fits import about_axis, record_of, with_document_doubts
from rbpx.runs.group import Group, titles_of
from rbpx.runs.origin import from_shares
from rbpx.runs.points.sizes import known_points
from rbpx.runs.run import Run, labels_of
from rbpx.spelling import typed
from rbpx.status import Status
from rbpx.store.store import Record
from rbpx.ties import Ties

FORMS: Final = {
    KForm.joint: "one law",
    KForm.drifting: "α drifts with ln k",
    KForm.levels: "one α, a constant for each k",
    KForm.separate: "a law for each k",
}
_MOST: Final = 4  # models on a terminal
PAPER_K: Final = (1, 2, 3, 5, 7, 10, 18, 30, 50, 78, 100)
LAWS: Final = table_of(
    "laws", SIZE, PLACE[0], ("{x}", "x", short), *interval("α_k", "alpha"), *interval("C", "C", in_digits(3)),
    ("R²", "r2", ".3f"),
    ("neighbours", "residual_autocorrelation", ".2f", "correlation of the residuals of neighbouring k"),
    *interval("{x} times", "factor", rough,
     f"how many times as much {{x}} does at k = 1 what this model does at k = {STEP}; – for the upper end: none "
     "is known to"),
    ("rate", "rate", decimals(2), "−d ln {x} / d ln k at constant RBP"),
    STATUS,
    first="size alpha factor status, r2 rate, residual_autocorrelation, non_embedding_params, C, x",
)  # fmt: skip
ONE_LAW: Final = table_of("one-law", ("number", "name"), *interval("value", "value"))
RIVALS: Final = table_of(
    "joint", ("form", "form"), ("parameters", "n_parameters", whole), ("AIC", "aic", ".1f"),
    ("BIC", "bic", ".1f",
     "above the smallest, as AIC is; of a likelihood on this text in which the k of one size are correlated"),
    ("largest off by", "backtest_error", ".1%",
     "error of the largest {x}, predicted from the smaller ones, root mean square over k"),
)  # fmt: skip


def answer(connection: duckdb.DuckDBPyConnection, group: Group, request: KlawKeys) -> Result:
    """Fits -ln RBP_k against k for each run."""
    asked = None if group.is_measured or request.k.is_log else request.k.listed(PAPER_K)
    points = [
        each
        for each in known_points(connection, group, request, {"rbp"}, PAPER_K)
        if each.k is not None and each.runs == group.runs and each.doubt in (None, Status.one_document)
        if asked is None or each.k in asked
    ]
    k_grid, S = [each.k for each in points if each.k], [run.x for run in group.runs if run.x is not None]
    y_NK, y_NBK = np.array([each.y_N for each in points]).T.reshape(len(S), -1), None
    if points and all(each.replicates is not None for each in points):
        y_NBK = np.array([each.y_BN for each in points]).transpose(2, 1, 0)
    at_1 = next((each for each in points if each.k == 1), None)
    of_S = None if at_1 is None else fit_power_law(S, at_1.y_N, at_1.replicates)
    n_effective = group.n_effective if group.is_measured else None
    fits, rows, plain, drawn_laws = list[Record](), list[Record](), list[Record](), list[tuple[str, PowerLaw]]()
    for at, (run, label) in enumerate(zip(group.runs, labels_of(group.runs), strict=True)):
        y_BK = None if y_NBK is None else y_NBK[at]
        law = with_document_doubts(group, fit_k_law(k_grid, y_NK[at], y_BK, request.method[0], n_effective))
        worth = None
        if of_S is not None and at_1 is not None:
            drawn = None if y_BK is None or at_1.y_BN is None else (y_BK, at_1.y_BN)
            is_local = Status.bends in (law.reasons or ()) or bool(law.E.value)  # its exponent in k varies with k
            worth = exchange_of(k_grid, y_NK[at], _alpha_k(law), of_S, drawn, group.n_effective, is_local)
        params = law.record() | {"k": k_grid, "exchange": worth and vars(worth), "equation": "y = C * k^(-alpha)"}
        params |= {"non_embedding_params": run.non_embedding_params} | about_axis(group)
        fits.append(record_of(group, "k_law", law, run.run_ids, law.method, **run.names(), params=params))
        told = by_name(factor=worth.within if worth else NO_ESTIMATE) | {"rate": worth and worth.rate}
        rows.append(with_params(fits[-1]) | {"size": label, "x": run.x} | told)
        plain.append(with_params(fits[-1]) | {"factor": worth and worth.factor, "rate": worth and worth.rate})
        drawn_laws += [(label, law)] if law.alpha.value is not None else []
    joint = fit_joint_law(S, k_grid, y_NK, y_NBK, n_effective)
    if joint is not None and joint.alpha.alpha.value is not None:
        fits.append(_joint_fit(group, joint))
        plain.append(with_params(fits[-1]))
    tables, drawn_of = [*_tables(group, k_grid, rows, joint)], partial(figures, group, k_grid, drawn_laws)
    return Result([group], fits, tables, [*_sentences(rows, joint, AXES[group.axis])], drawn_of, fits, plain=plain)


def _alpha_k(law: PowerLaw) -> float | None:
    """The exponent in k; with an E the mean one from k = 1 to 10."""
    if not law.E.value:
        return law.alpha.value
    return math.log(law.predict(1).y / law.predict(STEP).y) / math.log(STEP)


def _joint_fit(group: Group, joint: JointLaw) -> Record:
    """The row of the joint law: C at S = 1 and k = 1, alpha that of S; params has its tests and rivals."""
    status = Status.ok if joint.holds else Status.bends
    fit = with_document_doubts(group, with_reasons(replace(joint.alpha, C=Estimate(joint.C)), [status]))
    params = {name: value for name, value in fit.record().items() if name not in ("C_lo", "C_hi")}
    params |= {
        "equation": "y = C * k^(-kappa) * S^(-alpha)",
        "k": list(joint.of_range),
        "range": None if joint.range is None else list(joint.range),
        "n_ranges": joint.n_ranges,
        "kappa": joint.kappa.record(),
        "drift": joint.drift.record(),
        "bend": None if joint.bend is None else joint.bend.record(),
        "forms": [vars(form) for form in joint.forms],
    }
    return record_of(group, "joint_law", fit, group.run_ids, Method.ols, params=params | about_axis(group))


def _tables(group: Group, k_grid: Sequence[int], laws: Sequence[Record], joint: JointLaw | None) -> Iterator[Table]:
    x, ties = group.axis.value, "" if group.ties is Ties.pessimistic else f"; ties {group.ties.value}"
    note = f"Fitted to logarithms at k = {', '.join(map(str, k_grid))}{ties}." if k_grid else ""
    told = {row["size"] for row in spread(laws, _MOST)}
    title = "Laws in k: −ln RBP_k = C · k^−α_k in each model"
    yield LAWS.of(title, laws, group.title, group.axis, note, brief=[row["size"] in told for row in laws])
    if joint is None:
        return
    ks = f"k = {joint.of_range[0]:,} to {joint.of_range[-1]:,}"
    numbers = {"α": joint.alpha.alpha, "κ": joint.kappa, "α, more for each ln k": joint.drift}
    numbers |= {} if joint.bend is None else {"bend in ln k": joint.bend}
    title = f"One law for all k, −ln RBP_k = C · k^−κ · {x}^−α, over {ks}"
    yield ONE_LAW.of(
        title, [{"name": name} | by_name(value=of) for name, of in numbers.items()], group.title, brief=False
    )
    aic, bic = (min(getattr(form, name) for form in joint.forms) for name in ("aic", "bic"))
    forms = [
        vars(form) | {"form": FORMS[form.form], "aic": form.aic - aic, "bic": form.bic - bic} for form in joint.forms
    ]
    yield RIVALS.of(f"One law for all k and its rivals, {ks}", forms, group.title, group.axis, brief=False)


def _sentences(laws: Sequence[Record], joint: JointLaw | None, x: AxisWords) -> Iterator[str]:
    known = [law for law in laws if law["alpha"] is not None]
    if not known:
        yield f"No model has RBP_k at {MIN_K} values of k, which a law needs: ask for more with k=."
        return
    ends = dict.fromkeys((at, law["size"]) for at, law in ((0, known[0]), (len(known) - 1, known[-1])))
    told = " and ".join(f"k^−{known[at]['alpha']:.3f} in {size}" for at, size in ends)
    bends = sum(Status.bends in (law["params"]["reasons"] or ()) for law in known)
    told += f" (bending in {bends} of {number_of(len(known), 'model')})" if bends else ""
    worth = ""
    for law in [law for law in known if law["factor"] is not None][:1]:
        lo, hi = rough(law["factor_lo"]), rough(law["factor_hi"])
        worth = f"; what {law['size']} has within its {STEP} likeliest tokens, a model "
        worth += f"{x.more.format(rough(law['factor']))} (95 %: {lo} to {hi}) has as its likeliest"
    yield f"−ln RBP_k falls with k as {told}{worth}."
    if joint is not None and joint.alpha.alpha.value is not None:
        told = "is rejected over every range of k" if joint.n_ranges else f"is not tested with fewer than {MIN_K} k"
        if joint.range is not None:
            told = f"is not rejected from k = {joint.range[0]:,} to {joint.range[1]:,}"
        yield f"One law for all k, C·k^−κ·{x.x}^−α, {told}."


def figures(group: Group, k_grid: Sequence[int], fitted: Sequence[tuple[str, PowerLaw]]) -> Iterator[Figure | Undrawn]:
    """Draws -ln RBP_k against k for up to seven models (figure 9 of the RBP paper)."""
    title = "−ln RBP_k against k"
    if not fitted:
        more = typed(k=[1, 3, 10, 30, 100])
        yield Undrawn("k", title, f"No size has −ln RBP_k at three values of k; ask for more: {more}.")
        return
    chosen = spread(fitted, MOST_SERIES)
    slopes = " to ".join(f"{label} with slope {-(law.alpha.value or 0):.3f}" for label, law in spread(chosen, 2))
    part = f" {len(chosen)} of {len(fitted)} sizes are drawn." if len(chosen) < len(fitted) else ""
    says = f"Logarithmic plot for {group.title}: falling lines, from {slopes}."
    words = (says, f"Lines: −ln RBP_k = C·k^−α in each model, by least squares.{part}")
    x, y = Scale("k", "k", log=True), Scale("neg_ln_rbp", "−ln RBP_k", log=True)
    yield law_figure("k", title, chosen, x, y, words, from_shares(group, k_grid), legend="size", band=False)


def of_all(results: Sequence[Result]) -> OfAll:
    """The paper's table 1: rows by model, pairs of R2 and slope by text."""
    groups = [each.groups[0] for each in results]
    texts = titles_of(groups, [group.title_of_text for group in groups])
    models: dict[str, dict[Hashable, Run]] = {}
    known: dict[tuple[str, Hashable], Record] = {}
    for each, group, on in zip(results, groups, texts, strict=True):
        for run, law in zip(group.runs, each.rows, strict=False):
            models.setdefault(group.first.family, {}).setdefault(run.training, run)
            known.setdefault((group.first.family, run.training), {}).update(r2_and_slope(on, law))
    rows = [
        {"family": family, "size": label, **known[family, training]}
        for family, runs in models.items()
        for training, label in zip(runs, labels_of(list(runs.values())), strict=True)
    ]
    names, title = (("family", "family"), ("size", "size")), "Table 1: −ln RBP_k against k"
    return OfAll(paper=[paired_table("table1", title, names, rows, list(dict.fromkeys(texts)))])


QUESTION = of_each(answer, page=OnPage(of_all=of_all))
