"""Defines groups of runs: what may enter one fit, and what was left out of it."""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from rbpx.config.keys.laws import Resampled
from rbpx.errors import number_of
from rbpx.laws.names import Axis, OnText, SchedulePhase, SizeBy
from rbpx.runs.run import ALIKE, MEASURED, Run, told_apart, training_of
from rbpx.runs.schedules import said_of_places, said_of_underway
from rbpx.status import Status
from rbpx.ties import Ties

if TYPE_CHECKING:
    from rbpx.laws.numeric import Floats
    from rbpx.runs.units import Documents


class By(StrEnum):
    """What the points of a group differ in."""

    size = "size"
    """In S, and replicates of one S in training_seed."""
    axis = "axis"
    """Along D and step in checkpoints of one size and seed; along C in the budget, each the best of its own."""
    training = "training"
    """In size and tokens: all trainings of a family."""
    text = "text"
    """In the model, of any family: each was measured on another text as well."""


NO_TEXT: Final = OnText("", "")
FEWEST: Final = 3  # points of a law
KNOWN_BY: Final = {
    Axis.S: "training tokens or FLOPs",
    Axis.D: "training tokens",
    Axis.C: "training FLOPs",
    Axis.step: "training step",
}


class LeftOut(StrEnum):
    """Why a run is no point; the first reason that holds."""

    earlier = "is before the last checkpoint of its training"
    same = "has the weights of another point and counts once with it"
    unknown = "has no known {known_by}"
    untrained = "is untrained"
    raw = "is a raw checkpoint, whose rate has not decayed"


@dataclass(frozen=True, eq=False)
class Group:
    """Runs that may enter one fit, in order: alike in source, text, protocol, dtype and, but for `By.text`, variant.

    Attributes:
        left_out: how many runs are no points, by reason.
        left_out_by_place: checkpoints that are no points because of their learning-rate schedule.
        documents: None where each document is a unit.
        averaged: how many of the last checkpoints of each training are averaged; None where each is a point.
        n_underway: trainings that are not at the end of their plan.
        beaten: along C, runs left out because a run of at most as much compute has a lower loss.
        is_frontier: along C, whether the best run of each budget is found for each quantity separately.
        n_short: sizes left out because fewer points of theirs are known than a law needs.
        model: the training, where others of its size have their own laws.
        on: the quantity on the other text.
        others: the run of each model there, in the order of the runs.
        alone: runs on the other text of models that lack this one.
    """

    runs: tuple[Run, ...]
    ties: Ties
    by: By = By.size
    left_out: Mapping[LeftOut, int] = field(default_factory=dict)
    left_out_by_place: Mapping[SchedulePhase, int] = field(default_factory=dict)
    documents: "Documents | None" = None
    averaged: int | None = None
    n_underway: int = 0
    beaten: tuple[Run, ...] = ()
    is_frontier: bool = False
    n_short: int = 0
    model: str | None = None
    on: OnText = NO_TEXT
    others: tuple[Run, ...] = ()
    alone: tuple[Run, ...] = ()

    @property
    def first(self) -> Run:
        """A run with the names that all share."""
        first = self.runs[0]
        differ: dict[str, Any] = {
            name: None for name in ("revision", "variant") if len({getattr(run, name) for run in self.runs}) > 1
        }
        families = list(dict.fromkeys(run.family for run in self.runs))
        differ |= {"family": " + ".join(families)} if len(families) > 1 else {}
        return replace(first, **differ) if differ else first

    @property
    def is_measured(self) -> bool:
        """Whether there are tokens to count, and documents to resample."""
        return self.first.source == MEASURED

    @property
    def n_documents(self) -> int:
        """Documents drawn, including those without a token; 0 where unknown."""
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
        from rbpx.runs.units import Documents

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
        return (*self.runs, *self.beaten)

    @property
    def fixed_size(self) -> str | None:
        """The size that all runs share, for a law in D or step."""
        return self.runs[0].size if self.by is By.axis and self.axis is not Axis.C else None

    @property
    def is_same_text(self) -> bool:
        """Whether both quantities of pairs are measured on the same documents."""
        return all(getattr(self.runs[0], name) == getattr(self.others[0], name) for name in ("dataset", "text_hash"))

    @property
    def trainings(self) -> list[tuple[Any, ...]]:
        """The training of each run; its checkpoints share it."""
        return [_training(run) for run in self.runs]

    @property
    def has_trainings(self) -> bool:
        """Whether models of one size differ in training tokens, which excludes a law in S alone."""
        known = {(run.non_embedding_params, run.training_tokens, run.training_flops) for run in self.runs}
        return len(known) > len({run.non_embedding_params for run in self.runs})

    @property
    def are_trainings_known(self) -> bool:
        """Whether it is known which points are checkpoints of one training."""
        return self.is_measured or any(run.model or run.varied or run.training_step is not None for run in self.runs)

    @property
    def n_unsure(self) -> int:
        """Points before the last of their training whose schedule is unknown."""
        return self._n_before_last([run for run in self.runs if run.place is None])

    @property
    def n_undecayed(self) -> int:
        """Points before the last of their training, without ends of decays; 0 if all are at a constant rate.

        A single point may be finished whatever its schedule is called, so every training must have several for that.
        """
        if {run.place for run in self.runs} == {SchedulePhase.constant} and min(Counter(self.trainings).values()) > 1:
            return 0
        return self._n_before_last([run for run in self.runs if run.place is not SchedulePhase.end])

    def _n_before_last(self, runs: Sequence[Run]) -> int:
        return 0 if self.averaged else len(runs) - len(set(map(_training, runs)))

    @property
    def is_mixed(self) -> bool:
        """Whether some trainings have undecayed checkpoints before their last, and others have none."""
        counts = Counter(self.trainings).values()
        return self.n_undecayed > 0 and min(counts) == 1 < max(counts)

    @property
    def has_same(self) -> bool:
        """Whether a run was left out that has the weights of another."""
        return LeftOut.same in self.left_out

    @property
    def doubts(self) -> tuple[Status, ...]:
        """The warning `mixed` where points are not alike, before anything is fitted."""
        along = self.by is By.axis and (self.has_same or (self.axis is Axis.C and self.is_mixed))
        return (Status.mixed,) if along or (self.by is By.text and self._n_before_last(self.runs)) else ()

    @property
    def notes(self) -> list[str]:
        """What was computed, left out or chosen, a line each."""
        along = self._notes_of_axis if self.by is By.axis else []
        routed = sum(run.is_routed for run in self.runs)
        counts = f"S counts all experts of {number_of(routed, 'model')}, C = 6 S D those that a token uses"
        experts = [f"{counts}; size_by=active makes these S."] if routed else []
        left_out = [
            f"Left out: {number_of(n, 'run')}; each {reason.format(known_by=KNOWN_BY[self.axis])}."
            for reason, n in self.left_out.items()
        ]
        lines = [*along, *experts, *left_out, *(self.documents.notes if self.documents else [])]
        if self.by is not By.size and self.n_unsure and not self.is_measured:
            n_unknown = sum(run.place is None for run in self.runs)
            lines.append(
                f"Nothing is known of the schedule of {number_of(n_unknown, 'state')}, so all of them are points; a "
                "column lr, schedule or schedule_tokens says which are (python -m rbpx import --help)."
            )
        lines += self.of_schedules
        n_mid = self._n_before_last(self.runs)
        if self.by is By.text and n_mid:
            lines.append(
                f"{n_mid} of {number_of(len(self.runs), 'point')} are before the end of their training. Those of one "
                "training err alike, so intervals are too narrow: checkpoints=last takes one of each."
            )
        if self.n_short:
            lines.append(
                f"Left out: {number_of(self.n_short, 'size')} with fewer than {FEWEST} points along {self.axis}."
            )
        return lines

    @property
    def _notes_of_axis(self) -> list[str]:
        lines, computed = [], [run for run in self.runs if run.training_tokens is None]
        if self.axis is Axis.D and computed:
            lines.append(f"D = C / (6 S) for {number_of(len(computed), 'run')} whose tokens are not known.")
        without = [run for run in self.runs if run.training_flops is None]
        if self.axis is Axis.C and without:
            lines.append(f"C = 6 S D for {number_of(len(without), 'run')} whose FLOPs are not stated.")
        if self.axis is Axis.C and not self.is_frontier:
            of_all = f"{len(self.runs)} of {number_of(len(self.asked), 'run')}"
            lines.append(f"Best model of each budget, of any law by cross-entropy where it is known: {of_all}.")
        elif self.axis is not Axis.C and self.n_unsure:
            lines.append(
                f"{self.n_unsure} of {number_of(len(self.runs), 'point')} are before the end of their training; in the "
                "middle of a schedule a loss lies above that of a finished run of as many tokens."
            )
        return lines

    @property
    def of_trainings(self) -> list[str]:
        """What a point of a surface is where it is not simply the finished model of a known training."""
        n, lines = self.n_undecayed, []
        if self.averaged:
            lines.append(f"A point is the mean of the last {self.averaged} checkpoints of a training, or fewer.")
        elif not self.are_trainings_known:
            lines.append("Each point is taken as a training of its own: no model or step says which belong together.")
        if n:
            lines.append(
                f"{n} of {number_of(len(self.runs), 'point')} are states before the end of their training, which lie "
                "above finished runs of as many tokens unless no rate decays: checkpoints=last drops them."
            )
        if computed := sum(run.training_tokens is None for run in self.runs):
            lines.append(f"D = C / (6 S) for {computed}, whose tokens are not known.")
        return lines

    @property
    def of_schedules(self) -> list[str]:
        """Notes on runs that are underway, and on which checkpoints are points unless the question says it."""
        places = {run.place for run in self.runs}
        is_told = SchedulePhase.middle not in places and (places != {None} or self.left_out_by_place)
        lines = [said_of_underway(self.n_underway, self.first.source)] if self.n_underway else []
        return [*lines, *(said_of_places(self.runs, self.left_out_by_place) if is_told else [])]

    @property
    def run_ids(self) -> list[str]:
        """The ids of all runs, sorted."""
        return sorted(run_id for run in self.runs for run_id in run.run_ids)

    @property
    def title(self) -> str:
        """The name in tables and headings."""
        return self._titled(f"{self._models} on {self.first.dataset}") + self._against

    @property
    def title_of_family(self) -> str:
        """The title without the text, for headings over several texts."""
        return self._titled(self._models) + self._against

    @property
    def title_of_text(self) -> str:
        """The title without the family, for headings under several families."""
        return self._titled(self.first.dataset)

    @property
    def _models(self) -> str:
        if self.fixed_size is None:
            return self.first.family
        seed = self.runs[0].training_seed
        return f"{self.first.family} {self.model or self.fixed_size}{'' if seed is None else f', seed {seed}'}"

    @property
    def _against(self) -> str:
        return f", against {self.on.value}" if self.by is By.text else ""

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
        named = {name: getattr(self.first, name) for name in ALIKE} | {"ties": self.ties.value}
        if self.by is By.text:
            named |= {"axis": self.on.value, "dataset_b": self.on.dataset, "text_hash_b": self.others[0].text_hash}
        if self.by is By.axis:
            named |= {"axis": self.axis.value}
        if self.fixed_size is not None:
            first = self.runs[0]
            named |= {"size": first.size, "non_embedding_params": first.non_embedding_params}
            named |= {"training_seed": first.training_seed, "model": self.model}
        return named

    @property
    def key(self) -> Hashable:
        """The key of the group for its results, rows and fits."""
        return tuple(self.names().items())


def _training(run: Run) -> tuple[Any, ...]:
    return run.family, run.variant, *training_of(run)


def titles_of(groups: Sequence[Group], names: Sequence[str] | None = None) -> list[str]:
    """The titles, or other names, with the text drawn and the tie rule where these tell groups apart."""
    texts = [f"text {str(group.first.text_hash)[:8]}" for group in groups]
    return told_apart(names or [each.title for each in groups], texts, [f"ties {group.ties.value}" for group in groups])
