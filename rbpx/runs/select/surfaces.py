"""Selection of the families whose runs vary in size and in tokens, for laws in both."""

from collections.abc import Sequence

import duckdb
import numpy as np

from rbpx.config.request import Request
from rbpx.laws.surface.design import judge
from rbpx.runs.select.sizes import tokens_of
from rbpx.runs.select.trainings import TrainingGroup, select_trainings


def select_surfaces(
    connection: duckdb.DuckDBPyConnection, request: Request, cell_keys: Sequence[str] | None = None
) -> list[TrainingGroup]:
    """The groups of `select_trainings` whose runs tell the effects of size and tokens apart."""
    return [group for group in select_trainings(connection, request, cell_keys) if _varies(group)]


def _varies(group: TrainingGroup) -> bool:
    S = np.array([run.non_embedding_params for run in group.runs], np.float64)
    D = np.array([tokens_of(run) for run in group.runs], np.float64)
    return bool(np.all(S > 0) and np.all(D > 0)) and not judge(S, D).is_collinear
