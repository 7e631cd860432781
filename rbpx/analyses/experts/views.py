"""The laws in active and in all parameters told: a table of their errors, and a sentence that says which foretells."""

from collections.abc import Sequence

from rbpx.analyses.experts.analysis import Experts, analyse, keep
from rbpx.analyses.question import Question
from rbpx.display.section import interval_of
from rbpx.display.view import Table, View, decimal, text, with_ends
from rbpx.display.vocabulary import decimals, law_title
from rbpx.errors import number_of
from rbpx.laws.intervals.estimate import NO_ESTIMATE
from rbpx.laws.routed import RoutedLaw

_Row = tuple[Experts, RoutedLaw]
_WORDS = {"active": "the parameters that a token uses", "total": "all parameters"}
LAWS = View[_Row](
    "experts",
    text("y", "law", lambda row: law_title(row[0].points.law, row[0].points.k)),
    text("law", "form", lambda row: row[1].form, "in active parameters, in all of them, or in both and their product"),
    with_ends(
        "error", "error", lambda row: row[1].error, decimals(4),
        "mean of |ln y − prediction| over the largest models, held out; interval over models of other S/N",
    ),
    with_ends("by ln N", "b", lambda row: row[1].constants["b"], decimals(4), spare=2),
    decimal("by ln S/N", "c", lambda row: row[1].constants.get("c", NO_ESTIMATE).value, 4, spare=3),
    with_ends(
        "product", "d", lambda row: row[1].constants.get("d", NO_ESTIMATE), decimals(4),
        "above 0: experts help less the larger a model is", spare=1,
    ),
)  # fmt: skip


def tables(results: Sequence[Experts]) -> list[Table]:
    """The errors of the laws of each group."""
    by_group: dict[str, list[_Row]] = {}
    for result in results:
        by_group.setdefault(result.group.title, []).extend((result, law) for law in result.routed.laws)
    return [LAWS.table("Larger models foretold by size", rows, title) for title, rows in by_group.items()]


def sentences(results: Sequence[Experts]) -> list[str]:
    """Which size foretells larger models better, and whether experts help less there."""
    said = []
    for result in results:
        routed, bilinear = result.routed, result.routed.laws[-1].constants["d"]
        y = f"{law_title(result.points.law, result.points.k)} of {result.group.title}"
        sizes = " and ".join(f"{N:.3g}" for N in routed.held_out)
        what = (
            "neither size foretells them better"
            if routed.better is None
            else f"{_WORDS[routed.better]} foretell them better"
        )
        said.append(
            f"{y}: {number_of(routed.n_held_out, 'model')} with {sizes} active parameters held out, {what}: the error "
            f"of ln y by all parameters minus that by those that a token uses is {interval_of(routed.difference, 4)}."
        )
        if bilinear.leaves_out_0:
            less = "less" if (bilinear.value or 0.0) > 0 else "more"
            said.append(f"{y}: experts help {less} the larger a model is (d = {interval_of(bilinear, 4)}).")
    return said


QUESTION = Question(analyse, keep, tables, sentences, says_all=True)
