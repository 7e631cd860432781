"""Hydra: a verb and its overrides in, a `Request` for each job out; its errors become one line."""

import os
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from rbpx.config import Request
from rbpx.errors import RbpxError
from rbpx.outcome import ENVIRONMENT, Outcome, collect

_PACKAGE = Path(__file__).resolve().parent
_PRIMARY = {"run": "measure", "measure": "measure", "train": "train"}  # the others analyse


def folder(name: str) -> Path:
    """`conf` or `experiments`: inside an installed package, else beside the package in a checkout."""
    for place in (_PACKAGE / f"_{name}", _PACKAGE.parent / name):
        if place.is_dir():
            return place
    raise RbpxError(f"the folder {name}/ is missing beside {_PACKAGE}; install rbpx again")


def launch(verb: str, overrides: Sequence[str], task: Callable[[Any], None]) -> list[Outcome]:
    """Run `task` on the configuration of each job, and return what the jobs left.

    Raises:
        RbpxError: the overrides name something that does not exist or has the wrong type.
    """
    os.environ["HYDRA_FULL_ERROR"] = "1"  # errors reach us as exceptions instead of printed tracebacks
    import hydra
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    _register()
    with tempfile.TemporaryDirectory(prefix="rbpx-") as sweep:
        os.environ[ENVIRONMENT] = sweep
        sys.argv = ["rbpx", *overrides]
        primary = _PRIMARY.get(verb, "analyse")
        try:
            hydra.main(version_base="1.3", config_path=str(folder("conf")), config_name=primary)(task)()
        except (HydraException, OmegaConfBaseException, ValueError) as problem:
            if problem.__traceback__ is None or _is_ours(problem):
                raise
            raise RbpxError(explain(problem, primary)) from None
        return collect(Path(sweep))


def _is_ours(problem: BaseException) -> bool:
    """Whether an exception began in our own task: then it is a defect, not a wrong override."""
    trace = problem.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and Path(trace.tb_frame.f_code.co_filename).is_relative_to(_PACKAGE)


def _register() -> None:
    """The schema, and one option of the group `experiment` for each file in experiments/."""
    from hydra.core.config_store import ConfigStore
    from omegaconf import OmegaConf

    from rbpx.recipe import TrainRequest

    store = ConfigStore.instance()
    store.store(name="request", node=Request)
    store.store(name="train_request", node=TrainRequest)
    for path in sorted(folder("experiments").glob("*.yaml")):
        store.store(group="experiment", name=path.stem, node=OmegaConf.load(path), package="_global_")


def explain(problem: Exception, primary: str) -> str:
    """One line for an error of Hydra or OmegaConf: what is wrong, and what there is instead."""
    text = str(problem)
    missing = re.search(r"Could not find '(\w+)/([^']*)'", text)
    if missing:
        return _unknown_option(missing[1], missing[2])
    key = re.search(
        r"Could not override '([^']+)'|Key '([^']+)' (?:is )?not in|Could not delete from config. '([^']+)'", text
    )
    if key:
        return _unknown_key(next(k for k in key.groups() if k), primary)
    ambiguous = re.search(r"Ambiguous value for argument '([^']+)'", text)
    if ambiguous:
        return (
            f"{ambiguous[1]} lists several values; sweep over them with -m {ambiguous[1]}, or write a list as '[a,b]'"
        )
    group = re.search(r"(?:group|override for|key) '?(\w+)'?.*(?:list|sequence)", text)
    line = " ".join(
        part.strip()
        for part in text.split("\n")
        if part.strip() and "object_type" not in part and "full_key" not in part
    )
    where = re.search(r"full_key: (\S+)", text)
    if group and "[" in text:
        line = f"{line}; to sweep, write -m {group[1]}=a,b"
    return f"{f'{where[1]}: ' if where and where[1] not in line else ''}{line[:300]}; see python -m rbpx --help"


def _unknown_option(group: str, option: str) -> str:
    if group == "experiment":
        known = sorted(path.stem for path in folder("experiments").glob("*.yaml"))
    else:
        known = sorted(path.stem for path in (folder("conf") / group).glob("*.yaml"))
    near = get_close_matches(option, known, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    own = "" if group == "experiment" else f"; your own go into {group}/NAME.yaml of a folder given with --config-dir"
    return f"{group}={option} is unknown; {hint}known: {', '.join(known)}{own}"


def _unknown_key(key: str, primary: str) -> str:
    from rbpx.recipe import TrainRequest

    known = list((TrainRequest if primary == "train" else Request).__dataclass_fields__)
    near = get_close_matches(key.split(".")[0], known, n=1)
    hint = f"did you mean {near[0]}?" if near and near[0] != key else f"known keys: {', '.join(known)}"
    return f"{key} is no key; {hint} See python -m rbpx --help"
