"""Tables of closure: every form at the largest size, and each quantity by the chosen form; the same in sentences."""

from collections.abc import Callable, Iterator
from typing import Final

from rbpx.analyses.closure.analysis import Closures, analyse, keep
from rbpx.analyses.closure.figures import figures
from rbpx.analyses.closure.held_out import FormResult, Held
from rbpx.analyses.question import Question, each, one_by_one
from rbpx.display.section import interval_of
from rbpx.display.view import (
    Cell,
    Column,
    Table,
    View,
    behind,
    decimal,
    error,
    magnitude,
    share,
    state,
    text,
    whole,
    with_ends,
)
from rbpx.display.vocabulary import law_title, percent, short
from rbpx.errors import number_of
from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.ranks.shapes import RANK_FORMS


@one_by_one
def tables(closures: Closures) -> Iterator[Table]:
    """Every form, then the chosen one."""
    group, last = closures.group, closures.group.runs[-1]
    smaller = [run.size for run in group.runs if run.non_embedding_params < last.non_embedding_params]
    title = f"Forms of the distribution of ranks: {last.size}, from {smaller[0]} to {smaller[-1]}"
    note = (
        f"Ties {group.ties.value}. Each form is fitted to all sizes but the largest at once, with its parameters on "
        "lines in ln S. A form without kinds of tokens takes CE to be H(P)."
    )
    yield FORMS.table(title, closures.forms, group.title, note=note)
    for chosen in closures.forms[:1]:
        title = f"The chosen form, {chosen.label}: {RANK_FORMS[chosen.name].equation}"
        yield CHOSEN.table(title, chosen.held, group.title)


def _error_of(quantity: str) -> Callable[[FormResult], float | None]:
    return lambda form: next((held.error for held in form.held if held.quantity == quantity), None)


def _inside(form: FormResult) -> Cell:
    return Cell((f"{form.n_inside}/{form.n_scored}",), (form.n_inside, form.n_scored))


def _own(held: Held) -> Estimate:
    own = held.own / held.measured
    return Estimate(own - 1, own / held.own_reach - 1, own * held.own_reach - 1)


FORMS: Final = View[FormResult](
    "forms",
    text("form", "form", lambda form: form.label),
    whole("P", "n_parameters", lambda form: form.n_parameters, "parameters at one size", 5),
    share(
        "off", "error", lambda form: form.error,
        means="median error at the largest size, over −ln RBP_k up to the largest k whose law stands, H(P) and CE",
    ),
    share(
        "choice", "error_choice", lambda form: form.error_choice,
        means="median error of all quantities at the sizes that chose the first form, each predicted from those below",
    ),
    share("own fit", "error_own", lambda form: form.error_own, means="off when fitted to that size itself", spare=3),
    error("H(P)", "error_of_error_entropy", _error_of("error_entropy"), "error of error-entropy", 1),
    error("CE", "error_of_cross_entropy", _error_of("cross_entropy"), "error of cross-entropy", 1),
    Column("inside", ("n_inside", "n_scored"), _inside, "how many of these quantities lie within their 95 % intervals"),
    behind(
        "behind", lambda form: form.behind,
        "nats per token of the largest size that it loses to the most likely form; interval over documents", 2,
    ),
    decimal("α of −ln RBP_1", "alpha_rbp_1", lambda form: form.alpha_rbp_1, 3, "exponent that it implies", 4),
    decimal("α of CE", "alpha_cross_entropy", lambda form: form.alpha_cross_entropy, 3, spare=4),
    text("closes", "closes", lambda form: "yes" if form.closes else "no", "whether all are inside"),
    state(lambda form: form.status),
)  # fmt: skip
CHOSEN: Final = View[Held](
    "chosen",
    text("quantity", "quantity", lambda held: law_title(held.quantity, held.k)),
    magnitude("measured", "measured", lambda held: held.measured),
    with_ends(
        "predicted", "predicted", lambda held: held.foretold, short,
        "from the smaller sizes; interval over documents and models",
    ),
    error("error", "error", lambda held: held.error),
    error(
        "separate", "error_separate", lambda held: held.separate / held.measured - 1,
        "error of a law of this quantity alone", 1,
    ),
    with_ends("own fit", "error_own", _own, percent, "error of the form when fitted to the largest size itself", 2),
    text(
        "inside", "inside", lambda held: ("{}" if held.scored else "({})").format("yes" if held.inside else "no"),
        "in brackets where it does not count",
    ),
)  # fmt: skip


@one_by_one
def sentences(closures: Closures) -> Iterator[str]:
    """Whether the chosen form yields all laws, which others would, and the difference of exponents that it implies."""
    if not closures.forms:
        yield f"No form was fitted: {closures.status.label}. {closures.status.remedy}"
        return
    chosen, measured = closures.forms[0], closures.exponents
    if chosen.error is None:
        return
    reach = "RBP at no k" if closures.reach is None else f"RBP up to k = {closures.reach:,}"
    separate = "" if closures.separate is None else f", separate laws by {closures.separate:.1%}"
    judge = closures.group.runs[-1].size
    yield (
        f"{'All' if chosen.closes else 'Not all'} laws follow from {chosen.label} ({reach}). Chosen by "
        f"{_choice(closures)}, it has {chosen.n_inside} of {chosen.n_scored} quantities of {judge}, which took no part "
        f"in the choice, within their intervals and is off by {chosen.error:.1%}{separate}."
    )
    if others := [form.label for form in closures.forms[1:] if form.closes]:
        yield (
            f"Of the other forms, {'; '.join(others)} would have all within. That is known from {judge} alone, and "
            f"{number_of(len(closures.forms), 'form')} were tried: let a larger size judge."
        )
    if measured is not None and measured.alpha is not None and chosen.difference is not None:
        yield (
            f"The exponent of −ln RBP_1 minus that of cross-entropy is {interval_of(measured.exponent)}; "
            f"{chosen.label} implies {chosen.difference:.3f}."
        )


def _choice(closures: Closures) -> str:
    if closures.chosen_on:
        return f"how it predicts {', '.join(closures.chosen_on)} from the sizes below"
    return "how it fits the smaller sizes, which are too few to hold one of them out"


QUESTION = Question(each(analyse), keep, tables, sentences, figures, says_all=True)
