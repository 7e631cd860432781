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

from rbpx.config import DatasetConfig, ImportConfig, ImportRequest, ModelConfig, ProtocolConfig
from rbpx.errors import RbpxError
from rbpx.near import did_you_mean, near
from rbpx.outcome import ENVIRONMENT, Outcome, collect
from rbpx.request import Request

_PACKAGE = Path(__file__).resolve().parent
_GROUPS: dict[str, Any] = {"model": ModelConfig, "dataset": DatasetConfig, "protocol": ProtocolConfig}
_PRIMARY = {
    "run": "measure",
    "record": "measure",
    "measure": "measure",
    "plan": "measure",
    "train": "train",
    "import": "import",
    "audit": "audit",
}  # the others analyse
_LISTED = ("size", "k", "n", "S", "laws", "method", "family", "analyses")  # keys that one list may be given to
_NAMED_BY = {"model": "family=", "dataset": "dataset=file dataset.name="}  # names that are no file of conf/


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


def compose(verb: str, overrides: Sequence[str]) -> Any:
    """The request of one job, without a task: what `launch` would hand to it.

    Raises:
        RbpxError: the overrides name something that does not exist or has the wrong type.
    """
    import hydra
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    primary = _PRIMARY.get(verb, "analyse")
    _register(primary, overrides)
    try:
        with hydra.initialize_config_dir(str(folder("conf")), version_base="1.3"):
            return OmegaConf.to_object(hydra.compose(primary, overrides=list(overrides)))
    except (HydraException, OmegaConfBaseException, ValueError) as problem:
        if _is_ours(problem):
            raise
        raise RbpxError(explain(problem, primary, overrides)) from None


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


def _is_ours(problem: BaseException) -> bool:
    """Whether an exception began in our own task: then it is a defect, not a wrong override."""
    trace = problem.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and Path(trace.tb_frame.f_code.co_filename).is_relative_to(_PACKAGE)


def _register(primary: str, overrides: Sequence[str]) -> None:
    """The schema, and one option of the group `experiment` for each study of this kind.

    Studies are read only where the words may ask for one, or for what there is: that is a third of the time to start.
    """
    from hydra.core.config_store import ConfigStore
    from omegaconf import OmegaConf

    from rbpx.recipe import TrainRequest

    store = ConfigStore.instance()
    store.store(name="request", node=Request)
    store.store(name="train_request", node=TrainRequest)
    store.store(name="import_request", node=ImportRequest)
    asks = re.compile(r"experiment|^-")  # --info and completion list them
    for path in experiments(primary) if any(asks.search(word) for word in overrides) else ():
        node = OmegaConf.load(path)
        if primary != "train":
            OmegaConf.update(node, "study.name", path.stem)
        store.store(group="experiment", name=path.stem, node=node, package="_global_")


def experiments(primary: str) -> list[Path]:
    """The named studies for a primary configuration; a first line `# verb: train` marks those of `train`."""
    found = []
    for path in sorted(folder("experiments").glob("*.yaml")):
        with path.open(encoding="utf-8") as file:
            trains = file.readline().strip() == "# verb: train"
        if trains == (primary == "train"):
            found.append(path)
    return found


def explain(problem: Exception, primary: str, overrides: Sequence[str]) -> str:
    """One line for an error of Hydra or OmegaConf: what is wrong, and what there is instead."""
    text = str(problem)
    missing = re.search(r"Could not find '(\w+)/([^']*)'", text)
    if missing:
        return _unknown_option(missing[1], missing[2], primary)
    inner = re.search(r"Key '([^']+)' not in 'ImportConfig'", f"{text} {problem.__cause__}")
    if inner:
        known = ", ".join(ImportConfig.__dataclass_fields__)
        return f"{inner[1]} is no key of an import; known: {known}; see python -m rbpx import --help"
    key = re.search(
        r"Could not override '([^']+)'|Key '([^']+)' (?:is )?not in|Could not delete from config. '([^']+)'", text
    )
    if key:
        return _unknown_key(next(k for k in key.groups() if k), primary)
    ambiguous = re.search(r"Ambiguous value for argument '([^']+)'", text)
    if ambiguous:
        name, _, values = ambiguous[1].partition("=")
        sweep = f"sweep with -m {name}={values}"
        if name in _LISTED:
            return f"{name}={values} are several values; for one list write {name}='[{values}]', or {sweep}"
        return f"{name}={values} are several values; {sweep}, or quote it: '{name}=\"{values}\"'"
    if re.search("mismatched input|token recognition|extraneous input|no viable alternative", text):
        strange = [o for o in overrides if re.search(r"=.*[(){}\[\]:,=]", o)]
        told = " ".join(strange or overrides)
        name, _, value = told.partition("=")
        if re.fullmatch(r"\[[^\]]*", value):
            return f"{told} has no ] at its end; write {name}='{value}]'"
        return f"{told} cannot be read; quote such characters: 'key=\"value\"'"
    override = re.search(r"Error merging override ([^=\s]+)=(.*)", text)
    whole = f"{problem.__cause__ or ''}\n{text}"
    wrong = re.search(r"Invalid value '(.*)', expected one of \[(.*)\]", whole)
    if override and wrong:
        hint = did_you_mean(wrong[1], wrong[2].split(", "))
        return f"{override[1]}={wrong[1]} is unknown; {hint}known: {wrong[2]}"
    kind = re.search(r"Value '([^']*)' .*could not be converted to (Integer|Float)", whole)
    if override and kind:
        number = "whole number" if kind[2] == "Integer" else "number"
        return f"{override[1]}={kind[1]} is no {number}; give one in digits, as in {override[1]}=100"
    kind = re.search(r"Value '(.*)' is not a valid bool", whole)
    if override and kind:
        return f"{override[1]}={kind[1]} is neither true nor false; write {override[1]}=true"
    lines = [str(problem.__cause__ or ""), text]  # Hydra names the override, OmegaConf below it says what is wrong
    kept = [part.strip() for whole in reversed(lines) for part in whole.split("\n") if part.strip()]
    line = "; ".join(dict.fromkeys(part for part in kept if not part.startswith(("object_type", "full_key"))))
    return f"{line.replace('Error merging override ', '')[:300]}; see python -m rbpx --help"


def _unknown_option(group: str, option: str, primary: str) -> str:
    if group == "experiment":
        known = [path.stem for path in experiments(primary)]
    else:
        known = sorted(path.stem for path in (folder("conf") / group).glob("*.yaml"))
    hint = did_you_mean(option, known)
    if group == "dataset" and (Path(option).suffix or "/" in option):
        hint = f"a file of yours is dataset=file dataset.path={option}; "
    elif group == "model" and "/" in option:
        hint = f"a checkpoint of the hub, or a folder, is model=hub model.id={option}; "
    own = "" if group == "experiment" else f"; your own go into {group}/NAME.yaml of a folder given with --config-dir"
    if group in _NAMED_BY and primary == "analyse":
        own += f"; what the store holds by another name is {_NAMED_BY[group]}{option}"
    return f"{group}={option} is unknown; {hint}known: {', '.join(known)}{own}"


def _unknown_key(key: str, primary: str) -> str:
    from rbpx.recipe import TrainRequest

    requests: dict[str, Any] = {"train": TrainRequest, "import": ImportRequest}
    known = [name for name in requests.get(primary, Request).__dataclass_fields__ if name != "plain"]
    group, _, inner = key.partition(".")
    if inner and group in _GROUPS and primary != "import":
        known = [f"{group}.{name}" for name in _GROUPS[group].__dataclass_fields__]
    if key == "dataset.where" and primary == "measure":
        return f"{key} is a mapping that can be changed but not added to; put yours into a file given with --config-dir"
    found = near(key, known)
    hint = f"did you mean {found}?" if found not in (None, key) else f"known keys: {', '.join(known)}."
    return f"{key} is no key; {hint} See python -m rbpx --help"
