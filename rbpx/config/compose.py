"""Composes overrides into checked requests, through Hydra's public interface: ConfigStore, compose, main, search path.

A verb's schema is its keys, registered in the ConfigStore under its name; conf/ has the files of the groups.
"""

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from itertools import product
from pathlib import Path
from threading import RLock
from typing import Any, Final

import hydra
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.plugins import Plugins
from hydra.core.utils import configure_log
from hydra.errors import HydraException, OverrideParseException
from hydra.plugins.search_path_plugin import SearchPathPlugin
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from rbpx.config.explain import explain, unknown_key, unread
from rbpx.config.folders import GROUPS, folder, options
from rbpx.config.keys.runs import GridKeys
from rbpx.config.request import EVERY, KEYS, NARROWS, Asking, schema_of
from rbpx.config.texts import quoted, said_in, texts_quoted
from rbpx.errors import RbpxError

_VERSION: Final = "1.3"
_NAMED: Final = {"model": ("hub", "family"), "dataset": ("file", "name")}  # the file and the key that a bare name sets
_LIST: Final = re.compile(r"(model|dataset|protocol)=\[.*\]", re.DOTALL)
_BASIC: Final = "basic"
_COMPOSING: Final = RLock()  # Hydra's state is global to the process
_own: list[Path] = []  # the folders of the user's configuration


class OwnFolder(SearchPathPlugin):
    """Puts the user's folders first on Hydra's search path, so that a file there replaces ours of the same name."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Called by Hydra."""
        for place in reversed(_own):
            search_path.prepend(provider="rbpx-own", path=f"file://{place.resolve()}")


@dataclass(frozen=True)
class Jobs:
    """The request of each job, and the value of hydra/launcher=; None if this process runs the jobs."""

    requests: list[Any]
    launcher: str | None = None


def compose(asking: Asking, overrides: Sequence[str], own: Path | None = None, sweeps: bool = False) -> Jobs:
    """The requests that overrides, key=value as typed, make for a verb; `sweeps` makes lists jobs, as -m does.

    A question is asked of each model, dataset and protocol of a list.

    Raises:
        RbpxError: a name does not exist, or a key does not take its value.
    """
    if asking.is_of_file:
        if sweeps:
            raise RbpxError(f"{asking.verb} brings one file at a time; drop -m")
        return Jobs([_plain_request(asking, overrides)])
    listed = next((each for each in overrides if asking.narrows and _LIST.fullmatch(each)), None)
    if listed is not None:
        name, _, names = listed.partition("=")
        swaps = [{listed: f"{name}={one.strip()}"} for one in names[1:-1].split(",")]
        jobs = [compose(asking, [swap.get(word, word) for word in overrides], own, sweeps) for swap in swaps]
        return Jobs([request for job in jobs for request in job.requests])
    words = _checked(asking, overrides)
    places = places_of(words, own)
    with _explained(asking, overrides, places), _initialized(asking, words, places):
        config = _composed(asking, _jobs(words)[0] if sweeps else words)
        configure_log(config.hydra.job_logging, config.hydra.verbose)
        if not sweeps and config.hydra.mode is not RunMode.MULTIRUN:
            return Jobs([_request_of(asking, config, config.hydra.runtime.choices, words, places)])
        launcher, sweeper = config.hydra.runtime.choices["hydra/launcher"], config.hydra.sweeper
        if not str(sweeper["_target_"]).endswith("BasicSweeper"):
            raise RbpxError(f"hydra/sweeper={config.hydra.runtime.choices['hydra/sweeper']} is not for rbpx; drop it")
        params = texts_quoted(EVERY, [f"{k}={v}" for k, v in (sweeper.get("params") or {}).items()])
        each = [(_composed(asking, job), job) for job in _jobs([*params, *words])]
        made = [_request_of(asking, one, one.hydra.runtime.choices, job, places) for one, job in each]
        return Jobs(made, None if launcher == _BASIC else launcher)


def compose_values(asking: Asking, values: Mapping[str, Any], own: Path | None = None) -> Any:
    """The request that Python values make; a text for a group chooses one of its files; raises as `compose`."""
    chosen = {name: str(value) for name, value in values.items() if name in GROUPS and isinstance(value, str)}
    words = _checked(asking, [f"{name}={quoted(value)}" for name, value in chosen.items()], values)
    given = {name: _as_yaml(value) for name, value in values.items() if name not in chosen}
    unknown = next((name for name in given if name.partition(".")[0] not in asking.keys), None)
    if unknown is not None:
        raise RbpxError(unknown_key(unknown, asking))
    places = places_of(words, own)
    with _explained(asking, list(given), places), _initialized(asking, words, places):
        config = _composed(asking, words)
        for name, value in given.items():
            OmegaConf.update(config, name, value, merge=not isinstance(value, dict))
        return _request_of(asking, config, config.hydra.runtime.choices, words, places)


def launch(
    asking: Asking, flags: Sequence[str], overrides: Sequence[str], own: Path | None, task: Callable[[Any], None]
) -> None:
    """Runs Hydra's own main, which obeys a flag such as --cfg, or has the launcher call `task` in a process per job."""
    os.environ["HYDRA_FULL_ERROR"] = "1"  # errors come as exceptions, not as printed tracebacks
    words = _checked(asking, overrides)
    places = places_of(words, own)
    with _explained(asking, overrides, places), _COMPOSING:
        _register(asking, words, places)
        sys.argv = ["rbpx", *flags, *_by_name(asking, words)]

        def job(config: DictConfig) -> None:
            of_hydra = HydraConfig.get()
            task(_request_of(asking, config, of_hydra.runtime.choices, of_hydra.overrides.task, places))

        hydra.main(version_base=_VERSION, config_path=str(folder("conf")), config_name=asking.verb)(job)()


def restored(record: Mapping[str, Any]) -> GridKeys:
    """How a run was asked for, from its record; raises RbpxError for one of another version of rbpx."""
    schema = OmegaConf.structured(schema_of("record", {name: KEYS[name] for name in record}))
    try:
        return GridKeys(**vars(OmegaConf.to_object(OmegaConf.merge(schema, record))))
    except (OmegaConfBaseException, ValueError) as problem:
        reason = str(problem).split("\n")[0]
        raise RbpxError(f"its record is of another version of rbpx ({reason}); measure the run anew") from None


# ---------------------------------------------------------------------------------------------------------- for Hydra


def places_of(words: Sequence[str], own: Path | None) -> list[Path]:
    """The user's folders of configuration, from --config-dir and hydra.searchpath."""
    searched = " ".join(word for word in words if word.startswith("hydra.searchpath="))
    return [*filter(None, [own]), *map(Path, re.findall(r"file://([^\"',\]]+)", searched))]


@contextmanager
def _initialized(asking: Asking, words: Sequence[str], own: Sequence[Path]) -> Iterator[None]:
    with _COMPOSING:
        _register(asking, words, own)
        with hydra.initialize_config_dir(str(folder("conf")), version_base=_VERSION):
            yield


def _register(asking: Asking, words: Sequence[str], own: Sequence[Path]) -> None:
    Plugins.instance().register(OwnFolder)
    _own[:] = own
    store = ConfigStore.instance()
    named = ",".join(word.partition("=")[2] for word in words if word.startswith("experiment="))
    store.store(name=asking.verb, node=asking.schema(bool(named)))
    for name, path in options("experiment", own).items():
        if name in re.split(r"[^\w-]+", named) and path.parent == folder("experiments"):
            store.store(group="experiment", name=name, node=OmegaConf.load(path), package="_global_")


def _composed(asking: Asking, words: Sequence[str]) -> DictConfig:
    return hydra.compose(asking.verb, overrides=_by_name(asking, words), return_hydra_config=True)


def _jobs(words: Sequence[str]) -> list[list[str]]:
    """The overrides of each job: all combinations of a sweep's lists, the last list varying fastest."""
    parser = OverridesParser.create(config_loader=GlobalHydra.instance().config_loader())
    lists = {}
    for override in parser.parse_overrides(list(words)):
        key = override.get_key_element()
        swept = override.is_sweep_override()
        values = override.sweep_string_iterator() if swept else [override.get_value_element_as_str()]
        lists[key] = [key if key.startswith("~") and value == "" else f"{key}={value}" for value in values]
    jobs = [list(job) for job in product(*lists.values())]
    if not jobs:
        raise RbpxError(f"the sweep {' '.join(words)} has no jobs; check its lists and globs")
    return jobs


def _checked(asking: Asking, overrides: Sequence[str], values: Mapping[str, Any] | None = None) -> list[str]:
    """Quotes texts, refuses lists of groups, and adds the groups without which a question reads all of a store."""
    words = [word.lstrip("+") if word.lstrip("+").startswith("experiment=") else word for word in overrides]
    typed = {name.lstrip("+"): value for name, _, value in (word.partition("=") for word in words)}
    for name, value in typed.items():
        if name in GROUPS and value.startswith(("[", "{", "null")):  # Hydra would merge the files of a list into one
            way = (
                f"sweep with -m {name}={value[1:-1].replace(' ', '')}"
                if value.startswith("[")
                else "give one, or leave it out"
            )
            raise RbpxError(f"{name}={value} is not one name; {way}")
        if name in ("dataset.split", "dataset.subset", "dataset.revision") and "dataset.path" in typed:
            raise RbpxError(f"{name}={value} is for datasets of the hub, and a file has no such parts; drop it")
    words, keys = texts_quoted(EVERY, words), {*typed, *(values or ())}
    if asking.narrows and "experiment" not in keys:
        of_model = {f"model.{name}" for name in ("revision", "family", "quantise", "adapter")}
        words += ["model=hub"] if "model" not in keys and keys & of_model else []
        words += ["dataset=file"] if "dataset" not in keys and keys & {"dataset.name", "dataset.path"} else []
    return words


def _by_name(asking: Asking, words: Sequence[str]) -> list[str]:
    """The overrides of one job; for a question, a name without a file means one in the store."""
    if not asking.narrows:
        return list(words)
    named = []
    for word, override in zip(words, OverridesParser.create().parse_overrides(list(words)), strict=True):
        group, name = override.key_or_group, override.value()
        if group not in _NAMED or not isinstance(name, str) or name in options(group, _own):
            named.append(word)
        else:
            file, key = _NAMED[group]
            named += [f"{group}={file}", f"{group}.{key}={quoted(name)}"]
    return named


def _plain_request(asking: Asking, overrides: Sequence[str]) -> Any:
    with _explained(asking, overrides, []):
        config = OmegaConf.structured(asking.kind)
        # Hydra's grammar has no < and no =, of which conditions are made
        bare = re.compile(r'where=(?!"[^"]*"$|null$)(.*)', re.DOTALL)
        words = [bare.sub(lambda found: f"where={quoted(found[1])}", word) for word in overrides]
        words = texts_quoted(asking.kind, words)
        for override in OverridesParser.create().parse_overrides(words):
            if override.is_sweep_override():
                raise RbpxError(f"{override.input_line} are several values; {asking.verb} brings one file")
            OmegaConf.update(config, override.key_or_group, override.value(), merge=True)
        return OmegaConf.to_object(config)


# ------------------------------------------------------------------------------------------ from a configuration


def _request_of(
    asking: Asking, config: DictConfig, choices: Mapping[str, Any], words: Sequence[str], own: Sequence[Path]
) -> Any:
    """The request of a composed configuration, with the paths of the user's files made absolute."""
    OmegaConf.set_struct(config, False)
    config.pop("hydra", None)
    study = choices.get("experiment")
    for group in ("model", "dataset", "experiment"):
        path = options(group, own).get(choices.get(group) or "")
        if path is None or path.is_relative_to(folder("conf")):  # whose files name no paths
            continue
        for (*above, key), said, absolute in said_in(path, "" if group == "experiment" else group):
            node: Any = config
            for name in above:
                node = None if node is None else node[name]
            if node is not None and node[key] == said:  # else an override replaced it
                node[key] = absolute
    _refuse_added(asking, config)
    request = asking.made(vars(OmegaConf.to_object(config)))
    if getattr(request, "study", None) is not None:
        request.study.name = study
    _refuse_foreign(asking, request, words, study is not None)
    return request


def _refuse_added(asking: Asking, node: Any, within: str = "") -> None:
    """Refuses keys that no schema has; Hydra lets `+KEY=VALUE` add any."""
    kind = OmegaConf.get_type(node)
    if kind is not None and is_dataclass(kind):
        known = {each.name for each in fields(kind)}
        for name in node:
            if name not in known:
                raise RbpxError(unknown_key(f"{within}{name}", asking))
            if OmegaConf.is_dict(node[name]):
                _refuse_added(asking, node[name], f"{within}{name}.")


def _refuse_foreign(asking: Asking, request: Any, words: Sequence[str], is_study: bool) -> None:
    own = [name for name, key in asking.keys.items() if key.help]
    known = {*own, *(("experiment", "study", "imports") if is_study else ("experiment",))}
    for question in () if asking.performs is None else asking.performs(request):
        request.to(question.kind)
        known |= {name for name in question.keys if request.model is None or name not in NARROWS}
    for word in words:
        name = re.split(r"[.=@]", word.lstrip("+~"))[0]
        if name in KEYS and name not in known:
            raise RbpxError(unknown_key(name, asking))


@contextmanager
def _explained(asking: Asking, words: Sequence[str], own: Sequence[Path]) -> Iterator[None]:
    try:
        yield
    except OverrideParseException as problem:
        raise RbpxError(unread(problem.override)) from None
    except (HydraException, OmegaConfBaseException, ValueError, AssertionError) as problem:  # last: Hydra's
        raise RbpxError(explain(problem, asking, words, own)) from None


def _as_yaml(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {_as_yaml(name): _as_yaml(each) for name, each in value.items()}
    if isinstance(value, os.PathLike):
        return str(value)
    if hasattr(value, "tolist"):  # of numpy and pandas
        return value.tolist()
    return [_as_yaml(each) for each in value] if isinstance(value, tuple | list | set | range) else value
