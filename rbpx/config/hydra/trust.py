"""What configuration may ask for: files and overrides choose values; only --trust-config lets them name code.

Hydra builds objects from configuration, and Python's logging too: a file that was copied from somewhere could run
anything. So the files of a user, and studies, may hold values of rbpx's own keys, and of Hydra's the few in `_HYDRA`.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from rbpx.config.yaml_files import load_yaml
from rbpx.errors import RbpxError

FLAG: Final = "--trust-config"
ADVICE: Final = f"drop it, or add {FLAG} if you trust whoever wrote it with your account"

# What files may say of Hydra: how a sweep runs, and its jobs; of `params` and `setup` not all, see `_check_hydra`.
_HYDRA: Final = {
    "mode": (),
    "sweeper": ("params", "max_batch_size"),
    "launcher": (
        *("n_jobs", "timeout_min", "cpus_per_task", "gpus_per_node", "gpus_per_task", "tasks_per_node", "nodes"),
        *("mem_gb", "mem_per_cpu", "mem_per_gpu", "name", "partition", "qos", "account", "constraint"),
        *("array_parallelism", "cpus_per_gpu", "gres", "exclude", "comment", "signal_delay_s", "setup"),
    ),
}  # fmt: skip
LAUNCHER: Final = "hydra.launcher"  # the group of Hydra's in which a user may have files
# What a shell may be given by a file: modules by name, from the places that the cluster or the user has chosen.
_MODULES: Final = re.compile(r"(module (load|purge)|ml)( +[A-Z0-9][\w.@+-]*(/[A-Z0-9][\w.@+-]*)*)*", re.ASCII | re.I)
_PLACES: Final = {"store": "DIR", "output": "FILE"}  # where rbpx writes
PACKAGES: Final = (None, "_global_", "_group_", "model", "dataset", "protocol")
_CHOICES: Final = re.compile(r"(override +)?/?hydra/(launcher|sweeper)")
_REFERENCES: Final = re.compile(r"\$\{[\w.]+\}")  # to another key, which no resolver computes
_MOST_REFERENCES: Final = 8  # a file; more could stand for each other as aliases do

# Of overrides: what names an object to build, a configuration of logging, or a package to import.
_BUILDS: Final = re.compile(r"_target_[\"']?\s*[:=]|@hydra\b|^[+~]*hydra(\.(callbacks|job_logging|hydra_logging)\b|=)")
_IMPORTS: Final = re.compile(r"^[+~]*hydra\.searchpath=.*\b(?!file://)\w+://")


def check_overrides_trusted(overrides: Sequence[str]) -> None:
    """Refuse overrides that name code to run.

    Raises:
        RbpxError: one names a `_target_`, a callback, a handler of logging, or a package to search for files.
    """
    for override in overrides:
        if _BUILDS.search(override) or _IMPORTS.search(override):
            raise RbpxError(f"{override} names code that Hydra would run; {ADVICE}")


def load_trusted(path: Path, trusts: bool, package: str = "") -> Any:
    """A study or another YAML file, refused where it names code.

    Args:
        path: the file.
        trusts: whether it may name code.
        package: where Hydra puts its values; empty for the top.

    Raises:
        RbpxError: it cannot be read, exceeds a bound, or names code and `trusts` is not set.
    """
    node = load_yaml(path)
    if not trusts:
        check_values(node, path, package)
    return node


def check_values(node: Any, path: Path, package: str = "") -> None:
    """Refuse a file that names code, configures Hydra, computes values, or says where rbpx writes.

    Args:
        node: what OmegaConf read from it.
        path: the file.
        package: where Hydra puts its values; empty for the top.

    Raises:
        RbpxError: the first thing that a file may not hold, and the flag that allows it.
    """
    from omegaconf import OmegaConf

    values = OmegaConf.to_container(node, resolve=False)
    assert isinstance(values, dict)
    references = 0
    for keys, value in _leaves(values):
        key = ".".join(map(str, keys))
        if "_target_" in keys:
            raise RbpxError(f"{path}: {key} names code that Hydra would run; {ADVICE}")
        texts = [str(each) for each in (*keys, value)]
        references += sum(len(_REFERENCES.findall(text)) for text in texts)
        if any("${" in _REFERENCES.sub("", text) for text in texts):
            raise RbpxError(
                f"{path}: {key} computes a value, which could read your environment: {str(value)[:60]}; write the "
                f"value, or add {FLAG} if you trust whoever wrote it"
            )
    if references > _MOST_REFERENCES:
        raise RbpxError(f"{path} refers to other keys {references} times; write values, or add {FLAG}")
    chosen = values.pop("defaults", None)
    is_launcher = package == LAUNCHER
    _check_hydra({"launcher": values} if is_launcher else values.get("hydra"), path)
    for key, what in _PLACES.items():
        if key in values:
            raise RbpxError(f"{path}: {key} says where rbpx writes; type --{key} {what} instead, or add {FLAG}")
    for entry in chosen if isinstance(chosen, list) else ():
        for words in (entry,) if isinstance(entry, str) else entry.items() if isinstance(entry, dict) else ():
            group, option = (words, "") if isinstance(words, str) else map(str, words)
            is_moved = "@" in f"{group}{option}" or (is_launcher and "/" in group)
            if is_moved or ("hydra" in group and not _CHOICES.fullmatch(group)):
                raise RbpxError(f"{path}: defaults chooses {group}, which configures Hydra or moves a file; {ADVICE}")


def _leaves(value: Any, keys: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Each value that is not a mapping or a list, with the keys that lead to it; empty ones too."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if not inner:
        yield keys, value
    for key, each in inner:
        yield from _leaves(each, (*keys, key))


def _check_hydra(hydra: Any, path: Path) -> None:
    if hydra is None:
        return
    keys = {("hydra", *inner[:2]) for inner, _ in _leaves(hydra)}
    for key in keys:
        group, name = (*key[1:], None, None)[:2]
        if group not in _HYDRA or (name not in _HYDRA[group] if _HYDRA[group] else name is not None):
            raise RbpxError(f"{path}: {'.'.join(map(str, key))} configures Hydra, which may run code; {ADVICE}")
    for inner, value in _leaves(hydra):
        where = ".".join(map(str, ("hydra", *inner)))
        if inner[:2] == ("launcher", "setup"):
            _check_setup(value, path)
        elif inner[:1] == ("launcher",) and (len(inner) > 2 or "${" in str(value) or not str(value).isprintable()):
            raise RbpxError(f"{path}: {where} is not one plain line, and becomes a line of a script; {ADVICE}")
        elif inner[:2] == ("sweeper", "params"):
            name = str(inner[-1])
            if re.match(rf"[+~]*(hydra\b|({'|'.join(_PLACES)})$)", name) or _BUILDS.search(f"{name}={value}"):
                raise RbpxError(f"{path}: {where} configures Hydra, or says where rbpx writes; {ADVICE}")


def _check_setup(line: Any, path: Path) -> None:
    """Refuse a line that a shell would run in each job, unless it loads modules."""
    if line not in (None, [], {}) and not (isinstance(line, str) and _MODULES.fullmatch(line)):
        raise RbpxError(
            f"{path}: {LAUNCHER}.setup: {str(line)[:80]!r} would be run by a shell in each job, and a file may only "
            f"load modules there, as in 'module load cuda'; add {FLAG} if you wrote the file, or have read it"
        )
