"""Selects the models measured on two texts, of any family and size, for predictions from one loss to another."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import duckdb

from rbpx.config.keys.runs import Narrowing
from rbpx.config.options import did_you_mean
from rbpx.errors import RbpxError, number_of
from rbpx.laws.names import OnText
from rbpx.runs.group import ALIKE, OF_TRAINING, Run
from rbpx.runs.select.sizes import in_groups, last_of_each, select_runs, select_runs_on, tokens_of, training_of
from rbpx.runs.select.trainings import TrainingGroup, group_of, shared
from rbpx.status import Status

_OF_MODEL: Final = ("family", "revision", "variant")  # columns in which the runs of one group may differ
_OF_TEXT: Final = ("dataset", "text_hash")
_READ: Final = tuple(name for name in ALIKE if name not in (*_OF_MODEL, *_OF_TEXT))
_NOTHING: Final = OnText("", "")


@dataclass(frozen=True, eq=False)
class PairedGroup(TrainingGroup):
    """Runs on one text of models that were also measured on another, of one family or several.

    Attributes:
        on: the quantity on the other text.
        others: the run of each model there, in the order of the runs.
        alone: runs on the other text of models that lack this one.
    """

    on: OnText = _NOTHING
    others: tuple[Run, ...] = ()
    alone: tuple[Run, ...] = ()

    @property
    def first(self) -> Run:
        """A run with the names that all share, and the names of the families."""
        families, variants = families_of(self.runs), {run.variant for run in self.runs}
        variant = self.runs[0].variant if len(variants) == 1 else None
        named = " + ".join(dict.fromkeys(run.family for run in self.runs))
        return replace(super().first, family=named if len(families) > 1 else self.runs[0].family, variant=variant)

    @property
    def trainings(self) -> list[tuple[Any, ...]]:
        """The training of each run, distinct between families."""
        return [(run.family, run.variant, *training_of(run)) for run in self.runs]

    @property
    def is_same_text(self) -> bool:
        """Whether both quantities are measured on the same documents."""
        return all(getattr(self.runs[0], name) == getattr(self.others[0], name) for name in _OF_TEXT)

    @property
    def doubts(self) -> tuple[Status, ...]:
        """The warning mixed where some runs are checkpoints of one training, with correlated errors."""
        return (Status.mixed,) if self.n_mid else ()

    @property
    def notes(self) -> list[str]:
        """Notes on runs left out, and on points that are not the end of a training, a line each."""
        mid = (
            f"{self.n_mid} of {number_of(len(self.runs), 'point')} are before the end of their training. Those of one "
            "training err alike, so intervals are too narrow: checkpoints=last takes one of each."
        )
        return [*super().notes, *([mid] if self.n_mid else [])]

    def names(self) -> dict[str, Any]:
        """The columns in which all runs agree, and the variable of their laws."""
        of_other = {"dataset_b": self.on.dataset, "text_hash_b": self.others[0].text_hash}
        return super().names() | {"axis": self.on.value, **of_other}

    def _titled(self, what: str) -> str:
        return f"{super()._titled(what)}, against {self.on.value}"


def family_of(run: Run) -> str:
    """The family of a run with its variant, if any: the runs of one curve."""
    return run.family if run.variant is None else f"{run.family}, variant {run.variant}"


def families_of(runs: Sequence[Run]) -> list[str]:
    """The distinct families of runs, in order."""
    return list(dict.fromkeys(map(family_of, runs)))


def select_pairs(
    connection: duckdb.DuckDBPyConnection, request: Narrowing, on: OnText, cell_keys: Sequence[str] | None = None
) -> list[PairedGroup]:
    """Select the groups of pairs, one for each text that has models in common with the text of the axis.

    Runs of one group are alike in source, texts, protocol, dtype and engine. The text of the axis itself is included if
    it is requested by name.

    Raises:
        RbpxError: no model was measured on both texts.
    """
    runs = select_runs(connection, request, cell_keys)
    if not runs:
        return []
    others = select_runs_on(connection, request, on.dataset)
    if request.dataset is None:
        runs = [run for run in runs if run.dataset != on.dataset]
    groups = [
        group
        for of_text in in_groups(runs, lambda run: _named(run, (*_READ, *_OF_TEXT)))
        for of_other in in_groups(others, lambda run: _named(run, (*_READ, *_OF_TEXT)))
        if _named(of_text[0], _READ) == _named(of_other[0], _READ)
        and (group := _paired(of_text, of_other, request, on)) is not None
    ]
    if not groups:
        named = ", ".join(dict.fromkeys(run.dataset for run in runs)) or "another text"
        texts = sorted(row[0] for row in connection.sql("SELECT DISTINCT dataset FROM observations").fetchall())
        meant = "" if on.dataset in texts else did_you_mean(on.dataset, texts)
        raise RbpxError(
            f"axis={on.value}: no model was measured alike on {named} and on {on.dataset}, or imported with both; "
            f"{meant}store={request.store} holds {', '.join(texts)}"
        )
    return groups


def _paired(runs: Sequence[Run], others: Sequence[Run], request: Narrowing, on: OnText) -> PairedGroup | None:
    """The group of models measured on both texts; None without any."""
    other_of = {_model(run): run for run in others}
    known = {_model(run) for run in runs}
    n_last = 1 if request.checkpoints.value == "last" else None
    both = [run for run in runs if _model(run) in other_of]
    of_families = [group_of(members, tokens_of, request, n_last, False, False) for members in in_groups(both, shared)]
    kept = [group for group in of_families if group is not None]
    if not kept:
        return None
    paired = sorted((run for group in kept for run in group.runs), key=lambda run: run.non_embedding_params)
    alone = [run for run in others if _model(run) not in known]
    alone = [run for of in in_groups(alone, shared) for run in (of if n_last is None else last_of_each(of, n_last))]
    return PairedGroup(
        tuple(paired),
        kept[0].ties,
        n_earlier=sum(group.n_earlier for group in kept),
        n_untrained=sum(group.n_untrained for group in kept),
        n_same=sum(group.n_same for group in kept),
        on=on,
        others=tuple(other_of[_model(run)] for run in paired),
        alone=tuple(sorted(alone, key=lambda run: run.non_embedding_params)),
    )


def _model(run: Run) -> tuple[str, ...]:
    return _named(run, ("size", "non_embedding_params", *_OF_MODEL, *OF_TRAINING))


def _named(run: Run, names: Sequence[str]) -> tuple[str, ...]:
    return tuple(str(getattr(run, name)) for name in names)
