"""Fits loss-to-loss curves: one for each family and one for all, their constants, and a test for one shared curve."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final

import duckdb
import numpy as np

from rbpx.config.request import Request
from rbpx.display.chart.figure import Figure, Undrawn
from rbpx.display.law_columns import estimate_in
from rbpx.display.section import interval_of
from rbpx.display.view import Table, View, error, share, state, text, whole, with_ends
from rbpx.display.vocabulary import in_digits, law_title
from rbpx.files.digest import digest
from rbpx.laws.intervals.estimate import by_name
from rbpx.laws.losses.backtests import too_few_hold
from rbpx.laws.losses.calibration import Calibration, calibrate, hold_out_best
from rbpx.laws.losses.curve import CONSTANTS, LossCurve, LossFit, fit_losses, kappa_of
from rbpx.laws.losses.noise import NONE_IN_X, NONE_IN_Y, NoiseSource
from rbpx.laws.losses.shared import SharedTest, share_one_curve
from rbpx.laws.power.law import LawFit
from rbpx.laws.prediction.verdict import SIGNIFICANT, missed_by_backtests
from rbpx.questions.losses import calibration_line, families_sentence, loss_figure
from rbpx.questions.result import Result
from rbpx.runs.fits import record_of
from rbpx.runs.group import Group
from rbpx.runs.origin import from_fits
from rbpx.runs.points.losses import Pairs, loss_pairs
from rbpx.runs.select.losses import PairedGroup
from rbpx.spelling import typed
from rbpx.status import Status, in_order
from rbpx.store.store import Record

METHOD: Final = "errors_in_variables"
FORM: Final = "loss_to_loss"
_MOSTLY: Final = 2.0  # times as far off as documents put models
_Drawn = tuple[str | None, Calibration | None, LossCurve | None]
"""The family of a curve, what its band is of, and the curve."""

CURVES: Final = View[Record](
    "curves",
    text("law", "law", lambda row: law_title(row["law"], row["k"])),
    text("family", "curve"),
    whole("models", "n_points", spare=2),
    [with_ends(heading, name, None, in_digits(3), spare=4 * (name == "K"), ends_spare=3 * name.startswith("E"))
     for heading, name in (("κ", "kappa"), ("K", "K"), ("E_x", "E_x"), ("E_y", "E_y"))],
    with_ends("slope", "slope", None, in_digits(3), "of ln y by ln x, a straight line", 5),
    share("scatter", "scatter", None, 2, "of y about the curve, standard deviation", 1),
    error("backtest", "backtest_error", means="error of the best model, from all others"),
    share("mean |error|", "mean_backtest_error", means="over all backtests", spare=6),
    state(),
)  # fmt: skip


def fit_loss_to_loss(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> Result:
    """Fits loss to loss; returns a row for each quantity and family, and one for all families."""
    assert isinstance(group, PairedGroup), "an axis on another text selects pairs"
    series = loss_pairs(connection, group, request)
    fitted = [_curves(group, pairs, request.seed) for pairs in series]
    fits = [row for rows, _ in fitted for row in rows]
    about = list(zip(series, [rows for rows, _ in fitted], strict=True))
    drawn = partial(_figures, group, series, fitted)
    return Result([group], fits, [_table(group, about)] if series else [], [*_sentences(group, about)], drawn, fits)


def _curves(group: PairedGroup, pairs: Pairs, seed: int) -> tuple[list[Record], list[_Drawn]]:
    several = [*pairs.families, None] if len(pairs.families) > 1 else [None]
    fits, rows, drawn, shared = dict[str | None, LossFit](), list[Record](), list[_Drawn](), None
    for family in several:
        of_N = pairs.of(family)
        z_BN2 = None if pairs.z_BN2 is None else pairs.z_BN2[:, of_N]
        fits[family] = fit_losses(pairs.points(of_N), pairs.noise, z_BN2, pairs.n_effective)
    if (of_all := fits[None].curve) is not None:
        shared = share_one_curve(pairs.points(pairs.of(None)), of_all, pairs.family_N, seed)
    for family, fit in fits.items():
        x_N, fitted_N = (each_N[pairs.of(family)] for each_N in (pairs.x_N, pairs.fitted_N))
        rows.append(_row(group, pairs, family, fit, shared))
        drawn.append((family, calibrate(x_N, fitted_N, pairs.least_x) if len(x_N) else None, fit.curve))
    return rows, drawn[:-1] or drawn


def _row(group: PairedGroup, pairs: Pairs, family: str | None, fit: LossFit, shared: SharedTest | None) -> Record:
    """The row of `fits`; kappa_without_errors: kappa without errors in x or in y, if no data give their covariance."""
    of_N, noise = pairs.of(family), pairs.noise
    x_N, y_N = pairs.x_N[of_N], pairs.y_N[of_N]
    tests = pairs.compared(hold_out_best(x_N, pairs.fitted_N[of_N]))
    reasons = [*fit.reasons, *pairs.doubts]
    order = np.argsort(1 / x_N)
    reasons += missed_by_backtests((1 / x_N)[order].tolist(), tests) if tests else []
    reasons += [Status.intervals_missed] if too_few_hold(tests) else []
    differ = family is None and shared is not None and shared.p < SIGNIFICANT
    reasons = list(in_order([*reasons, *([Status.families_differ] if differ else [])]))
    off = 0.0 if noise.source is NoiseSource.seeds else (fit.times_off or 0.0)
    is_assumed = off > (_MOSTLY if noise.source is NoiseSource.documents else 0.0)
    without = (NONE_IN_X, NONE_IN_Y) if is_assumed else ()
    members = [run for run, is_of in zip(pairs.members, of_N, strict=True) if is_of]
    partner = {id(run): other for run, other in zip(group.runs, group.others, strict=True)}
    run_ids = sorted({name for run in members for each in (run, partner[id(run)]) for name in each.run_ids})
    best = [test.error for test in tests if test.n_fitted == fit.n - 1]
    as_law = LawFit(
        C=fit.constants["K"],
        alpha=fit.constants["kappa"],
        n_points=fit.n,
        backtest_error=best[0] if best else None,
        status=reasons[0] if reasons else Status.ok,
    )
    x, y = x_N.tolist(), y_N.tolist()
    params: Record = {
        "form": FORM,
        "on": group.on.value,
        "x_k": pairs.x_k,
        **by_name(**{name: fit.constants[name] for name in CONSTANTS}, slope=fit.slope),
        "scatter": fit.scatter,
        "at_bound": list(fit.at_bound),
        "covariance": {"from": noise.source.value, "sd_ratio": noise.ratio, "correlation": noise.correlation},
        "kappa_without_errors": {
            name: kappa_of(pairs.points(of_N), of) for name, of in zip(("in_x", "in_y"), without, strict=False)
        },
        "families": pairs.families if family is None else [family],
        "shared": None if shared is None else vars(shared),
        "reasons": [reason.value for reason in reasons],
        "mean_backtest_error": float(np.mean([abs(test.error) for test in tests])) if tests else None,
        "n_left_out": pairs.n_left_out,
        "chance": pairs.chance,
        "notes": group.notes,
        "sizes": [run.size for run in members],
        "x": x,
        "y": y,
    }
    of = group.first if family is None or not members else members[0]
    more: dict[str, Any] = {"axis": group.on.value, "form": FORM, "family": of.family, "variant": of.variant}
    more |= {"k": pairs.k, "n": digest([group.on.value, pairs.x_k, family, x, y]), "params": params}
    return record_of(group, pairs.law, as_law, run_ids, METHOD, **more)


_About = Sequence[tuple[Pairs, Sequence[Record]]]
"""The points of each quantity, and the rows of its curves."""


def _table(group: PairedGroup, laws: _About) -> Table:
    rows = []
    for pairs, of in laws:
        names = [*pairs.families, "all"] if len(of) > 1 else pairs.families[:1] or [group.first.family]
        rows += [row | {"curve": name} for row, name in zip(of, names, strict=True)]
    sources = dict.fromkeys(pairs.noise.source.value for pairs, _ in laws)
    notes = [f"By errors in variables, whose covariance is: {', '.join(sources)}."]
    x = ", ".join(dict.fromkeys(pairs.x_title for pairs, _ in laws))
    note = " ".join(dict.fromkeys([*notes, *(pairs.of_guessing for pairs, _ in laws)]))
    return CURVES.table(f"Loss to loss: y = E_y + K · (x − E_x)^κ, x {x}", rows, group.title, note=note)


def _sentences(group: PairedGroup, laws: _About) -> Iterator[str]:
    firsts = {pairs.law: (pairs, rows[-1]) for pairs, rows in reversed(laws)}
    for pairs, row in sorted(reversed(firsts.values()), key=lambda each: each[0].law != group.on.law):
        named = f"{pairs.title} on {group.first.dataset}{'' if pairs.chance is None else ', as odds,'}"
        kappa, params = estimate_in(row, "kappa"), row["params"]
        if kappa.value is None:
            yield f"{named} against {pairs.x_title}: {row['n_points']} models, and constants need 5."
            continue
        status = Status(row["status"] or Status.ok)
        yield (
            f"{named} goes as (x − E_x)^κ of {pairs.x_title}, κ = {interval_of(kappa)}; models lie "
            f"{params['scatter'] or 0.0:.2%} off the curve{'' if status is Status.ok else f' ({status.label})'}."
        )
        if without := [f"{each:.3g} if {name[-1]} had none" for name, each in params["kappa_without_errors"].items()]:
            yield f"{pairs.title}: κ rests on errors that no data give; it is {', '.join(without)}."
        if params["shared"] is not None:
            yield families_sentence(pairs, params["shared"]["p"])
    if group.alone:
        asked = typed("predict", dataset=group.first.dataset, axis=group.on.value)
        yield f"{len(group.alone)} more are on {group.on.dataset} alone: {asked} foretells them."


def _figures(
    group: PairedGroup, series: Sequence[Pairs], fitted: Sequence[tuple[Sequence[Record], Sequence[_Drawn]]]
) -> Iterator[Figure | Undrawn]:
    origin = from_fits([row["fit_id"] for rows, _ in fitted for row in rows], group)
    caption = "Lines: curves by errors in variables. Bands: where 95 % of new models would lie, by regression."
    for pairs, (rows, drawn) in zip(series, fitted, strict=True):
        lines = [
            at
            for family, calibration, curve in drawn
            for at in calibration_line(pairs, family, calibration, pairs.x_N[pairs.of(family)].tolist(), curve)
        ]
        kappas = "; ".join(
            f"{family or pairs.families[0]} {interval_of(estimate_in(row, 'kappa'))}"
            for row, (family, _, _) in zip(rows, drawn, strict=False)
        )
        yield loss_figure(pairs, lines, [], f"κ of {kappas}", caption, origin)
