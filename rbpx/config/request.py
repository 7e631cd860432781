"""The request of a verb: the values of its keys, checked singly and together."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, make_dataclass
from typing import Any, Final, Self

from rbpx.config.keys.key import Key, key, keys_of, name_of, names_of
from rbpx.config.keys.laws import USUAL, Choice, LawKeys, Numbers, PredictionKeys, pinned, points
from rbpx.config.keys.output import LOOKS, ShownKeys, StudyKeys
from rbpx.config.keys.runs import LARGEST_SAMPLE, SEED, MeasuringKeys, RunKeys
from rbpx.config.keys.tasks import N_AVERAGED, TaskKeys, TokenKeys
from rbpx.config.options import Bos, Device, Format, Outliers, Padding
from rbpx.config.text.dataset import ProtocolConfig
from rbpx.errors import RbpxError
from rbpx.laws.names import Axis, OnText, SizeBy
from rbpx.ties import OFFICIAL

__all__ = ["KEYS", "Asking", "Request"]


@dataclass(kw_only=True)
class Request(StudyKeys, ShownKeys, TokenKeys, TaskKeys, PredictionKeys, LawKeys, MeasuringKeys, RunKeys):
    """A request of any verb but `import`; keys that the verb does not have are at their defaults.

    Attributes:
        typed: the values of the keys as typed.
        download: the command that fetches what is missing from the hub; None unless measuring was asked for.
    """

    typed: dict[str, Any] = field(init=False, compare=False, repr=False)
    download: str | None = field(default=None, init=False, compare=False)

    def __post_init__(self) -> None:
        """Checks the values.

        Raises:
            RbpxError: a key does not take its value, or two values contradict each other.
        """
        self.typed = {name: getattr(self, name) for name in KEYS}
        for name, given in self.typed.items():
            setattr(self, name, KEYS[name].meaning(given))
        if self.protocol is not None and self.dataset is not None and self.dataset.has_items:
            self.protocol = self.typed["protocol"] = self.protocol.of_items()
        self.pins = pinned(self.E, self.pin, self.laws, self.k)
        if self.pins and not self.laws.by_name:
            self.laws, self.typed["laws"] = Choice(("cross_entropy",), True), ["cross_entropy"]
        for check in _CHECKS:
            check(self)
        self.points_to_predict()

    def but(self, **typed: Any) -> Self:
        """Returns the same request with other values of some keys."""
        other = type(self)(**{**self.typed, **typed})
        other.download = self.download
        return other

    @property
    def is_usual(self) -> bool:
        """Whether neither laws nor k were chosen."""
        return (self.laws, self.k) == (Choice(USUAL, False), Numbers())

    @property
    def along(self) -> Axis:
        """The axis of laws through trainings; not defined for a quantity on another text."""
        assert isinstance(self.axis, Axis)
        return self.axis

    def tokens_in_batch(self, device: str) -> int:
        """Returns padded tokens per batch on cpu or cuda; measuring halves them if memory does not suffice.

        1 makes each window a batch, so that its numbers do not depend on others.
        """
        return 1 if self.deterministic else self.tokens_per_batch or (4096 if device == "cpu" else 32_768)

    @property
    def n_averaged(self) -> int:
        """Number of checkpoints over which `downstream` averages the feature of a training."""
        return self.last or N_AVERAGED

    @property
    def variants(self) -> list[str] | None:
        """The variants to which a question is narrowed; None means all, also where one is compared with a base."""
        return self.variant if self.base is None else None

    @property
    def conditions(self) -> dict[str, str]:
        """The token slices that the user defined as SQL conditions, by name; empty for built-in slices."""
        return self.slices if isinstance(self.slices, dict) else {}

    def points_to_predict(self) -> list[tuple[float, float]]:
        """The points (S, D) to predict; empty without D."""
        return points(self.S, self.D, self.grid)

    def is_about(self, family: str) -> bool:
        """Whether a family is one of the two compared, or none is named."""
        names = [name for name in (self.base, *(self.variant or ())) if name is not None]
        return self.base is None or family in (*names, *(name.partition(":")[0] for name in names))


KEYS: Final[Mapping[str, Key]] = keys_of(Request)
"""All keys of requests, by name."""


_DEFAULTS: Final[Mapping[str, Mapping[str, str | None]]] = {
    "measure": {"model": "ladder", "dataset": "stdlib", "protocol": "paper", "parallel": "data", "engine": None},
    "analyse": dict.fromkeys(("model", "dataset", "protocol")),
    "audit": dict.fromkeys(("model", "dataset", "protocol", "engine")),
}
"""The files of conf/ that a request begins from: of what measures, of what looks at a store, and of what does both."""
_OF_AUDIT: Final = {"limit": 50, "dtype": None}  # documents of each run; any precision
_HYDRA: Final = {"output_subdir": None, "run": {"dir": "."}, "sweep": {"dir": "???", "subdir": "."}}


@dataclass(frozen=True)
class Asking:
    """The keys of a verb.

    Attributes:
        verb: its name.
        primary: the defaults of its request: measure, analyse, audit, or import.
        keys: names of its keys; one with a dot, as model.bos, belongs to a group and is listed for its help.
        kind: dataclass of its request if that is not `Request`; its fields are its keys.
        performs: for a verb that asks questions, returns the keys of the questions in a request.
    """

    verb: str
    primary: str
    keys: tuple[str, ...]
    kind: type | None = None
    performs: Callable[[Request], Iterable[str]] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The keys, without those of groups."""
        if self.kind is not None:
            return tuple(keys_of(self.kind))
        return tuple(dict.fromkeys(name for name in self.keys if "." not in name))

    @property
    def narrows(self) -> bool:
        """Whether model and dataset choose among the runs in a store."""
        return self.primary in ("analyse", "audit")

    def schema(self, takes_all: bool = False) -> type:
        """Returns a dataclass of its keys, by which Hydra refuses unknown keys and values of a wrong type.

        Args:
            takes_all: whether it has all keys, as a study may set those of any question.
        """
        takes_all = takes_all or self.performs is not None
        return self.kind or schema_of(self.verb, tuple(KEYS) if takes_all else self.names, self.primary)


def schema_of(name: str, keys: tuple[str, ...], primary: str = "") -> type:
    """Returns a dataclass of some keys, with the default files and settings of `primary`, if given."""
    own = _OF_AUDIT if primary == "audit" else {}
    asked = []
    for each in (KEYS[name] for name in keys if name != "experiment"):
        made = key(own.get(each.name, each.default), each.help, each.read, text=each.is_text)
        asked.append((each.name, each.kind, made))
    if primary:
        chosen = [{group: option} for group, option in _DEFAULTS[primary].items()]
        logs = [{f"override hydra/{of}_logging": "stderr"} for of in ("job", "hydra")]
        defaults = ["_self_", *chosen, {"experiment": None}, *logs]
        asked += [("defaults", list[Any], field(default_factory=lambda: list(defaults)))]
        asked += [("hydra", Any, field(default_factory=lambda: dict(_HYDRA)))]
    return make_dataclass(name, asked)


# -------------------------------------------------------------------------------------------- keys beside each other


def _check_model(request: Request) -> None:
    if request.model is not None:
        request.model.revisions()
        name_of("model.quantise", request.model.quantise)
        names_of("model.adapter", request.model.adapter)
        names_of("model.variant", request.model.variant)


def _check_measuring(request: Request) -> None:
    if request.best and request.parallel.n_processes() != 1:
        raise RbpxError(f"best={request.best} needs all logits in one process; drop it, or parallel=")
    if request.memory is not None and request.device is not Device.split:
        raise RbpxError(
            f"memory={request.typed['memory']} limits a model that is split; add device=split, or drop memory="
        )


def _check_official(request: Request) -> None:
    if request.protocol is None or request.protocol.name != OFFICIAL or request.model is None:
        return
    fixed: dict[str, tuple[object, object]] = {
        "seed": (request.seed, SEED),
        "model.bos": (request.model.bos.value, Bos.tokenizer.value),
        "protocol.window": (request.protocol.window, ProtocolConfig.window),
        "limit": (request.limit, min(request.limit, LARGEST_SAMPLE)),
    }
    for name, (value, theirs) in fixed.items():
        if value != theirs:
            raise RbpxError(
                f"{name}={value} is not what the authors used, which is {theirs}; drop it, or use protocol=paper"
            )


def _check_engine(request: Request) -> None:
    """Refuses keys that another engine does not support."""
    if request.engine is None:
        return
    padding, quantise = (
        None if request.protocol is None else request.protocol.padding,
        None if request.model is None else request.model.quantise,
    )
    ours: dict[str, tuple[object, Sequence[object]]] = {
        "best": (request.best, (0,)),
        "device": (request.device, (Device.auto,)),
        "deterministic": (request.deterministic, (False,)),
        "parallel.tensor": (request.parallel.tensor, (1,)),
        "model.quantise": (quantise, (None,)),
        "protocol.padding": (padding, (None, Padding.counted)),
    }
    for name, (value, plain) in ours.items():
        if value not in plain:
            value = getattr(value, "value", value)
            raise RbpxError(f"{name}={value} is of rbpx's own measuring, not of engine={request.engine.name}; drop it")


def _check_axis(request: Request) -> None:
    """Refuses keys that predictions from another loss do not have, and x= for all others."""
    if not isinstance(request.axis, OnText):
        if request.x:
            raise RbpxError(
                "x= is what models show on another text; say what and where, as in axis=cross_entropy@stdlib"
            )
        return
    sizes_only: dict[str, Any] = dict.fromkeys(("S", "D", "register", "E", "pin"))
    sizes_only |= {"method": "ols", "joint": False, "frontier": False, "outliers": Outliers.drop}
    for name, default in sizes_only.items():
        if request.typed.get(name) not in (None, default):
            raise RbpxError(
                f"{name}= is of laws in size or tokens, and axis={request.axis.value} is of neither; drop it"
            )


def _check_serving(request: Request) -> None:
    if request.next is not None and len(request.flops) > 1:
        raise RbpxError(f"next={request.next} spends one budget, and flops= names {len(request.flops)}; give one")
    if request.inference_within and not request.inference_tokens:
        raise RbpxError(
            "inference_within=true says what flops= pays for; add the tokens to serve: inference_tokens=1e13"
        )


def _check_forecast(request: Request) -> None:
    if request.register is not None and request.size_by is not SizeBy.total:
        raise RbpxError(
            f"register={request.register} predicts models by their S as stored; drop it, or size_by={request.size_by}"
        )
    if request.register is not None and request.joint:
        raise RbpxError(
            f"register={request.register} keeps intervals that forecasts scores one by one, and joint=true widens them "
            "for all at once; drop it"
        )


def _check_shown(request: Request) -> None:
    """Refuses keys that the format does not have."""
    form = request.format
    if request.details and form not in (Format.table, Format.csv, Format.json):
        raise RbpxError(f"details=true is of tables, csv and json; format={form.value} has all of it: drop it")
    if request.spreadsheet and form not in (Format.csv, Format.table):
        raise RbpxError(f"spreadsheet=true is for csv, not format={form.value}; drop one of them")
    given = next((name for name in LOOKS if request.typed.get(name) is not None), None)
    if given is not None and not form.is_figures:
        raise RbpxError(f"{given}= is of figures in files: add --format svg, pdf or png, or drop it")


_CHECKS: Final = (
    _check_model,
    _check_measuring,
    _check_official,
    _check_engine,
    _check_serving,
    _check_forecast,
    _check_shown,
    _check_axis,
)
