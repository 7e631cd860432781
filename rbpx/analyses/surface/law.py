"""Quantities of a group of trainings in; of each its surfaces, their errors on held-out runs and their optima out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from rbpx.config.request import Request
from rbpx.groups.surface_fits import doubts_of_points
from rbpx.groups.surface_points import Trained, flops_with_head
from rbpx.groups.trainings import TrainingGroup
from rbpx.laws.interval import Estimate
from rbpx.laws.surface.fit import SurfaceFit
from rbpx.laws.surface.held_out import Compared, compare_each, mean_error
from rbpx.laws.surface.isoflop import Envelope, IsoFlop, envelope, isoflop, reached_budgets
from rbpx.laws.surface.optimum import Optimum, optima, split
from rbpx.laws.surface.residuals import AgainstAxis, against_axes
from rbpx.laws.surface.runs import six_S
from rbpx.status import Status, first_of

__all__ = ["FormFit", "SurfaceLaw", "Surfaces", "surface_laws"]

Floats = npt.NDArray[np.float64]

_SMALL: Final = 1.1  # of S: models with more parameters than that in all have a head that counts


@dataclass(frozen=True, eq=False)
class FormFit:
    """One form of one quantity.

    Attributes:
        compared: its fit, and its predictions of the largest runs.
        reasons: every status that holds.
        optima: the best of each budget for C = 6 S D; empty where the design cannot tell size from tokens.
        with_head: the same where all parameters count, for C = 6 N D; empty where they are not known.
        split: exponents of the best S and D in C; None where the form has none.
        against: what is left along each axis.
    """

    compared: Compared
    reasons: tuple[Status, ...]
    optima: tuple[Optimum, ...]
    with_head: tuple[Optimum, ...]
    split: tuple[Estimate, Estimate] | None
    against: tuple[AgainstAxis, ...]

    @property
    def fit(self) -> SurfaceFit:
        """The fit to all points."""
        return self.compared.fit

    @property
    def status(self) -> Status:
        """The first of the reasons."""
        return first_of(self.reasons)

    @property
    def held_out_error(self) -> float | None:
        """Mean of |error| at the largest S, D and C, each predicted from the others."""
        return mean_error(self.compared.held_out)


@dataclass(frozen=True, eq=False)
class SurfaceLaw:
    """One quantity.

    Attributes:
        trained: its points.
        forms: those asked for, in order.
        isoflop: the best of each budget by a parabola; None where a value is not positive.
        isoflop_with_head: the same along budgets C = 6 N D, N all parameters; None where they are not known.
        envelope: the best size of those trained; None as before.
    """

    trained: Trained
    forms: tuple[FormFit, ...]
    isoflop: IsoFlop | None
    isoflop_with_head: IsoFlop | None
    envelope: Envelope | None

    @property
    def head_counts(self) -> bool:
        """Whether all parameters of some model are so many more than S that compute is rather 6 N D than 6 S D."""
        totals = [(run.total_params, run.non_embedding_params) for run in self.trained.members]
        return self.isoflop_with_head is not None and any(N is not None and N > _SMALL * S for N, S in totals)

    @property
    def flops_per_token(self) -> Callable[[Floats], Floats]:
        """Training FLOPs of a token at a size, as the pictures count them."""
        with_head = flops_with_head(self.trained.members) if self.head_counts else None
        return six_S if with_head is None else with_head

    @property
    def best(self) -> FormFit:
        """The form with the least AIC; the first one where none has any."""
        known = [each for each in self.forms if each.fit.aic is not None]
        return min(known, key=lambda each: each.fit.aic or 0.0) if known else self.forms[0]


@dataclass(frozen=True, eq=False)
class Surfaces:
    """The surfaces of one family on one text; `unique_tokens` those that the best of a budget may use."""

    group: TrainingGroup
    laws: tuple[SurfaceLaw, ...]
    resamples: int
    unique_tokens: float | None = None


def surface_laws(
    quantities: Sequence[Trained], group: TrainingGroup, request: Request, n_resamples: int
) -> tuple[SurfaceLaw, ...]:
    """Fit every requested form to each quantity, and find the best of each budget in every way there is."""
    options: dict[str, Any] = {"objective": request.objective, "delta": request.delta}
    compared = compare_each([(each.runs, request.forms()) for each in quantities], n_resamples, **options)
    return tuple(_law(*each, group, request) for each in zip(quantities, compared, strict=True))


def _law(trained: Trained, compared: Sequence[Compared], group: TrainingGroup, request: Request) -> SurfaceLaw:
    runs = trained.runs
    is_positive = len(runs.y_N) > 0 and bool((runs.y_N > 0).all())
    reached = reached_budgets(runs) if is_positive else ()
    asked = request.flops_of_budgets()
    largest = float((6 * runs.S_N * runs.D_N).max()) if len(runs.S_N) else 1.0
    budgets = asked or [*reached, 10 * largest]
    forms = tuple(_form(each, trained, group, budgets, request.unique_tokens) for each in compared)
    if not is_positive:
        return SurfaceLaw(trained, forms, None, None, None)
    with_head = flops_with_head(trained.members)
    counted = None
    if with_head is not None:
        counted = isoflop(runs, asked or reached_budgets(runs, flops_per_token=with_head), with_head)
    return SurfaceLaw(trained, forms, isoflop(runs, asked or reached), counted, envelope(runs))


def _form(compared: Compared, trained: Trained, group: TrainingGroup, budgets: list[float], U: float | None) -> FormFit:
    fit = compared.fit
    reasons = doubts_of_points(group, trained, fit)
    if fit.surface is None:
        return FormFit(compared, reasons, (), (), None, ())
    against = against_axes(fit.surface, trained.runs)
    if fit.design is not None and fit.design.is_collinear:
        return FormFit(compared, reasons, (), (), None, against)
    with_head = flops_with_head(trained.members)
    best = tuple(optima(fit.surface, budgets, U=U))
    counted = () if with_head is None else tuple(optima(fit.surface, budgets, with_head, U))
    has_split = {"alpha", "beta"} <= fit.constants.keys()
    return FormFit(compared, reasons, best, counted, split(fit.surface) if has_split else None, against)
