"""Hydra: a command line in, the outcome of each of its jobs out; Hydra's own errors become one line.

The basic launcher runs all jobs in this process. Other launchers run each in a process of its own, which leaves its
outcome as a file in the folder of the sweep.
"""

import os
import pickle
import re
import shutil
import sys
import tempfile
import uuid
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from rbpx.cli.argv import CommandLine
from rbpx.cli.registry import about
from rbpx.cli.verb import Outcome
from rbpx.config.compose import is_ours, register
from rbpx.config.explain import explain
from rbpx.config.overrides import quoted
from rbpx.config.places import folder
from rbpx.errors import RbpxError
from rbpx.files.atomic import atomic_write


def launch(line: CommandLine) -> list[Outcome]:
    """Start the verb of a command line in each of its jobs.

    Raises:
        RbpxError: the overrides name something that does not exist or has the wrong type.
    """
    os.environ["HYDRA_FULL_ERROR"] = "1"  # errors reach us as exceptions instead of printed tracebacks
    import hydra
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    primary, overrides = about(line.verb).primary, list(line.hydra)
    _refuse_lists(overrides)
    if primary == "import":  # there they are names, not files of conf/, where Hydra would look for them
        overrides = [re.sub(r"^(dataset|protocol)=", r"plain.\1=", override) for override in overrides]
    register(primary, overrides)
    launcher = next((o.partition("=")[2] for o in overrides if o.startswith("hydra/launcher=")), "basic")
    alone, sweep = launcher != "basic", _sweep_folder(launcher, overrides)
    outcomes: list[Outcome] = []
    leave = partial(_leave, sweep) if alone else outcomes.append

    def task(config: Any) -> None:
        from rbpx.cli.job import run_job  # what runs no job, as --cfg and --info, waits for no library of the verbs

        leave(run_job(line, config, alone))

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
        outcomes += _collect(sweep)
        if not lost:
            _remove(sweep)
    return [*outcomes, *lost]


def _leave(sweep: Path, outcome: Outcome) -> None:
    """Put down the outcome of a job that has a process of its own."""
    number = sum(1 for _ in sweep.glob("*.outcome"))
    with atomic_write(sweep / f"{number:06d}-{uuid.uuid4().hex[:6]}.outcome", durable=False) as temporary:
        temporary.write_bytes(pickle.dumps(outcome))


def _collect(sweep: Path) -> list[Outcome]:
    """The outcomes that were put down, in the order in which their jobs ended."""
    return [pickle.loads(path.read_bytes()) for path in sorted(sweep.glob("*.outcome"))]


def _sweep_folder(launcher: str, overrides: Sequence[str]) -> Path:
    """Where the jobs of a sweep leave their outcomes: in the store, beside their logs, if they may run elsewhere."""
    if launcher == "basic":
        return Path(tempfile.mkdtemp(prefix="rbpx-"))
    stores = [o.partition("=")[2].strip("\"'") for o in overrides if o.startswith("store=")]
    store = Path(stores[-1] if stores else os.environ.get("RBPX_STORE", "store")).expanduser().resolve()
    sweep = store / "sweeps" / uuid.uuid4().hex[:12]
    sweep.mkdir(parents=True)
    return sweep


def _remove(sweep: Path) -> None:
    """Remove the folder of a sweep, and those above it that it was made in and that hold nothing else."""
    shutil.rmtree(sweep, ignore_errors=True)
    if sweep.parent.name == "sweeps":
        with suppress(OSError):  # not empty
            sweep.parent.rmdir()
            sweep.parent.parent.rmdir()


def _refuse_lists(overrides: Sequence[str]) -> None:
    """Hydra would quietly merge the files of a list into one."""
    for override in overrides:
        listed = re.fullmatch(r"(model|dataset|protocol|experiment)=\[(.*)\]", override)
        if listed:
            names = listed[2].replace(" ", "")
            raise RbpxError(f"{override} is a list where one {listed[1]} is meant; sweep with -m {listed[1]}={names}")
