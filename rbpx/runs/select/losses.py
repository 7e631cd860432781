"""Selects the models measured on two texts, of any family and size, for predictions from one loss to another."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

import duckdb

from rbpx.config.keys.runs import Narrowing
from rbpx.config.options import Checkpoints, did_you_mean
from rbpx.errors import RbpxError
from rbpx.laws.names import OnText
from rbpx.runs.group import By, Group, LeftOut
from rbpx.runs.run import ALIKE, OF_TRAINING, Run, in_groups, last_of_each, named, tokens_of
from rbpx.runs.select.groups import Cells, group_of, shared
from rbpx.runs.select.stored import select_runs, select_runs_on

_OF_MODEL: Final = ("family", "revision", "variant")  # columns in which the runs of one group may differ
_OF_TEXT: Final = ("dataset", "text_hash")
_READ: Final = tuple(name for name in ALIKE if name not in (*_OF_MODEL, *_OF_TEXT))


def family_of(run: Run) -> str:
    """The family of a run with its variant, if any: the runs of one curve."""
    return run.family if run.variant is None else f"{run.family}, variant {run.variant}"


def select_pairs(
    connection: duckdb.DuckDBPyConnection, request: Narrowing, on: OnText, cells: Cells = None
) -> list[Group]:
    """Select the groups of pairs, one for each text that has models in common with the text of the axis.

    The text of the axis is among them if it is requested by name.

    Raises:
        RbpxError: no model was measured on both texts.
    """
    runs = select_runs(connection, request, cells)
    if not runs:
        return []
    others = select_runs_on(connection, request, on.dataset)
    if request.dataset is None:
        runs = [run for run in runs if run.dataset != on.dataset]
    groups = [
        group
        for of_text in in_groups(runs, lambda run: named(run, (*_READ, *_OF_TEXT)))
        for of_other in in_groups(others, lambda run: named(run, (*_READ, *_OF_TEXT)))
        if named(of_text[0], _READ) == named(of_other[0], _READ)
        and (group := _paired(of_text, of_other, request, on)) is not None
    ]
    if not groups:
        here = ", ".join(dict.fromkeys(run.dataset for run in runs)) or "another text"
        texts = sorted(row[0] for row in connection.sql("SELECT DISTINCT dataset FROM observations").fetchall())
        meant = "" if on.dataset in texts else did_you_mean(on.dataset, texts)
        raise RbpxError(
            f"axis={on.value}: no model was measured alike on {here} and on {on.dataset}, or imported with both; "
            f"{meant}store={request.store} holds {', '.join(texts)}"
        )
    return groups


def _paired(runs: Sequence[Run], others: Sequence[Run], request: Narrowing, on: OnText) -> Group | None:
    other_of = {_model(run): run for run in others}
    known = {_model(run) for run in runs}
    both = [run for run in runs if _model(run) in other_of]
    of_families = [group_of(of, request, By.text, tokens_of, is_known=False) for of in in_groups(both, shared)]
    kept = [group for group in of_families if group is not None]
    if not kept:
        return None
    paired = sorted((run for group in kept for run in group.runs), key=lambda run: run.non_embedding_params)
    alone = [run for run in others if _model(run) not in known]
    if request.checkpoints is Checkpoints.last:
        alone = [run for of in in_groups(alone, shared) for run in last_of_each(of)]
    return Group(
        tuple(paired),
        kept[0].ties,
        By.text,
        dict(sum((Counter(group.left_out) for group in kept), Counter[LeftOut]())),
        on=on,
        others=tuple(other_of[_model(run)] for run in paired),
        alone=tuple(sorted(alone, key=lambda run: run.non_embedding_params)),
    )


def _model(run: Run) -> tuple[str, ...]:
    return named(run, ("size", "non_embedding_params", *_OF_MODEL, *OF_TRAINING))
