"""The law in k: fitted groups in; table 1 of the RBP paper and the exchange rate between k and size out."""

from collections.abc import Hashable, Sequence

from rich.console import Console
from rich.markup import escape

from rbpx.analyses.klaw.analysis import STEP, KLaw, KLaws, doubts
from rbpx.display.along import LARGEST, in_axis, place, place_heading, print_group_notes
from rbpx.display.fit_cells import constant
from rbpx.display.names import status_name
from rbpx.display.numbers import UNKNOWN, number, rough, short, span, with_ends
from rbpx.display.tables import console, grid, print_notes, put
from rbpx.groups.labels import labels_of
from rbpx.laws.interval import Estimate
from rbpx.laws.joint import MIN_K, JointLaw, KForm
from rbpx.laws.names import Axis


def show(results: Sequence[KLaws]) -> None:
    """Print R2 and slope of each model on each dataset, as in table 1, then what ten times the k is worth in size."""
    screen = console()
    of_sizes = [laws for laws in results if laws.group.axis is Axis.S]  # elsewhere a size has several rows, below
    for family in dict.fromkeys(laws.group.first.family for laws in of_sizes):
        of_family = [laws for laws in of_sizes if laws.group.first.family == family]
        table = grid("Laws in k: -ln RBP_k = C · k^slope at fixed S", ["size", *("R2   slope" for _ in of_family)])
        table.add_row("", *(f"[bold]{escape(laws.group.title)}[/bold]" for laws in of_family))
        models = {law.run.training: law.run for laws in of_family for law in laws.laws}
        for training, label in zip(models, labels_of(list(models.values())), strict=True):
            table.add_row(escape(label), *(_pair(laws, training) for laws in of_family))
        put(screen, table)
    axis = results[0].group.axis
    level = [in_axis(column, axis) for column in ("C", "95 % of C")]
    columns = ["size", "S", *place_heading(axis), "alpha_k", "95 % of it", *level, "R2", "neighbours"]
    columns += [f"{axis.value} times", "95 % interval", "rate"]
    spare = ("neighbours", "S", "R2", *level)
    for laws in results:
        table = grid(f"{laws.group.title}: k = {STEP} against {LARGEST[axis]}", [*columns, "status"], spare=spare)
        for law in laws.laws:
            table.add_row(*_exchange_row(law))
        put(screen, table)
        if laws.joint is not None:
            _print_joint(screen, laws, laws.joint)
    ks, x = ", ".join(map(str, results[0].k_grid)), axis.value
    print_notes(
        screen,
        f"k = {ks}; ties {results[0].group.ties.value}; least squares of ln(-ln RBP_k) on ln k. Interval of alpha_k: "
        "other documents, at all k together, as hits at one k are hits at every larger k. Neighbours: correlation of "
        f"the residuals of neighbouring k. {x} times: {_MORE[axis]} to do at k = 1 what this one does at k = {STEP}, "
        f"{STEP}^(alpha_k / alpha_{x}) with alpha_{x} of the law in {x} at k = 1; – for an end: no {LARGEST[axis]} is "
        f"known to suffice. Rate: d ln {x} / d ln k at constant RBP. Where the law in k bends, alpha_k is that of the "
        f"best line over these k, and {x} times and rate are local: they take alpha between k = 1 and {STEP} alone. "
        "One law for all k: sizes are the units of its tests, as the values of one size err together; it holds where "
        "alpha does not change with ln k and nothing bends in ln k. AIC and BIC, above the least, are of a likelihood "
        "on this text in which k of one size are correlated; largest off by: root mean square over k, from the smaller "
        "sizes.",
        (status for laws in results for status in doubts(laws)),
    )
    print_group_notes(screen, [laws.group for laws in results])


def _print_joint(screen: Console, laws: KLaws, joint: JointLaw) -> None:
    """Print the one law for all k, then what would replace it."""
    x = laws.group.axis.value
    title = f"{laws.group.title}: one law for all k, -ln RBP_k = C · k^-kappa · {x}^-alpha, over {_ks(joint.of_range)}"
    table = grid(title, ["", "value", "95 % interval"])
    rows = [("alpha", Estimate(joint.alpha.alpha, joint.alpha.alpha_lo, joint.alpha.alpha_hi)), ("kappa", joint.kappa)]
    rows += [("alpha, more for each ln k", joint.drift)]
    rows += [] if joint.bend is None else [("bend in ln k", joint.bend)]
    for name, estimate in rows:
        table.add_row(name, *with_ends(estimate))
    put(screen, table)
    table = grid(f"{laws.group.title}: what would replace it", ["form", "parameters", "AIC", "BIC", "largest off by"])
    least = min(form.aic for form in joint.forms), min(form.bic for form in joint.forms)
    for form in joint.forms:
        off = UNKNOWN if form.backtest_error is None else f"{form.backtest_error:.1%}"
        above = [f"{value - low:,.1f}" for value, low in zip((form.aic, form.bic), least, strict=True)]
        table.add_row(_FORMS[form.form], str(form.n_parameters), *above, off)
    put(screen, table)
    if joint.range is None:
        said = f"is rejected over each of the {joint.n_ranges} ranges of {MIN_K} k or more"
        said = f"has too few k for a test ({MIN_K} are needed)" if not joint.n_ranges else said
    else:
        said = f"is not rejected from k = {joint.range[0]:,} to {joint.range[1]:,}"
        said += "" if joint.holds else ", and over no wider range"
    screen.print(f"{laws.group.title}: one law {said}.", soft_wrap=True)


def _ks(ks: Sequence[int]) -> str:
    return f"k = {ks[0]:,} to {ks[-1]:,}"


_FORMS = {
    KForm.joint: "one law",
    KForm.drifting: "alpha drifts with ln k",
    KForm.levels: "one alpha, a constant a k",
    KForm.separate: "a law for each k",
}
_MORE = {
    Axis.S: "how many times larger a model must be",
    Axis.D: "on how many times more tokens a model must be trained",
    Axis.C: "how many times more compute a model must have had",
    Axis.step: "how many times more steps a model must be trained",
}


def _pair(laws: KLaws, training: Hashable) -> str:
    law = next((law for law in laws.laws if law.run.training == training), None)
    if law is None or law.fit.alpha is None:
        return UNKNOWN
    return f"{number(law.fit.r2, 3)} {-law.fit.alpha:.3f}"


def _exchange_row(law: KLaw) -> list[str]:
    fit, exchange = law.fit, law.exchange
    worth = [UNKNOWN] * 3
    if exchange is not None:
        ends = f"{rough(exchange.lo)}..{rough(exchange.hi)}" if exchange.lo is not None else UNKNOWN
        worth = [short(exchange.factor), ends, f"-{exchange.rate:.2f}"]
    return [
        escape(law.label if law.run.axis is Axis.S else law.run.size),  # elsewhere its place stands beside it
        f"{law.run.non_embedding_params:,}",
        *place(law.run),
        number(fit.alpha),
        span(fit.alpha_lo, fit.alpha_hi, 3),
        *constant(fit),
        number(fit.r2, 3),
        number(fit.params.get("residual_autocorrelation"), 2),
        *worth,
        status_name(fit.status),
    ]
