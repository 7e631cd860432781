"""Whether one distribution of the ranks, its parameters laws in S, gives all the laws of a larger size.

The sizes below the largest, each predicted from those below it, choose a form; the largest, which has no part in the
choice, is predicted from all others and judges. Separate laws, one for each quantity, stand beside the forms.

Source: that cross-entropy and RBP follow from one distribution is a conjecture of the RBP paper (arXiv 2510.20387,
section 5), for a lognormal whose parameters are laws in S. Shapes: N sizes, Y quantities.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from rbpx.laws.intervals.estimate import NO_ESTIMATE, Recipe, by_name, estimate, few_documents
from rbpx.laws.names import Method
from rbpx.laws.numeric import Floats, line, neg_ln
from rbpx.questions.ranks.compare import Counted
from rbpx.questions.ranks.forms import Sizes, judge_forms, typical
from rbpx.runs.fits import fit_points, largest_standing, power_law_of
from rbpx.runs.group import Group
from rbpx.runs.points.sizes import Evidence, Points
from rbpx.store.store import Record

LEAST_SIZES: Final = 4


def closure_of(
    group: Group,
    k_grid: Sequence[int],
    evidence: Sequence[Evidence],
    points: Sequence[Points],
    counted: Sequence[Counted],
    weights_BD: Floats | None,
) -> Iterator[Record]:
    """Fit every form to the smaller sizes of a group, and judge what it predicts of the largest.

    Args:
        group: of `LEAST_SIZES` at least, ranks whole.
        k_grid: the k of RBP.
        evidence: of each run, with H(P).
        points: of RBP at each k and of cross-entropy.
        counted: the tokens of each rank in each document, of each run.
        weights_BD: how often each document is drawn in each resample; None for a single document.

    Yields:
        A row for each form, the one first that comes closest at the sizes that choose, and for each quantity as it
        predicts it, then the residuals of the first; nothing where no form has a likelihood. `reach` is the largest k
        whose law stands, up to which RBP_k is scored; `error_separate` the median error of separate laws; `difference`
        the measured exponent of -ln RBP_1 minus that of cross-entropy.
    """
    S_N = np.array([run.non_embedding_params for run in group.runs], dtype=np.float64)
    V = max(run.vocab_size or 0 for run in group.runs)
    sizes = Sizes(S_N, counted, *_measured(evidence, group.n_resampled), V, weights_BD, group.n_resampled)
    reach = largest_standing(fit_points(each, Method.ols) for each in points if each.law == "rbp")
    scored_Y = np.array([reach is not None and k <= reach for k in k_grid] + [True, True])
    separate_Y = _separate(sizes)
    forms, residuals = judge_forms(sizes, k_grid, scored_Y, separate_Y)
    with np.errstate(divide="ignore", invalid="ignore"):  # a share of 0 or 1 has no law, and no error
        separate = typical((np.log(separate_Y) - sizes.ln_y_Y(S_N.max()))[scored_Y])
    of, difference = {(each.law, each.k): each for each in points}, NO_ESTIMATE
    if 1 in k_grid:
        difference = power_law_of(group, of["rbp", 1].over(of["cross_entropy", None])).alpha
    chosen_on = [run.size for run in group.runs if run.non_embedding_params in sizes.choosing_S]
    names = group.names() | {"run_ids": list(group.run_ids)}
    about = {"reach": reach, "chosen_on": list(dict.fromkeys(chosen_on)), "error_separate": separate}
    about |= by_name(difference=difference)
    for form, held in forms:
        yield {"kind": "form", **names, **form, **about}
        which = {name: form[name] for name in ("distribution", "n_parameters")}
        yield from ({"kind": "quantity", **names, **which, **each} for each in held)
    for each in residuals:
        yield {"kind": "residual", **names, "distribution": forms[0][0]["distribution"], **each}


def _measured(evidence: Sequence[Evidence], n_resampled: int) -> tuple[Floats, Floats]:
    """Ln of -ln RBP_k, of H(P) less the bias of counting and of cross-entropy of each size, [N, Y]; their sd.

    The standard deviation is over resampled documents; 0 where there is one document.
    """
    wider = 0.0 if n_resampled == 1 else math.sqrt(few_documents(n_resampled))
    rows, sds = [], []
    for each in evidence:
        counted, of = each.measured, each.replicates
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
