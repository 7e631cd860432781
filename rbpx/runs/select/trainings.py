"""Selects all trainings of a family on a text, at every size and number of tokens."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

import duckdb

from rbpx.config.keys.runs import Narrowing
from rbpx.config.model.training import is_raw
from rbpx.config.options import Checkpoints
from rbpx.errors import number_of
from rbpx.laws.names import Axis, SchedulePhase
from rbpx.runs.group import ALIKE, Group, Run
from rbpx.runs.select.schedules import placed, points_of, said_of_places, said_of_underway, underway
from rbpx.runs.select.sizes import in_groups, last_of_each, select_runs, tokens_of, training_of
from rbpx.ties import rule_of

KNOWN_BY: Final = {
    Axis.S: "training tokens or FLOPs",
    Axis.D: "training tokens",
    Axis.C: "training FLOPs",
    Axis.step: "training step",
}
_SHARED = tuple(name for name in ALIKE if name != "revision")


@dataclass(frozen=True, eq=False)
class TrainingGroup(Group):
    """Runs of one family on one text in order of S and D, with the same source, protocol, dtype and variant.

    Attributes:
        n_unknown: left out because neither their training tokens nor their FLOPs are known.
        n_untrained: left out because they have seen no token.
        n_same: left out because another run has the same weights.
        n_other: raw checkpoints on the same text left out, because there are finished models.
        averaged: how many of the last checkpoints of each training are averaged; None where each is a point.
        n_of_place: checkpoints left out because of their learning-rate schedule, by their place in it.
        n_underway: trainings that are not at the end of their plan.
    """

    n_unknown: int = 0
    n_untrained: int = 0
    n_same: int = 0
    n_other: int = 0
    averaged: int | None = None
    n_of_place: Mapping[SchedulePhase, int] = field(default_factory=dict)
    n_underway: int = 0

    @property
    def trainings(self) -> list[tuple[Any, ...]]:
        """The training of each run; its checkpoints share it."""
        return [training_of(run) for run in self.runs]

    @property
    def n_mid(self) -> int:
        """Number of points before the last of their training."""
        return 0 if self.averaged else len(self.runs) - len(set(self.trainings))

    @property
    def n_unsure(self) -> int:
        """Number of points before the last of their training whose schedule is unknown."""
        return self._n_before_last([run for run in self.runs if run.place is None])

    @property
    def n_undecayed(self) -> int:
        """Number of points before the last of their training, without ends of decays; 0 if all are at a constant rate.

        A single point may be finished whatever its schedule is called, so every training must have several.
        """
        if {run.place for run in self.runs} == {SchedulePhase.constant} and min(Counter(self.trainings).values()) > 1:
            return 0
        return self._n_before_last([run for run in self.runs if run.place is not SchedulePhase.end])

    def _n_before_last(self, runs: Sequence[Run]) -> int:
        return 0 if self.averaged else len(runs) - len({training_of(run) for run in runs})

    @property
    def is_mixed(self) -> bool:
        """Whether some trainings have undecayed checkpoints before their last, and others have none."""
        counts = Counter(self.trainings).values()
        return self.n_undecayed > 0 and min(counts) == 1 < max(counts)

    @property
    def notes(self) -> list[str]:
        """Notes on the runs left out, and on which checkpoints are points, as far as schedules are known."""
        left_out = {
            "has the weights of another point and counts once with it": self.n_same,
            f"has no known {KNOWN_BY[self.axis]}": self.n_unknown,
            "is untrained": self.n_untrained,
            "is a raw checkpoint, whose rate has not decayed": self.n_other,
        }
        lines = [f"Left out: {number_of(n, 'run')}; each {why}." for why, n in left_out.items() if n]
        n_unknown = sum(run.place is None for run in self.runs)
        if self.n_unsure and not self.is_measured:
            lines.append(
                f"Nothing is known of the schedule of {number_of(n_unknown, 'state')}, so all of them are points; a "
                "column lr, schedule or schedule_tokens says which are (python -m rbpx import --help)."
            )
        return [*super().notes, *lines, *self.of_schedules]

    @property
    def of_trainings(self) -> list[str]:
        """Describes a point of a surface where it is not simply the finished model of a known training."""
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
        is_told = SchedulePhase.middle not in places and (places != {None} or self.n_of_place)
        lines = [said_of_underway(self.n_underway, self.first.source)] if self.n_underway else []
        return [*lines, *(said_of_places(self.runs, self.n_of_place) if is_told else [])]

    @property
    def are_trainings_known(self) -> bool:
        """Whether it is known which points are checkpoints of one training."""
        return self.is_measured or any(run.model or run.varied or run.training_step is not None for run in self.runs)


G = TypeVar("G", bound=TrainingGroup)


def select_trainings(
    connection: duckdb.DuckDBPyConnection,
    request: Narrowing,
    cell_keys: Sequence[str] | None = None,
    needs_tokens: bool = True,
) -> list[TrainingGroup]:
    """Select the groups of trainings of a request; groups without any known training tokens are left out.

    `checkpoints=last` keeps the last checkpoint of each training, `last=N` its last N. Without `needs_tokens` unknown
    tokens stay, where the question averages checkpoints itself.
    """

    def place(run: Run) -> tuple[Any, ...]:
        return run.non_embedding_params, tokens_of(run) or 0.0, run.training_seed or 0, run.size, str(run.revision)

    groups = []
    n_averaged = request.last if needs_tokens else None
    n_last = n_averaged or (1 if request.checkpoints is Checkpoints.last else None)
    for members in in_groups(select_runs(connection, request, cell_keys, plans=True), shared):
        runs = sorted((run for run in placed(members) if not run.is_plan), key=place)
        group = group_of(runs, tokens_of, request, n_last, needs_tokens, needs_tokens)
        if group is not None:
            n_underway = len(underway(members)) if needs_tokens else 0
            groups.append(replace(group, averaged=n_averaged, n_underway=n_underway))
    return of_one_kind(groups)


def shared(run: Run) -> tuple[str, ...]:
    """The key that the runs of one group share, whatever their revision."""
    return tuple(str(getattr(run, name)) for name in _SHARED)


def group_of(
    runs: Sequence[Run],
    at: Callable[[Run], float | None],
    request: Narrowing,
    n_last: int | None,
    needs_place: bool = True,
    by_schedule: bool = True,
) -> TrainingGroup | None:
    """Build the group of the runs that are points, counting those left out by reason; None without any.

    `at` says how far each was trained, 0 for untrained; `n_last` of the last checkpoints of each training are kept;
    `needs_place` leaves out unknown progress, `by_schedule` checkpoints in the middle of a decay.
    """
    known = [run for run in runs if at(run) is not None or not needs_place]
    trained = [run for run in known if at(run) != 0]
    ids = {id(run) for run in each_once(trained)}
    once = [run for run in trained if id(run) in ids]
    points, n_of_place = points_of(once) if by_schedule else (once, {})
    kept = points if n_last is None else last_of_each(points, n_last)
    if not kept:
        return None
    return TrainingGroup(
        tuple(kept),
        request.ties or rule_of(kept[0].protocol),
        n_of_place=n_of_place,
        n_earlier=len(points) - len(kept),
        n_unknown=len(runs) - len(known),
        n_untrained=len(known) - len(trained),
        n_same=len(trained) - len(once),
    )


def of_one_kind(groups: Sequence[G]) -> list[G]:
    """Drop groups of raw checkpoints where the same family and text has finished models.

    The learning rate of a raw checkpoint has not decayed, so its loss exceeds that of a model finished after as many
    tokens.
    """
    finished = {beside(group) for group in groups if not is_raw(group.first.variant)}
    others: dict[tuple[str, ...], int] = {}
    for group in groups:
        others[beside(group)] = others.get(beside(group), 0) + is_raw(group.first.variant) * len(group.runs)
    kept = [group for group in groups if not is_raw(group.first.variant) or beside(group) not in finished]
    return [group if is_raw(group.first.variant) else replace(group, n_other=others[beside(group)]) for group in kept]


def beside(group: Group) -> tuple[str, ...]:
    """The key that groups of a family on a text share when they differ in variant alone."""
    return tuple(str(getattr(group.first, name)) for name in _SHARED if name != "variant")


def plain_beside(
    connection: duckdb.DuckDBPyConnection, request: Narrowing, group: TrainingGroup
) -> TrainingGroup | None:
    """The group that differs from `group` only in having no variant, even if the request excludes it.

    None where the group has no variant itself, or no such runs exist.
    """
    if group.first.variant is None or is_raw(group.first.variant):
        return None
    every = select_trainings(connection, request.but(variant=None))
    return next((each for each in every if each.first.variant is None and beside(each) == beside(group)), None)


def each_once(runs: Iterable[Run]) -> list[Run]:
    """Keep one run for each set of weights, in order: the released model, else the one trained furthest."""
    once: dict[Any, Run] = {}
    for run in sorted(runs, key=_released_first):
        once.setdefault(_of_weights(run), run)
    return list(once.values())


def _of_weights(run: Run) -> tuple[Any, ...]:
    """The key that runs with the same weights share; imported rows, whose id is that of a file, use their names."""
    if run.source == "measured":
        return run.run_ids
    return run.run_ids, *training_of(run), tokens_of(run), run.training_step, run.revision, run.x


def _released_first(run: Run) -> tuple[bool, float]:
    return run.revision not in (None, "main"), -(tokens_of(run) or 0.0)
