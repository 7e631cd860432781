"""The median rank of one group, for a report."""

from rbpx.analyses.medians.analysis import Medians
from rbpx.display.chart.sheet import magnitude, named, sheet_of, whole
from rbpx.display.section import Section, Sources, doubts_of, interval


def section(result: Medians, sources: Sources) -> Section:
    """A sentence and a table of medians."""
    fit, runs = result.fit, result.group.runs
    rows = [
        [named(run.size), whole(run.non_embedding_params), magnitude(median)]
        for run, median in zip(runs, result.medians, strict=True)
    ]
    columns = [("size", "size"), ("S", "non_embedding_params"), ("median rank", "median_rank")]
    sheet = sheet_of("medians", "Median ranks", columns, rows, "Half of all tokens have a rank of at most the median.")
    sentences = (
        ()
        if fit.alpha is None
        else (f"The median rank falls as S^−α, α = {interval(fit.alpha, fit.alpha_lo, fit.alpha_hi)}.",)
    )
    return Section("medians", "The median rank", sentences, (), (sheet,), doubts_of([("the law", fit.status)]))
