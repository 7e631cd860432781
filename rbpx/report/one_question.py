"""Makes the report of one question."""

from collections.abc import Sequence
from dataclasses import replace

from rbpx.display.vocabulary import enumerated
from rbpx.questions import render
from rbpx.questions.registry import analysis
from rbpx.questions.result import Result
from rbpx.report.contents import PageGroup, Report, assembled, facts_of, slugs_of
from rbpx.runs.origin import describe_runs


def answered(verb: str, results: Sequence[Result], store: str) -> Report:
    """The report of the results of one question."""
    sections = [(each, replace(render.section(verb, [each]), passages=tuple(each.passages))) for each in results]
    owned = [] if analysis(verb).across else [(of.groups[0], of, section) for of, section in sections]
    parts = [
        PageGroup(name, group.title, describe_runs(group), facts_of(verb, of), (section,))
        for name, (group, of, section) in zip(slugs_of([group for group, *_ in owned]), owned, strict=True)
    ]
    across = () if parts else tuple(section for _, section in sections)
    families = dict.fromkeys(group.title_of_family for each in results for group in each.groups)
    title = analysis(verb).title + (f": {enumerated(list(families))}" if families else "")
    report = assembled(store, "", 0, parts, across, {verb: list(results)}, {})
    return replace(report, verb=verb, title=title, paper=())
