"""The typical rank (verb typical): the geometric mean of the ranks of each run of a group, and its law in size."""

from collections.abc import Iterator, Sequence
from functools import partial

import duckdb
import numpy as np

from rbpx.display.chart.figure import Figure, Scale, Undrawn, scale_of
from rbpx.display.chart.laws import law_figure
from rbpx.display.law_columns import ALPHA, R2, law_row
from rbpx.display.section import interval_of
from rbpx.display.table import PLACE, SIZE, STATUS, table_of
from rbpx.display.vocabulary import short
from rbpx.laws.names import Method
from rbpx.laws.power.law import PowerLaw
from rbpx.questions.question import of_each
from rbpx.questions.result import Result
from rbpx.questions.typical import TypicalKeys
from rbpx.runs.documents import means
from rbpx.runs.fits import doubted, fit_points, fit_record
from rbpx.runs.group import Group
from rbpx.runs.origin import from_fits
from rbpx.runs.points.sizes import Points
from rbpx.runs.select.groups import select
from rbpx.status import Status
from rbpx.store.sql import ask

RUNS = table_of(
    "runs", SIZE, *PLACE, ("typical rank", "typical_rank", short, "exp of the mean of ln rank")
)  # fmt: skip
LAW = table_of("law", ("law", "title"), *ALPHA, *R2, STATUS)


def answer(connection: duckdb.DuckDBPyConnection, group: Group, request: TypicalKeys) -> Result:
    """Ask the store for sums by document, and fit the law of their means, judged as any law in size is."""
    counted = ask(connection, "ln_ranks", run_ids=group.run_ids, ties=group.ties.value)
    ln_rank_N, ln_rank_BN = means(group, request, counted, "sum_ln_rank", "n_tokens")
    typical_N, doubt = np.exp(ln_rank_N), Status.one_document if group.n_resampled == 1 else None
    points = Points("typical_rank", None, group.runs, typical_N, np.exp(ln_rank_BN), doubt, group.n_resampled)
    law = doubted(group, fit_points(points, Method.ols))
    fits = [fit_record(group, law, request.resamples)]
    runs = [
        run.names() | {group.axis.value: run.x, "typical_rank": rank}
        for run, rank in zip(group.runs, typical_N.tolist(), strict=True)
    ]
    tables = [
        RUNS.of("Typical ranks", runs, group.title, group.axis),
        LAW.of(
            "Law of the typical rank",
            [law_row(fit, group.axis) | {"title": "typical rank"} for fit in fits],
            group.title,
        ),
    ]
    falls = f"The typical rank falls as {group.axis.value}^−α, α = {interval_of(law.fit.alpha)}."
    sentences = [] if law.fit.alpha.value is None else [falls]
    return Result([group], fits, tables, sentences, partial(figures, group, law.fit, [fits[0]["fit_id"]]), fits)


def figures(group: Group, fit: PowerLaw, fit_ids: Sequence[str]) -> Iterator[Figure | Undrawn]:
    """The points and the law."""
    says = f"Typical rank of {group.title}, from {fit.y[0]:.3g} to {fit.y[-1]:.3g}."
    words = says, "Line: C·S^−α. Band: where 95 % of new models would lie."
    x, y = scale_of(group.axis), Scale("typical_rank", "typical rank", log=True)
    laws, origin = [("typical rank", fit)], from_fits(fit_ids, group)
    yield law_figure("typical", "The typical rank", laws, x, y, words, origin)


QUESTION = of_each(answer, select=partial(select, sizes=3))
