"""A fitted surface that is judged, and predicts as the verb predict does: averaged over forms, with backtests."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from math import nan
from typing import Any, overload

from numpy.typing import NDArray

from rbpx.laws.arguments import level_of, places
from rbpx.laws.intervals.estimate import LEVEL
from rbpx.laws.power.predicted import Prediction, Predictions
from rbpx.laws.prediction.verdict import judge_alone
from rbpx.laws.priors import NO_PRIORS, Priors
from rbpx.laws.surface.averaged import AveragedPrediction, BudgetTest, backtest_budgets, forms_to_mix, predict_averaged
from rbpx.laws.surface.checks import HeldOut, bends_of, held_out
from rbpx.laws.surface.fit import Surface
from rbpx.laws.surface.fixed_parameters import fit_surface_with_priors
from rbpx.status import Status, in_order


def judge_surface(fit: Surface, tests: Sequence[HeldOut], doubts: Iterable[Status]) -> tuple[Status, ...]:
    """Every status of one form: its doubts and, where it tells size from tokens, its bends and own tests."""
    doubts = in_order(doubts)
    if fit.surface is None or Status.collinear_design in doubts:
        return doubts
    return judge_alone([*doubts, *bends_of(fit)], [test.is_inside for test in tests])


@dataclass(frozen=True, eq=False, repr=False)
class JudgedSurface(Surface):
    """A surface of `rbpx.laws.fit_surface`: the constants of its form, and predictions over all forms."""

    given: Priors = field(default_factory=lambda: NO_PRIORS)
    level: float = LEVEL

    @classmethod
    def of(cls, fit: Surface, given: Priors, judge: bool, level: float) -> "JudgedSurface":
        """A fit with every status that holds, and its intervals at a level, on which no status depends."""
        doubts = [*fit.reasons, *([Status.given_refused] if any(each.is_refused for each in fit.pinned) else [])]
        how: dict[str, Any] = {"objective": fit.objective_name, "delta": fit.delta}
        if judge:
            tests = held_out(fit.runs, fit.form, pins=given, **how) if fit.surface is not None else ()
            reasons = judge_surface(fit, tests, doubts)
        else:
            reasons = in_order([*doubts, Status.not_judged])
        known = {each.name: getattr(fit, each.name) for each in fields(Surface)}
        known["constants"] = fit.constants_at(level_of(level, given))
        return cls(**known | {"reasons": reasons}, given=given, level=level)

    def record(self) -> dict[str, Any]:
        """The fit and the points that reproduce it."""
        return super().record() | ({} if self.level == LEVEL else {"level": self.level})

    def __repr__(self) -> str:
        known = ", ".join(f"{name} {each.value:.4g}" for name, each in self.constants.items() if each.value is not None)
        return f"{self.form} of {self.n_runs} runs: {known or 'no numbers'}: {self.status.label}"

    @cached_property
    def _over_forms(self) -> tuple[list[Surface], Sequence[BudgetTest]]:
        how: dict[str, Any] = {"objective": self.objective_name, "delta": self.delta}
        forms = forms_to_mix(self.runs, self.given)
        fits = [fit_surface_with_priors(self.runs, form, self.given, 0, is_tested=False, **how) for form in forms]
        is_judged = Status.not_judged not in self.reasons
        return fits, backtest_budgets(self.runs, forms, self.given, **how) if is_judged else ()

    @overload  # type: ignore[override]
    def predict(self, S: float, D: float, U: float | None = None, level: float = LEVEL) -> AveragedPrediction: ...

    @overload
    def predict(
        self,
        S: NDArray[Any] | Sequence[float],
        D: NDArray[Any] | Sequence[float],
        U: float | None = None,
        level: float = LEVEL,
    ) -> Predictions: ...

    def predict(self, S: Any, D: Any, U: float | None = None, level: float = LEVEL) -> AveragedPrediction | Predictions:
        """Predicts a new run of S parameters after D tokens, U of them unique (None: all), averaged over forms.

        Its status has the doubts of the form that counts most, and its own; of arrays of one shape it has arrays. Where
        the fit was not judged, nor is it, and no backtest widens it.

        Raises:
            ValueError: the surface has no numbers, S or D is not positive and finite, or a level is not one.
        """
        self._fitted  # noqa: B018
        S_T, D_T = places(S=S, D=D)
        fits, budgets = self._over_forms
        points = list(zip(S_T.reshape(-1).tolist(), D_T.reshape(-1).tolist(), strict=True))
        of_form = {fit.form: fit.reasons for fit in fits}
        own = [each for each in (Status.given_refused, Status.not_judged) if each in self.reasons]
        found = []
        for each in predict_averaged(fits, points, budgets, U, level_of(level)):
            heaviest = max(each.weights, key=lambda name: each.weights[name], default=fits[0].form)
            found.append(replace(each, reasons=in_order([*of_form[heaviest], *own, *each.reasons])))
        if not S_T.ndim:
            return found[0]
        return Predictions.of(
            [
                Prediction(
                    at, nan if each.value is None else each.value, each.lo, each.hi, each.beyond, reasons=each.reasons
                )
                for (at, _), each in zip(points, found, strict=True)
            ],
            S_T.shape,
        )
