"""Foretells a quantity from what models show on another text, without S, by calibrations and their backtests."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import duckdb
import numpy as np

from rbpx.config.request import Request
from rbpx.display.vocabulary import law_title
from rbpx.laws.intervals.estimate import Estimate, Z
from rbpx.laws.losses.calibration import FEWEST, Calibration, calibrate, hold_out_best, hold_out_family, is_far
from rbpx.laws.losses.curve import fit_curve, rise_of
from rbpx.laws.losses.held import too_few_hold, widening_at
from rbpx.laws.losses.shared import SharedTest, share_one_curve
from rbpx.laws.numeric import Floats
from rbpx.laws.predict.calibration import widened
from rbpx.laws.predict.prediction import COMBINED, outside
from rbpx.laws.predict.verdict import SIGNIFICANT, Backtest, missed_by_backtests
from rbpx.runs.fits import alike
from rbpx.runs.group import Group, Run
from rbpx.runs.points.losses import Pairs, loss_pairs
from rbpx.runs.select.losses import PairedGroup, family_of
from rbpx.status import Doubted, Status, in_order
from rbpx.store.store import Record

SHARED: Final = "shared"  # the method of an answer from all families beside that of its own
_MEDIAN: Final = 0.6744897501960817  # of |error| over the standard deviation of a normal distribution


@dataclass(frozen=True)
class ToldLoss(Doubted):
    """One prediction and the objections to it.

    Attributes:
        run: the model, measured on the other text alone; None where its x was typed.
        method: `combined` where it is the answer, `shared` where that of the model's own family stands beside it.
        x: what it shows there.
        y: the value with the 95 % interval of one new model.
        beyond: the factor by which x lies outside those of the fitted models.
        expected_error: median |error| to expect, relative.
        widened: by what factor backtests widened the interval, in ln y.
        reasons: every status that holds.
    """

    run: Run | None
    method: str
    x: float
    y: Estimate
    beyond: float
    expected_error: float | None
    widened: float
    reasons: tuple[Status, ...]


@dataclass(frozen=True, eq=False)
class LossForesight:
    """One quantity, foretold by the models of one family or of all.

    Attributes:
        pairs: the points.
        family: whose models are fitted; None for those of all families.
        n_fitted: how many models are fitted.
        predictions: in the order of the models and of the x that were asked for.
        backtests: the models of the smallest x, foretold from those of larger ones; of all families, those of each
            from the others.
        calibration: what predicts, y or the odds of misses; None where nothing can.
        shared: whether the families share one curve; None where that was not tested.
    """

    pairs: Pairs
    family: str | None
    n_fitted: int
    predictions: tuple[ToldLoss, ...]
    backtests: tuple[Backtest, ...]
    calibration: Calibration | None
    shared: SharedTest | None

    @property
    def title(self) -> str:
        """The name of the quantity."""
        return law_title(self.pairs.law, self.pairs.k)

    @property
    def is_shared(self) -> bool:
        """Whether models of several families are fitted."""
        return self.family is None and len(self.pairs.families) > 1

    @property
    def held(self) -> list[bool]:
        """For each backtest with an interval, whether it contains the measured value."""
        return [test.is_inside for test in self.backtests if test.is_inside is not None]

    @property
    def mean_error(self) -> float | None:
        """Mean of |error| over all backtests; None where there are none."""
        return float(np.mean([abs(test.error) for test in self.backtests])) if self.backtests else None


@dataclass(frozen=True, eq=False)
class LossForesights:
    """What is foretold in one group of pairs."""

    group: PairedGroup
    laws: tuple[LossForesight, ...]

    def x_title(self, law: LossForesight) -> str:
        """What predictions are made from, in words."""
        return f"{law_title(self.group.on.law, law.pairs.x_k)} on {self.group.on.dataset}"


def foretell(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> LossForesights:
    """Foretell every requested quantity of models on the other text alone, and at the x that were typed."""
    assert isinstance(group, PairedGroup), "an axis on another text selects pairs"
    found = [each for pairs in loss_pairs(connection, group, request) for each in _of(pairs, request)]
    return LossForesights(group, tuple(found))


def _of(pairs: Pairs, request: Request) -> list[LossForesight]:
    """By the family of each model where it has points enough, and by all families."""
    n_of = {family: int(pairs.of(family).sum()) for family in pairs.families}
    own = [family for family, n in n_of.items() if n >= FEWEST]
    alone = list(zip(pairs.alone, pairs.x_A.tolist(), strict=True))
    typed: list[tuple[Run | None, float]] = [(None, x) for x in request.x]
    found = [_by(pairs, family, [*(at for at in alone if family_of(at[0]) == family), *typed], own) for family in own]
    if len(n_of) > 1 or not own:
        return [*found, _by(pairs, None, [*alone, *typed], own, _shared(pairs, request.seed))]
    strangers = [at for at in alone if family_of(at[0]) not in own]
    return [*found, _by(pairs, None, strangers, own)] if strangers else found


def _shared(pairs: Pairs, seed: int) -> SharedTest | None:
    if len(pairs.x_N) <= 4 or len(np.unique(pairs.x_N)) < FEWEST:
        return None
    points = pairs.points(pairs.of(None))
    return share_one_curve(points, fit_curve(points), pairs.family_N, seed)


def _by(
    pairs: Pairs,
    family: str | None,
    targets: Sequence[tuple[Run | None, float]],
    own: Sequence[str],
    shared: SharedTest | None = None,
) -> LossForesight:
    of_N = pairs.of(family)
    x_N, y_N, of = pairs.x_N[of_N], pairs.fitted_N[of_N], np.array(pairs.family_N)[of_N].tolist()
    least = min([pairs.least_x, *(x for _, x in targets)])
    calibration = calibrate(x_N, y_N, least, None if family is not None else of)
    if family is None and len(pairs.families) > 1:
        tests = tuple(test for each in hold_out_family(x_N, y_N, of).values() for test in each)
    else:
        tests = hold_out_best(x_N, y_N)
    told: list[ToldLoss] = []
    if calibration is not None:
        of_fit = _doubts(pairs, x_N, pairs.y_N[of_N], pairs.compared(tests), family, shared)
        scatter = pairs.scatter(calibration, family)
        for (run, x), y in zip(targets, calibration.at([x for _, x in targets]) if targets else (), strict=True):
            beyond = outside(1 / x, (1 / x_N).tolist())
            by = widening_at(tests, len(x_N), beyond)
            y = pairs.as_y(widened(y, by), scatter)
            stranger = run is not None and family_of(run) not in pairs.families and len(pairs.families) == 1
            far = [Status.unsupported] if stranger or is_far(x, x_N) else []
            has_own = bool(own) if run is None else family_of(run) in own
            method = SHARED if family is None and has_own else COMBINED
            told.append(ToldLoss(run, method, x, y, beyond, _expected(y), by, in_order([*of_fit, *far])))
    return LossForesight(pairs, family, len(x_N), tuple(told), pairs.compared(tests), calibration, shared)


def _doubts(
    pairs: Pairs,
    x_N: Floats,
    y_N: Floats,
    tests: Sequence[Backtest],
    family: str | None,
    shared: SharedTest | None,
) -> list[Status]:
    """What speaks against all predictions of a calibration."""
    doubts = list(pairs.doubts)
    _, slope = rise_of(np.log(x_N), np.log(y_N))
    doubts += [] if slope.lo is not None and slope.lo > 0 else [Status.no_trend]
    doubts += [Status.intervals_missed] if too_few_hold(tests) else []
    if family is not None or len(pairs.families) == 1:
        order = np.argsort(1 / x_N, kind="stable")
        doubts += missed_by_backtests((1 / x_N)[order].tolist(), y_N[order].tolist(), tests)
    elif shared is not None and shared.p < SIGNIFICANT:
        doubts.append(Status.families_differ)
    return doubts


def _expected(y: Estimate) -> float | None:
    """The median |error| that an interval stands for, relative."""
    if y.lo is None or y.hi is None or y.lo <= 0:
        return None
    return _MEDIAN * (math.log(y.hi) - math.log(y.lo)) / (2 * Z)


def keep_told(told: LossForesights) -> list[Record]:
    """A row for each prediction and each backtest; nothing is fitted that `fits` keeps."""
    rows: list[Record] = []
    group = told.group
    for of in told.laws:
        fitted = of.family or " + ".join(of.pairs.families)
        named = {"law": of.pairs.law, **group.names(), "k": of.pairs.k, "x_k": of.pairs.x_k}
        named |= {"family": fitted, "n_fitted": of.n_fitted}
        for each in of.predictions:
            run = each.run
            model = {
                "model_family": run and run.family,
                "size": run and run.size,
                "S": run and run.non_embedding_params,
            }
            values = {
                "method": each.method,
                "x": each.x,
                "y": each.y.value,
                "lo": each.y.lo,
                "hi": each.y.hi,
                "beyond": each.beyond,
            }
            values |= {"expected_error": each.expected_error, "widened": each.widened, "status": each.status.value}
            shared = {"shared_p": None if of.shared is None else of.shared.p}
            rows.append(
                {"kind": "prediction", **named, **model, **values, "reasons": [str(r) for r in each.reasons], **shared}
            )
        for test in of.backtests:
            predicted = test.predicted
            method = SHARED if of.is_shared else COMBINED
            values = {"method": method, "x": 1 / test.S, "y": predicted.y, "lo": predicted.lo, "hi": predicted.hi}
            values |= {"beyond": predicted.beyond, "measured": test.measured, "error": test.error}
            rows.append({"kind": "backtest", **named, "n_fitted": test.n_fitted, **values, "held": test.is_inside})
        if not of.predictions and not of.backtests:
            rows.append({"kind": "none", **named, "status": Status.too_few_sizes.value})
    return alike(rows)
