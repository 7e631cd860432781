"""Whether a command line is a right request, without running it: its verb, its groups, its keys and their values.

Hydra composes a request in a tenth to a fifth of a second. Here its grammar reads the overrides, and OmegaConf checks
their names and types against the verb's own schema, in some ten milliseconds; lines with a key of Hydra's are
composed by Hydra, of a sweep the first job. A test of tests/project holds both ways to one request.
"""

import re
from collections.abc import Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import yaml
from omegaconf import OmegaConf

from rbpx.cli.argv import CommandLine, parse
from rbpx.cli.registry import asking
from rbpx.config.hydra.adapter import OverridesParser
from rbpx.config.hydra.compose import check_overrides, compose, with_groups
from rbpx.config.hydra.files import read, read_study
from rbpx.config.model.family import ModelConfig
from rbpx.config.model.placement import EngineConfig, ParallelConfig
from rbpx.config.overrides import with_condition, without_flags
from rbpx.config.request import Asking, Request
from rbpx.config.text.dataset import DatasetConfig, ProtocolConfig
from tests.support.places import CONF, EXPERIMENTS

GROUPS: dict[str, Any] = {
    "model": ModelConfig,
    "dataset": DatasetConfig,
    "protocol": ProtocolConfig,
    "parallel": ParallelConfig,
    "engine": EngineConfig,
    "experiment": None,  # a study sets keys; what it says is held by a test of studies
}
_BY_HYDRA = re.compile(r"[+~]|hydra\b")


def requests_of(words: Sequence[str], own: Path | None = None) -> list[Any]:
    """The requests of the jobs of `python -m rbpx WORDS`; none of a line that asks for a page of help.

    Args:
        words: what is typed behind `rbpx`.
        own: a folder of configuration of the reader's, who has the files that the documentation lets them write.

    Raises:
        RbpxError, or an error of Hydra's or OmegaConf's: something in the line is wrong.
    """
    line = parse(list(words))
    if line.help or line.version:
        return []
    asked, overrides = asking(line.verb), list(line.hydra)
    if asked.primary == "import":
        overrides = [with_condition(re.sub(r"^(dataset|protocol|engine)=", r"plain.\1=", word)) for word in overrides]
    jobs = _jobs(line, overrides)
    by_hydra = any(_BY_HYDRA.match(word) for word in overrides)
    if not by_hydra and all(_file(word, own) for job in jobs for word in job if _is_group(word)):
        return [_read(asked, job, own) for job in jobs]
    folders = [] if own is None else [f"--config-dir={own}"]
    return [compose(asked, [*folders, *job]) for job in jobs[:1]]


def request_of_study(path: Path, verb: str) -> Any:
    """What a file of experiments/ asks for: its keys and values against the schema of the verb, its groups of conf/.

    Raises:
        RbpxError, or an error of OmegaConf's: something in the file is wrong.
    """
    asked, node = asking(verb), _schema(verb, True).copy()
    said = OmegaConf.to_container(read_study(path, False))
    lines = [line for line in said.pop("defaults", []) if isinstance(line, dict)]
    own = {key.removeprefix("override /"): name for line in lines for key, name in line.items()}
    for group, name in (_chosen(asked.primary) | own).items():
        if group in GROUPS and group != "experiment":
            node[group] = None if name is None else _option(group, CONF / group / f"{name}.yaml")
    said.pop("hydra", None)
    request = OmegaConf.to_object(OmegaConf.merge(node, said))
    return Request(**vars(request)) if asked.kind is None else request


def _jobs(line: CommandLine, overrides: Sequence[str]) -> list[list[str]]:
    """The overrides of each job: all combinations of the lists of a sweep, as Hydra's own sweeper makes them."""
    values = [word for word in without_flags(overrides) if "=" in word or word.startswith("~")]
    if not line.sweeps:
        return [values]
    each = []
    for override in _parsed(values):
        given = override.sweep_string_iterator() if override.is_sweep_override() else [None]
        each.append([override.input_line if one is None else f"{override.get_key_element()}={one}" for one in given])
    return [list(job) for job in product(*each)]


def _read(asked: Asking, values: Sequence[str], own: Path | None) -> Any:
    check_overrides(asked, values)
    words = with_groups(asked.primary, values)
    chosen = _chosen(asked.primary) | dict(word.split("=") for word in words if _is_group(word))
    node = _schema(asked.verb, asked.performs is not None or "experiment" in chosen).copy()
    OmegaConf.set_struct(node, True)
    of_groups: dict[str, list[Any]] = {group: [] for group in chosen}
    for override in _parsed([word for word in words if not _is_group(word)]):
        assert not override.is_sweep_override(), f"{override.input_line} is a sweep without -m"
        group, _, key = override.key_or_group.partition(".")
        if key and group in GROUPS:
            of_groups[group].append((key, override.value()))
        else:
            OmegaConf.update(node, override.key_or_group, override.value(), merge=True)
    request = OmegaConf.to_object(node)
    if asked.kind is not None:
        return request
    paths = {group: _file(f"{group}={name}", own) for group, name in chosen.items() if group != "experiment"}
    groups = {group: _object(group, path, of_groups[group]) for group, path in paths.items() if path is not None}
    return Request(**vars(request) | groups)


def _object(group: str, path: Path, overrides: Sequence[tuple[str, Any]]) -> Any:
    if not overrides:
        return _plain(group, path)
    node = _option(group, path).copy()
    OmegaConf.set_struct(node, True)
    for key, value in overrides:
        OmegaConf.update(node, key, value, merge=True)
    return OmegaConf.to_object(node)


def _parsed(values: Sequence[str]) -> Any:
    return OverridesParser.create().parse_overrides(list(values))


def _is_group(word: str) -> bool:
    return word.partition("=")[0] in GROUPS


def _file(word: str, own: Path | None) -> Path | None:
    """The file that GROUP=NAME chooses, of the reader's or ours; None where there is none."""
    group, _, name = word.partition("=")
    ours = EXPERIMENTS if group == "experiment" else CONF / group
    places = [ours / f"{name}.yaml"] if own is None else [own / group / f"{name}.yaml", ours / f"{name}.yaml"]
    return next((path for path in places if path.is_file()), None)


@cache
def _schema(verb: str, takes_all: bool) -> Any:
    node = OmegaConf.structured(asking(verb).schema(takes_all))
    of_primary = yaml.safe_load((CONF / f"{asking(verb).primary}.yaml").read_text(encoding="utf-8"))
    own = {name: value for name, value in of_primary.items() if name not in ("defaults", "hydra") and name in node}
    return OmegaConf.merge(node, own)


@cache
def _chosen(primary: str) -> dict[str, str]:
    """The files that a request begins from, by group."""
    lines = yaml.safe_load((CONF / f"{primary}.yaml").read_text(encoding="utf-8"))["defaults"]
    pairs = [pair for line in lines if isinstance(line, dict) for pair in line.items()]
    return {group: name for group, name in pairs if group in GROUPS and name is not None}


@cache
def _option(group: str, path: Path) -> Any:
    values = read(path, True, group)
    return OmegaConf.merge(OmegaConf.structured(GROUPS[group]), values.get(group, values))


@cache
def _plain(group: str, path: Path) -> Any:
    return OmegaConf.to_object(_option(group, path))
