"""Surfaces in size and tokens (verb surface): the trainings of a family in; each quantity's surface and optima out.

Source: arXiv 2203.15556 (chinchilla, the objective, IsoFLOP, the envelope), 2001.08361 (kaplan), 2305.16264
(data_constrained).
"""

import duckdb

from rbpx.analyses.surface.law import Surfaces, surface_laws
from rbpx.analyses.surface.rows import record_of_form, row_of_form
from rbpx.config.request import Request
from rbpx.groups.surface_points import MOST_RESAMPLES, trained_quantities
from rbpx.groups.trainings import TrainingGroup
from rbpx.store.store import Record, Store

__all__ = ["analyse", "keep"]


def analyse(connection: duckdb.DuckDBPyConnection, group: TrainingGroup, request: Request) -> Surfaces:
    """Fit every requested form to every requested quantity of one group of trainings."""
    n_resamples = min(request.resamples, MOST_RESAMPLES)
    laws = surface_laws(trained_quantities(connection, group, request), group, request, n_resamples)
    return Surfaces(group, laws, n_resamples, request.unique_tokens)


def keep(store: Store, surfaces: Surfaces) -> list[Record]:
    """Write the surfaces of a group to `fits`, and return a row for each quantity and form."""
    rows = []
    for law in surfaces.laws:
        for form in law.forms:
            record = record_of_form(surfaces, law, form)
            store.write_record("fits", record["fit_id"], record)
            rows.append(row_of_form(record, law, form))
    return rows
