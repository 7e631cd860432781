"""Hydra: a verb and its overrides in, a `Request` for each job out; its errors become one line."""

import os
import re
import shutil
import sys
import tempfile
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rbpx.cli.outcome import ENVIRONMENT, Outcome, collect
from rbpx.config.compose import _PRIMARY, _is_ours, _register
from rbpx.config.explain import explain
from rbpx.config.places import folder
from rbpx.errors import RbpxError


def launch(verb: str, overrides: Sequence[str], task: Callable[[Any], None]) -> list[Outcome]:
    """Run `task` on the configuration of each job, and return what the jobs left.

    Raises:
        RbpxError: the overrides name something that does not exist or has the wrong type.
    """
    os.environ["HYDRA_FULL_ERROR"] = "1"  # errors reach us as exceptions instead of printed tracebacks
    import hydra
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    primary = _PRIMARY.get(verb, "analyse")
    _refuse_lists(overrides)
    if primary == "import":  # there they are names, not files of conf/, where Hydra would look for them
        overrides = [re.sub(r"^(dataset|protocol)=", r"plain.\1=", override) for override in overrides]
    _register(primary, overrides)
    launcher = next((o.partition("=")[2] for o in overrides if o.startswith("hydra/launcher=")), "basic")
    sweep, lost = _sweep_folder(launcher, overrides), list[Outcome]()
    os.environ[ENVIRONMENT] = str(sweep)
    sys.argv = ["rbpx", *overrides]
    try:
        hydra.main(version_base="1.3", config_path=str(folder("conf")), config_name=primary)(task)()
    except (HydraException, OmegaConfBaseException, ValueError) as problem:
        if problem.__traceback__ is None or _is_ours(problem):
            raise
        raise RbpxError(explain(problem, primary, overrides)) from None
    except Exception as problem:  # a job that was killed: each launcher has a name of its own for it
        if launcher == "basic" or _is_ours(problem):
            raise
        reason = " ".join(str(problem).split())[:160]
        lost = [Outcome(error=f"a job of {launcher} ended without an answer ({reason}); its log: {sweep}", status=1)]
    finally:
        found = collect(sweep)
        if not lost:
            _remove(sweep)
    return [*found, *lost]


def _sweep_folder(launcher: str, overrides: Sequence[str]) -> Path:
    """Where the jobs of a sweep leave their outcomes: in the store, beside their logs, if they may run elsewhere."""
    if launcher == "basic":
        return Path(tempfile.mkdtemp(prefix="rbpx-"))
    named = [o.partition("=")[2].strip("\"'") for o in overrides if o.startswith("store=")]
    store = Path(named[-1] if named else os.environ.get("RBPX_STORE", "store")).expanduser().resolve()
    place = store / "sweeps" / uuid.uuid4().hex[:12]
    place.mkdir(parents=True)
    return place


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
