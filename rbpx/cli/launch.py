"""Hydra: a command line in, the outcome of each of its jobs out; Hydra's own errors become one line.

A line with nothing but overrides is one job, composed once. The rest is Hydra's own main: sweeps, studies, which may
be sweeps, and Hydra's flags; it composes a configuration once more to learn whether it is a sweep. Its basic launcher
runs all jobs in this process. Other launchers run each in a process of its own, which leaves its outcome as a file in
the folder of the sweep.
"""

import logging.config
import os
import re
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

from rbpx.analyses.registry import analyses, has
from rbpx.cli import sweep_folder
from rbpx.cli.argv import CommandLine
from rbpx.cli.registry import about, module
from rbpx.cli.verb import Job, Outcome, Verb
from rbpx.config.compose import compose, is_ours, register
from rbpx.config.explain import explain
from rbpx.config.options import Format
from rbpx.config.overrides import quoted
from rbpx.config.places import folder
from rbpx.config.request import Request
from rbpx.errors import MeasureError, RbpxError


def launch(line: CommandLine) -> list[Outcome]:
    """Start the verb of a command line in each of its jobs.

    Raises:
        RbpxError: the overrides name something that does not exist or has the wrong type.
    """
    os.environ["HYDRA_FULL_ERROR"] = "1"  # errors reach us as exceptions instead of printed tracebacks
    primary, overrides = about(line.verb).primary, list(line.hydra)
    _refuse_lists(overrides)
    if primary == "import":  # there they are names, not files of conf/, where Hydra would look for them
        overrides = [re.sub(r"^(dataset|protocol)=", r"plain.\1=", override) for override in overrides]
    if not any(re.search(r"^-|^\W*experiment=|hydra", override) for override in overrides):
        _show_warnings_of_libraries()
        return [_run_job(line, lambda: compose(primary, overrides), alone=False)]
    return _main(line, primary, overrides)


def _show_warnings_of_libraries() -> None:
    """Do what Hydra's main does for each job: its configuration of Python's logging, read from the same file."""
    from omegaconf import OmegaConf

    said = OmegaConf.load(folder("conf") / "hydra" / "job_logging" / "stderr.yaml")
    logging.config.dictConfig(cast(dict[str, Any], OmegaConf.to_container(said)))


def _main(line: CommandLine, primary: str, overrides: list[str]) -> list[Outcome]:
    """Hydra's main: the outcomes of all jobs of a sweep or a study; none where a flag asks for something else."""
    import hydra
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    register(primary, overrides)
    launcher = next((o.partition("=")[2] for o in overrides if o.startswith("hydra/launcher=")), "basic")
    alone, sweep = launcher != "basic", sweep_folder.make(launcher, overrides)
    outcomes: list[Outcome] = []
    leave = partial(sweep_folder.leave, sweep) if alone else outcomes.append

    def task(config: Any) -> None:
        leave(_run_job(line, lambda: OmegaConf.to_object(config), alone))

    sys.argv = ["rbpx", *overrides, f"hydra.sweep.dir={quoted(str(sweep))}"]
    lost: list[Outcome] = []
    try:
        hydra.main(version_base="1.3", config_path=str(folder("conf")), config_name=primary)(task)()
    except (HydraException, OmegaConfBaseException, ValueError) as problem:
        if problem.__traceback__ is None or is_ours(problem):
            raise
        raise RbpxError(explain(problem, primary, overrides)) from None
    except Exception as problem:  # a job that was killed: each launcher has a name of its own for it
        if not alone or is_ours(problem):
            raise
        reason = " ".join(str(problem).split())[:160]
        lost = [Outcome(error=f"a job of {launcher} ended without an answer ({reason}); its log: {sweep}", status=1)]
    finally:
        outcomes += sweep_folder.collect(sweep)
        if not lost:
            sweep_folder.remove(sweep)
    return [*outcomes, *lost]


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
        if start is None:
            return Outcome(request)
        job = Job(request, line, alone)
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
