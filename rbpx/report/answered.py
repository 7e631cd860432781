"""Makes the report of one question, with the sections that a whole report would have of it."""

from dataclasses import replace

from rbpx.questions import told
from rbpx.questions.answer import Answer
from rbpx.questions.fit.words import about
from rbpx.questions.registry import analysis
from rbpx.report.contents import Part, Report, assembled, fit_ids, listed, results_of, slugs_of

__all__ = ["answered"]


def answered(verb: str, answer: Answer, store: str) -> Report:
    """The report of one question.

    Args:
        verb: the question.
        answer: its results with their rows.
        store: the name of the store, as it was asked for.
    """
    rows_of = {id(result): rows for result, rows in answer}
    sections = [
        (each[0].group, told.section(verb, each, fit_ids([row for one in each for row in rows_of[id(one)]])))
        for each in told.together(verb, results_of(answer))
    ]
    owned = [] if analysis(verb).across else [(group, section) for group, section in sections if group is not None]
    parts = [
        (group, Part(name, group.title, about(group), (), (), (section,)))
        for name, (group, section) in zip(slugs_of([group for group, _ in owned]), owned, strict=True)
    ]
    across = () if parts else tuple(section for _, section in sections)
    families = dict.fromkeys(result.group.title_of_family for result, _ in answer if result.group is not None)
    title = analysis(verb).title + (f": {listed(list(families))}" if families else "")
    return replace(assembled(store, "", 0, parts, across, {"of": answer}), verb=verb, title=title, paper=())
