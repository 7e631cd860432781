"""Performs every question: asks the store once, for all jobs of a sweep, after the last one."""

from collections.abc import Sequence
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

from rbpx.cli.registry import Command
from rbpx.config.options import Format
from rbpx.errors import RbpxError
from rbpx.files.output import check_output, opened
from rbpx.questions.registry import analysis, question

if TYPE_CHECKING:
    from rbpx.cli.argv import CommandLine
    from rbpx.config.keys.output import QuestionKeys
    from rbpx.measure.results import Measured


def perform(asked: Command) -> "list[Measured]":
    """Asks the store about all jobs as one, or scores runs again, and prints the answer."""
    from rbpx.cores import is_main_process
    from rbpx.measure.results import Measured

    line, verb = asked.line, asked.line.verb
    requests: list[Any] = [_named(line, _as_suffix_says(request)) for request in asked.requests]
    of_verb = question(verb)
    for request in requests:
        _check(verb, request)
    again = [] if of_verb.remeasure is None else [of_verb.remeasure(request) for request in requests]
    if is_main_process():
        if again:
            _tell(verb, [result for results, _ in again for result in results], requests[0])
        else:
            _ask(verb, requests)
    became = [each for _, each in again]
    return [Measured(request, each.run_ids, each.failures) for request, each in zip(requests, became, strict=False)]


def _as_suffix_says(request: "QuestionKeys") -> "QuestionKeys":
    """Returns the request with the format that the suffix of its output names, unless it has a format for programs."""
    said = Format.of_suffix(request.output)
    return request if said is None or request.format is not Format.table else request.but(format=said)


def _check(verb: str, request: "QuestionKeys") -> None:
    """Refuses an output that cannot be written, before anything is computed."""
    if request.output is not None and request.format is Format.table:
        check_output(request.output)
    if is_told(request):
        from rbpx.report.output import check

        check(request, verb)


def _named(line: "CommandLine", request: "QuestionKeys") -> "QuestionKeys":
    """Returns the request with the words of the command line as values of keys."""
    keys = analysis(line.verb).words
    if not line.words:
        given = [key for key in keys if request.typed.get(key) is not None]
        if given and len(given) < len(keys):
            (missing,) = set(keys) - set(given)
            raise RbpxError(
                f"{missing}= is missing; {line.verb} compares two: {' '.join(f'{key}=...' for key in keys)}"
            )
    if not keys or not line.words:
        return request
    if len(line.words) != len(keys):
        example = f"python -m rbpx {line.verb} {' '.join(keys).upper()}"
        raise RbpxError(f"{line.verb} takes {len(keys)} words, got {len(line.words)}: {example}")
    named: dict[str, Any] = dict(zip(keys, line.words, strict=True))
    return request.but(**named)


def _ask(verb: str, requests: "Sequence[QuestionKeys]") -> None:
    from rbpx.questions.ask import answer
    from rbpx.questions.render import perform

    grids = [(request, None) for request in requests]
    if is_told(requests[0]):
        from rbpx.report.output import write_answered

        write_answered(verb, answer(verb, grids), requests[0])
    elif requests[0].format is Format.table and requests[0].output is not None:
        with opened(requests[0].output) as file, redirect_stdout(file):
            perform([verb], grids)
    else:
        perform([verb], grids, writes=True)


def _tell(verb: str, results: Sequence[Any], request: "QuestionKeys") -> None:
    """Prints or writes results that are not in a store."""
    if is_told(request):
        from rbpx.report.output import write_answered

        write_answered(verb, results, request)
        return
    from rbpx.questions.render import print_results

    print_results(verb, results, request)


def is_told(request: "QuestionKeys") -> bool:
    """Whether the answer is written as a page, a text or figures, as a report is."""
    return request.format.is_figures or request.format in (Format.html, Format.md, Format.tex)
