"""One job of a sweep: a configuration in, the outcome of its verb out; a user's mistake is an outcome, not raised."""

import os
import sys
from typing import Any

from omegaconf import OmegaConf

from rbpx.analyses.registry import analyses, has
from rbpx.cli.argv import CommandLine
from rbpx.cli.messages import show_messages_of_job
from rbpx.cli.registry import about, module
from rbpx.cli.verb import Job, Outcome, Verb
from rbpx.config.options import Format
from rbpx.config.request import Request
from rbpx.errors import MeasureError, RbpxError
from rbpx.store.reread import read_again


def run_job(line: CommandLine, config: Any, alone: bool) -> Outcome:
    """Start the verb, in whatever process a launcher chose."""
    show_messages_of_job()
    described = about(line.verb)
    try:
        request: Any = OmegaConf.to_object(config)
        _check_shown(line.verb, request)
        job, start = Job(request, line, alone), module(line.verb).start
        if isinstance(described, Verb) and not described.needs_store:
            return Outcome(request, start(job))
        return Outcome(request, read_again(request.store, lambda: start(job)))
    except MeasureError as problem:
        return Outcome(error=str(problem), status=1)
    except RbpxError as problem:
        return Outcome(error=str(problem), status=2)
    except BrokenPipeError:
        close_output()
        return Outcome(error=None)


def close_output() -> None:
    """`| head` has seen enough; what is still buffered has nowhere to go."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _check_shown(verb: str, request: Any) -> None:
    """Refuse a format or a plot that the verb does not have, which would be passed over in silence."""
    if verb != "report" and getattr(request, "format", Format.table) not in (Format.table, Format.csv, Format.json):
        name = request.format.value
        raise RbpxError(
            f"format={name} is of a report: python -m rbpx report --format {name}; {verb} prints table, csv or json"
        )
    if not isinstance(request, Request) or not request.plot:
        return
    questions = request.analyses if verb in ("run", "record") else [verb]
    if not any(name in analyses() and has(name, "plot") for name in questions):
        plotted = ", ".join(name for name in analyses() if has(name, "plot"))
        raise RbpxError(f"{', '.join(questions)} has no plot; drop --plot, or ask one of {plotted}")
