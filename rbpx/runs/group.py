"""Defines runs (one model on one text) and groups of runs that may enter one fit."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from rbpx.config.keys.laws import Resampled
from rbpx.config.text.dataset import ProtocolConfig
from rbpx.display.vocabulary import size_name, spoken
from rbpx.errors import number_of
from rbpx.laws.names import Axis, SchedulePhase, SizeBy
from rbpx.status import Status
from rbpx.ties import Ties

if TYPE_CHECKING:
    from rbpx.laws.numeric import Floats
    from rbpx.runs.documents import Documents

ALIKE = (
    *("source", "family", "dataset", "text_hash", "protocol", "window", "stride", "padding", "bos", "dtype"),
    *("revision", "variant", "engine"),
)
MEASURED = "measured"
OF_TRAINING = (*("training_seed", "model", "training_tokens", "training_flops", "training_step", "unique_tokens"),)


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
        decay_tokens: tokens of the decay of schedule wsd.
        lr_decay: how that falls.
        final_lr: the rate at the end; a share of the highest where no lr is known.
        lr: learning rate at this step.
        place: its place in the schedule.
        size_by: which parameters S counts.
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
        """The value of a quantity in an imported run, RBP_k as a share; None where it has none."""
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


@dataclass(frozen=True, eq=False)
class Group:
    """Runs that may enter one fit, in order of S: alike in source, text, protocol, dtype, revision and variant.

    Each size has one run, or replicates that differ in training_seed.

    Attributes:
        n_earlier: runs left out because a later checkpoint of their training is included.
        documents: for resampling; None where each document is a unit.
    """

    runs: tuple[Run, ...]
    ties: Ties
    n_earlier: int = 0
    documents: "Documents | None" = None

    @property
    def first(self) -> Run:
        """A run with the names that all share, without a revision where they differ in it."""
        first = self.runs[0]
        return first if len({run.revision for run in self.runs}) == 1 else replace(first, revision=None)

    @property
    def is_measured(self) -> bool:
        """Whether there are tokens to count, and documents to resample."""
        return self.first.source == MEASURED

    @property
    def n_documents(self) -> int:
        """Number of documents drawn, including those without a token; 0 where unknown."""
        return (self.first.n_documents or 0) + (self.first.n_skipped or 0)

    @property
    def n_resampled(self) -> int:
        """Number of resampled units: documents, or the texts that several were cut from."""
        return self.n_documents if self.documents is None else self.documents.n

    @property
    def n_effective(self) -> float:
        """Effective sample size: fewer than the units where they differ in length."""
        return self.n_documents if self.documents is None else self.documents.effective

    def weights(self, request: Resampled) -> "Floats":
        """How often each document is drawn in each replicate, [B, D]."""
        # Imported here: it loads the statistics of resampling, which `status` does not need.
        from rbpx.runs.documents import Documents

        documents = self.documents or Documents.alone(self.n_documents)
        return documents.weights(request.resamples, request.seed)

    def stated_k(self, request: Resampled) -> list[int]:
        """The requested k, else those at which imported runs have RBP_k."""
        stated = sorted({k for run in self.runs for k, n in run.observed if n == 1})
        return stated if not request.k.by_number else request.k.listed()

    @property
    def vocab_size(self) -> int:
        """The smallest vocabulary of the runs, an upper bound of k; 0 where one is unknown."""
        return min(run.vocab_size or 0 for run in self.runs)

    @property
    def n_sizes(self) -> int:
        """Number of different S, or positions on another axis; replicates share one."""
        return len({run.x for run in self.runs})

    @property
    def axis(self) -> Axis:
        """The variable of the laws of these runs."""
        return self.runs[0].axis

    @property
    def asked(self) -> Sequence[Run]:
        """The runs, and the requested ones that they replaced."""
        return self.runs

    @property
    def fixed_size(self) -> str | None:
        """The size that all runs share, for a law in another variable; None where sizes differ."""
        return None

    @property
    def doubts(self) -> tuple[Status, ...]:
        """Warnings about the runs that hold before anything is fitted."""
        return ()

    @property
    def notes(self) -> list[str]:
        """Notes on what was computed, left out or chosen, a line each."""
        routed = sum(run.is_routed for run in self.runs)
        counts = f"S counts all experts of {number_of(routed, 'model')}, C = 6 S D those that a token uses"
        experts = [f"{counts}; size_by=active makes these S."] if routed else []
        earlier = f"Left out: {number_of(self.n_earlier, 'run')}; each is before the last checkpoint of its training."
        return [*experts, *([earlier] if self.n_earlier else []), *(self.documents.notes if self.documents else [])]

    @property
    def of_schedules(self) -> list[str]:
        """Notes on which checkpoints are points by their learning-rate schedule, a line each."""
        return []

    @property
    def has_trainings(self) -> bool:
        """Whether models of one size differ in training tokens, which excludes a law in S alone."""
        known = {(run.non_embedding_params, run.training_tokens, run.training_flops) for run in self.runs}
        return len(known) > len({run.non_embedding_params for run in self.runs})

    @property
    def run_ids(self) -> list[str]:
        """The ids of all runs, sorted."""
        return sorted(run_id for run in self.runs for run_id in run.run_ids)

    @property
    def title(self) -> str:
        """The name of the group in tables and headings."""
        return self._titled(f"{self.first.family} on {self.first.dataset}")

    @property
    def title_of_family(self) -> str:
        """The title without the text, for headings over several texts."""
        return self._titled(self.first.family)

    @property
    def title_of_text(self) -> str:
        """The title without the family, for headings under several families."""
        return Group._titled(self, self.first.dataset)

    def _titled(self, what: str) -> str:
        first = self.first
        choices = [first.reading, first.dtype if first.dtype != "float32" else None]
        choices += [f"revision {first.revision}" if first.revision else None]
        choices += [f"bos {first.bos}" if first.bos not in (None, "tokenizer") else None]
        choices += ["padding masked" if first.padding == "masked" else None]
        choices += [f"variant {first.variant}" if first.variant else None]
        choices += [None if first.size_by is SizeBy.total else f"by {first.size_by.counted}"]
        choices += [first.engine]
        named = ", ".join([what, *(choice for choice in choices if choice)])
        return named if self.is_measured else f"{named} ({first.source})"

    def names(self) -> dict[str, Any]:
        """The columns in which all runs agree; they identify the group within a question."""
        return {name: getattr(self.first, name) for name in ALIKE} | {"ties": self.ties.value}

    @property
    def key(self) -> Hashable:
        """The key of the group for its results, rows and fits."""
        return tuple(self.names().items())


T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


def grouped(each: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Group items by a key, in the order of the first of each."""
    found: dict[K, list[T]] = {}
    for one in each:
        found.setdefault(key(one), []).append(one)
    return found


def labels_of(runs: Sequence[Run]) -> list[str]:
    """The size of each run, with what distinguishes runs of one size."""
    seeds = [f"seed {run.training_seed}" for run in runs]
    places = [f"{run.axis.value} = {spoken(run.x, 6)}" for run in runs]
    revisions = ["finished" if run.revision is None else f"revision {run.revision}" for run in runs]
    models = [f"model {run.model}" for run in runs]
    tokens = ["D unknown" if run.training_tokens is None else f"D = {spoken(run.training_tokens, 6)}" for run in runs]
    return _told_apart([run.label for run in runs], seeds, places, revisions, models, tokens)


def titles_of(groups: Sequence[Group], names: Sequence[str] | None = None) -> list[str]:
    """The title of each group, or other names, with the text drawn and the tie rule where these tell groups apart."""
    texts = [f"text {str(group.first.text_hash)[:8]}" for group in groups]
    return _told_apart(
        names or [each.title for each in groups], texts, [f"ties {group.ties.value}" for group in groups]
    )


def _told_apart(names: Sequence[str], *more: Sequence[str]) -> list[str]:
    """Add to each name what distinguishes it from equal ones."""
    apart = list(names)
    for words in more:
        several = Counter(name for name, _ in set(zip(apart, words, strict=True)))
        apart = [f"{name}, {word}" if several[name] > 1 else name for name, word in zip(apart, words, strict=True)]
    return apart
