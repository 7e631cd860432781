"""Computes the points of loss to loss: a quantity of models on one text against one on another."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import duckdb
import numpy as np
import numpy.typing as npt

from rbpx.config.keys.laws import USUAL, USUAL_K, Laws
from rbpx.config.keys.tasks import chance_of
from rbpx.display.vocabulary import law_title
from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.losses.calibration import Calibration
from rbpx.laws.losses.guessing import as_misses, backtest_of_misses, odds, scatter_of
from rbpx.laws.numeric import Floats
from rbpx.laws.prediction.verdict import Backtest
from rbpx.runs.documents import with_documents
from rbpx.runs.group import Group
from rbpx.runs.points.sizes import Points, size_points, weigh_group
from rbpx.runs.run import Run
from rbpx.runs.select.losses import family_of
from rbpx.status import Status

Which = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Pairs:
    """One quantity y of the models of a group against the quantity x of the axis.

    Attributes:
        x_k: of the axis.
        members: the runs at which both are known and positive.
        alone: runs of models that were measured on the other text only; x_A are their x.
        doubts: warnings that hold before anything is fitted.
        chance: success of guessing, where y is a share of misses, fitted as odds (`rbpx.laws.losses.guessing`).
        is_chance_known: False where chance is taken to be 0.
        at_chance: family, x and y of models that do no better than guessing, among those left out.
    """

    law: str
    k: int | None
    x_k: int | None
    x_title: str
    members: tuple[Run, ...]
    x_N: Floats
    y_N: Floats
    alone: tuple[Run, ...]
    x_A: Floats
    doubts: tuple[Status, ...]
    chance: float | None = None
    is_chance_known: bool = True
    at_chance: tuple[tuple[str, float, float], ...] = ()

    @property
    def title(self) -> str:
        """The name of the quantity."""
        return law_title(self.law, self.k)

    @property
    def key(self) -> str:
        """The same for machines."""
        return self.law if self.k is None else f"{self.law}_{self.k}"

    @property
    def fitted_N(self) -> Floats:
        """The fitted values: y, or the odds of misses."""
        return self.y_N if self.chance is None else odds(self.y_N, self.chance)

    def as_y(self, value: Estimate, scatter: float = 0.0) -> Estimate:
        """Convert a fitted value to y; its interval is at least as wide as that of its scatter."""
        return value if self.chance is None else as_misses(value, self.chance, scatter)

    def scatter(self, calibration: Calibration, family: str | None) -> float:
        """The scatter of one family, or of all, for `as_y`; 0 where y itself is fitted."""
        if self.chance is None:
            return 0.0
        of_N, beside = self.of(family), [(x, y) for of, x, y in self.at_chance if family in (None, of)]
        x_N, y_N = np.array([*zip(self.x_N[of_N], self.y_N[of_N], strict=True), *beside]).T
        return scatter_of(calibration, x_N, y_N, self.chance)

    def compared(self, tests: Sequence[Backtest]) -> tuple[Backtest, ...]:
        """The backtests, converted to y."""
        return tuple(test if self.chance is None else backtest_of_misses(test, self.chance) for test in tests)

    @property
    def of_guessing(self) -> str:
        """Notes on a share of misses; empty for other quantities."""
        known = "" if self.is_chance_known else ", which is not known and taken to be 0"
        odds = "1 - accuracy is fitted as the odds (1 - a) / (a - c), with c"
        return "" if self.chance is None else f"{odds} = {self.chance:.3g} the success of guessing{known}."

    @property
    def family_N(self) -> list[str]:
        """The family of each member."""
        return [family_of(run) for run in self.members]

    @property
    def families(self) -> list[str]:
        """The distinct families of the members."""
        return list(dict.fromkeys(self.family_N))

    @property
    def least_x(self) -> float:
        """The smallest x of any model; infinite where none is known."""
        return float(min([*self.x_N, *self.x_A], default=math.inf))

    def of(self, family: str | None) -> Which:
        """Mask of the members of a family; all for None."""
        return np.array([family in (None, of) for of in self.family_N], bool)


def loss_pairs(connection: duckdb.DuckDBPyConnection, group: Group, request: Laws) -> list[Pairs]:
    """Every requested quantity against that of the axis; by default RBP_k and the losses that are known."""
    chosen = set(request.laws.names) if request.laws.by_name else set(USUAL)
    beside = Group((*group.others, *group.alone), group.ties)
    beside = with_documents(connection, beside, tests_order=False)
    here = Group(group.runs, group.ties, documents=group.documents)
    k_grid = request.k.grid(min(here.vocab_size, beside.vocab_size), USUAL_K) if group.is_measured else []
    request = request.but(resamples=1)  # values only: a calibration has its interval from the scatter of models
    y, x = (
        size_points(of, weigh_group(connection, of, request, k_grid, laws), request, k_grid, laws)
        for of, laws in ((here, chosen), (beside, {group.on.law}))
    )
    x_at = {points.k: points for points in x}
    found = []
    for points in y:
        if not request.laws.by_name and points.doubt is Status.not_known:
            continue
        of_k = x_at.get(points.k, next(iter(x_at.values()), None))
        if of_k is None or (group.is_same_text and (points.law, points.k) == (of_k.law, of_k.k)):
            continue
        found.append(_pairs(group, points, of_k))
    return found


def _pairs(group: Group, y: Points, x: Points) -> Pairs:
    is_share = y.law == "accuracy"
    guessed = chance_of(group.first.dataset, None) if is_share else None
    chance = (guessed or 0.0) if is_share else None
    x_of, y_of = (
        {id(run): y for run, y in zip(of.runs, of.y_N.tolist(), strict=True) if 0 < y < math.inf} for of in (x, y)
    )
    known = [
        (run, x_of[id(other)], y_of[id(run)])
        for run, other in zip(group.runs, group.others, strict=True)
        if id(run) in y_of and id(other) in x_of
    ]
    both = [each for each in known if chance is None or each[2] < 1 - chance]
    alone = [run for run in group.alone if id(run) in x_of]
    return Pairs(
        law=y.law,
        k=y.k,
        x_k=x.k,
        x_title=f"{law_title(group.on.law, x.k)} on {group.on.dataset}",
        members=tuple(run for run, *_ in both),
        x_N=np.array([of for _, of, _ in both], np.float64),
        y_N=np.array([of for *_, of in both], np.float64),
        alone=tuple(alone),
        x_A=np.array([x_of[id(run)] for run in alone], np.float64),
        doubts=(*(each for each in (y.doubt, x.doubt) if each is not None), *group.doubts),
        chance=chance,
        is_chance_known=guessed is not None or not is_share,
        at_chance=tuple((family_of(run), *of) for run, *of in known if chance is not None and of[1] >= 1 - chance),
    )
