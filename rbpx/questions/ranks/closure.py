"""Whether one distribution of the ranks, its parameters laws in S, gives all the laws of a larger size.

The sizes below the largest, each predicted from those below it, choose a form; the largest, which has no part in the
choice, is predicted from all others and judges. Separate laws, one for each quantity, stand beside the forms.

Source: that cross-entropy and RBP follow from one distribution is a conjecture of the RBP paper (arXiv 2510.20387,
section 5), for a lognormal whose parameters are laws in S. Shapes: N sizes, Y quantities.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from rbpx.laws.intervals.estimate import NO_ESTIMATE, Recipe, by_name, estimate, few_documents, flat
from rbpx.laws.names import Method
from rbpx.laws.numeric import Floats, line, neg_ln
from rbpx.laws.power.law import PowerLawFit
from rbpx.questions.ranks.compare import Counted
from rbpx.questions.ranks.forms import FormResult, Residual, Sizes, judge_forms, typical
from rbpx.runs.fits import fit_points, largest_standing, power_law_of
from rbpx.runs.group import Group
from rbpx.runs.points.sizes import Evidence, Points
from rbpx.store.store import Record

LEAST_SIZES: Final = 4


@dataclass(frozen=True, eq=False)
class Closure:
    """The forms of one group.

    Attributes:
        reach: the largest k whose law stands, up to which RBP_k is scored; None where no law stands.
        chosen_on: the sizes that choose.
        separate: median error of separate laws over the scored quantities; None where nothing is scored.
        exponents: the measured law of -ln RBP_1 over cross-entropy, whose alpha is the difference of both exponents;
            None where k = 1 is not asked for.
        forms: what each predicts, the one first that comes closest at the sizes that choose.
        residuals: by rank, of the first form when fitted to the largest size itself.
    """

    reach: int | None
    chosen_on: list[str]
    separate: float | None
    exponents: PowerLawFit | None
    forms: list[FormResult]
    residuals: list[Residual]


def closure_of(
    group: Group,
    k_grid: Sequence[int],
    evidence: Sequence[Evidence],
    points: Sequence[Points],
    counted: Sequence[Counted],
    weights_BD: Floats | None,
) -> Closure | None:
    """Fit every form to the smaller sizes of a group, and judge what it predicts of the largest.

    Args:
        group: of `LEAST_SIZES` at least, ranks whole.
        k_grid: the k of RBP.
        evidence: of each run, with H(P).
        points: of RBP at each k and of cross-entropy.
        counted: the tokens of each rank in each document, of each run.
        weights_BD: how often each document is drawn in each resample; None for a single document.

    Returns:
        None where no form has a likelihood.
    """
    S_N = np.array([run.non_embedding_params for run in group.runs], dtype=np.float64)
    V = max(run.vocab_size or 0 for run in group.runs)
    sizes = Sizes(S_N, counted, *_measured(evidence, group.n_resampled), V, weights_BD, group.n_resampled)
    reach = largest_standing(fit_points(each, Method.ols) for each in points if each.law == "rbp")
    scored_Y = np.array([reach is not None and k <= reach for k in k_grid] + [True, True])
    separate_Y = _separate(sizes)
    forms, residuals = judge_forms(sizes, k_grid, scored_Y, separate_Y)
    if not forms:
        return None
    with np.errstate(divide="ignore", invalid="ignore"):  # a share of 0 or 1 has no law, and no error
        separate = typical((np.log(separate_Y) - sizes.ln_y_Y(S_N.max()))[scored_Y])
    of = {(each.law, each.k): each for each in points}
    exponents = power_law_of(group, of["rbp", 1].over(of["cross_entropy", None])) if 1 in k_grid else None
    chosen_on = [run.size for run in group.runs if run.non_embedding_params in sizes.choosing_S]
    return Closure(reach, list(dict.fromkeys(chosen_on)), separate, exponents, forms, residuals)


def _measured(evidence: Sequence[Evidence], n_resampled: int) -> tuple[Floats, Floats]:
    """Ln of -ln RBP_k, of H(P) less the bias of counting and of cross-entropy of each size, [N, Y]; their sd.

    The standard deviation is over resampled documents; 0 where there is one document.
    """
    wider = 0.0 if n_resampled == 1 else math.sqrt(few_documents(n_resampled))
    rows, sds = [], []
    for each in evidence:
        counted, of = each.measured, each.resampled
        plug_in = float(counted["error_entropy"])
        corrected = estimate(plug_in, of["error_entropy"], n_resampled, Recipe.normal).value or plug_in
        rows.append([*neg_ln(counted["rbp"]), corrected, float(counted["cross_entropy"])])
        y_BY = np.column_stack([neg_ln(of["rbp"]), of["error_entropy"], of["cross_entropy"]])
        usable = [column[np.isfinite(column) & (column > 0)] for column in y_BY.T]
        sds.append([wider * float(np.log(c).std(ddof=1)) if len(c) > 1 else 0.0 for c in usable])
    with np.errstate(divide="ignore"):  # a share of 1 has no logarithm, and its k is left out
        return np.log(rows), np.array(sds)


def _separate(sizes: Sizes) -> Floats:
    """What separate laws through the smaller sizes predict of the largest, [Y]; no number where a share is 0 or 1."""
    x_N = np.log(sizes.S_N[sizes.smaller_N])
    beyond = float(np.log(sizes.S_N.max())) - x_N.mean()
    with np.errstate(invalid="ignore", over="ignore"):
        level_alpha_Y2 = line(x_N, sizes.ln_y_NY[sizes.smaller_N].T)
        return np.asarray(np.exp(level_alpha_Y2[:, 0] - level_alpha_Y2[:, 1] * beyond))


def records(group: Group, closure: Closure) -> Iterator[Record]:
    """A row for each form and for each of its quantities, and the residuals of the first; no law is stored."""
    names = group.names() | {"run_ids": list(group.run_ids)}
    measured = NO_ESTIMATE if closure.exponents is None else closure.exponents.exponent
    for form in closure.forms:
        of = names | {"distribution": form.distribution, "n_parameters": form.form.n_parameters}
        row = {name: value for name, value in vars(form).items() if name not in ("held", "slopes")}
        row |= {name: getattr(form, name) for name in ("closes", "n_inside", "n_scored")}
        row |= {"reach": closure.reach, "chosen_on": closure.chosen_on, "error_separate": closure.separate}
        row |= {"difference_derived": form.difference, **by_name(difference=measured)}
        yield {"kind": "form", **of, **flat(row), "params": {"smaller": form.slopes}}
        for held in form.held:
            yield {"kind": "quantity", **of, **vars(held), "inside": held.inside, "error": held.error}
    for each in closure.residuals:
        yield {"kind": "residual", **names, "distribution": closure.forms[0].distribution, **flat(vars(each))}
