"""A command line in, the outcome of each of its jobs out: composed by Hydra, started in this process or by a launcher.

Jobs run in this process one after the other. Other launchers run each in a process of its own, which leaves its outcome
as a file in the folder of the sweep; these, and Hydra's flags that print, are for Hydra's own main.
"""

import logging
import os
import re
import signal
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from rbpx.cli.argv import CommandLine
from rbpx.cli.registry import Job, Outcome, Verb, about, asking, module
from rbpx.cli.stopped import Stopped, leave_no_heartbeat, stop_job_in_order
from rbpx.cli.sweep_folder import leave, logs, sweep_folder
from rbpx.cli.watch import watched
from rbpx.config.hydra import adapter
from rbpx.config.hydra.compose import Overrides, is_ours, names_dataset, sweep
from rbpx.config.hydra.trust import check_overrides_trusted
from rbpx.config.options import Format
from rbpx.config.overrides import quoted, store_of, with_condition
from rbpx.config.request import Request
from rbpx.cores import share_among_jobs
from rbpx.errors import MeasureError, RbpxError, number_of, reason
from rbpx.files.cells import write_for_spreadsheets
from rbpx.questions.registry import analyses, analysis

_LOGGER = logging.getLogger(__name__)


def launch(line: CommandLine) -> list[Outcome]:
    """Start the verb of a command line in each of its jobs; no job where a flag asks for something else.

    Raises:
        RbpxError: the overrides name something that does not exist or has the wrong type.
    """
    os.environ["HYDRA_FULL_ERROR"] = "1"  # errors reach us as exceptions instead of printed tracebacks
    asked, words = asking(line.verb), list(line.hydra)
    if not line.trusts_config:
        check_overrides_trusted(words)
    if asked.primary == "import":  # there they are names, not files of conf/, where Hydra would look for them
        words = [with_condition(re.sub(r"^(dataset|protocol|engine)=", r"plain.\1=", word)) for word in words]
    overrides = Overrides(asked, words, _held(asked.primary, words), line.trusts_config)
    launcher, jobs = sweep(overrides)
    if launcher.is_basic and jobs is not None:
        return [_run_job(line, read_request) for read_request in jobs]
    return _main(line, overrides, launcher, jobs or [])


def _main(
    line: CommandLine, overrides: Overrides, launcher: adapter.Launcher, jobs: Sequence[Callable[[], Any]]
) -> list[Outcome]:
    """Hydra's main: the outcomes of all jobs of a sweep; none where a flag asks for something else."""
    alone, has_logs = not launcher.is_basic, launcher.has_logs
    is_watched = alone and hasattr(module(line.verb), "measured")
    with sweep_folder(alone, overrides.words) as (folder, outcomes):
        leave_outcome = partial(leave, folder) if alone else outcomes.append
        began: list[bool] = []

        def task(config: Any) -> None:
            began.append(True)
            leave_outcome(_run_job(line, lambda: overrides.request_of(config), alone, quiet=alone and not has_logs))

        def lose(how: str, log: Path | None = None) -> None:
            outcomes.append(Outcome(error=f"{how}; the same command continues", status=1, log=log))

        sys.argv = ["rbpx", *overrides.words, f"hydra.sweep.dir={quoted(str(folder))}"]
        if has_logs:
            sys.argv.append(f"hydra.launcher.submitit_folder={quoted(f'{logs(folder)}/%j')}")
            _LOGGER.info(
                f"{number_of(len(jobs), 'job') if jobs else 'jobs'} of {launcher.name}; their logs: {logs(folder)}"
            )
        elif alone:
            share_among_jobs()
            # It ends a worker that has grown, as one does that has measured a model, and starts another.
            warnings.filterwarnings("ignore", "A worker stopped while some jobs were given", UserWarning)
        try:
            with overrides.explained(lambda: not began and not alone), watched(jobs) if is_watched else nullcontext():
                overrides.register()
                adapter.run_main(overrides.asking.primary, task, launcher, lose)
        except RbpxError:
            raise
        except Exception as problem:  # a job that was killed: each launcher has a name of its own for it
            if not alone or is_ours(problem):
                raise
            lose(f"a job of {launcher.name} ended without an answer ({reason(problem, 160).partition('. ')[0]})")
    return outcomes


def _held(primary: str, overrides: list[str]) -> list[str]:
    """The datasets that the store holds, where overrides name one that conf/ does not have."""
    if not names_dataset(primary, overrides):
        return []
    from rbpx.store.imports.kept import dataset_names
    from rbpx.store.store import Store

    return dataset_names(Store(store_of(overrides)))


def _run_job(line: CommandLine, read_request: Callable[[], Any], alone: bool = False, quiet: bool = False) -> Outcome:
    """Start the verb in whatever process a launcher chose; a user's mistake is an outcome, not raised."""
    if not alone:
        return _outcome(line, read_request)
    from rbpx.cli.messages import show_messages_of_job

    show_messages_of_job()
    number, n_jobs = place = adapter.place([word for word in line.hydra if "=" in word and not word.startswith("-")])
    log = adapter.log_of_job()
    if log is None:
        return _outcome(line, read_request, alone, *place, quiet)
    stop_job_in_order()
    try:
        return replace(_outcome(line, read_request, alone, *place, quiet), log=log)
    except KeyboardInterrupt as stop:
        leave_no_heartbeat()
        which = f"job {number}" if n_jobs is None else f"job {number}/{n_jobs}"
        how = stop if isinstance(stop, Stopped) else signal.SIGINT.name
        return Outcome(error=f"{which} was stopped by {how}; the same command continues", status=1, log=log)


def _outcome(line: CommandLine, read_request: Callable[[], Any], *how: Any) -> Outcome:
    """What the verb did; `how` is what a `Job` is told beside its request."""
    described, start = about(line.verb), getattr(module(line.verb), "start", None)
    try:
        request = read_request()
        if isinstance(request, Request):
            _check_shown(line.verb, request)
            write_for_spreadsheets(request.spreadsheet)
        if start is None:
            return Outcome(request)
        job = Job(request, line, *how)
        if isinstance(described, Verb) and not described.needs_store:
            return Outcome(request, start(job))
        return Outcome(request, start(job))
    except MeasureError as problem:
        return Outcome(error=str(problem), status=1)
    except RbpxError as problem:
        return Outcome(error=str(problem), status=2)
    except BrokenPipeError:
        close_output()
        return Outcome()


def close_output() -> None:
    """`| head` has seen enough; what is still buffered has nowhere to go."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _check_shown(verb: str, request: Request) -> None:
    """Refuse a format that the verb does not have, which would be passed over in silence."""
    form = request.format
    if form is Format.jobs and verb != "plan":
        raise RbpxError("format=jobs is of a plan: python -m rbpx plan ... --format jobs")
    told = verb == "report" or verb in analyses()
    if not told and form not in (Format.table, Format.csv, Format.json, Format.jobs):
        name = form.value
        raise RbpxError(
            f"format={name} is of questions and the report: python -m rbpx report --format {name}; {verb} prints "
            "table, csv or json"
        )
    if form in (Format.svg, Format.pdf) and verb in analyses() and not analysis(verb).draws:
        drawing = ", ".join(name for name, each in analyses().items() if each.draws)
        raise RbpxError(f"{verb} draws no figures for --format {form.value}; ask one of {drawing}")
