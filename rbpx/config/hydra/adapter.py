"""Hydra, and every name of its inside that rbpx touches: overrides in, composed configurations out.

Private names go without notice, so all of them stand in this module, and a test fails by name where one has gone.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hydra
from hydra._internal.core_plugins.basic_launcher import BasicLauncher
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra._internal.core_plugins.file_config_source import FileConfigSource
from hydra._internal.sources_registry import SourcesRegistry
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep
from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn, JobStatus, configure_log
from hydra.errors import HydraException
from hydra.plugins.config_source import ConfigLoadError, ConfigResult
from hydra.types import RunMode
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from rbpx.config.hydra.files import read, read_study
from rbpx.config.hydra.texts import check_file
from rbpx.config.hydra.trust import ADVICE, LAUNCHER, PACKAGES
from rbpx.config.places import GROUPS, folder
from rbpx.config.yaml_files import read_yaml
from rbpx.errors import RbpxError

__all__ = [
    "EXPECTED",
    "Launcher",
    "composed",
    "initialized",
    "jobs",
    "knows_its_jobs",
    "launcher",
    "params",
    "place",
    "read_values",
    "register",
    "run_main",
]

EXPECTED = (HydraException, OmegaConfBaseException, ValueError, AssertionError)
"""What Hydra and OmegaConf raise where overrides or files are wrong."""

_VERSION = "1.3"


@contextmanager
def initialized() -> Iterator[None]:
    """Let Hydra read conf/ while the block lasts."""
    with hydra.initialize_config_dir(str(folder("conf")), version_base=_VERSION):
        yield


def composed(primary: str, overrides: Sequence[str]) -> Any:
    """The configuration of one job, with the node of Hydra's own; within `initialized`."""
    return hydra.compose(primary, overrides=list(overrides), return_hydra_config=True)


def show_warnings(config: Any) -> None:
    """Do what Hydra's main does for each job: its configuration of Python's logging."""
    configure_log(config.hydra.job_logging, config.hydra.verbose)


@dataclass(frozen=True)
class Launcher:
    """What starts the jobs of a configuration.

    Attributes:
        name: as in hydra/launcher=NAME, which may be a file of the user's.
        is_basic: whether it runs them one after the other in this process.
        has_logs: whether each job has a log of its own, as those of submitit have.
    """

    name: str = "basic"
    is_basic: bool = True
    has_logs: bool = False


def launcher(config: Any) -> Launcher:
    """What starts the jobs of a configuration."""
    name = config.hydra.runtime.choices["hydra/launcher"]
    return Launcher(name, name == Launcher.name, "submitit" in config.hydra.launcher["_target_"])


def knows_its_jobs(config: Any) -> bool:
    """Whether all jobs of a sweep are known before the first one starts, and `basic` is the launcher of that name."""
    launches, sweeps = (
        str(part["_target_"]).rpartition(".")[2] for part in (config.hydra.launcher, config.hydra.sweeper)
    )
    return sweeps == BasicSweeper.__name__ and (not launcher(config).is_basic or launches == BasicLauncher.__name__)


def jobs(config: Any, overrides: Sequence[str], sweeps: bool) -> list[list[str]] | None:
    """The overrides of each job of a sweep; None where a configuration is no sweep; within `initialized`.

    Args:
        config: what the overrides without their lists compose to, in which a study may ask for a sweep.
        overrides: key=value, as typed.
        sweeps: whether -m was typed.
    """
    if not sweeps and config.hydra.mode is not RunMode.MULTIRUN:
        return None
    return _split([*params(config.hydra), *overrides])


def params(of_hydra: Any) -> list[str]:
    """The overrides of a sweep that a study asks for."""
    return [f"{key}={value}" for key, value in (of_hydra.sweeper.get("params") or {}).items()]


def first_job(overrides: Sequence[str]) -> list[str]:
    """The overrides of the first job that lists make; within `initialized`."""
    return _split(overrides)[0]


def _split(overrides: Sequence[str]) -> list[list[str]]:
    parser = OverridesParser.create(config_loader=GlobalHydra.instance().config_loader())
    return [
        job for batch in BasicSweeper.split_arguments(parser.parse_overrides(list(overrides)), None) for job in batch
    ]


def read_values(word: str) -> tuple[str, list[Any]]:
    """The key of an override and what it reads as, each value of a sweep's list; none where it moves its key."""
    (override,) = OverridesParser.create().parse_overrides([word])
    value = override.value()
    return override.key_or_group, [] if override.package else value.list if isinstance(value, ChoiceSweep) else [value]


def run_main(primary: str, task: Callable[[Any], None], launcher: Launcher, lose: Callable[[str, Path], None]) -> None:
    """Hydra's own main, over `sys.argv`: launchers, and flags that print.

    Args:
        primary: the file of conf/ to begin from.
        task: called with the configuration of each job, in the process that its launcher gives it.
        launcher: what starts them.
        lose: called for each job of submitit that ends without an answer: with what is known of it, and its log.
    """
    with _all_awaited(lose) if launcher.has_logs else nullcontext():
        hydra.main(version_base=_VERSION, config_path=str(folder("conf")), config_name=primary)(task)()


@contextmanager
def _all_awaited(lose: Callable[[str, Path], None]) -> Iterator[None]:
    """Let Hydra wait for all jobs that it gave to submitit; by itself it leaves at the first that has no answer."""
    import submitit
    from submitit.core.utils import UncompletedJobError

    of_submitit: Any = submitit.Job
    results = of_submitit.results

    def answers(job: Any) -> Any:
        try:
            return results(job)
        except UncompletedJobError:
            how = "" if job.state == "FINISHED" else f" ({job.state})"
            logs = [path for path in (job.paths.stderr, job.paths.stdout) if path.exists()]
            lose(f"job {job.job_id} ended without an answer{how}", logs[0] if logs else job.paths.folder)
            return [JobReturn(status=JobStatus.COMPLETED)]

    of_submitit.results = answers
    try:
        yield
    finally:
        of_submitit.results = results


def log_of_job() -> Path | None:
    """Where a job that submitit runs writes what would be on the terminal; None for any other."""
    if "SUBMITIT_EXECUTOR" not in os.environ:
        return None
    from submitit import JobEnvironment

    paths: Any = JobEnvironment().paths
    return next((path for path in (paths.stderr, paths.stdout) if path.exists()), None)


def place(overrides: Sequence[str]) -> tuple[int, int | None]:
    """The number of the job that Hydra's main runs, from 1, and how many its sweep has; None where it does not know."""
    of_job = HydraConfig.get()
    if of_job.mode != RunMode.MULTIRUN:
        return 1, 1
    number = int(of_job.job.num) + 1
    if not of_job.sweeper["_target_"].endswith(f".{BasicSweeper.__name__}"):
        return number, None
    parsed = OverridesParser.create().parse_overrides([*params(of_job), *overrides])
    return number, sum(len(batch) for batch in BasicSweeper.split_arguments(parsed, None))


def register(
    primary: str, nodes: Sequence[tuple[str, str, Any, str | None]], trusts: bool, own: Sequence[Path]
) -> None:
    """Tell Hydra of schemas and options that are no files, in place of those that it was told of before.

    Args:
        primary: the file of conf/ that requests begin from.
        nodes: group, name, value and package of each; the group is empty for a schema, which comes first.
        trusts: whether files of the user may name code.
        own: folders of the user's configuration.
    """
    _check_files(trusts, own, nodes[0][2])
    store = ConfigStore.instance()
    for group in ("dataset", "experiment"):
        store.repo.pop(group, None)
    for group, name, node, package in nodes:
        store.store(group=group or None, name=name, node=node, package=package)


def _check_files(trusts: bool, own: Sequence[Path], schema: type) -> None:
    """Let Hydra read files through the checks of `trust` and `texts`; of those in conf/, ours, the bounds alone.

    A study, experiment/NAME.yaml, sets any key of a request, whether or not it begins with `# @package _global_`. A
    file of the user's replaces ours of the same group and name.
    """
    ours = folder("conf").resolve()

    class CheckedFiles(FileConfigSource):
        def is_config(self, config_path: str) -> bool:
            name = self._normalize_file_name(config_path)
            path, top = Path(self.path, name), config_path.partition("/")[0]
            if Path(self.path).resolve() == ours:
                is_replaced = top in GROUPS and any(Path(folder, name).is_file() for folder in own)
                return path.is_file() and not is_replaced
            return path.is_file()

        def load_config(self, config_path: str) -> ConfigResult:
            name = self._normalize_file_name(config_path)
            path = Path(self.path, name)
            if not path.is_file():
                raise ConfigLoadError(f"Config not found : {path}")
            header = self._get_header_dict(read_yaml(path)[:512])
            top, *inner = Path(os.path.normpath(name)).parts
            group = ".".join((top, *inner[:-1]))
            if top == "experiment":
                header["package"] = "_global_"
            is_ours = Path(self.path).resolve() == ours and top != ".."
            is_trusted = trusts or is_ours
            if not is_trusted and top in ("hydra", "..") and group != LAUNCHER:
                raise RbpxError(f"{path} configures Hydra, or lies outside its folder; {ADVICE}")
            if not is_trusted and header.get("package") not in PACKAGES:
                raise RbpxError(f"{path} is for the package {header['package']}; {ADVICE}")
            package = header.get("package") or "_group_"
            place = {"_group_": group, "_global_": ""}.get(package, package)
            node = read_study(path, is_trusted) if top == "experiment" else read(path, is_trusted, place)
            if not is_ours:
                check_file(schema, path, place, OmegaConf.to_container(node, resolve=False), read_yaml(path))
            return ConfigResult(
                config=node, path=f"{self.scheme()}://{self.path}", provider=self.provider, header=header
            )

    # The registry goes to the jobs of launchers, where Hydra registers its own again: a name that is there stays.
    CheckedFiles.__name__ = FileConfigSource.__name__
    Plugins.instance()  # registers Hydra's own sources, once
    SourcesRegistry.instance().types["file"] = CheckedFiles
