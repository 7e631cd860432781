"""Fits loss to loss: the constants of the curve of each family and of all together, and whether they share one."""

from dataclasses import dataclass, replace
from typing import Final

import duckdb
import numpy as np

from rbpx.config.request import Request
from rbpx.display.vocabulary import law_title
from rbpx.files.digest import digest
from rbpx.laws.intervals.estimate import by_name
from rbpx.laws.losses.calibration import Calibration, calibrate, hold_out_best
from rbpx.laws.losses.curve import CONSTANTS, LossFit, fit_losses, kappa_of
from rbpx.laws.losses.held import too_few_hold
from rbpx.laws.losses.noise import NONE_IN_X, NONE_IN_Y, Source
from rbpx.laws.losses.shared import SharedTest, share_one_curve
from rbpx.laws.power.law import LawFit
from rbpx.laws.prediction.verdict import SIGNIFICANT, Backtest, missed_by_backtests
from rbpx.runs.fits import record_of
from rbpx.runs.group import Group
from rbpx.runs.points.losses import Pairs, loss_pairs
from rbpx.runs.select.losses import PairedGroup
from rbpx.status import Doubted, Status, in_order
from rbpx.store.store import Record

METHOD: Final = "errors_in_variables"
FORM: Final = "loss_to_loss"
_MOSTLY: Final = 2.0  # times as far off as documents put models


@dataclass(frozen=True, eq=False)
class FamilyCurve(Doubted):
    """The curve of one family, or of all.

    Attributes:
        family: its name; None for all.
        fit: the constants.
        reasons: every status that holds.
        calibration: of what is fitted by x as measured; None where there is none.
        backtests: the models of the smallest x, foretold from those of larger ones.
        kappas: kappa if x had no errors, and if y had none, where their covariance rests on no data; else empty.
    """

    family: str | None
    fit: LossFit
    reasons: tuple[Status, ...]
    calibration: Calibration | None
    backtests: tuple[Backtest, ...]
    kappas: tuple[float, ...]

    @property
    def mean_error(self) -> float | None:
        """Mean of |error| over the backtests; None without any."""
        return float(np.mean([abs(test.error) for test in self.backtests])) if self.backtests else None


@dataclass(frozen=True, eq=False)
class LossLaw:
    """One quantity beside that of the axis: its points, curves and what they have in common."""

    pairs: Pairs
    curves: tuple[FamilyCurve, ...]
    shared: SharedTest | None

    @property
    def title(self) -> str:
        """The name of the quantity."""
        return law_title(self.pairs.law, self.pairs.k)


@dataclass(frozen=True, eq=False)
class LossLaws:
    """The laws of a group of pairs."""

    group: PairedGroup
    laws: tuple[LossLaw, ...]

    def x_title(self, law: LossLaw) -> str:
        """What is on the axis, in words."""
        return f"{law_title(self.group.on.law, law.pairs.x_k)} on {self.group.on.dataset}"


def analyse_losses(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> LossLaws:
    """Fit every requested quantity to that of the axis."""
    assert isinstance(group, PairedGroup), "an axis on another text selects pairs"
    return LossLaws(group, tuple(_law(pairs, request.seed) for pairs in loss_pairs(connection, group, request)))


def _law(pairs: Pairs, seed: int) -> LossLaw:
    families = pairs.families
    of_all = _curve(pairs, None)
    shared = None
    if of_all.fit.curve is not None and len(families) > 1:
        shared = share_one_curve(pairs.points(pairs.of(None)), of_all.fit.curve, pairs.family_N, seed)
    if len(families) < 2:
        return LossLaw(pairs, (of_all,), shared)
    if shared is not None and shared.p < SIGNIFICANT:
        of_all = replace(of_all, reasons=in_order([*of_all.reasons, Status.families_differ]))
    return LossLaw(pairs, (*(_curve(pairs, family) for family in families), of_all), shared)


def _curve(pairs: Pairs, family: str | None) -> FamilyCurve:
    of_N = pairs.of(family)
    points, x_N, y_N, fitted_N = pairs.points(of_N), pairs.x_N[of_N], pairs.y_N[of_N], pairs.fitted_N[of_N]
    z_BN2 = None if pairs.z_BN2 is None else pairs.z_BN2[:, of_N]
    fit = fit_losses(points, pairs.noise, z_BN2, pairs.n_documents)
    tests = pairs.compared(hold_out_best(x_N, fitted_N))
    places = sorted((1 / x_N).tolist())
    reasons = [*fit.reasons, *pairs.doubts]
    reasons += missed_by_backtests(places, y_N[np.argsort(1 / x_N)].tolist(), tests) if tests else []
    reasons += [Status.intervals_missed] if too_few_hold(tests) else []
    kappas = tuple(kappa_of(points, noise) for noise in (NONE_IN_X, NONE_IN_Y)) if _is_assumed(pairs, fit) else ()
    calibration = calibrate(x_N, fitted_N, pairs.least_x) if len(x_N) else None
    return FamilyCurve(family, fit, in_order(reasons), calibration, tests, kappas)


def _is_assumed(pairs: Pairs, fit: LossFit) -> bool:
    """Whether the covariance is of no data, or of documents that explain less than half of how far off models lie."""
    source, off = pairs.noise.source, fit.times_off
    return off is not None and (source is Source.assumed or (source is Source.documents and off > _MOSTLY))


def record_of_curve(group: PairedGroup, law: LossLaw, curve: FamilyCurve) -> Record:
    """The row of `fits` of the curve of one quantity and family, or of all families."""
    pairs, fit, of_N = law.pairs, curve.fit, law.pairs.of(curve.family)
    members = [run for run, is_of in zip(pairs.members, of_N, strict=True) if is_of]
    partner = {id(run): other for run, other in zip(group.runs, group.others, strict=True)}
    run_ids = sorted({name for run in members for each in (run, partner[id(run)]) for name in each.run_ids})
    x, y = pairs.x_N[of_N].tolist(), pairs.y_N[of_N].tolist()
    best = [test for test in curve.backtests if test.n_fitted == fit.n - 1]
    as_law = LawFit(
        C=fit.constants["K"],
        alpha=fit.constants["kappa"],
        n_points=fit.n,
        backtest_error=best[0].error if best else None,
        status=curve.status,
    )
    noise = pairs.noise
    params: Record = {
        "form": FORM,
        "on": group.on.value,
        "x_k": pairs.x_k,
        **by_name(**{name: fit.constants[name] for name in CONSTANTS}, slope=fit.slope),
        "scatter": fit.scatter,
        "at_bound": list(fit.at_bound),
        "covariance": {"from": noise.source.value, "sd_ratio": noise.ratio, "correlation": noise.correlation},
        "kappa_without_errors": dict(zip(("in_x", "in_y"), curve.kappas, strict=False)),
        "families": pairs.families if curve.family is None else [curve.family],
        "shared": None if law.shared is None else vars(law.shared),
        "reasons": [reason.value for reason in curve.reasons],
        "mean_backtest_error": curve.mean_error,
        "n_left_out": pairs.n_left_out,
        "chance": pairs.chance,
        "notes": group.notes,
        "sizes": [run.size for run in members],
        "x": x,
        "y": y,
    }
    family = members[0].family if curve.family is not None and members else group.first.family
    columns: Record = {"k": pairs.k, "n": digest([group.on.value, pairs.x_k, curve.family, x, y]), "params": params}
    columns |= {"axis": group.on.value, "form": FORM, "family": family}
    columns |= {"variant": members[0].variant if curve.family is not None and members else group.first.variant}
    return record_of(group, pairs.law, as_law, run_ids, METHOD, **columns)
