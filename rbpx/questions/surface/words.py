"""Puts surfaces into sentences."""

from collections.abc import Iterable, Iterator

from rbpx.config.model.training import is_raw
from rbpx.display.given import said_of_given
from rbpx.display.section import interval_of
from rbpx.display.vocabulary import number, percent, rough, short
from rbpx.errors import number_of
from rbpx.laws.surface.averaged import summary
from rbpx.laws.surface.design import Design
from rbpx.laws.surface.isoflop import Chosen
from rbpx.questions.question import one_by_one
from rbpx.questions.surface.analysis import FormFit, SurfaceLaw, Surfaces
from rbpx.runs.points.frontier import said_of_points
from rbpx.runs.points.outliers import said_of_outliers
from rbpx.runs.points.surfaces import Trained
from rbpx.runs.select.trainings import TrainingGroup
from rbpx.status import Status


@one_by_one
def sentences(of: Surfaces) -> Iterator[str]:
    """Which runs the surfaces are fitted to, what they leave, which form fits best, and how the best size grows."""
    cells = [cell for law in of.laws for cell in law.trained.cells]
    yield _about(of.group, "run" if cells else "point")
    yield from said_of_points(cells, of.group.runs)
    if any(run.weight != 1 for run in of.group.runs) and not cells:
        yield "Runs count by their column weight."
    yield from said_of_outliers([law.trained for law in of.laws])
    for law in of.laws:
        ways = (
            together(law.trained, law.best.fit.design),
            _left(law.best),
            _compared(law),
            _foretold(law),
            _without_optimum(law),
        )
        yield from (f"{law.trained.title}: {said}." for said in (*ways, _isoflop(law), _growth(law)) if said)
        yield from said_of_given(law.trained.title, law.best.fit.pinned)


def _about(group: TrainingGroup, what: str) -> str:
    """How many points of how many trainings there are, and which runs are not among them."""
    n_trainings = len(set(group.trainings))
    said = number_of(len(group.runs), what)
    if group.averaged:
        said = f"{number_of(n_trainings, 'training')}, each the mean of its last {group.averaged} checkpoints or fewer"
    elif not group.are_trainings_known:
        said += ", each taken as a training of its own: no model or step says which are checkpoints of one training"
    elif n_trainings < len(group.runs) and not group.n_undecayed:
        said += f" of {number_of(n_trainings, 'training')}"
    elif n_trainings < len(group.runs):
        said += (
            f" of {number_of(n_trainings, 'training')}; {group.n_undecayed} are states before the end of their "
            "training, which lie above finished runs of as many tokens unless no rate decays: checkpoints=last "
            "drops them"
        )
    left_out = {
        "with unknown tokens": group.n_unknown,
        "untrained (D = 0)": group.n_untrained,
        "with the weights of another": group.n_same,
        "earlier checkpoints": group.n_earlier,
        "raw checkpoints, whose rate has not decayed": 0 if is_raw(group.first.variant) else group.n_other,
    }
    named = [f"{n} {why}" for why, n in left_out.items() if n]
    computed = sum(run.training_tokens is None for run in group.runs)
    if computed:
        said += f"; D = C / (6 S) for {computed}, whose tokens are not known"
    return said + (f"; left out: {', '.join(named)}" if named else "") + "."


def together(trained: Trained, design: Design | None) -> str | None:
    """What keeps a design from telling size from tokens; None where it can."""
    if design is None or not design.is_collinear:
        return None
    S, D = trained.runs.S_N.tolist(), trained.runs.D_N.tolist()
    ratios, budgets = ([d / s for s, d in zip(S, D, strict=True)], [6 * s * d for s, d in zip(S, D, strict=True)])
    if design.n_S < 3 or design.n_D < 3:
        few = [number_of(design.n_S, "size")] if design.n_S < 3 else []
        few += [f"{number_of(design.n_D, 'number')} of tokens"] if design.n_D < 3 else []
        return f"only {' and '.join(few)}: a surface needs 3 of each"
    if max(ratios) < 1.1 * min(ratios):
        return f"every run has {short(ratios[0])} tokens per parameter, so size and tokens vary together"
    if max(budgets) < 1.1 * min(budgets):
        return f"all runs have one budget, C = {short(budgets[0])}, so size and tokens vary together"
    return f"tokens are nearly a power of size (sd of ln D about it {rough(design.sd)})"


def _left(form: FormFit) -> str | None:
    """What is left along each axis; None without a fit."""
    surface = form.fit.surface
    if surface is None:
        return None
    off = f"runs scatter by {rough(surface.scatter)} in ln y about {form.fit.form}"
    if form.fit.tuned is not None:
        share, excess = (float(each[0]) for each in (form.fit.tuned.share_B, form.fit.tuned.excess_B))
        bad = f"{share:.0%} of the runs are taken to be badly tuned, by {excess:.0%} on average"
        return f"{off}, those that are well tuned; {bad}"
    slopes = [
        f"{each.axis.value} {number(each.slope.value)} ({number(each.slope.lo)} to {number(each.slope.hi)})"
        for each in form.against
        if each.slope.value is not None
    ]
    bent = [each.axis.value for each in form.against if each.curvature.leaves_out_0]
    curve = f"; they curve along {', '.join(bent)}: misfit of the form" if bent else ""
    return f"{off}; slope of the residuals along {', '.join(slopes)}{curve}"


def _compared(law: SurfaceLaw) -> str | None:
    """Which form describes the points best and which predicts best; None where only one was asked for."""
    known, least = [(each, each.fit.aic) for each in law.forms if each.fit.aic is not None], law.best
    if len(known) < 2:
        return None
    against = [f"{each.fit.form} {aic - (least.fit.aic or 0.0):+.1f}" for each, aic in known if each is not least]
    said = f"least AIC: {least.fit.form} ({', '.join(against)})"
    tested = [(error, each.fit.form) for each, _ in known if (error := each.held_out_error) is not None]
    if not tested:
        return said
    error, form = min(tested, key=lambda each: each[0])
    return f"{said}; least held-out error: {form} ({percent(error).lstrip('+')})"


def _foretold(law: SurfaceLaw) -> str | None:
    """How well larger budgets were foretold from smaller ones, over forms and their misfit, as `predict` foretells."""
    found = summary(law.foretold)
    if found is None:
        return None
    error, inside, n = found
    off = percent(error).lstrip("+")
    return f"over forms, larger budgets foretold from smaller ones are {off} off, {inside} of {n} in their intervals"


def _growth(law: SurfaceLaw) -> str | None:
    """How the best size grows with compute, by each known way; None where none is known."""
    ways = {
        **({law.optimal.fit.form: law.optimal.split[0]} if law.optimal is not None and law.optimal.split else {}),
        "IsoFLOP": None if law.isoflop is None or law.isoflop.law is None else law.isoflop.law.a,
        "envelope": None if law.envelope is None or law.envelope.law is None else law.envelope.law.a,
    }
    known = [(way, a) for way, a in ways.items() if a is not None and a.value is not None]
    by = ", ".join(f"{way} {interval_of(a)}" for way, a in known)
    if not by:
        return None
    shown = () if law.optimal is None else law.optimal.shown
    best = next(((each.C, each.D.value / each.S.value) for each in shown if each.S.value and each.D.value), None)
    has = "" if best is None else f"; at C = {short(best[0])} it has {short(best[1])} tokens per parameter"
    return f"the best size grows as C^a, a by {by}{has}"


def computes(laws: Iterable[SurfaceLaw]) -> str:
    """What C is in a table of several quantities."""
    stated = {law.compute != "6 S D" for law in laws}
    return "C = 6 S D" if stated <= {False} else "C as stated" if stated == {True} else "C as stated, else 6 S D"


def _without_optimum(law: SurfaceLaw) -> str | None:
    """Which forms give no best of a budget, and why; None where all do, or size cannot be told from tokens at all."""
    named = "; ".join(
        f"{each.fit.form} ({', '.join(name for name, of in each.fit.constants.items() if of.value is None)})"
        for each in law.forms
        if Status.not_identified in each.reasons and each.optima
    )
    return f"forms whose constants are not identified give no best of a budget: {named}" if named else None


def _isoflop(law: SurfaceLaw) -> str | None:
    """Which budgets IsoFLOP looked at and why, and how many have a minimum; None where values have no law."""
    if law.isoflop is None:
        return None
    budgets = law.isoflop.budgets
    if not budgets:
        return "IsoFLOP: no budget is reached by 4 sizes"
    why = {
        Chosen.asked: "asked for",
        Chosen.lined_up: "all at which runs line up",
        Chosen.evenly_spaced: "evenly spaced, as runs line up at none: budgets= asks for others",
    }
    return (
        f"IsoFLOP: a minimum at {law.isoflop.n_found} of {number_of(len(budgets), 'budget')} ({why[law.chosen]}), "
        f"C {'=' if law.compute == '6 S D' else 'as'} {law.compute}"
    )
