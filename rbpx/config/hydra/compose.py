"""A command line's overrides in, the checked request of each of its jobs out; what is wrong becomes one line."""

import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, Final

from omegaconf import DictConfig, ListConfig, OmegaConf, open_dict

from rbpx.config.hydra import adapter
from rbpx.config.hydra.explain import explain, undeletable, unknown_key
from rbpx.config.hydra.files import read_study
from rbpx.config.hydra.texts import check_override
from rbpx.config.keys.runs import GRID
from rbpx.config.overrides import config_dirs, config_folders, retyped, searched, without_flags
from rbpx.config.places import _PACKAGE, experiments, folder, options
from rbpx.config.request import KEYS, Asking, Request, schema_of
from rbpx.errors import RbpxError

__all__ = ["Overrides", "check_overrides", "is_ours", "names_dataset", "requests", "restored", "sweep", "with_groups"]

_LOGGER = logging.getLogger(__name__)
_COMPOSING: Final = Lock()
Job = Callable[[], Any]
"""Returns the request of one job, or raises what is wrong with it."""

_NARROWING: Final = ("analyse", "audit")  # files of conf/ of verbs that look at what the store holds
_GRID: Final = {*(name.partition(".")[0] for name in GRID), "experiment", "store"}
_SCHEMA: Final = "request"  # what the files of conf/ call the schema of the verb that begins from them
# Flags of Hydra that ask for something else than jobs.
_PRINTS: Final = re.compile(r"-(?!m$|-multirun$|cd\b|-config-dir\b)")


class Overrides:
    """What was typed for a verb, ready to be composed.

    Attributes:
        asking: what the verb can be asked.
        typed: key=value, and Hydra's flags, as typed.
        words: the same with the groups that they need.
        values: key=value of these, with the folders of --config-dir as a key of Hydra's.
        held: names of the datasets in the store; `dataset=` takes them where a question is asked of it.
        trusts: whether files of the user may name code.
    """

    def __init__(self, asking: Asking, typed: Sequence[str], held: Sequence[str] = (), trusts: bool = False) -> None:
        """Refuse what would be passed over."""
        self.asking, self.held, self.trusts = asking, held, trusts
        self.typed = [re.sub(r"^\++(?=experiment=)", "", word) for word in typed]
        check_overrides(asking, self.typed)
        self.words = with_groups(asking.primary, self.typed)
        self.own = config_dirs(self.words)
        self.values = without_flags(self.words)
        if self.own:
            self.values.append(searched(self.own))
        self.names_study = any(re.match(r"experiment=(?!null$)", word) for word in self.values)

    @property
    def is_for_main(self) -> bool:
        """Whether Hydra's own main has to take them: another launcher, or a flag that prints."""
        return any(_PRINTS.match(word) for word in self.words) or (
            bool(self.own) and any(word.startswith("hydra.searchpath=") for word in self.words)
        )

    @contextmanager
    def explained(self, composes: Callable[[], bool] = lambda: True) -> Iterator[None]:
        """Turn what Hydra and OmegaConf raise into one line.

        Args:
            composes: whether nothing but configuration is read still, so that any exception is about that.

        Raises:
            RbpxError: an override or a file names something that does not exist, or has the wrong type.
        """
        try:
            yield
        except Exception as problem:  # plugins and the grammar of overrides raise whatever they like
            if is_ours(problem) or not (isinstance(problem, adapter.EXPECTED) or composes()):
                raise
            if isinstance(problem, RecursionError):
                raise RbpxError(
                    "the configuration is nested too deeply, or refers to itself; write it flatter"
                ) from None
            raise RbpxError(explain(problem, self.asking, self.typed, self.held)) from None

    def request_of(self, config: Any) -> Any:
        """The request that a composed configuration makes.

        Raises:
            RbpxError: it has a key that the verb does not have; `+KEY=VALUE` adds any to a configuration.
        """
        with open_dict(config):
            config.pop("hydra", None)
        _check_keys(config, self.asking)
        composed = OmegaConf.to_object(config)
        if self.asking.kind is not None:
            return composed
        request = Request(**vars(composed))
        if self.asking.primary == "measure":
            request.download = retyped("download", self.typed, self.trusts, _says_how)
        if self._takes_all:
            self._refuse_foreign(request)
        return request

    @property
    def _takes_all(self) -> bool:
        """Whether keys are those of several questions: a study may give what any of its own has."""
        return self.asking.kind is None and (self.names_study or self.asking.performs is not None)

    @property
    def _schema(self) -> type:
        return self.asking.schema(self._takes_all)

    def check_texts(self, words: Sequence[str]) -> None:
        """Refuse key=value whose text would not be stored as typed; the names of files of conf/ Hydra checks itself."""
        schema = self._schema
        for word in words:
            if "=" in word and not word.lstrip("+~").startswith("hydra"):
                check_override(schema, word, *adapter.read_values(word))

    def _refuse_foreign(self, request: Request) -> None:
        """Refuse keys that were typed and that neither the verb nor a question that it asks has."""
        performs = self.asking.performs
        of_study = ("study", "imports", "analyses") if self.names_study else ()
        of_questions = performs(request) if performs is not None else ()
        known = {*self.asking.names, "experiment", *of_study, *of_questions}
        for word in self.typed:
            name = re.split(r"[.=@]", word.lstrip("+~"))[0]
            if name in KEYS and name not in known:
                raise RbpxError(unknown_key(name, self.asking))

    @contextmanager
    def registered(self) -> Iterator[None]:
        """Let Hydra compose them while the block lasts; it keeps the reader of files that it has when it starts.

        One thread at a time: what Hydra is told, and whether it has started, are global to the process.
        """
        with _COMPOSING:
            self.register()
            with adapter.initialized():
                yield

    def register(self) -> None:
        """Tell Hydra of the verb's schema, of our studies, and of the datasets that the store holds.

        Studies are read only where one may be asked for, or what there is: that takes a third of a second. -m alone
        asks for neither.
        """
        primary, own = self.asking.primary, config_folders(self.words)
        self.check_texts(self.values)
        nodes: list[tuple[str, str, Any, str | None]] = [("", _SCHEMA, self._schema, None)]
        if self.names_study or any(_PRINTS.match(word) for word in self.words):
            for path in experiments(own):
                if path.parent == folder("experiments"):  # those of the user Hydra finds in their folder
                    nodes.append(("experiment", path.stem, read_study(path, self.trusts), "_global_"))
        written = options("dataset", own)
        for name in self.held:
            *folders, option = f"dataset/{name}".split("/")
            if name not in written and "${" not in name and name != "_self_" and all((*folders, option)):
                nodes.append(("/".join(folders), option, {"name": name, "kind": "file"}, "dataset"))
        adapter.register(primary, nodes, self.trusts, own)


def requests(overrides: Overrides) -> list[Job] | None:
    """A function for the request of each job; None where Hydra's main has to run them, under another launcher.

    Raises:
        RbpxError: the overrides name something that does not exist or has the wrong type.
    """
    launcher, jobs = sweep(overrides)
    return jobs if launcher.is_basic else None


def sweep(overrides: Overrides) -> tuple[adapter.Launcher, list[Job] | None]:
    """The launcher of the jobs, and a function for the request of each.

    The functions are None where a flag asks Hydra to print something, and where a sweeper of another kind than Hydra's
    own makes the jobs one after the other.

    Raises:
        RbpxError: the overrides name something that does not exist or has the wrong type.
    """
    if overrides.is_for_main:
        return adapter.Launcher(), None
    with overrides.explained(), overrides.registered():
        sweeps = bool({"-m", "--multirun"} & set(overrides.words))
        first = adapter.first_job(overrides.values) if sweeps else overrides.values
        config = adapter.composed(overrides.asking.primary, first)
        launcher = adapter.launcher(config)
        if not adapter.knows_its_jobs(config):
            return launcher, None
        jobs = adapter.jobs(config, overrides.values, sweeps)
        if jobs is not None:
            overrides.check_texts(adapter.params(config.hydra))
        if jobs is None and not launcher.is_basic:
            _LOGGER.warning(
                f"hydra/launcher={launcher.name} is for the jobs of a sweep; without -m this process does the work"
            )
        if jobs is None or launcher.is_basic:
            adapter.show_warnings(config)
        if jobs is None:
            return adapter.Launcher(), [_job(overrides, config)]
        return launcher, [_job(overrides, adapter.composed(overrides.asking.primary, job)) for job in jobs]


def _job(overrides: Overrides, config: Any) -> Job:
    """The request of a configuration; what is wrong with a job of a sweep is told when its turn comes."""
    try:
        request = overrides.request_of(config)
    except RbpxError as problem:
        return partial(_raise, problem)
    return lambda: request


def _raise(problem: RbpxError) -> None:
    raise problem


def restored(record: Mapping[str, Any], names: Sequence[str]) -> Request:
    """The request that a record of a run holds.

    Args:
        record: values of keys, as they were kept.
        names: of the keys.

    Raises:
        RbpxError: it is of another version of rbpx.
    """
    schema = OmegaConf.structured(schema_of("record", names))
    try:
        return Request(**vars(OmegaConf.to_object(OmegaConf.merge(schema, {name: record[name] for name in names}))))
    except adapter.EXPECTED as problem:
        reason = str(problem).split("\n")[0]
        raise RbpxError(f"its record is of another version of rbpx ({reason}); measure the run anew") from None


def _says_how(key: str) -> bool:
    """Whether a key says how a grid is measured or looked at, not which."""
    if key.startswith("hydra"):
        return key.startswith(("hydra/launcher", "hydra.launcher"))
    return re.split("[.@]", key)[0] not in _GRID


def _check_keys(node: Any, asking: Asking, within: str = "") -> None:
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
            raise RbpxError(unknown_key(f"{within}{key}", asking))
        _check_keys(node._get_node(key), asking, f"{within}{key}.")


def check_overrides(asking: Asking, overrides: Sequence[str]) -> None:
    """Refuse what would be passed over.

    Raises:
        RbpxError: a list is given to a group, dataset.split, subset or revision stands beside dataset.path, or a key is
            deleted, which a request then has all the same.
    """
    for override in overrides:
        names_list = re.fullmatch(r"(model|dataset|protocol|experiment)=\[(.*)\]", override)
        if names_list:  # Hydra would quietly merge the files of a list into one
            names = names_list[2].replace(" ", "")
            raise RbpxError(
                f"{override} is a list where one {names_list[1]} is meant; sweep with -m {names_list[1]}={names}"
            )
        key = override[1:].partition("=")[0]
        if override.startswith("~") and key in (*asking.names, *(() if asking.kind else KEYS), "experiment"):
            raise RbpxError(undeletable(override))
    reads_file = any(re.match(r"\+?dataset\.path=(?!null$)", override) for override in overrides)
    hubs = [override for override in overrides if re.match(r"\+?dataset\.(split|subset|revision)=(?!null$)", override)]
    if reads_file and hubs:
        raise RbpxError(f"{hubs[0]} is for datasets of the hub, and a file has no such parts; drop it")


def with_groups(primary: str, overrides: Sequence[str]) -> list[str]:
    """Overrides with the groups that narrowing keys of a question to the store need, where they are not named.

    There is no model and no dataset where a question looks at all that the store holds; model.revision, model.family,
    model.quantise, dataset.name and dataset.path then narrow by themselves. A study may name a model itself.
    """
    keys = [override.partition("=")[0].lstrip("+") for override in overrides]
    if primary not in _NARROWING or "experiment" in keys:
        return list(overrides)
    of_model = ("model.revision", "model.family", "model.quantise")
    needed = {"model=hub": of_model, "dataset=file": ("dataset.name", "dataset.path")}
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


def names_dataset(primary: str, overrides: Sequence[str]) -> bool:
    """Whether overrides narrow a question to a dataset that has no file in conf/, so that the store has to know it."""
    values = [override.partition("=")[2] for override in overrides if re.match(r"\+?dataset=", override)]
    asked = {name.strip("\"' ") for value in values for name in value.split(",")}
    return primary in _NARROWING and not asked <= set(options("dataset", config_folders(overrides)))


def compose(asking: Asking, typed: Sequence[str], held: Sequence[str] = (), trusts: bool = False) -> Any:
    """The request of the one job that overrides make, whatever of a sweep a study asks for.

    Args:
        asking: what the verb can be asked.
        typed: key=value, as typed.
        held: names of the datasets in the store.
        trusts: whether files of the user may name code.

    Raises:
        RbpxError: the overrides name something that does not exist or has the wrong type.
    """
    overrides = Overrides(asking, typed, held, trusts)
    with overrides.explained(), overrides.registered():
        return overrides.request_of(adapter.composed(asking.primary, overrides.values))
