"""Hydra: overrides in, the checked request of one job out."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from rbpx.config.explain import explain, known_keys, undeletable, unknown_key
from rbpx.config.imports import ImportRequest
from rbpx.config.places import _PACKAGE, experiments, folder
from rbpx.config.plain import NotPlain, plain_request
from rbpx.config.request import Request
from rbpx.config.trust import install, load_trusted
from rbpx.errors import RbpxError

_NARROWING = ("analyse", "audit")  # files of conf/ of verbs that look at what the store holds


def compose(primary: str, overrides: Sequence[str], held: Sequence[str] = (), trusts: bool = False) -> Any:
    """The request that overrides make, as a job of a command line would get it.

    Args:
        primary: the file of conf/ that it begins from.
        overrides: key=value, as typed.
        held: names of the datasets in the store; `dataset=` takes them where a question is asked of it.
        trusts: whether files of the user may name code.

    Raises:
        RbpxError: the overrides name something that does not exist or has the wrong type.
    """
    check_overrides(primary, overrides)
    with suppress(NotPlain):
        return plain_request(primary, with_groups(primary, overrides))
    with explained(primary, overrides, held):
        return request_of(composed(primary, with_groups(primary, overrides), held, trusts), primary)


def composed(primary: str, overrides: Sequence[str], held: Sequence[str] = (), trusts: bool = False) -> Any:
    """The configuration that overrides make, before it is typed; raises what Hydra and OmegaConf raise.

    Args:
        primary: as for `compose`.
        overrides: with the groups that they need, as `with_groups` returns them.
        held: as for `compose`.
        trusts: as for `compose`.
    """
    import hydra

    register(primary, overrides, held, trusts)
    with hydra.initialize_config_dir(str(folder("conf")), version_base="1.3"):
        return hydra.compose(primary, overrides=list(overrides))


@contextmanager
def explained(
    primary: str, overrides: Sequence[str], held: Sequence[str], composes: Callable[[], bool] = lambda: True
) -> Iterator[None]:
    """Turn what Hydra and OmegaConf raise into one line.

    Args:
        primary: the file of conf/ that the request begins from.
        overrides: as typed.
        held: names of the datasets in the store.
        composes: whether nothing but configuration is read still, so that any exception is about that.

    Raises:
        RbpxError: an override or a file names something that does not exist, or has the wrong type.
    """
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    try:
        yield
    except Exception as problem:  # plugins and the grammar of overrides raise whatever they like
        expected = isinstance(problem, HydraException | OmegaConfBaseException | ValueError | AssertionError)
        if is_ours(problem) or not (expected or composes()):
            raise
        if isinstance(problem, RecursionError):
            raise RbpxError("the configuration is nested too deeply, or refers to itself; write it flatter") from None
        raise RbpxError(explain(problem, primary, overrides, held)) from None


def request_of(config: Any, primary: str) -> Any:
    """The typed request that a composed configuration makes.

    Raises:
        RbpxError: it has a key that no request has; `+KEY=VALUE` adds any to a configuration.
    """
    from omegaconf import OmegaConf

    _check_keys(config, primary)
    return OmegaConf.to_object(config)


def _check_keys(node: Any, primary: str, within: str = "") -> None:
    from omegaconf import DictConfig, ListConfig, OmegaConf

    if (
        not isinstance(node, DictConfig | ListConfig)
        or node._is_none()
        or node._is_missing()
        or node._is_interpolation()
    ):
        return
    keys = list(node) if isinstance(node, DictConfig) else list(range(len(node)))
    typed = getattr(OmegaConf.get_type(node), "__dataclass_fields__", keys)
    for key in keys:
        if key not in typed:
            raise RbpxError(unknown_key(f"{within}{key}", primary))
        _check_keys(node._get_node(key), primary, f"{within}{key}.")


def check_overrides(primary: str, overrides: Sequence[str]) -> None:
    """Refuse what would be passed over: keys of the hub beside a file that is read in place of it, deletions of keys.

    Args:
        primary: the file of conf/ that the request begins from.
        overrides: as typed.

    Raises:
        RbpxError: dataset.split, subset or revision stands beside dataset.path, or a key is deleted, which a request
            then has all the same.
    """
    undone = () if primary == "train" else ("experiment",)  # a training has one unless it is deleted
    for override in overrides:
        if override.startswith("~") and override[1:].partition("=")[0] in (*known_keys(primary), *undone):
            raise RbpxError(undeletable(override))
    reads_file = any(re.match(r"\+?dataset\.path=(?!null$)", override) for override in overrides)
    hubs = [override for override in overrides if re.match(r"\+?dataset\.(split|subset|revision)=(?!null$)", override)]
    if reads_file and hubs:
        raise RbpxError(f"{hubs[0]} is for datasets of the hub, and a file has no such parts; drop it")


def with_groups(primary: str, overrides: Sequence[str]) -> list[str]:
    """Overrides with the groups that narrowing keys of a question to the store need, where they are not named.

    There is no model and no dataset where a question looks at all that the store holds; model.revision, model.family,
    dataset.name and dataset.path then narrow by themselves. A study may name a model itself. A list comes after null
    in a recipe, whose mapping it may replace: Hydra would merge the one into the other.
    """
    if primary == "train":
        named = (re.match(r"\w+=\[", override) and override.partition("=")[0] for override in overrides)
        pairs = zip(named, overrides, strict=True)
        return [each for key, override in pairs for each in ([f"{key}=null"] if key else []) + [override]]
    keys = [override.partition("=")[0].lstrip("+") for override in overrides]
    if primary not in _NARROWING or "experiment" in keys:
        return list(overrides)
    needed = {"model=hub": ("model.revision", "model.family"), "dataset=file": ("dataset.name", "dataset.path")}
    groups = [
        group
        for group, inner in needed.items()
        if group.partition("=")[0] not in keys and any(key in inner for key in keys)
    ]
    return [*overrides, *groups]  # flags of Hydra come first


def is_ours(problem: BaseException) -> bool:
    """Whether an exception began in our own task: then it is a defect, not a wrong override."""
    trace = problem.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and Path(trace.tb_frame.f_code.co_filename).is_relative_to(_PACKAGE)


def register(primary: str, overrides: Sequence[str], held: Sequence[str] = (), trusts: bool = False) -> None:
    """The schema, an option of the group `experiment` for each study of this kind, one of `dataset` for each text held.

    Studies are read only where one may be asked for, or what there is: that is a third of the time to start. -m alone
    asks for neither. A ladder is always trained by a study.
    """
    from hydra.core.config_store import ConfigStore
    from omegaconf import OmegaConf

    install(trusts)
    _register_schema()
    store = ConfigStore.instance()
    for group in ("dataset", "experiment"):  # those that this process was asked before
        store.repo.pop(group, None)
    asks = re.compile(r"experiment|^-(?!m$|-multirun$)")  # --info and completion list them
    needed = primary == "train" or any(asks.search(word) for word in overrides)
    for path in experiments(primary) if needed else ():
        node = load_trusted(path, trusts)
        if primary != "train":
            OmegaConf.update(node, "study.name", path.stem)
        store.store(group="experiment", name=path.stem, node=node, package="_global_")
    written = _dataset_files(overrides)
    for name in held:
        *folders, option = f"dataset/{name}".split("/")
        if name not in written and "${" not in name and name != "_self_" and all((*folders, option)):
            store.store(group="/".join(folders), name=option, node={"name": name, "kind": "file"}, package="dataset")


def names_dataset(primary: str, overrides: Sequence[str]) -> bool:
    """Whether overrides narrow a question to a dataset that has no file in conf/, so that the store has to know it."""
    values = [override.partition("=")[2] for override in overrides if re.match(r"\+?dataset=", override)]
    asked = {name.strip("\"' ") for value in values for name in value.split(",")}
    return primary in _NARROWING and not asked <= _dataset_files(overrides)


def _dataset_files(overrides: Sequence[str]) -> set[str]:
    """The datasets that have a file in conf/, or in the folder that --config-dir or hydra.searchpath names."""
    text = "\n".join(overrides)
    own = re.findall(r"(?:^|\n)(?:--config-dir|-cd)[=\n](.+)", text) + re.findall(r"file://([^\"',\]]+)", text)
    places = [folder("conf"), *(Path(place) for place in own)]
    return {path.stem for place in places for path in (place / "dataset").glob("*.yaml")}


@cache
def _register_schema() -> None:
    from hydra.core.config_store import ConfigStore

    from rbpx.config.recipe import TrainRequest

    store = ConfigStore.instance()
    # For each job Hydra copies all that it could read, and then once more what it does read: the second copy is enough.
    store.__deepcopy__ = lambda memo: store  # type: ignore[attr-defined]
    store.store(name="request", node=Request)
    store.store(name="train_request", node=TrainRequest)
    store.store(name="import_request", node=ImportRequest)
