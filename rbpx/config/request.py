"""The keys of a verb: its schema for Hydra, what help says of them, and the object that a verb is handed."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, make_dataclass
from functools import cached_property
from typing import Any, Final

from rbpx.config.keys import laws, output, predictions, runs, tasks
from rbpx.config.keys.key import Key, Keys, key, keys_of

__all__ = ["EVERY", "KEYS", "NARROWS", "Asking", "schema_of"]


def _every() -> dict[str, Key]:
    """The keys of all classes, the first of those of one name; `store` is the last of help."""
    every: dict[str, Key] = {}
    for kind in (kind for module in (runs, laws, predictions, output, tasks) for kind in vars(module).values()):
        if isinstance(kind, type) and issubclass(kind, Keys):
            every |= {name: each for name, each in keys_of(kind).items() if name not in every}
    store = every.pop("store")
    return every | {"store": store}


KEYS: Final[Mapping[str, Key]] = _every()
"""The keys of all verbs, by name, in the order of help."""
NARROWS: Final = tuple(
    name for name in KEYS if name in keys_of(runs.Narrowing) and name not in ("store", "checkpoints")
)
"""The keys that choose runs, of every question."""
_HYDRA: Final = {"output_subdir": None, "run": {"dir": "."}, "sweep": {"dir": "???", "subdir": "."}}


@dataclass(frozen=True)
class Asking:
    """The keys of a verb.

    Attributes:
        more: names of keys of the questions.
        performs: returns the keys of each question that its request names.
    """

    verb: str
    kind: type[Any]
    more: Sequence[str] = ()
    performs: Callable[[Any], Iterable["Asking"]] | None = None

    @cached_property
    def keys(self) -> Mapping[str, Key]:
        """The keys by name, in the order of help."""
        own = keys_of(self.kind)
        if self.is_of_file:
            return own
        return {name: own.get(name, each) for name, each in KEYS.items() if name in own or name in self.more}

    @property
    def is_of_file(self) -> bool:
        """Whether it brings one file, without files of conf/."""
        return not issubclass(self.kind, Keys)

    @property
    def is_of_grid(self) -> bool:
        """Whether it is about a grid, whose cells a store may lack."""
        return issubclass(self.kind, runs.GridKeys) and not self.narrows

    @property
    def narrows(self) -> bool:
        """Whether model and dataset choose among the runs in a store."""
        return issubclass(self.kind, runs.Narrowing)

    def schema(self, takes_all: bool = False) -> type:
        """A dataclass of its keys for Hydra; with `takes_all` of those of all verbs, as a study may set any."""
        if self.is_of_file:
            return self.kind
        takes_all = takes_all or self.performs is not None
        return schema_of(self.verb, {**KEYS, **self.keys} if takes_all else self.keys, self.kind.FILES)

    def made(self, values: Mapping[str, Any]) -> Any:
        """The object of its keys from values as typed; those of others it keeps for its questions."""
        own = {name: values[name] for name in keys_of(self.kind) if name in values}
        return self.kind(**own, others={name: values[name] for name in KEYS if name in values and name not in own})


def schema_of(name: str, keys: Mapping[str, Key], files: Mapping[str, str | None] | None = None) -> type:
    """A dataclass of some keys, which begins from `files` of conf/, if given."""
    asked = [
        (each.name, each.kind, key(each.default, each.help, each.read, text=each.is_text))
        for each in keys.values()
        if each.name != "experiment"
    ]
    if files is not None:
        chosen = [{group: option} for group, option in files.items()]
        logs = [{f"override hydra/{of}_logging": "stderr"} for of in ("job", "hydra")]
        defaults = ["_self_", *chosen, {"experiment": None}, *logs]
        asked += [("defaults", list[Any], field(default_factory=lambda: list(defaults)))]
        asked += [("hydra", Any, field(default_factory=lambda: dict(_HYDRA)))]
    return make_dataclass(name, asked)


EVERY: Final = schema_of("every", KEYS)
"""The schema of the keys of all verbs."""
