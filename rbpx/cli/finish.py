"""What comes after the last job of a sweep: what its jobs left in, the laws over all of it and what failed out."""

import os
import sys
from collections.abc import Sequence
from typing import Any

from rbpx.analyses.perform import ANALYSES
from rbpx.analyses.perform import perform as perform_analyses
from rbpx.cli.argv import changes_of_study, narrowing
from rbpx.cli.outcome import Outcome, of_measured
from rbpx.config.options import Format
from rbpx.config.request import Request
from rbpx.display.visible import visible_line
from rbpx.store.notice import leads
from rbpx.store.reread import read_again
from rbpx.store.store import Record


def close_output() -> None:
    """`| head` has seen enough; what is still buffered has nowhere to go."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def finish(verb: str, outcomes: Sequence[Outcome]) -> int:
    """What comes after the last job: the laws over all of the sweep, and what failed. Returns the exit status."""
    outcomes = _after_waiting(outcomes)
    errors = [(o.error, o.status) for o in outcomes if o.error is not None]
    failures = [f for o in outcomes for f in o.failures]
    done = [key for o in outcomes for key in o.cell_keys]
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        from rbpx.measure.distributed import disband

        disband()
    if not leads():
        return 1 if errors or failures else 0
    requests = [o.request for o in outcomes if o.request is not None]
    if verb in ("run", "record") and requests:
        found = read_again(requests[0].store, lambda: _finish_run(requests, done))
        if verb == "record" and not errors and not failures:
            _record(requests[0], found)
    if verb in ANALYSES and requests:
        read_again(
            requests[0].store,
            lambda: perform_analyses([verb], [(request, None) for request in requests], writes=True),
        )
    if verb == "report" and requests:
        from rbpx.report.output import write_report

        read_again(requests[0].store, lambda: write_report([(request, None) for request in requests], narrowing()))
    if verb == "audit" and requests:
        _print_audits(requests[0], [found for o in outcomes for found in o.found])
    if verb == "plan" and requests:
        from rbpx.cli.tables.plan import show as show_plan

        show_plan([planned for o in outcomes for planned in o.found], requests[0].format)
    if verb == "status" and requests:
        from rbpx.cli.tables.status import print_status

        print_status(requests, [standing for o in outcomes for standing in o.found])
    for failure in failures:
        print(f"rbpx: {visible_line(failure.cell)} failed: {visible_line(failure.error)}", file=sys.stderr)
    for error in dict.fromkeys(error for error, _ in errors):
        print(f"rbpx: {visible_line(error)}", file=sys.stderr)
    if not errors and not failures:
        return 0
    wrong = all(f.request_is_wrong for f in failures) and all(status == 2 for _, status in errors)
    return 2 if wrong and not done else 1


def _finish_run(requests: Sequence[Request], done: Sequence[str]) -> list[Record]:
    """The analyses of a study, over all cells of its sweep; over what it imported where it measures nothing."""
    first = requests[0]
    if done:
        return perform_analyses(first.analyses, [(first, done)], asked=False)
    if first.model is None:
        return perform_analyses(first.analyses, [(request, None) for request in requests])
    return []


def _record(request: Request, found: Sequence[Record]) -> None:
    """Write what a study gives into its file."""
    from rbpx.cli.findings import write_findings
    from rbpx.config.places import folder

    if request.study is not None:
        source = folder("experiments") / f"{request.study.name}.yaml"
        written = write_findings(request.study, found, source, request.output, changes_of_study())
        print(f"findings of {request.study.name} written to {written}", file=sys.stderr)


def _after_waiting(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """The outcomes with those in place that waited to be measured."""
    waiting = [o.request for o in outcomes if o.waits and o.request is not None]
    if not waiting:
        return list(outcomes)
    from rbpx.measure.runner import measure_grids

    measured = map(of_measured, measure_grids(waiting))
    return [next(measured) if o.waits else o for o in outcomes]


def _print_audits(request: Request, found: Sequence[Any]) -> None:
    from rbpx.analyses.audit.analysis import records
    from rbpx.analyses.audit.table import show as show_audits
    from rbpx.display.tables import print_records

    if request.format is not Format.table:
        print_records([row for each in found for row in records(each)], request.format)
    elif found:
        show_audits(found)
