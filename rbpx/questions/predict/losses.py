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
from rbpx.laws.power.predictor import outside
from rbpx.laws.prediction.calibration import widened
from rbpx.laws.prediction.prediction import COMBINED
from rbpx.laws.prediction.verdict import SIGNIFICANT, Backtest, missed_by_backtests
from rbpx.questions.predict.rows import backtest, values
from rbpx.runs.group import Run
from rbpx.runs.points.losses import Pairs, loss_pairs
from rbpx.runs.select.losses import PairedGroup, family_of
from rbpx.status import Status, first_of, in_order
from rbpx.store.store import Record

SHARED: Final = "shared"  # the method of an answer from all families beside that of its own
_MEDIAN: Final = 0.6744897501960817  # of |error| over the standard deviation of a normal distribution
_Targets = Sequence[tuple[Run | None, float]]
"""Models that are on the other text alone, None where an x was typed, and what they show there."""


@dataclass(frozen=True, eq=False)
class LossForesight:
    """One quantity, foretold by the models of one family or of all.

    Attributes:
        pairs: the points.
        family: whose models are fitted; None for those of all families.
        n_fitted: how many models are fitted.
        told: the models that are foretold, None for an x that was asked for, and a row for each. Its method is
            `combined` where it is the answer, `shared` where that of the model's own family stands beside it; |error|
            is the median to expect, relative.
        backtests: the models of the smallest x, foretold from those of larger ones; of all families, those of each
            from the others.
        calibration: what predicts, y or the odds of misses; None where nothing can.
        shared: whether the families share one curve; None where that was not tested.
    """

    pairs: Pairs
    family: str | None
    n_fitted: int
    told: Sequence[tuple[Run | None, Record]]
    backtests: Sequence[Record]
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
    def by(self) -> str:
        """Whose models are fitted, in words."""
        return self.family or ("all families" if self.is_shared else self.pairs.families[0])


def foretell(connection: duckdb.DuckDBPyConnection, group: PairedGroup, request: Request) -> list[LossForesight]:
    """Foretell every requested quantity of models on the other text alone, and at the x that were typed."""
    return [each for pairs in loss_pairs(connection, group, request) for each in _of(pairs, request)]


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
    pairs: Pairs, family: str | None, targets: _Targets, own: Sequence[str], shared: SharedTest | None = None
) -> LossForesight:
    of_N, several = pairs.of(family), family is None and len(pairs.families) > 1
    x_N, y_N, of = pairs.x_N[of_N], pairs.fitted_N[of_N], np.array(pairs.family_N)[of_N].tolist()
    least = min([pairs.least_x, *(x for _, x in targets)])
    calibration = calibrate(x_N, y_N, least, None if family is not None else of)
    tests = hold_out_best(x_N, y_N)
    if several:
        tests = tuple(test for each in hold_out_family(x_N, y_N, of).values() for test in each)
    told: list[tuple[Run | None, Record]] = []
    if calibration is not None and targets:
        of_fit = _doubts(pairs, x_N, pairs.y_N[of_N], pairs.compared(tests), family, shared)
        scatter = pairs.scatter(calibration, family)
        for (run, x), y in zip(targets, calibration.at([x for _, x in targets]), strict=True):
            beyond = outside(1 / x, (1 / x_N).tolist())
            by = widening_at(tests, len(x_N), beyond)
            y = pairs.as_y(widened(y, by), scatter)
            stranger = run is not None and family_of(run) not in pairs.families and len(pairs.families) == 1
            reasons = in_order([*of_fit, *([Status.unsupported] if stranger or is_far(x, x_N) else [])])
            has_own = bool(own) if run is None else family_of(run) in own
            method = SHARED if family is None and has_own else COMBINED
            model = {
                "model_family": run and run.family,
                "size": run and run.size,
                "S": run and run.non_embedding_params,
            }
            row = {
                "kind": "prediction",
                **model,
                "method": method,
                "x": x,
                **values(y),
                "beyond": beyond,
                "expected_error": _expected(y),
            }
            told.append((run, row | {"widened": by, "status": first_of(reasons), "reasons": [*reasons]}))
    method = SHARED if several else COMBINED
    backtests = [backtest(test) | {"method": method, "x": 1 / test.S, "S": None} for test in pairs.compared(tests)]
    return LossForesight(pairs, family, len(x_N), told, backtests, calibration, shared)


def _doubts(
    pairs: Pairs, x_N: Floats, y_N: Floats, tests: Sequence[Backtest], family: str | None, shared: SharedTest | None
) -> list[Status]:
    """What speaks against all predictions of a calibration."""
    doubts = list(pairs.doubts)
    slope = rise_of(np.log(x_N), np.log(y_N))
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
