"""Selection of all trainings of a family on a text, whatever their size and tokens: what a surface is fitted to."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import duckdb

from rbpx.config.options import Checkpoints
from rbpx.config.request import Request
from rbpx.groups.selection import ALIKE, Group, Run, select_runs
from rbpx.ties import rule_of

__all__ = ["TrainingGroup", "select_trainings", "tokens_of", "training_of"]

_SHARED = tuple(name for name in ALIKE if name != "revision")


@dataclass(frozen=True, eq=False)
class TrainingGroup(Group):
    """Runs of one family on one text, in order of S and D: alike in source, text, protocol, dtype and variant.

    Attributes:
        n_unknown: runs that are left out because neither their training tokens nor their FLOPs are known.
        n_untrained: runs that are left out because they have seen no token.
        n_same: runs that are left out because their weights are those of another.
        n_earlier: points that are left out because a later checkpoint of their training is among them.
    """

    n_unknown: int = 0
    n_untrained: int = 0
    n_same: int = 0
    n_earlier: int = 0

    @property
    def first(self) -> Run:
        """A run that names what all have in common: without a revision where they differ in it."""
        first = self.runs[0]
        return first if len({run.revision for run in self.runs}) == 1 else replace(first, revision=None)

    @property
    def trainings(self) -> list[tuple[Any, ...]]:
        """The training of each run; the checkpoints of one have the same."""
        return [training_of(run) for run in self.runs]

    @property
    def n_mid(self) -> int:
        """Points before the last of their training."""
        return len(self.runs) - len(set(self.trainings))

    @property
    def is_mixed(self) -> bool:
        """Whether some trainings have checkpoints before their last and others do not."""
        counts = [len(list(members)) for _, members in groupby(sorted(map(str, self.trainings)))]
        return min(counts) == 1 < max(counts)

    @property
    def are_trainings_known(self) -> bool:
        """Whether anything says which points are checkpoints of one training."""
        return self.is_measured or any(run.model or run.training_step is not None for run in self.runs)


def tokens_of(run: Run) -> float | None:
    """D: as known, else C / (6 S) where FLOPs are; None where neither is."""
    if run.training_tokens is not None:
        return float(run.training_tokens)
    return None if run.training_flops is None else run.training_flops / (6 * run.non_embedding_params)


def training_of(run: Run) -> tuple[Any, ...]:
    """What the checkpoints of one training have in common, and no two trainings have.

    A revision `stepN`, or `raw-D` as `rbpx train` names them, is a state of a training, any other one a model of its
    own. Of imported rows without a model and
    a step nothing says which belong together, so each is a training.
    """
    of_size = (run.model, run.size, run.non_embedding_params, run.training_seed)
    if run.source != "measured" and run.model is None and run.training_step is None:
        return (*of_size, run.training_tokens, run.training_flops, run.revision)
    is_state = run.revision is None or re.fullmatch(r"step\d+|main|raw-.*", run.revision) is not None
    return (*of_size, None if is_state else run.revision)


def select_trainings(
    connection: duckdb.DuckDBPyConnection,
    request: Request,
    cell_keys: Sequence[str] | None = None,
    needs_tokens: bool = True,
) -> list[TrainingGroup]:
    """The groups of trainings that a request selects; with `checkpoints=last` only the last checkpoint of each counts.

    Args:
        connection: to the store.
        request: what is asked for.
        cell_keys: of a grid, None for all that the request narrows to.
        needs_tokens: whether runs whose tokens are not known are left out, and groups of nothing else.
    """

    def shared(run: Run) -> tuple[str, ...]:
        return tuple(str(getattr(run, name)) for name in _SHARED)

    def place(run: Run) -> tuple[Any, ...]:
        return run.non_embedding_params, tokens_of(run) or 0.0, run.training_seed or 0, run.size, str(run.revision)

    groups = []
    runs = select_runs(connection, request, cell_keys)
    for _, members in groupby(sorted(runs, key=shared), key=shared):
        group = _group(sorted(members, key=place), request, needs_tokens)
        if group is not None:
            groups.append(group)
    return groups


def _group(runs: Sequence[Run], request: Request, needs_tokens: bool) -> TrainingGroup | None:
    known = [run for run in runs if tokens_of(run) is not None or not needs_tokens]
    trained = [run for run in known if tokens_of(run) != 0]
    once = list({(run.run_ids, *_of_import(run)): run for run in trained}.values())
    kept = list(_last(once)) if request.checkpoints is Checkpoints.last else once
    if not kept:
        return None
    counts = (len(runs) - len(known), len(known) - len(trained), len(trained) - len(once), len(once) - len(kept))
    return TrainingGroup(tuple(kept), request.ties or rule_of(kept[0].protocol), *counts)


def _of_import(run: Run) -> tuple[Any, ...]:
    """What tells imported runs apart, whose ids are those of a file; a measured one has an id of its weights."""
    return () if run.source == "measured" else (*training_of(run), tokens_of(run), run.training_step, run.revision)


def _last(runs: Iterable[Run]) -> list[Run]:
    """The run with the most tokens of each training, in order."""
    last = {training_of(run): run for run in sorted(runs, key=lambda run: tokens_of(run) or 0.0)}
    kept = {id(run) for run in last.values()}
    return [run for run in runs if id(run) in kept]
