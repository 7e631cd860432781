"""What a report begins with where a family has variants."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from rbpx.display.law_columns import estimate_in
from rbpx.display.section import Fact, Section, fact_of
from rbpx.display.vocabulary import law_title
from rbpx.laws.names import Axis
from rbpx.questions.multiplier import ANALYSIS
from rbpx.questions.question import Grids, OnPage
from rbpx.questions.result import Result
from rbpx.runs.group import Group
from rbpx.runs.run import grouped

WORTH: Final = {"S": "size", "D": "tokens", "C": "compute", "step": "steps"}
_MOST: Final = 3  # variants of a family


def facts(result: Result) -> Iterator[Fact]:
    """What the variant is worth by each quantity."""
    overall = [row for row in result.rows if row["kind"] == "overall" and row["multiplier"] is not None]
    for row in [row for row in overall if row["offset"] == overall[0]["offset"]]:
        label = f"times the {WORTH[row['axis']]}, by {law_title(row['law'], row['k'])}"
        yield fact_of(label, estimate_in(row, "multiplier"), row["status"])


def of_variants(grids: Grids, groups: Sequence[Group], is_opened: bool) -> Sequence[Grids]:
    """Grids for each variant of a family beside its runs without one, or else the first variant."""
    found, axis = list[Grids](), {"axis": Axis.C} if is_opened else {}
    for family, own in grouped(groups, lambda group: group.first.family).items():
        variants = sorted(dict.fromkeys(group.first.variant or "" for group in own))
        base, *others = (f"{family}:{variant}" if variant else family for variant in variants)
        for other in others[:_MOST]:
            found.append([(each.but(base=base, variant=[other], **axis), cell_keys) for each, cell_keys in grids])
    return found


def opening(result: Result, section: Section) -> Section:
    """Ends the first sentence where the answer ends; what it rests on follows."""
    first = result.groups[0].first
    told = (each.removesuffix(".").partition("; ") for each in section.sentences)
    sentences = tuple(f"{part[:1].upper()}{part[1:]}." for answer, _, rest in told for part in (answer, rest) if part)
    return replace(section, title=f"{ANALYSIS.title}: {first.family} on {first.dataset}", sentences=sentences)


PAGE: Final = OnPage(facts=facts, opens=lambda result: bool(result.rows), opening=opening, grids=of_variants)
