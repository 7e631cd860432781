"""Puts surfaces into sentences."""

from collections.abc import Iterable, Iterator, Sequence

from rbpx.config.model.training import is_raw
from rbpx.display.given import said_of_given
from rbpx.display.section import interval
from rbpx.display.vocabulary import number, percent, rough, short
from rbpx.errors import number_of
from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.surface.averaged import summary
from rbpx.laws.surface.design import Design
from rbpx.laws.surface.isoflop import Chosen
from rbpx.laws.sweeps import Cell
from rbpx.questions.surface.analysis import FormFit, SurfaceLaw, compute
from rbpx.runs.points.frontier import said_of_points
from rbpx.runs.points.outliers import said_of_outliers
from rbpx.runs.points.surfaces import Trained
from rbpx.runs.select.trainings import TrainingGroup
from rbpx.status import Status
from rbpx.store.store import Record


def sentences(group: TrainingGroup, laws: Sequence[SurfaceLaw], cells: Sequence[Cell]) -> Iterator[str]:
    """Which runs the surfaces are fitted to, what they leave, which form fits best, and how the best size grows."""
    yield _about(group, "run" if cells else "point")
    yield from said_of_points(cells, group.runs)
    if any(run.weight != 1 for run in group.runs) and not cells:
        yield "Runs count by their column weight."
    yield from said_of_outliers([law.trained for law in laws])
    for law in laws:
        together = why_collinear(law.trained, law.best.fit.design)
        ways = (_left(law.best), _compared(law), _foretold(law), _without_optimum(law), _isoflop(law), _growth(law))
        yield from (f"{law.trained.title}: {said}." for said in (together, *ways) if said)
        yield from said_of_given(law.trained.title, law.best.fit.pinned)


def _about(group: TrainingGroup, what: str) -> str:
    """How many points of how many trainings there are, and which runs are not among them."""
    n_trainings = len(set(group.trainings))
    said = number_of(len(group.runs), what)
    if group.averaged:
        said = f"{number_of(n_trainings, 'training')}, each the mean of its last {group.averaged} checkpoints or fewer"
    elif not group.are_trainings_known:
        said += ", each taken as a training of its own: no model or step says which are checkpoints of one training"
    elif n_trainings < len(group.runs):
        said += f" of {number_of(n_trainings, 'training')}"
        if group.n_undecayed:
            said += (
                f"; {group.n_undecayed} are states before the end of their training, which lie above finished runs of "
                "as many tokens unless no rate decays: checkpoints=last drops them"
            )
    left_out = {
        "with unknown tokens": group.n_unknown,
        "untrained (D = 0)": group.n_untrained,
        "with the weights of another": group.n_same,
        "earlier checkpoints": group.n_earlier,
        "raw checkpoints, whose rate has not decayed": 0 if is_raw(group.first.variant) else group.n_other,
    }
    if computed := sum(run.training_tokens is None for run in group.runs):
        said += f"; D = C / (6 S) for {computed}, whose tokens are not known"
    named = [f"{n} {why}" for why, n in left_out.items() if n]
    return said + (f"; left out: {', '.join(named)}" if named else "") + "."


def why_collinear(trained: Trained, design: Design | None) -> str | None:
    """What keeps a design from telling size from tokens; None where it can."""
    if design is None or not design.is_collinear:
        return None
    few = [number_of(design.n_S, "size")] if design.n_S < 3 else []
    few += [f"{number_of(design.n_D, 'number')} of tokens"] if design.n_D < 3 else []
    if few:
        return f"only {' and '.join(few)}: a surface needs 3 of each"
    ratio_N, C_N = trained.runs.D_N / trained.runs.S_N, 6 * trained.runs.S_N * trained.runs.D_N
    if ratio_N.max() < 1.1 * ratio_N.min():
        return f"every run has {short(ratio_N[0])} tokens per parameter, so size and tokens vary together"
    if C_N.max() < 1.1 * C_N.min():
        return f"all runs have one budget, C = {short(C_N[0])}, so size and tokens vary together"
    return f"tokens are nearly a power of size (sd of ln D about it {rough(design.sd)})"


def _left(form: FormFit) -> str | None:
    """What is left along each axis; None without a fit."""
    if form.fit.surface is None:
        return None
    off = f"runs scatter by {rough(form.fit.surface.scatter)} in ln y about {form.fit.form}"
    if form.fit.tuned is not None:
        share, excess = (float(each[0]) for each in (form.fit.tuned.share_B, form.fit.tuned.excess_B))
        bad = f"{share:.0%} of the runs are taken to be badly tuned, by {excess:.0%} on average"
        return f"{off}, those that are well tuned; {bad}"
    slopes, bent = [], []
    for of in form.row["params"]["against"]:
        value, lo, hi = map(number, of["slope"])
        slopes += [f"{of['axis']} {value} ({lo} to {hi})"] if of["slope"][0] is not None else []
        bent += [of["axis"]] if Estimate(*of["curvature"]).leaves_out_0 else []
    curve = f"; they curve along {', '.join(bent)}: misfit of the form" if bent else ""
    return f"{off}; slope of the residuals along {', '.join(slopes)}{curve}"


def _compared(law: SurfaceLaw) -> str | None:
    """Which form describes the points best and which predicts best; None where only one was asked for."""
    rows, least = [form.row for form in law.forms if form.fit.aic is not None], law.best.row
    if len(rows) < 2:
        return None
    against = [f"{row['form']} {row['aic'] - least['aic']:+.1f}" for row in rows if row is not least]
    said = f"least AIC: {least['form']} ({', '.join(against)})"
    tested = [(row["held_out_error"], row["form"]) for row in rows if row["held_out_error"] is not None]
    if not tested:
        return said
    error, form = min(tested)
    return f"{said}; least held-out error: {form} ({_unsigned(error)})"


def _unsigned(error: float) -> str:
    return percent(error).lstrip("+")


def _foretold(law: SurfaceLaw) -> str | None:
    """How well larger budgets were foretold from smaller ones, over forms and their misfit, as `predict` foretells."""
    found = summary(law.foretold)
    if found is None:
        return None
    error, inside, n = found
    said = f"over forms, larger budgets foretold from smaller ones are {_unsigned(error)} off"
    return f"{said}, {inside} of {n} in their intervals"


def _growth(law: SurfaceLaw) -> str | None:
    """How the best size grows with compute, by each known way; None where none is known."""
    row, optimal = law.best.row, law.optimal
    ways: Record = {} if optimal is None else {optimal.fit.form: optimal.row}
    ways |= {way: (row[name] or {}).get("law") for way, name in (("IsoFLOP", "isoflop"), ("envelope", "envelope"))}
    known = [(way, of) for way, of in ways.items() if of and of["a"] is not None]
    by = ", ".join(f"{way} {interval(of['a'], of['a_lo'], of['a_hi'])}" for way, of in known)
    if not by:
        return None
    ratios = [] if optimal is None else [(at["C"], at["D"] / at["S"]) for at in optimal.optima if at["S"] and at["D"]]
    has = [f"; at C = {short(C)} it has {short(ratio)} tokens per parameter" for C, ratio in ratios[:1]]
    return f"the best size grows as C^a, a by {by}{''.join(has)}"


def computes(quantities: Iterable[Trained]) -> str:
    """What C is in a table of several quantities."""
    stated = {compute(trained) != "6 S D" for trained in quantities}
    return "C = 6 S D" if stated <= {False} else "C as stated" if stated == {True} else "C as stated, else 6 S D"


def _without_optimum(law: SurfaceLaw) -> str | None:
    """Which forms give no best of a budget, and why; None where all do, or size cannot be told from tokens at all."""
    named = "; ".join(
        f"{each.fit.form} ({', '.join(name for name, of in each.fit.constants.items() if of.value is None)})"
        for each in law.forms
        if Status.not_identified in each.row["reasons"] and each.optima
    )
    return f"forms whose constants are not identified give no best of a budget: {named}" if named else None


_WHY = {
    Chosen.asked: "asked for",
    Chosen.lined_up: "all at which runs line up",
    Chosen.evenly_spaced: "evenly spaced, as runs line up at none: budgets= asks for others",
}


def _isoflop(law: SurfaceLaw) -> str | None:
    """Which budgets IsoFLOP looked at and why, and how many have a minimum; None where values have no law."""
    isoflop = law.best.row["isoflop"]
    if isoflop is None:
        return None
    found = [each["S"] is not None for each in isoflop["budgets"]]
    if not found:
        return "IsoFLOP: no budget is reached by 4 sizes"
    as_stated = "=" if isoflop["C"] == "6 S D" else "as"
    return (
        f"IsoFLOP: a minimum at {sum(found)} of {number_of(len(found), 'budget')} ({_WHY[isoflop['chosen']]}), "
        f"C {as_stated} {isoflop['C']}"
    )
