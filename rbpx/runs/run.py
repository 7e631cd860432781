"""Defines a run: one size of a family on one text, and what runs have in common with each other."""

import math
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from rbpx.config.text.dataset import ProtocolConfig
from rbpx.display.vocabulary import size_name, spoken
from rbpx.laws.names import Axis, SchedulePhase, SizeBy

ALIKE = (
    *("source", "family", "dataset", "text_hash", "protocol", "window", "stride", "padding", "bos", "dtype"),
    *("revision", "variant", "engine"),
)
MEASURED = "measured"
OF_TRAINING = (*("training_seed", "model", "training_tokens", "training_flops", "training_step", "unique_tokens"),)

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True)
class Run:
    """One size of a family on one text; fields unknown for an imported run are None.

    Attributes:
        run_ids: one for a measured run; an imported size may come from several files.
        observed: {(k, n): p} of an imported run, shares; empty for a measured one, which is counted.
        imported: quantities besides RBP and cross-entropy, of `rbpx.laws.names.IMPORTED`.
        attempts: (right attempts, all attempts) at each item, by its name, of an imported run.
        training_seed: identifies the training among those of its size.
        varied: numbers that a sweep varies, by name.
        active_params: parameters of S that one token uses; None where unknown, as of a dense model.
        schedule_tokens: D at which the schedule ends.
        warmup_tokens: D until which the rate rises.
        final_lr: a share of the highest where no lr is known.
        lr: learning rate at this step.
        place: in the schedule.
    """

    run_ids: tuple[str, ...]
    source: str
    family: str
    size: str
    dataset: str
    text_hash: str | None
    protocol: str | None
    window: int | None
    stride: int | None
    padding: str | None
    bos: str | None
    dtype: str | None
    revision: str | None
    non_embedding_params: float
    vocab_size: int | None = None
    n_documents: int | None = None
    n_skipped: int | None = None
    n_tokens: int | None = None
    cross_entropy_nats: float | None = None
    observed: dict[tuple[int, int], float] = field(default_factory=dict)
    imported: dict[str, float] = field(default_factory=dict)
    attempts: dict[str, tuple[int, int]] = field(default_factory=dict)
    training_seed: int | None = None
    model: str | None = None
    active_params: float | None = None
    total_params: int | None = None
    training_tokens: int | None = None
    training_flops: float | None = None
    training_step: int | None = None
    unique_tokens: int | None = None
    variant: str | None = None
    varied: dict[str, float] = field(default_factory=dict)
    weight: float = 1.0
    engine: str | None = None
    schedule: str | None = None
    schedule_tokens: int | None = None
    warmup_tokens: int | None = None
    decay_tokens: int | None = None
    lr_decay: str | None = None
    final_lr: float | None = None
    lr: float | None = None
    place: SchedulePhase | None = None
    axis: Axis = Axis.S
    size_by: SizeBy = SizeBy.total

    @property
    def is_plan(self) -> bool:
        """Whether nothing was measured, so that its rate is one of a plan."""
        return (
            self.lr is not None
            and self.cross_entropy_nats is None
            and not (self.observed or self.imported or self.attempts)
        )

    @property
    def used_params(self) -> float:
        """Parameters of S that a token uses, which C counts: all of them in a dense model."""
        return self.active_params or self.non_embedding_params

    @property
    def is_routed(self) -> bool:
        """Whether a token uses only some of the parameters that S counts."""
        return self.used_params < self.non_embedding_params

    def sized_by(self, by: SizeBy) -> "Run":
        """The same model with another definition of S.

        By active parameters, unused experts do not count. With embeddings, S are all parameters, which must be known,
        and the used ones grow by as many.
        """
        if by is SizeBy.active:
            S, idle = self.used_params, self.non_embedding_params - self.used_params
            total = None if self.total_params is None else round(self.total_params - idle)
            return replace(self, non_embedding_params=S, total_params=total, size_by=by)
        if by is SizeBy.with_embeddings and self.total_params is not None:
            more = self.total_params - self.non_embedding_params
            active = None if self.active_params is None else self.active_params + more
            return replace(self, non_embedding_params=self.total_params, active_params=active, size_by=by)
        return self

    @property
    def x(self) -> float | None:
        """Its position on the axis: S; D, else C / (6 S); C, else 6 S D, S the active parameters; or steps."""
        S, D, C = self.used_params, self.training_tokens, self.training_flops
        if self.axis is Axis.D:
            return D if D is not None or C is None else C / (6 * S)
        if self.axis is Axis.C:
            return C if C is not None or D is None else 6.0 * S * D
        return self.training_step if self.axis is Axis.step else self.non_embedding_params

    @property
    def label(self) -> str:
        """Its size as people read it."""
        return size_name(self.size)

    @property
    def training(self) -> tuple[Any, ...]:
        """S, the seed and the checkpoint, which identify a model across measurements and texts."""
        of_size = (self.non_embedding_params, self.training_seed)
        return of_size if self.axis is Axis.S else (*of_size, self.size, self.revision, self.training_step, self.x)

    @property
    def reading(self) -> str | None:
        """The protocol or window, where it is not the paper's."""
        if self.stride is not None:
            return f"{self.protocol} {self.window}/{self.stride}"
        if self.protocol not in (None, "paper"):
            return self.protocol
        return None if self.window in (None, ProtocolConfig.window) else f"window {self.window}"

    def stated(self, law: str, k: int | None = None) -> float | None:
        """The value of a quantity in an imported run, RBP_k as a share."""
        if law == "rbp":
            return self.observed.get((k or 1, 1))
        return self.cross_entropy_nats if law == "cross_entropy" else self.imported.get(law)

    def names(self) -> dict[str, Any]:
        """The columns that identify the run within its group."""
        return {name: getattr(self, name) for name in ("size", "non_embedding_params", "revision", *OF_TRAINING)}

    @property
    def run_id(self) -> str:
        """The id of a measured run."""
        (run_id,) = self.run_ids
        return run_id


def grouped(each: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Group items by a key, in the order of the first of each."""
    found: dict[K, list[T]] = {}
    for one in each:
        found.setdefault(key(one), []).append(one)
    return found


def tokens_of(run: Run) -> float | None:
    """Training tokens D as known, else C / (6 S) with S the active parameters."""
    if run.training_tokens is not None:
        return float(run.training_tokens)
    return None if run.training_flops is None else run.training_flops / (6 * run.used_params)


def is_state(revision: str | None) -> bool:
    """Whether a revision names a checkpoint of a training, not a model of its own.

    Checkpoints are None, main, stepN and raw-D, as experiments/ladder/train.py names them.
    """
    return revision is None or re.fullmatch(r"step\d+|main|raw-.*", revision) is not None


def training_of(run: Run) -> tuple[Any, ...]:
    """A key that checkpoints of one training share; an imported row without a model and a step is one of its own."""
    of_size = (run.model, run.size, run.non_embedding_params, run.training_seed, *run.varied.items())
    if run.source != MEASURED and run.model is None and run.training_step is None:
        return (*of_size, run.training_tokens, run.training_flops, run.revision)
    return (*of_size, None if is_state(run.revision) else run.revision)


def last_of_each(runs: Sequence[Run], n_last: int = 1) -> list[Run]:
    """The last `n_last` checkpoints of each training, in order."""
    kept = {id(run) for members in grouped(by_progress(runs), training_of).values() for run in members[-n_last:]}
    return [run for run in runs if id(run) in kept]


def named(run: Run, names: Iterable[str]) -> tuple[str, ...]:
    """Some columns of a run as a key by which runs are grouped and sorted."""
    return tuple(str(getattr(run, name)) for name in names)


def in_groups(runs: Iterable[Run], key: Callable[[Run], Any]) -> list[list[Run]]:
    """Group runs by a key and sort the groups by it."""
    return list(grouped(sorted(runs, key=key), key).values())


def by_progress(runs: Iterable[Run]) -> list[Run]:
    """Sort runs by training progress."""
    return sorted(runs, key=_progress)


def _progress(run: Run) -> tuple[float, int, bool]:
    is_released, tokens = run.revision in (None, "main"), tokens_of(run)
    if tokens is None:
        tokens = math.inf if is_released else 0.0
    return tokens, run.training_step or 0, is_released


def labels_of(runs: Sequence[Run]) -> list[str]:
    """The size of each run, with what distinguishes runs of one size."""
    seeds = [f"seed {run.training_seed}" for run in runs]
    places = [f"{run.axis.value} = {spoken(run.x, 6)}" for run in runs]
    revisions = ["finished" if run.revision is None else f"revision {run.revision}" for run in runs]
    models = [f"model {run.model}" for run in runs]
    tokens = ["D unknown" if run.training_tokens is None else f"D = {spoken(run.training_tokens, 6)}" for run in runs]
    return told_apart([run.label for run in runs], seeds, places, revisions, models, tokens)


def told_apart(names: Sequence[str], *more: Sequence[str]) -> list[str]:
    """Add to each name what distinguishes it from equal ones."""
    apart = list(names)
    for words in more:
        several = Counter(name for name, _ in set(zip(apart, words, strict=True)))
        apart = [f"{name}, {word}" if several[name] > 1 else name for name, word in zip(apart, words, strict=True)]
    return apart
