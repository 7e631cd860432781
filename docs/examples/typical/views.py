"""The typical rank told: a table of the runs, one of the law, a sentence and a figure."""

from collections.abc import Sequence

from rbpx.questions.question import Question, each
from rbpx.questions.typical.analysis import Typical, analyse, keep
from rbpx.display.chart.figure import Figure, Scale, Undrawn, scale_of
from rbpx.display.chart.laws import law_figure
from rbpx.display.section import interval
from rbpx.display.view import Table, View, decimal, magnitude, place, state, text, with_ends
from rbpx.runs.group import Run
from rbpx.runs.origin import from_fits

RUNS = View[tuple[Run, float]](
    "runs",
    text("size", "size", lambda row: row[0].size),
    place(lambda row: row[0]),
    magnitude("typical rank", "typical_rank", lambda row: row[1], means="exp of the mean of ln rank"),
)
LAW = View[Typical](
    "law",
    text("law", "law", lambda result: "typical rank"),
    with_ends("α", "alpha", lambda result: result.law.fit.exponent),
    decimal("R²", "r2", lambda result: result.law.fit.r2, 3),
    state(lambda result: result.law.fit.status),
)


def tables(results: Sequence[Typical]) -> list[Table]:
    """The runs of a group, and their law."""
    found = []
    for result in results:
        group, runs = result.group, zip(result.group.runs, result.ranks, strict=True)
        found += [RUNS.table("Typical ranks", runs, group.title, group.axis)]
        found += [LAW.table("Law of the typical rank", [result], group.title)]
    return found


def sentences(results: Sequence[Typical]) -> list[str]:
    """The exponent of each group."""
    said = []
    for result in results:
        fit, x = result.law.fit, result.group.axis.value
        if fit.alpha is not None:
            said.append(f"The typical rank falls as {x}^−α, α = {interval(fit.alpha, fit.alpha_lo, fit.alpha_hi)}.")
    return said


def figures(results: Sequence[Typical], fit_ids: Sequence[str]) -> list[Figure | Undrawn]:
    """The points and the law of each group."""
    found = []
    for result in results:
        group, y = result.group, Scale("typical_rank", "typical rank", log=True)
        ends = f"from {result.ranks[0]:.3g} to {result.ranks[-1]:.3g}"
        words = f"Typical rank of {group.title}, {ends}.", "Line: C·S^−α. Band: where 95 % of new models would lie."
        laws, origin = [("typical rank", result.law.fit)], from_fits(fit_ids, group)
        found.append(law_figure("typical", "The typical rank", laws, scale_of(group.axis), y, words, origin))
    return found


QUESTION = Question(each(analyse), keep, tables, sentences, figures)
