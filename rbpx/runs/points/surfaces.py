"""Computes the points of one quantity that surfaces are fitted to, and the row of `fits` of a surface."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import duckdb
import numpy as np
from numpy.typing import NDArray

from rbpx.config.keys.laws import USUAL_K, Laws
from rbpx.config.keys.predictions import Forms
from rbpx.display.vocabulary import law_title, short
from rbpx.errors import RbpxError
from rbpx.files.digest import digest
from rbpx.laws.intervals.estimate import Estimate, Z, document_t, few_documents
from rbpx.laws.names import IMPORTED, Axis, Objective
from rbpx.laws.numeric import Floats
from rbpx.laws.power.law import LawFit
from rbpx.laws.priors import Prior, Priors
from rbpx.laws.surface.checks import HeldOut, mean_error
from rbpx.laws.surface.design import judge_design
from rbpx.laws.surface.fit import FORMS, Surface
from rbpx.laws.surface.fixed_parameters import fit_surface_with_priors, has_constants
from rbpx.laws.surface.judged import judge_surface
from rbpx.laws.surface.outliers import CommonShift
from rbpx.laws.surface.runs import Runs, six_S
from rbpx.laws.sweeps import SweepCell
from rbpx.runs.fits import record_of
from rbpx.runs.group import Group
from rbpx.runs.points.frontier import frontier
from rbpx.runs.points.sizes import Points, known_points
from rbpx.runs.run import Run, grouped, labels_of, tokens_of, training_of
from rbpx.status import Status, first_of, in_order
from rbpx.store.store import Record

_DEFAULT_LAWS: Final = ("rbp", "cross_entropy", "error_entropy", *IMPORTED)
_SAME: Final = 0.01  # relative, of C: sources state FLOPs to two digits
MOST_REPLICATES: Final = 200  # of the runs; intervals of surfaces reach their coverage with so many


PerToken = Callable[[Floats], Floats]  # FLOPs per token, as a function of size


@dataclass(frozen=True, eq=False)
class Trained:
    """One quantity of the runs of a group.

    Attributes:
        members: the runs at which it is known.
        runs: their S, D, y and training; y must be positive for a form to be fitted.
        sign: -1 where all values are negative and y is their absolute value.
        cells: how the point of each size and number of tokens was found; empty where each run is a point.
        outside: outliers.
        largest_off: the largest runs, where the others do not predict them.
    """

    law: str
    k: int | None
    members: tuple[Run, ...]
    runs: Runs
    sign: int
    doubt: Status | None
    cells: tuple[SweepCell, ...] = ()
    outside: tuple[Record, ...] = ()
    largest_off: CommonShift | None = None

    @property
    def labels(self) -> list[str]:
        """A distinct label of each training, in order of `Runs.group_N`, from its last checkpoint."""
        runs = self.runs
        ends = [max(np.flatnonzero(runs.group_N == run), key=lambda at: runs.D_N[at]) for run in range(runs.n_groups)]
        return labels_of([self.members[at] for at in ends])

    def only(self, keep_N: NDArray[np.bool_]) -> "Trained":
        """The points of a mask."""
        members = tuple(self.members[at] for at in np.flatnonzero(keep_N))
        return self if keep_N.all() else replace(self, members=members, runs=self.runs.only(keep_N), largest_off=None)

    @property
    def n_largest_outside(self) -> int:
        """Number of outliers beyond all other runs in size or compute."""
        S, C = (float(self.runs.along(axis).max(initial=0.0)) for axis in (Axis.S, Axis.C))
        return sum(not row["counts"] and (row["S"] > S or 6 * row["S"] * row["D"] > C) for row in self.outside)

    @property
    def without_largest(self) -> "Trained | None":
        """The points without the largest runs that the others do not predict."""
        off = self.largest_off
        return None if off is None else self.only(~np.isin(self.runs.group_N, off.runs))

    @property
    def title(self) -> str:
        """The name of the quantity."""
        return law_title(self.law, self.k)

    @property
    def C_N(self) -> Floats:
        """Training FLOPs of each point, as its source states them, else 6 S D, S the active parameters."""
        stated_N = np.array([run.training_flops for run in self.members], np.float64)
        used_N = np.array([run.used_params for run in self.members], np.float64)
        return np.where(np.isnan(stated_N), six_S(used_N) * self.runs.D_N, stated_N)

    @property
    def n_stated(self) -> int:
        """Number of points whose source states their FLOPs."""
        return sum(run.training_flops is not None for run in self.members)


def trained_quantities(connection: duckdb.DuckDBPyConnection, group: Group, request: Laws) -> list[Trained]:
    """Every requested quantity; by default RBP_k, the losses, error-entropy and imported quantities.

    With `frontier` each size and number of tokens has one point, its best run.
    """
    chosen = set(request.laws.names) if request.laws.by_name else set(_DEFAULT_LAWS)
    request = request.but(resamples=min(request.resamples, MOST_REPLICATES))  # each replicate of the runs takes one
    points = known_points(connection, group, request, chosen, USUAL_K)
    points = [each for each in points if request.laws.by_name or each.doubt is not Status.not_known]
    points = [_averaged(each) for each in points] if group.averaged else points
    if not request.frontier:
        return [trained_of(each) for each in points]
    return [trained_of(each, cells) for of in points for (each,), cells in (frontier([of]),)]


def refuse_routed(trained: Trained) -> None:
    """Raises RbpxError where C is not 6 S D, as S counts experts that a token does not use."""
    if any(run.is_routed for run in trained.members):
        raise RbpxError("runs cost 6 S D, and S counts experts that a token does not use; add size_by=active")


def with_constants(forms: Sequence[str], pins: Priors) -> None:
    """Raises RbpxError where a form of a surface lacks a constant that is fixed, or there is no form."""
    lacking = [form for form in forms if not has_constants(form, pins)]
    if lacking or not forms:
        typed = ", ".join(f"{name}={pin}" for name, pin in pins.items())
        known = "; ".join(f"form={name} has {', '.join(form.names)}" for name, form in FORMS.items())
        raise RbpxError(f"{typed}: {' and '.join(lacking) or 'no form'} has no such constant; {known}")


def _averaged(points: Points) -> Points:
    """Over the checkpoints of each training, at the tokens of the last of them."""
    ordered = sorted(range(len(points.runs)), key=lambda at: tokens_of(points.runs[at]) or 0.0)
    of = grouped(ordered, lambda at: training_of(points.runs[at]))
    last = tuple(points.runs[places[-1]] for places in of.values())
    y_N = np.array([points.y_N[places].mean() for places in of.values()])
    y_BN = points.y_BN
    if y_BN is not None:
        y_BN = np.column_stack([y_BN[:, places].mean(axis=1) for places in of.values()])
    return replace(points, runs=last, y_N=y_N, y_BN=y_BN)


def trained_of(points: Points, cells: tuple[SweepCell, ...] = ()) -> Trained:
    """The quantity of these points, with the cells from which they were chosen, if any."""
    members, doubt, y_BN = points.runs, points.doubt, points.y_BN
    sign = -1 if set(np.sign(points.y_N[np.isfinite(points.y_N)]).tolist()) == {-1.0} else 1
    unique = np.array([run.unique_tokens for run in members], np.float64)
    trainings = [training_of(run) for run in members]
    number_of = {training: number for number, training in enumerate(dict.fromkeys(trainings))}
    runs = Runs.of(
        [run.non_embedding_params for run in members],
        np.array([tokens_of(run) for run in members], np.float64),
        sign * points.y_N,
        None if np.isnan(unique).all() else unique,
        [number_of[training] for training in trainings],
        None if y_BN is None or doubt is Status.one_document else _as_few(sign * y_BN, points.n_effective),
        points.weight_N,
    )
    return Trained(points.law, points.k, members, runs, sign, doubt, cells)


def _as_few(y_BN: Floats, n_effective: float | None) -> Floats:
    """Scale deviations of replicates from their mean to those of an interval for a small effective sample size."""
    reach = math.sqrt(few_documents(n_effective)) * document_t(n_effective) / Z
    with np.errstate(divide="ignore", invalid="ignore"):  # the search ignores values that are not positive
        ln_y_BN = np.log(y_BN)
        usable_B = np.isfinite(ln_y_BN).all(axis=1)
        mean_N = ln_y_BN[usable_B].mean(axis=0) if usable_B.any() else 0.0
        return np.asarray(np.exp(mean_N + reach * (ln_y_BN - mean_N)))


def flops_with_head(members: Sequence[Run]) -> PerToken | None:
    """FLOPs per token by size when all parameters N count, 6 N; None where N is unknown or not all are used.

    The parameters besides S follow a power of S between two measured sizes, and the best-fitting power beyond them:
    embeddings and a head grow with a width that is a power of S.
    """
    known = [(run.non_embedding_params, run.total_params) for run in members if run.total_params is not None]
    beside = {float(S): float(total - S) for S, total in known if total > S}
    if len(known) < len(members) or len(beside) < 2 or any(run.is_routed for run in members):
        return None
    S_M, beside_M = (np.array(each) for each in zip(*sorted(beside.items()), strict=True))
    slope = float(np.polyfit(np.log(S_M), np.log(beside_M), 1)[0])
    inside = _power_between(S_M, beside_M)

    def flops(S: Floats) -> Floats:
        return np.asarray(6.0 * (S + inside(S) * (S / np.clip(S, S_M[0], S_M[-1])) ** slope))

    return flops


def flops_as_stated(trained: Trained) -> PerToken | None:
    """FLOPs per token as the sources state them, else 6 S; None where none states any.

    Where N is known and the FLOPs are 6 N D, this is `flops_with_head`; otherwise their ratio to 6 S D is a power of S
    between two sizes and constant beyond them.
    """
    if trained.n_stated == 0:
        return None
    runs, C_N, with_head = trained.runs, trained.C_N, flops_with_head(trained.members)
    if with_head is not None and np.allclose(C_N, with_head(runs.S_N) * runs.D_N, rtol=_SAME):
        return with_head
    ratio = _power_between(runs.S_N, C_N / (six_S(runs.S_N) * runs.D_N))
    return lambda S: six_S(S) * ratio(S)


def flops_used(members: Sequence[Run]) -> PerToken:
    """FLOPs per token, 6 S with S the active parameters, whose ratio to all is a power of S between two sizes."""
    if not any(run.is_routed for run in members):
        return six_S
    S_N = np.array([run.non_embedding_params for run in members], np.float64)
    ratio = _power_between(S_N, np.array([run.used_params for run in members]) / S_N)
    return lambda S: six_S(S) * ratio(S)


def _power_between(S_N: Floats, of_N: Floats) -> PerToken:
    """The geometric mean at each size, interpolated by powers of S, constant beyond the sizes."""
    ln_S_M, size_N = np.unique(np.log(S_N), return_inverse=True)
    ln_of_M = np.bincount(size_N, np.log(of_N)) / np.bincount(size_N)
    return lambda S: np.asarray(np.exp(np.interp(np.log(S), ln_S_M, ln_of_M)))


METHOD: Final = "surface"


def doubts_of_points(group: Group, trained: Trained, fit: Surface) -> tuple[Status, ...]:
    """Every warning about a fit to these points."""
    refused = any(each.is_refused for each in fit.pinned)
    known = {Status.mixed: group.is_mixed or group.has_same, Status.given_refused: refused}
    doubts = [trained.doubt] if trained.doubt is not None else []
    doubts += [Status.intervals_missed] if trained.largest_off is not None or trained.n_largest_outside > 1 else []
    return in_order([*fit.reasons, *doubts, *(status for status, holds in known.items() if holds)])


def asked_forms(group: Group, forms: Sequence[str], request: Forms, unique_tokens: float | None = None) -> list[str]:
    """The forms that were typed; raises RbpxError where the runs cannot tell one, or what repeated tokens are worth."""
    asked = [] if request.typed["form"] is None else [form for form in request.form if form in forms]
    lacks = request.typed["form"] is not None and not asked
    if lacks or (unique_tokens and "data_constrained" not in forms):
        given = f"form={','.join(request.form)}" if lacks else f"unique_tokens={short(unique_tokens)}"
        raise RbpxError(
            f"{given}: no run of {group.title} reads tokens twice, so what that is worth is not known; import runs "
            "that do, with a column unique_tokens, or drop the key"
        )
    return asked


def judged_alone(group: Group, trained: Trained, fit: Surface, tests: Sequence[HeldOut]) -> tuple[Status, ...]:
    """Every status of one form: of its fit and, where size and tokens can be told apart, of bends and tests."""
    return judge_surface(fit, tests, doubts_of_points(group, trained, fit))


def surface_record(group: Group, trained: Trained, fit: Surface, tests: Sequence[HeldOut], **more: Any) -> Record:
    """The row of `fits`; its id contains the points, because imported runs share the id of their file.

    `tests` are of its form on the largest runs; `more` are further params.
    """
    params, reasons = fit.record(), judged_alone(group, trained, fit, tests)
    how = {name: params.pop(name) for name in ("form", "objective_name", "delta")}
    given = {each.name: [each.pin.value, each.pin.sd] for each in fit.pinned}
    points = [params["S"], params["D"], params["y"]]
    identity = digest([*how.values(), points, *([given] if given else [])])
    of_group = {"reasons": [reason.value for reason in reasons], "sign": trained.sign, "variant": group.first.variant}
    law = LawFit(
        alpha=fit.constants.get("alpha", Estimate()),
        aic=fit.aic,
        bic=fit.bic,
        n_points=fit.n_points,
        backtest_error=mean_error(tests),
        status=first_of(reasons),
    )
    columns: Record = {"axis": None, **how, "k": trained.k, "n": identity, "params": params | of_group | more}
    run_ids = sorted({run_id for run in trained.members for run_id in run.run_ids})
    return record_of(group, trained.law, law, run_ids, METHOD, **columns)


def refitted(record: Record) -> dict[str, float | None] | None:
    """The objective and constants of a surface of `fits`, fitted again to the points stored with it.

    None where the fit has no numbers, or is one of 0.4 in which runs above it weigh less.
    """
    params = record["params"]
    if params["objective"] is None or "over" in params:
        return None
    U = None if params["U"] is None else [math.nan if each is None else each for each in params["U"]]
    runs = Runs.of(params["S"], params["D"], params["y"], U, params["group"], weights=params.get("weights"))
    how: dict[str, Any] = {"objective": Objective(record["objective_name"]), "delta": record["delta"]}
    pins = {name: Prior(pin["value"], pin["sd"]) for name, pin in (params.get("pins") or {}).items()}
    fit = fit_surface_with_priors(runs, record["form"], pins, n_replicates=0, **how)
    return {"objective": fit.objective, **{name: each.value for name, each in fit.constants.items()}}


def listed(each: Estimate) -> list[float | None]:
    """A number and the ends of its interval."""
    return [each.value, each.lo, each.hi]


def varies_in_both(group: Group) -> bool:
    """Whether size and tokens vary independently, as a surface needs."""
    S = np.array([run.non_embedding_params for run in group.runs], np.float64)
    D = np.array([tokens_of(run) for run in group.runs], np.float64)
    return bool(np.all(S > 0) and np.all(D > 0)) and not judge_design(S, D).is_collinear
