"""When each token of a text is learned (verb learning): groups of runs along an axis in, times, spectra and slopes out."""

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb

from rbpx.analyses.learning.hits import HitTimes, hit_times
from rbpx.analyses.learning.losses import Losses, Over, losses_of
from rbpx.analyses.learning.tokens import Tokens, points_of, tokens_of
from rbpx.config.request import Request
from rbpx.groups.fits import alike
from rbpx.groups.group import Group, Run
from rbpx.groups.select.along import AlongGroup, best_of_budgets
from rbpx.laws.intervals.estimate import by_name, flat
from rbpx.laws.learning.curves import FEWEST
from rbpx.laws.names import Axis
from rbpx.laws.trajectory import History
from rbpx.status import Status
from rbpx.store.store import Record, Store

DEFAULT_K = (1, 10, 100)


@dataclass(frozen=True, eq=False)
class Learning:
    """The tokens of one group.

    Attributes:
        group: its runs.
        runs: one for each point.
        tokens: that every run scored.
        losses: sigmoids and what they say; None with fewer points than they need.
        times: from hits, by k.
        status: not_identified where there are no sigmoids.
    """

    group: Group
    runs: tuple[Run, ...]
    tokens: Tokens
    losses: Losses | None
    times: tuple[HitTimes, ...]
    status: Status

    @property
    def axis(self) -> Axis:
        """What x is."""
        return self.group.axis


def analyse(connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: Request) -> Sequence[Learning]:
    """Find when the tokens of each group are learned."""
    return [_learning(connection, group, request) for group in groups]


def _learning(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> Learning:
    if isinstance(group, AlongGroup) and group.axis is Axis.C:
        group = best_of_budgets(group)
    runs = points_of(group)
    tokens = tokens_of(connection, group, runs)
    over = Over(tokens, group.weights(request), group.n_resampled)
    losses = losses_of(tokens, over.weights_BD, group.n_resampled, request.seed)
    times = tuple(hit_times(over, k) for k in request.k.grid(group.vocab_size, DEFAULT_K)) if len(runs) > 1 else ()
    return Learning(group, tuple(runs), tokens, losses, times, Status.ok if losses else Status.not_identified)


def keep(store: Store, result: Learning) -> list[Record]:
    """A row for each number, for programs; nothing is a law, so nothing enters `fits`."""
    names = {**result.group.names(), "axis": result.axis.value}
    rows: list[Record] = [
        {
            "kind": "group", **names, "n_points": len(result.runs), "n_tokens": len(result.tokens.doc_M),
            "n_left_out": result.tokens.n_left_out, "status": result.status, "run_ids": result.group.run_ids,
        }
    ]  # fmt: skip
    if result.losses is not None:
        for each in result.losses.kinds:
            rows.append({**names, **flat(vars(each)), "kind": "kind", "name": each.kind.name})
        rows += [{"kind": "bin", **names, **flat(vars(each))} for each in result.losses.bins]
        for gap in result.losses.gaps:
            named = {f"rebuilt_{curve}": value for curve, value in gap.rebuilt.items()}
            rows.append(
                {"kind": "slope", **names, "lo": gap.lo, "hi": gap.hi, "out": gap.out, **named}
                | by_name(measured=gap.measured, error=gap.error)
            )
        for world in result.losses.worlds:
            r2, mse = ({f"{name}_{c}": e for c, e in of.items()} for name, of in (("r2", world.r2), ("mse", world.mse)))
            rows.append(
                {
                    "kind": "world",
                    **names,
                    "name": world.name,
                    "in_fit_r2": world.in_fit_r2,
                    **by_name(**r2, **mse, beats=world.beats),
                }
            )
    for times in result.times:
        of_k = {**names, "k": times.k}
        shares = {each.name: times.shares[each] for each in History}
        rows += [{"kind": "point", **of_k, **flat(vars(point))} for point in times.points]
        rows.append({"kind": "tail", **of_k, **shares, **flat(vars(times.tail))})
    return alike(rows)
