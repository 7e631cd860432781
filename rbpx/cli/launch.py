"""Hydra: a command line in, the outcome of each of its jobs out; Hydra's own errors become one line.

A line with nothing but overrides is one job, composed once; with -m it is a sweep in this process (`config.sweep`).
The rest is Hydra's own main: sweeps under a launcher, studies, which may be sweeps, and Hydra's flags; it composes a
configuration once more to learn whether it is a sweep. Its basic launcher runs all jobs in this process. Other
launchers run each in a process of its own, which leaves its outcome as a file in the folder of the sweep.
"""

import logging.config
import os
import re
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from rbpx.analyses.registry import analyses, analysis
from rbpx.cli import sweep_folder
from rbpx.cli.argv import CommandLine
from rbpx.cli.registry import about, module
from rbpx.cli.verb import Job, Outcome, Verb
from rbpx.config.compose import (
    check_overrides,
    compose,
    explained,
    is_ours,
    names_dataset,
    register,
    request_of,
    with_groups,
)
from rbpx.config.options import Format
from rbpx.config.overrides import quoted, store_of, with_condition
from rbpx.config.places import folder
from rbpx.config.request import Request
from rbpx.config.trust import check_overrides_trusted
from rbpx.config.yaml_files import plain_values
from rbpx.errors import MeasureError, RbpxError, reason
from rbpx.files.spreadsheet import write_for_spreadsheets

_SHARDED = ("measure", "plan", "status")  # verbs that may be asked of a part of a grid


def launch(line: CommandLine) -> list[Outcome]:
    """Start the verb of a command line in each of its jobs.

    Raises:
        RbpxError: the overrides name something that does not exist or has the wrong type.
    """
    os.environ["HYDRA_FULL_ERROR"] = "1"  # errors reach us as exceptions instead of printed tracebacks
    primary, overrides = about(line.verb).primary, list(line.hydra)
    _refuse_lists(overrides)
    check_overrides(primary, overrides)
    if not line.trusts_config:
        check_overrides_trusted(overrides)
    if primary == "import":  # there they are names, not files of conf/, where Hydra would look for them
        overrides = [re.sub(r"^(dataset|protocol|engine)=", r"plain.\1=", override) for override in overrides]
        overrides = [with_condition(override) for override in overrides]
    overrides = with_groups(primary, overrides)
    held = _held(primary, overrides)
    if not any(re.search(r"^-|^\W*experiment=|hydra", override) for override in overrides):
        _show_warnings_of_libraries()
        return [_run_job(line, lambda: compose(primary, overrides, held, line.trusts_config), alone=False)]
    from rbpx.config.sweep import composes, sweep

    if composes(primary, overrides):
        _show_warnings_of_libraries()
        jobs = sweep(primary, overrides, held, line.trusts_config)
        return [_run_job(line, read_request, alone=False) for read_request in jobs]
    return _main(line, primary, overrides, held)


def _show_warnings_of_libraries() -> None:
    """Do what Hydra's main does for each job: its configuration of Python's logging, read from the same file."""
    logging.config.dictConfig(plain_values(folder("conf") / "hydra" / "job_logging" / "stderr.yaml") or {})


def _main(line: CommandLine, primary: str, overrides: list[str], held: Sequence[str]) -> list[Outcome]:
    """Hydra's main: the outcomes of all jobs of a sweep or a study; none where a flag asks for something else."""
    import hydra

    register(primary, overrides, held, line.trusts_config)
    launcher = next((o.partition("=")[2] for o in overrides if o.startswith("hydra/launcher=")), "basic")
    alone, sweep = launcher != "basic", sweep_folder.make(launcher, overrides)
    outcomes: list[Outcome] = []
    leave = partial(sweep_folder.leave, sweep) if alone else outcomes.append

    began: list[bool] = []

    def task(config: Any) -> None:
        began.append(True)
        leave(_run_job(line, lambda: request_of(config, primary), alone))

    sys.argv = ["rbpx", *overrides, f"hydra.sweep.dir={quoted(str(sweep))}"]
    lost: list[Outcome] = []
    try:
        with explained(primary, overrides, held, lambda: not began and not alone):
            hydra.main(version_base="1.3", config_path=str(folder("conf")), config_name=primary)(task)()
    except RbpxError:
        raise
    except Exception as problem:  # a job that was killed: each launcher has a name of its own for it
        if not alone or is_ours(problem):
            raise
        ended = f"a job of {launcher} ended without an answer ({reason(problem, 160)}); its log: {sweep}"
        lost = [Outcome(error=ended, status=1)]
    finally:
        outcomes += sweep_folder.collect(sweep)
        if not lost:
            sweep_folder.remove(sweep)
    return [*outcomes, *lost]


def _held(primary: str, overrides: Sequence[str]) -> list[str]:
    """The datasets that the store holds, where overrides name one that conf/ does not have."""
    if not names_dataset(primary, overrides):
        return []
    from rbpx.store.imports import dataset_names
    from rbpx.store.remote import open_store

    return dataset_names(open_store(store_of(overrides)))


def _refuse_lists(overrides: Sequence[str]) -> None:
    """Hydra would quietly merge the files of a list into one."""
    for override in overrides:
        names_list = re.fullmatch(r"(model|dataset|protocol|experiment)=\[(.*)\]", override)
        if names_list:
            names = names_list[2].replace(" ", "")
            raise RbpxError(
                f"{override} is a list where one {names_list[1]} is meant; sweep with -m {names_list[1]}={names}"
            )


def _run_job(line: CommandLine, read_request: Callable[[], Any], alone: bool) -> Outcome:
    """Start the verb in whatever process a launcher chose; a user's mistake is an outcome, not raised."""
    if alone:
        from rbpx.cli.messages import show_messages_of_job

        show_messages_of_job()
    described, start = about(line.verb), getattr(module(line.verb), "start", None)
    try:
        request = read_request()
        _check_shown(line.verb, request)
        write_for_spreadsheets(getattr(request, "spreadsheet", False))
        if start is None:
            return Outcome(request)
        job = Job(request, line, alone, *(_place(line) if alone else ()))
        if isinstance(described, Verb) and not described.needs_store:
            return Outcome(request, start(job))
        from rbpx.store.reread import read_again

        return Outcome(request, read_again(request.store, lambda: start(job)))
    except MeasureError as problem:
        return Outcome(error=str(problem), status=1)
    except RbpxError as problem:
        return Outcome(error=str(problem), status=2)
    except BrokenPipeError:
        close_output()
        return Outcome()


def _place(line: CommandLine) -> tuple[int, int | None]:
    """The number of the job that runs, from 1, and how many its sweep has: Hydra knows the first when it starts one."""
    from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
    from hydra.core.hydra_config import HydraConfig
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.types import RunMode

    hydra = HydraConfig.get()
    if hydra.mode != RunMode.MULTIRUN:
        return 1, 1
    number = int(hydra.job.num) + 1
    if not hydra.sweeper["_target_"].endswith(f".{BasicSweeper.__name__}"):
        return number, None
    params = [f"{key}={value}" for key, value in (hydra.sweeper.get("params") or {}).items()]
    overrides = [word for word in line.hydra if "=" in word and not word.startswith("-")]
    parsed = OverridesParser.create().parse_overrides([*params, *overrides])
    return number, sum(len(batch) for batch in BasicSweeper.split_arguments(parsed, None))


def close_output() -> None:
    """`| head` has seen enough; what is still buffered has nowhere to go."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _check_shown(verb: str, request: Any) -> None:
    """Refuse a format or a plot that the verb does not have, which would be passed over in silence."""
    form = getattr(request, "format", Format.table)
    if isinstance(request, Request) and request.shard is not None and verb not in _SHARDED:
        raise RbpxError(
            f"shard={request.shard} divides a grid that is measured: python -m rbpx measure ... shard={request.shard}; "
            f"{verb} without it afterwards looks at all parts"
        )
    if form is Format.jobs and verb != "plan":
        raise RbpxError("format=jobs is of a plan: python -m rbpx plan ... --format jobs")
    told = verb == "report" or verb in analyses()
    if not told and form not in (Format.table, Format.csv, Format.json, Format.jobs):
        name = form.value
        raise RbpxError(
            f"format={name} is of a report: python -m rbpx report --format {name}; {verb} prints table, csv or json"
        )
    if form in (Format.svg, Format.pdf) and verb in analyses() and not analysis(verb).draws:
        drawn = ", ".join(name for name, each in analyses().items() if each.draws)
        raise RbpxError(f"{verb} draws no figures for --format {form.value}; ask one of {drawn}")
    if not isinstance(request, Request) or not request.plot:
        return
    questions = request.analyses if verb in ("run", "record") else [verb]
    if not any(name in analyses() and analysis(name).draws for name in questions):
        plotted = ", ".join(name for name, each in analyses().items() if each.draws)
        raise RbpxError(f"{', '.join(questions)} has no plot; drop --plot, or ask one of {plotted}")
