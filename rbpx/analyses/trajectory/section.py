"""Along training in the report: laws in D of each size, and what became of each token."""

from collections.abc import Sequence

from rbpx.analyses.trajectory.analysis import Trajectories
from rbpx.analyses.trajectory.figure import figures
from rbpx.counts import number_of
from rbpx.display.chart.sheet import Cell, Sheet, decimal, magnitude, named, sheet_of, span, state, whole
from rbpx.display.names import law_title
from rbpx.display.numbers import short
from rbpx.display.section import Section, Sources, doubts_of
from rbpx.laws.trajectory.histories import History

__all__ = ["section"]


def section(results: Sequence[Trajectories], sources: Sources) -> Section:
    """All groups of one family."""
    shown = [each for each in results if each.laws]
    statuses = [
        (f"{law_title(each.law, each.k)} of {each.name} on {of.group.first.dataset}", each.status)
        for of in shown
        for each in of.laws
    ]
    has_tokens = any(of.histories for of in shown)
    return Section(
        "trajectory",
        f"Along training, {results[0].group.first.family}",
        tuple(line for of in shown for line in _sentences(of)),
        tuple(figure for at, of in enumerate(shown) for figure in figures(of, at, sources.fit_ids)),
        (_laws(shown), *([_histories(shown)] if has_tokens else [])),
        doubts_of(statuses),
    )


def _sentences(of: Trajectories) -> list[str]:
    n_sizes = len({each.name for each in of.laws})
    said = [f"{of.group.title}: {number_of(n_sizes, 'training')} with several points."]
    for tokens in of.histories:
        along = "Along sizes" if tokens.along == "size" else f"Along the training of {tokens.of}"
        learned, forgotten = tokens.shares[History.learned], tokens.shares[History.forgotten]
        unstable = tokens.shares[History.unstable]
        axis = "S" if tokens.along == "size" else "D"
        said.append(
            f"{along}, {learned:.1%} of {tokens.n_tokens:,} tokens were learned at k = {tokens.k}, {forgotten:.1%} "
            f"forgotten, {unstable:.1%} changed more than once; half never change from {axis} = "
            f"{short(tokens.half_settled)} on."
        )
    return said


def _laws(results: Sequence[Trajectories]) -> Sheet:
    rows: list[list[Cell]] = []
    for of in results:
        for each in of.laws:
            names = [named(f"{law_title(each.law, each.k)} on {of.group.first.dataset}"), named(each.name)]
            fit = None if each.after is None else each.after.law
            first = magnitude(None if each.after is None else each.after.D)
            values = [decimal(None), span(None, None), decimal(None), magnitude(None)]
            if fit is not None:
                values = [decimal(fit.alpha), span(fit.alpha_lo, fit.alpha_hi)]
                values += [decimal(fit.params.get("E")), magnitude(fit.C)]
            rows.append([*names, whole(len(each.D)), first, *values, state(each.status)])
    columns = [("quantity", "law"), ("size", "size"), ("points", "n_points"), ("from D", "D_first"), ("β", "beta")]
    columns += [("95 %", "beta_lo beta_hi"), ("E", "E"), ("B", "B"), ("status", "status")]
    note = "y = E + B·D^−β from the end of the warm-up; intervals take checkpoints to scatter independently."
    return sheet_of("trajectory", "Laws in training tokens", columns, rows, note)


def _histories(results: Sequence[Trajectories]) -> Sheet:
    rows: list[list[Cell]] = []
    for of in results:
        for tokens in of.histories:
            shares = [decimal(tokens.shares[history], 3) for history in History]
            half = magnitude(tokens.half_settled)
            rows.append([named(tokens.along), named(tokens.of), whole(tokens.k), whole(tokens.n_tokens), *shares, half])
    columns = [("along", "along"), ("of", "size"), ("k", "k"), ("tokens", "n_tokens")]
    columns += [(history.name, history.name) for history in History]
    note = "Shares of the tokens. Learned: a miss that became a hit and stayed one; unstable: changed more than once."
    return sheet_of(
        "histories", "What became of each token", [*columns, ("half settled at", "half_settled_at")], rows, note
    )
