"""Performs every question: asks the store once, for all jobs of a sweep, after the last one."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rbpx.cli.registry import Command
from rbpx.config.options import Format
from rbpx.errors import RbpxError
from rbpx.files.output import check_output
from rbpx.questions.registry import analysis, question

if TYPE_CHECKING:
    from rbpx.cli.argv import CommandLine
    from rbpx.config.keys.output import QuestionKeys
    from rbpx.measure.results import Measured


def perform(asked: Command) -> "list[Measured]":
    """Asks the store about all jobs as one, or scores runs again, and tells the answer."""
    from rbpx.cores import is_main_process
    from rbpx.measure.results import Measured
    from rbpx.questions.ask import answer

    line, verb = asked.line, asked.line.verb
    requests: list[Any] = [_named(line, request) for request in asked.requests]
    again = question(verb).remeasure
    for request in requests:
        _check(verb, request)
    if again is None:
        if is_main_process():
            _tell(verb, answer(verb, [(request, None) for request in requests]), requests[0])
        return []
    found = [again(request) for request in requests]
    if is_main_process():
        _tell(verb, [result for results, _ in found for result in results], requests[0])
    return [Measured(of, each.run_ids, each.failures) for of, (_, each) in zip(requests, found, strict=True)]


def _check(verb: str, request: "QuestionKeys") -> None:
    """Refuses an output that cannot be written, before anything is computed."""
    if _is_told(request):
        from rbpx.report.output import check

        check(request, verb)
    elif request.output is not None:
        check_output(request.output)


def _named(line: "CommandLine", request: "QuestionKeys") -> "QuestionKeys":
    """The request with words of the command line as values of keys."""
    keys = analysis(line.verb).words
    if not line.words:
        return request
    if len(line.words) != len(keys):
        example = f"python -m rbpx {line.verb} {' '.join(keys).upper()}"
        raise RbpxError(f"{line.verb} takes {len(keys)} words, got {len(line.words)}: {example}")
    named: dict[str, Any] = dict(zip(keys, line.words, strict=True))
    return request.but(**named)


def _tell(verb: str, results: Sequence[Any], request: "QuestionKeys") -> None:
    if _is_told(request):
        from rbpx.report.output import write_answered

        write_answered(verb, results, request)
        return
    from rbpx.questions.render import print_results

    print_results(verb, results, request)


def _is_told(request: "QuestionKeys") -> bool:
    return request.format not in (Format.table, Format.csv, Format.json)
