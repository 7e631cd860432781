"""The typed request of a command: its keys, their checks, and the values that they stand for."""

import math
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from rbpx.config.dataset import DatasetConfig
from rbpx.config.engine import EngineConfig
from rbpx.config.imports import ImportConfig
from rbpx.config.known_names import checked_names
from rbpx.config.model import ModelConfig
from rbpx.config.options import Bos, Checkpoints, Device, Dtype, Format, Legend, Padding, check_name
from rbpx.config.placement import MemoryLimits, ParallelConfig, read_limits
from rbpx.config.protocol import ProtocolConfig
from rbpx.config.shard import Shard, read_shard
from rbpx.config.shown import check_shown
from rbpx.config.step_keys import checked_anchor, checked_bounds, checked_features, checked_numbers
from rbpx.config.study import StudyConfig
from rbpx.config.surface_keys import checked_forms, pairs, positive_numbers
from rbpx.errors import RbpxError
from rbpx.laws.names import IMPORTED, LAWS, Axis, Method
from rbpx.laws.surface.names import DELTA, Objective
from rbpx.ties import OFFICIAL, Ties

LARGEST_S = 1e30
LARGEST_COUNT = 2**31 - 1  # a k, a document or a token in the columns of the store
MOST_RESAMPLES = 100_000  # their weights take 0.8 GB for 1,000 documents
LONGEST_WINDOW = 1_000_000  # tokens in a row
ITEM_SLICES = ("category", "domain")  # of the items of a task
SLICES = ("position", "frequency", *ITEM_SLICES)
SEED = 42
LARGEST_SAMPLE = 1000  # documents, as in the RBP paper
N_BEST = 5  # tokens that are kept of each place where they are asked for
N_AVERAGED = 5  # checkpoints of a training whose mean predicts success (OLMo ladder, arXiv 2412.04403)
DEFAULT_K = (1, 10, 100, 500, 1000, 2500, 10000)


@dataclass
class Request:
    """The keys of all verbs other than `train`; `python -m rbpx --help` documents them."""

    model: ModelConfig | None = None
    dataset: DatasetConfig | None = None
    protocol: ProtocolConfig | None = None
    study: StudyConfig | None = None
    size: Any = "all"
    family: Any = None
    source: Any = None
    dtype: Dtype | None = Dtype.float32  # None selects runs of any
    device: Device = Device.auto
    parallel: ParallelConfig = field(default_factory=ParallelConfig)
    engine: EngineConfig | None = None
    memory: Any = None  # a dict; Hydra adds no keys to one that is typed
    tokens_per_batch: int = 4096
    deterministic: bool = False
    best: int = 0
    seed: int = SEED
    k: Any = None
    n: Any = None
    S: Any = None
    D: Any = None
    doc: int | None = None
    base: Any = None
    variant: Any = None
    group: Any = None
    a: Any = None
    b: Any = None
    register: Any = None
    method: Any = "ols"
    ties: Ties | None = None
    limit: int = LARGEST_SAMPLE
    shard: Any = None
    resamples: int = 1000
    laws: Any = "all"
    axis: Axis = Axis.S
    form: Any = "chinchilla"
    objective: Objective = Objective.log_huber
    delta: float = DELTA
    budgets: Any = None
    checkpoints: Checkpoints = Checkpoints.all
    last: int | None = None
    unique_tokens: float | None = None
    warm_up: float | None = None
    next: int | None = None
    flops: float | None = None
    features: Any = "all"
    held_out: Any = None
    drop: float = 0.1
    smooth: int = 5
    anchor: Any = field(default_factory=lambda: [0, 1])
    starts: Any = None
    bounds: Any = None
    chance: Any = None
    slices: Any = None  # a name or a dict; Hydra adds no keys to one that is typed
    tolerance: float = 2.0
    least: int = 20
    top: int = 15
    calibrate: bool = False
    sql_timeout_s: float | None = 60.0
    sql_memory_mib: int | None = None
    store: str = "${oc.env:RBPX_STORE,store}"
    output: str | None = None
    format: Format = Format.table
    spreadsheet: bool = False
    width: float | None = None
    font_size: float | None = None
    font: str | None = None
    legend: Legend | None = None
    plot: bool = False
    fresh: bool = False
    imports: list[ImportConfig] = field(default_factory=list)
    analyses: list[str] = field(default_factory=lambda: ["fit"])

    def __post_init__(self) -> None:
        """Refuse invalid values.

        Raises:
            RbpxError: a count below 1, a name that YAML read as a number, or a size, k, n or S that is not valid.
        """
        for name, value in vars(self).items():
            if value in ("", []) and name not in ("store", "imports", "analyses"):
                raise RbpxError(f"{name}={value} is empty; give what is meant, or leave it out")
            if value is None and name in ("size", "laws", "method", "form", "features"):
                raise RbpxError(f"{name}=null is no value; give one, or leave it out for its default")
        self._check_counts()
        positive_numbers("sql_timeout_s", self.sql_timeout_s, "seconds, or leave it out")
        if self.best not in (0, N_BEST):
            raise RbpxError(
                f"best={self.best} is not kept; give best={N_BEST} for the five best tokens, or leave it out"
            )
        if self.best and self.parallel.n_processes() != 1:
            raise RbpxError(f"best={self.best} needs all logits in one process; drop it, or parallel=")
        if self.model is not None:
            self.model.revisions()
        check_shown(self)
        self._check_official()
        self._check_engine()
        self._check_surface()
        self._check_register()
        self._check_steps()
        if self.protocol is not None and self.dataset is not None and self.dataset.has_items:
            self.protocol = self.protocol.of_items()
        self.sizes()
        self.part()
        self.memory_limits()
        self.chosen_laws()
        self.methods()
        self.conditions()
        for key in ("family", "variant", "group"):
            for name in _as_list(getattr(self, key)):
                check_name(key, name)
        check_name("source", self.source)
        for k in [] if self.k in (None, "log") else _as_list(self.k):
            if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= LARGEST_COUNT:
                raise RbpxError(
                    f"k={k} is not a valid rank; give whole numbers from 1 to {LARGEST_COUNT:,}, as in k='[1,10,100]', "
                    "or k=log"
                )
        for n in [] if self.n is None else _as_list(self.n):
            if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= LONGEST_WINDOW:
                raise RbpxError(
                    f"n={n} is not a valid window length; give whole numbers from 1 to {LONGEST_WINDOW:,}, as in "
                    "n='[1,5,10]'"
                )
        for S in self.targets():
            if not 0 < S <= LARGEST_S:
                raise RbpxError(
                    f"S={S} is not a valid size; give non-embedding parameters up to 1e30, as in S='[1e9,1e10]'"
                )

    def _check_counts(self) -> None:
        """Refuse counts that nothing can be made of, and those that no machine has the memory or the time for."""
        most = dict.fromkeys(("tokens_per_batch", "limit", "least", "top", "smooth", "last"), LARGEST_COUNT)
        most |= {"sql_memory_mib": LARGEST_COUNT, "resamples": MOST_RESAMPLES, "next": 1_000, "seed": 2**63 - 1}
        for name, largest in most.items():
            count, smallest = getattr(self, name), 0 if name == "seed" else 1
            if count is not None and not smallest <= count <= largest:
                raise RbpxError(f"{name}={count} is not a whole number from {smallest} to {largest:,}; give one")

    def _check_official(self) -> None:
        if self.protocol is None or self.protocol.name != OFFICIAL or self.model is None:
            return
        fixed: dict[str, tuple[Any, Any]] = {
            "seed": (self.seed, SEED),
            "model.bos": (self.model.bos.value, Bos.tokenizer.value),
            "protocol.window": (self.protocol.window, ProtocolConfig.window),
            "limit": (self.limit, min(self.limit, LARGEST_SAMPLE)),
        }
        for key, (value, theirs) in fixed.items():
            if value != theirs:
                raise RbpxError(
                    f"{key}={value} is not what the authors used, which is {theirs}; drop it, or use protocol=paper"
                )

    def _check_engine(self) -> None:
        """Refuse what another engine cannot be asked."""
        if self.engine is None:
            return
        ours: dict[str, tuple[Any, Any]] = {
            "best": (self.best, 0),
            "device": (self.device.value, Device.auto.value),
            "deterministic": (self.deterministic, False),
            "parallel.tensor": (self.parallel.tensor, 1),
            "model.quantise": (None if self.model is None else self.model.quantise, None),
            "protocol.padding": (
                None if self.protocol is None else self.protocol.padding.value,
                None if self.protocol is None else Padding.counted.value,
            ),
        }
        for key, (value, plain) in ours.items():
            if value != plain:
                value = getattr(value, "value", value)
                raise RbpxError(f"{key}={value} is of rbpx's own measuring, not of engine={self.engine.name}; drop it")

    def _check_surface(self) -> None:
        self.forms()
        self.flops_of_budgets()
        positive_numbers("tolerance", self.tolerance, "how far an engine may be off, as in tolerance=2")
        positive_numbers("delta", self.delta, "where Huber's loss turns linear, as in delta=0.001")
        positive_numbers("warm_up", self.warm_up, "training tokens, as in warm_up=1e9")
        positive_numbers("flops", self.flops, "training FLOPs, as in flops=1e20")
        positive_numbers("unique_tokens", self.unique_tokens, "the tokens that there are, as in unique_tokens=1e9")
        tokens = self.tokens_to_predict()
        if tokens:
            pairs(self.targets(), tokens)

    def _check_register(self) -> None:
        check_name("register", self.register)
        if self.register is not None and not re.fullmatch(r"[A-Za-z0-9][\w.-]{0,99}", self.register):
            raise RbpxError(
                f"register={self.register!r} is not a name of a forecast; give up to 100 letters, digits and . _ -, as "
                "in register=june"
            )

    def _check_steps(self) -> None:
        self.chosen_features()
        self.point_of_anchor()
        self.ends_of_sigmoid()
        self.starts_of_sigmoid()
        for size in self.sizes_held_out() or []:
            check_name("held_out", size)
        if not 0 <= self.drop < 1:
            raise RbpxError(f"drop={self.drop} is not a share of the checkpoints; give one in [0, 1), as in drop=0.1")

    @property
    def n_averaged(self) -> int:
        """Checkpoints whose mean is the feature of a training, from which `downstream` predicts success."""
        return self.last or N_AVERAGED

    def chosen_features(self) -> list[str]:
        """The features of success that are asked for, in order."""
        return checked_features(self.features)

    @property
    def names_features(self) -> bool:
        """Whether features were asked for by name."""
        return "all" not in _as_list(self.features)

    def point_of_anchor(self) -> tuple[float, float] | None:
        """The point that is added to those of the models; None for none."""
        return checked_anchor(self.anchor)

    def ends_of_sigmoid(self) -> dict[str, tuple[float, float]]:
        """The bounds of its constants that were given."""
        return checked_bounds(self.bounds)

    def starts_of_sigmoid(self) -> dict[str, float]:
        """The starts of its constants that were given."""
        return checked_numbers("starts", self.starts)

    def sizes_held_out(self) -> list[str] | None:
        """The sizes that are predicted and not fitted; None: the largest."""
        return None if self.held_out is None else list(dict.fromkeys(_as_list(self.held_out)))

    def asked(self) -> dict[str, str]:
        """What is asked, in plain values; without where it is looked for, and whether it is computed in any case."""
        return {name: repr(value) for name, value in asdict(self).items() if name not in ("store", "output", "fresh")}

    @property
    def batch_budget(self) -> int:
        """Padded tokens of a batch; 1 is one window a batch, so that no window's numbers depend on its neighbours."""
        return 1 if self.deterministic else self.tokens_per_batch

    def sizes(self) -> list[str] | None:
        """The sizes asked for, in order; None means all."""
        sizes = _as_list(self.size)
        for size in sizes:
            check_name("size", size)
        return None if "all" in sizes else list(dict.fromkeys(sizes))

    def part(self) -> Shard | None:
        """The part of the grid that is asked for; None means all of it."""
        return read_shard(self.shard)

    def memory_limits(self) -> MemoryLimits | None:
        """The memory that a split model may use on each GPU and the CPU; None: as much as is free."""
        if self.memory is not None and self.device is not Device.split:
            raise RbpxError(f"memory={self.memory} limits a model that is split; add device=split, or drop memory=")
        return None if self.memory is None else read_limits(self.memory)

    def families(self) -> list[str] | None:
        """The families that an analysis is restricted to by name; None means all."""
        return None if self.family is None else list(dict.fromkeys(_as_list(self.family)))

    def variants(self) -> list[str] | None:
        """The variants that a question is narrowed to; None means all, as where one is compared with a base."""
        return None if self.variant is None or self.base is not None else list(dict.fromkeys(_as_list(self.variant)))

    def is_about(self, family: str) -> bool:
        """Whether a family is one of the two that are compared; any is where none are named."""
        names = [name for name in (self.base, self.variant) if isinstance(name, str)]
        return self.base is None or family in (*names, *(name.partition(":")[0] for name in names))

    def methods(self) -> list[Method]:
        """The methods of fitting asked for, in order."""
        names = checked_names("method", self.method, tuple(Method))
        return list(Method) if "all" in names else list(dict.fromkeys(Method(name) for name in names))

    def conditions(self) -> dict[str, str]:
        """The slices of tokens that are given by SQL conditions, by name; none where they are built in."""
        if self.slices is None or self.slices in SLICES:
            return {}
        how = f"give {', '.join(SLICES)}, or conditions by name: slices='{{early: \"position < 64\"}}'"
        if not isinstance(self.slices, dict) or not self.slices:
            raise RbpxError(f"slices={self.slices} is not a choice of tokens; {how}")
        for name, condition in self.slices.items():
            if not isinstance(name, str) or not isinstance(condition, str) or not condition.strip():
                raise RbpxError(f"slices: {name}: {condition} is not a name with a condition in quotes; {how}")
        return dict(self.slices)

    def targets(self) -> list[float]:
        """The sizes to predict."""
        targets = []
        for S in [] if self.S is None else _as_list(self.S):
            if isinstance(S, bool) or not isinstance(S, int | float):
                raise RbpxError(f"S={S} is not a number; give non-embedding parameters, as in S='[1e9,1e10]'")
            targets.append(float(S))
        return targets

    def tokens_to_predict(self) -> list[float]:
        """The training tokens to predict at."""
        return positive_numbers("D", self.D, "training tokens, as in D='[2e10,2e11]'")

    def points_to_predict(self) -> list[tuple[float, float]]:
        """The points (S, D) to predict; none where no D is asked for."""
        tokens = self.tokens_to_predict()
        return pairs(self.targets(), tokens) if tokens else []

    def forms(self) -> list[str]:
        """The forms of a surface that are asked for, in order."""
        return checked_forms(self.form)

    def flops_of_budgets(self) -> list[float]:
        """The budgets of compute that are asked for."""
        return positive_numbers("budgets", self.budgets, "training FLOPs, as in budgets='[1e18,1e20]'")

    @property
    def names_laws(self) -> bool:
        """Whether laws were asked for by name."""
        return "all" not in _as_list(self.laws)

    def n_listed(self, default: Sequence[int]) -> list[int]:
        """The window lengths asked for, in order."""
        return sorted(set(default if self.n is None else _as_list(self.n)))

    def chosen_laws(self) -> set[str]:
        """The laws asked for."""
        names = checked_names("laws", self.laws, (*LAWS, *IMPORTED))
        return set(LAWS) if "all" in names else set(names)

    def k_listed(self, default: Sequence[int] = ()) -> list[int]:
        """The k asked for by number, in order; the default where none were."""
        return sorted(set(default)) if self.k is None else sorted(dict.fromkeys(_as_list(self.k)))

    def k_beyond(self, vocab_size: int) -> list[int]:
        """The k asked for by number at which every token is a hit."""
        return [] if self.k == "log" else [k for k in self.k_listed() if k >= vocab_size]

    def k_grid(self, vocab_size: int, default: Sequence[int] | str = DEFAULT_K) -> list[int]:
        """The k asked for, in order, those below V; `log` is log-spaced from 1 to V with the powers of ten.

        Raises:
            RbpxError: none is below `vocab_size`.
        """
        k_values = default if self.k is None else self.k
        if k_values == "log":
            steps = round(8 * math.log10(vocab_size))
            grid = {round(10 ** (i / 8)) for i in range(steps + 1)}
            return sorted(k for k in grid if k < vocab_size)
        numbers = sorted(set(k_values)) if isinstance(k_values, tuple) else self.k_listed()
        below = [k for k in numbers if k < vocab_size]
        if not below:
            raise RbpxError(f"k={min(numbers)} is not below the vocabulary of {vocab_size:,}; give a smaller k")
        return below


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
