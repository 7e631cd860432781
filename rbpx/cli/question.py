"""Every verb that is a question: the store is asked once, for all jobs of a sweep, after the last one."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rbpx.cli.registry import Job, Outcome
from rbpx.config.options import Format
from rbpx.errors import RbpxError
from rbpx.questions.registry import analysis, question

if TYPE_CHECKING:
    from rbpx.cli.argv import CommandLine
    from rbpx.config.request import Request
    from rbpx.measure.results import Measured

_NARROWS = ("model", "size", "dataset", "protocol", "family", "source", "variant")


def start(job: Job) -> Any:
    """Answer what reads a file or measures again; what asks the store waits for the other jobs of its sweep.

    A question with a part `measure` first has measured what the store lacks for it.
    """
    verb, request, described = job.line.verb, _named(job.line, job.request), analysis(job.line.verb)
    if request.output is not None and request.format is Format.table:
        raise RbpxError(f"{verb} prints its tables; to write its rows to {request.output}, add --format csv or json")
    if is_told(verb, request):
        from rbpx.report.output import check

        check(request, verb)
    if job.words and not described.words:
        of_file = question(verb).of_file
        if of_file is None:
            raise RbpxError(f"{verb} takes no file; ask the store: python -m rbpx {verb} --store DIR")
        return of_file(_file(job), request)
    measure = question(verb).remeasure or question(verb).measure
    return None if measure is None else measure(request)


def finish(outcomes: Sequence[Outcome], line: "CommandLine") -> "list[Measured]":
    """Ask the store about all jobs as one, and print the answer."""
    from rbpx.cores import is_main_process
    from rbpx.measure.results import Measured

    requests, described = [_named(line, outcome.request) for outcome in outcomes], analysis(line.verb)
    if described.measures:
        if is_main_process():
            _tell(line.verb, [result for outcome in outcomes for result in outcome.answer[0]], requests[0])
        return [Measured(each.request, each.answer[1].run_ids, each.answer[1].failures) for each in outcomes]
    if line.words and not described.words:
        _tell(line.verb, [outcome.answer for outcome in outcomes], requests[0])
    elif is_main_process():
        _ask(line.verb, requests)
    if question(line.verb).measure is not None:
        return [Measured(each.request, each.answer.run_ids, each.answer.failures) for each in outcomes]
    return []


def _named(line: "CommandLine", request: "Request") -> "Request":
    """The request with the words of the command line as the keys that they stand for."""
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


def _ask(verb: str, requests: "Sequence[Request]") -> None:
    from rbpx.questions.ask import answer, asked_in_processes
    from rbpx.questions.render import perform
    from rbpx.report.output import write_answered

    grids = [(request, None) for request in requests]

    with asked_in_processes([verb], requests[0]):
        if is_told(verb, requests[0]):
            write_answered(verb, answer(verb, grids), requests[0])
        else:
            perform([verb], grids, writes=True)


def _tell(verb: str, results: Sequence[Any], request: "Request") -> None:
    """Print or write results that stand in no store."""
    if is_told(verb, request):
        from rbpx.report.output import write_answered

        write_answered(verb, results, request)
        return
    from rbpx.questions.render import print_results

    print_results(verb, results, request)


def is_told(verb: str, request: "Request") -> bool:
    """Whether its answer is written as a page, a text or figures, as a report is."""
    if request.format is Format.html and question(verb).page is not None:
        return False
    return request.format in (Format.html, Format.md, Format.tex, Format.svg, Format.pdf)


def _file(job: Job) -> Path:
    """The file that stands in place of the store."""
    verb, words = job.line.verb, job.words
    if len(words) > 1:
        raise RbpxError(f"{verb} takes one file, got {len(words)}: python -m rbpx {verb} {analysis(verb).file}")
    _refuse_narrowing(verb, job.request)
    return Path(words[0]).expanduser()


def _refuse_narrowing(verb: str, request: "Request") -> None:
    """A file is taken whole; what narrows the store would be passed over in silence."""
    for name in (name for name in _NARROWS if getattr(request, name) is not None):
        raise RbpxError(f"{name}= narrows what the store holds, and {verb} FILE takes all rows of its file; drop it")
