"""Gathers a report: asks every question as its verb does, and orders the results."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from rbpx.config.options import did_you_mean
from rbpx.display.chart.figure import Figure
from rbpx.display.progress import counted, share_of
from rbpx.display.section import Fact, Section
from rbpx.display.table import Table
from rbpx.display.vocabulary import UNKNOWN, enumerated
from rbpx.errors import RbpxError, number_of
from rbpx.laws.names import OnText
from rbpx.questions import render
from rbpx.questions.ask import answer_all, groups_of
from rbpx.questions.question import Grids, OfAll, OnPage
from rbpx.questions.registry import analyses, question
from rbpx.questions.result import Result
from rbpx.report.overview import glance, runs_sheet
from rbpx.runs.group import Group, titles_of
from rbpx.runs.origin import describe_runs
from rbpx.runs.processes import in_order
from rbpx.runs.run import MEASURED, Run, grouped
from rbpx.store.sql import connected_once
from rbpx.store.store import Store, now
from rbpx.version import __version__

_SECTIONS: Final = 10  # % of the time of a report
_MANY: Final = 12  # maximum number of groups with sections
MOST_OPEN: Final = 3  # maximum number of groups with open sections


@dataclass(frozen=True, eq=False)
class PageGroup:
    """One group of runs: its numbers, and a section for each question that is answered."""

    name: str
    title: str
    about: str
    facts: tuple[Fact, ...]
    sections: tuple[Section, ...]


@dataclass(frozen=True, eq=False)
class Report:
    """A whole report.

    Attributes:
        made_at: UTC, to the minute.
        narrowed: keys that chose among the runs, as typed.
        n_failed: cells that could not be measured.
        gaps: comparisons of texts and families.
        overview: all laws at a glance; across are figures of all groups, if there are many.
        paper: tables in the form of the paper's.
        first: with which the page begins.
        verb: the one question that it answers; empty for all.
    """

    store: str
    made_at: str
    version: str
    title: str
    narrowed: str
    n_tokens: int
    has_ranks: bool
    n_runs: int
    n_failed: int
    parts: tuple[PageGroup, ...]
    gaps: tuple[Section, ...]
    overview: Table
    paper: tuple[Table, ...]
    runs: Table
    first: tuple[PageGroup, ...] = ()
    across: tuple[Figure, ...] = ()
    verb: str = ""

    @property
    def has_contents(self) -> bool:
        """Whether there is anything to report: groups with a law in size, or comparisons."""
        return bool(self.parts or self.first or self.gaps or self.across)

    @property
    def example(self) -> str:
        """The name of the first group of the table, as `group=` takes it."""
        return _slug(self.overview.rows[0]["group"])


Answers = dict[str, list[Result]]
"""The results of each question."""


def _on_page(name: str) -> OnPage:
    return question(name).page


def _of_all() -> list[str]:
    """The questions that are asked of all groups; the first says which groups there are."""
    asked = {name: _on_page(name) for name, each in analyses().items() if each.in_report}
    return [name for name, page in asked.items() if page.of_all or page.opens]


def facts_of(name: str, result: Result) -> tuple[Fact, ...]:
    """The main numbers of a question's result, if it has any."""
    facts = _on_page(name).facts
    return tuple(facts(result)) if facts is not None and result.rows else ()


def gather(grids: Grids, narrowed: str = "") -> Report:
    """Asks every question about the chosen runs, and orders the results; RbpxError where no run matches."""
    grids = [(request.but(D=None), cell_keys) for request, cell_keys in grids]  # predictions are in S alone
    request = grids[0][0]
    if isinstance(request.axis, OnText):
        raise RbpxError(f"axis={request.axis.value} is not of a report, whose laws are of one text; ask predict")
    store = Store(request.store)
    n_failed = sum(1 for _ in store.records("failures"))
    if store.is_empty:
        return assembled(request.store, narrowed, n_failed, [], (), {}, {})
    of_all = _of_all()
    names = list(dict.fromkeys([*of_all, *_questions(across=False), *_questions(across=True)]))
    with connected_once(), counted("report, %", 100) as advance:
        asked = _asked(grids)
        with share_of(advance, 100 - _SECTIONS):
            answers = _find_all(names if asked is None else of_all, grids)
            if asked is not None:  # tables show all groups, and only some have sections
                answers |= _find_all([name for name in names if name not in of_all], grids, asked)
            others = _of_groups(grids, answers)
        with share_of(advance, _SECTIONS):
            parts = _parts(answers, asked)
            of_gaps = _sections_across(answers, bool(parts)) if asked is None or asked else ()
            beside = {name: of(answers[name]) for name in of_all if (of := _on_page(name).of_all) is not None}
            has_figures = asked is not None or len(parts) > MOST_OPEN
            across = tuple(figure for of in beside.values() if has_figures for figure in of.figures)
    report = assembled(request.store, narrowed, n_failed, parts, of_gaps, answers, beside)
    opening = [
        (name, each, _on_page(name).opening(each, _section(name, [each])))
        for name, results in (others | answers).items()
        for each in results
        if _opens(name, each)
    ]
    first = tuple(
        PageGroup(f"first-{n}", each.groups[0].title, "", facts_of(name, each), (section,))
        for n, (name, each, section) in enumerate(opening, 1)
    )
    return replace(report, first=first, across=across)


def _opens(name: str, result: Result) -> bool:
    opens = _on_page(name).opens
    return opens is not None and opens(result)


def _is_opened(answers: Answers) -> bool:
    return any(_opens(name, each) for name, results in answers.items() for each in results)


def _asked(grids: Grids) -> list[Group] | None:
    groups, named = list[Group](), grids[0][0].group
    with suppress(RbpxError):  # runs without a law in size make no groups; their questions give reasons
        groups = groups_of(_of_all()[0], grids)
    if named is None:
        return None if len(groups) <= _MANY else []
    by_slug = dict(zip(slugs_of(groups), groups, strict=True))
    names = [name if name in by_slug else _slug(name) for name in named]
    for name in names:
        if name not in (*by_slug, "all"):
            known = f"{', '.join(list(by_slug)[:3])}{', ...' if len(by_slug) > 3 else ''} or all"
            meant = did_you_mean(name, by_slug)
            raise RbpxError(f"group={name} is none of {number_of(len(by_slug), 'group')}; {meant}known: {known}")
    return None if "all" in names else [by_slug[name] for name in names]


def _questions(across: bool) -> list[str]:
    return [name for name, each in analyses().items() if each.in_report and (each.across or each.trainings) is across]


def _find_all(names: Sequence[str], grids: Grids, asked: Sequence[Group] | None = None) -> Answers:
    if asked == []:
        return {name: [] for name in names}
    texts = None if asked is None else {_text_of(group) for group in asked}

    def is_asked(name: str, group: Group) -> bool:
        return (texts is None or _text_of(group) in texts) and _on_page(name).suits(group)

    apart, first = dict(_apart(names, grids)), _of_all()[0]
    found = answer_all([name for name in names if name not in apart], grids, set(names) - {first}, is_asked)
    for name, own in apart.items():
        found |= answer_all([name], own, [name], is_asked)
    answers = {name: [] if isinstance(each, RbpxError) else each for name, each in found.items()}
    without = found.get(first)
    if isinstance(without, RbpxError) and not any(answers.values()):
        raise without
    return answers


def _apart(names: Sequence[str], grids: Grids) -> Iterator[tuple[str, Grids]]:
    for name in names:
        if (own := _on_page(name).grids) is not None:
            groups = list[Group]()
            with suppress(RbpxError):
                groups = groups_of(name, grids)
            yield from ((name, each) for each in own(grids, groups, False))


def _of_groups(grids: Grids, answers: Answers) -> Answers:
    groups, found = [each.groups[0] for name in reversed(_of_all()) for each in answers[name]], Answers()
    for name, described in analyses().items():
        if not described.in_report and (own := _on_page(name).grids) is not None:
            of_each = [answer_all([name], each, ())[name] for each in own(grids, groups, _is_opened(answers))]
            found[name] = [each for results in of_each if not isinstance(results, RbpxError) for each in results]
    return found


def _text_of(group: Group) -> tuple[str, str]:
    return group.first.family, group.first.dataset


def assembled(
    store: str,
    narrowed: str,
    n_failed: int,
    parts: Sequence[PageGroup],
    of_gaps: tuple[Section, ...],
    answers: Answers,
    beside: Mapping[str, OfAll],
) -> Report:
    """Assembles a report; `beside` is what questions say of all groups."""
    groups = [group for results in answers.values() for each in results for group in each.groups]
    runs = _runs_of(groups)
    families, datasets = (list(dict.fromkeys(getattr(run, name) for run in runs)) for name in ("family", "dataset"))
    has_ranks = any(run.source == MEASURED or run.observed for run in runs)
    paper = (table for of in beside.values() for table in of.paper)
    return Report(
        store=store,
        made_at=now()[:16].replace("T", " "),
        version=__version__,
        title=f"Scaling laws of {enumerated(families)} on {enumerated(datasets)}" if groups else "An empty store",
        narrowed=narrowed,
        n_tokens=sum(run.n_tokens or 0 for run in runs),
        has_ranks=has_ranks,
        n_runs=len(runs),
        n_failed=n_failed,
        parts=tuple(parts),
        gaps=of_gaps,
        overview=glance(answers, beside),
        paper=tuple(sorted(filter(_has_numbers, paper), key=lambda table: table.name)),
        runs=runs_sheet(runs),
    )


def _has_numbers(table: Table) -> bool:
    return any(each.is_number and each.text(row) != UNKNOWN for row in table.rows for each in table.columns)


def _runs_of(groups: Sequence[Group]) -> list[Run]:
    """The runs of groups, each once and no plans; a row that stands for several runs counts as those."""
    every = (run for group in groups for run in group.runs if not run.is_plan)
    runs = {(run.run_ids, run.size, run.family): run for run in every}
    single = {run_id for run_ids, *_ in runs if len(run_ids) == 1 for run_id in run_ids}
    return [run for run in runs.values() if len(run.run_ids) == 1 or not single.issuperset(run.run_ids)]


def slugs_of(groups: Sequence[Group]) -> list[str]:
    """Unique plain names of groups, for `group=` and anchors."""
    slugs: list[str] = []
    for title in titles_of(groups):
        slug = _slug(title)
        while slug in slugs:
            slug += "-"
        slugs.append(slug)
    return slugs


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-")


def _parts(answers: Answers, asked: Sequence[Group] | None) -> list[PageGroup]:
    of_groups = {name: list(answers[name]) for name in _questions(across=False)}
    groups = [each.groups[0] for each in answers[_of_all()[0]]]
    calls = [
        (name, title, group, {each: _taken(results, group) for each, results in of_groups.items()})
        for group, name, title in zip(groups, slugs_of(groups), titles_of(groups), strict=True)
        if asked is None or any(group.key == each.key for each in asked)
    ]
    with counted("report: sections", len(calls)) as advance:
        return in_order(_part, calls, advance)


def _taken(results: list[Result], group: Group) -> Result | None:
    for at, result in enumerate(results):
        if (result.groups[0].key, result.groups[0].run_ids) == (group.key, group.run_ids):
            return results.pop(at)
    return None


def _part(name: str, title: str, group: Group, own: dict[str, Result | None]) -> PageGroup:
    told = {each: result for each, result in own.items() if result is not None}
    of_all = _of_all()
    tiles = [fact for each, result in told.items() if each in of_all for fact in facts_of(each, result)]
    sections = [_section(each, [result]) for each, result in told.items()]
    kept = tuple(each for each in sections if each.name == of_all[0] or _answers(each))
    return PageGroup(name, title, describe_runs(group), tuple(tiles), kept)


def _section(name: str, results: list[Result]) -> Section:
    section = render.section(name, results)
    return replace(section, figures=tuple(each for each in section.figures if isinstance(each, Figure)))


def _answers(section: Section) -> bool:
    values = (each.values(row) for of in section.sheets for each in of.columns if each.is_interval for row in of.rows)
    has_interval = any(None not in ends for ends in values)
    return bool(section.figures or section.passages or has_interval)


def _sections_across(answers: Answers, has_parts: bool) -> tuple[Section, ...]:
    """The sections that compare groups, one for each family; those that say why there is no answer if alone."""
    calls = list[tuple[str, list[Result]]]()
    for name in _questions(across=True):
        results = [each for each in answers[name] if not _opens(name, each)]
        calls += [(name, found) for found in grouped(results, lambda each: each.groups[0].first.family).values()]
    sections = tuple(in_order(_section, calls))
    told = tuple(filter(_answers, sections))
    return told if told or has_parts or _is_opened(answers) else sections
