"""Finds when each token of a text is learned (verb learning): groups of runs along an axis in, times out."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import duckdb

from rbpx.config.request import Request
from rbpx.laws.names import Axis
from rbpx.questions.learning.carriers import Carriers, carriers
from rbpx.questions.learning.forecast import Forecast, forecast
from rbpx.questions.learning.hits import HitTimes, hit_times
from rbpx.questions.learning.improvements import Improvements, improvements
from rbpx.questions.learning.losses import Losses, Over, losses_of
from rbpx.questions.learning.orders import Orders, Times, orders
from rbpx.questions.learning.tokens import Tokens, points_of, tokens_of
from rbpx.runs.group import Group, Run
from rbpx.runs.origin import spelled
from rbpx.runs.select.along import AlongGroup, best_of_budgets
from rbpx.status import Status
from rbpx.store.sql import ask

DEFAULT_K: Final = (1, 10, 100)
_FEWEST: Final = 3  # points


@dataclass(frozen=True, eq=False)
class Learning:
    """The tokens of one group.

    Attributes:
        group: its runs.
        runs: one for each point.
        tokens: that every run scored.
        improvements: which token ids are predicted better; None with few runs, or where they share no token.
        losses: sigmoids and what they say; None with fewer points than they need.
        times: from hits, by k.
        carriers: of the slope between the last two points.
        forecast: of the last decade and the next; None where the points do not reach so far.
        texts: of the token ids that are named.
        status: not_identified where there are no sigmoids; different_tokens where the runs share no token.
    """

    group: Group
    runs: tuple[Run, ...]
    tokens: Tokens
    improvements: Improvements | None
    losses: Losses | None
    times: tuple[HitTimes, ...]
    carriers: Carriers | None
    forecast: Forecast | None
    texts: Mapping[int, str]
    status: Status

    @property
    def axis(self) -> Axis:
        """What x is."""
        return self.group.axis

    @property
    def sql(self) -> str:
        """A query of the store for the tokens that carry the slope."""
        return carriers_sql(self.group, self.runs)


Result = Learning | Orders


def analyse(connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: Request) -> Sequence[Result]:
    """Find when the tokens of each group are learned, and on each text in which order."""
    results, times = list[Result](), list[Times]()
    for group in groups:
        found, of_group = _learning(connection, group, request)
        results.append(found)
        times += [] if of_group is None else [of_group]
    texts: dict[tuple[str, str | None], list[Times]] = {}
    for each in times:
        texts.setdefault((each.group.first.dataset, each.group.first.text_hash), []).append(each)
    for of_text in texts.values():
        compared = orders(of_text, min(_k_grid(request, of_text[0].group)))
        results += [] if compared is None else [compared]
    return results


def _k_grid(request: Request, group: Group) -> list[int]:
    return request.k.grid(group.vocab_size, DEFAULT_K)


def _learning(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> tuple[Learning, Times | None]:
    if isinstance(group, AlongGroup) and group.axis is Axis.C:
        group = best_of_budgets(group)
    runs, k_grid = points_of(group), _k_grid(request, group)
    tokens = tokens_of(connection, group, runs)
    if not len(tokens.doc_M) or len(runs) < _FEWEST:
        status = Status.too_few_sizes if len(tokens.doc_M) else Status.different_tokens
        return Learning(group, tuple(runs), tokens.without_losses(), None, None, (), None, None, {}, status), None
    over = Over(tokens, group.weights(request), group.n_resampled)
    improved = improvements(connection, group, runs, tokens.x_T, k_grid[0], request.least, request.top)
    losses = losses_of(tokens, over.weights_BD, group.n_resampled, request.seed)
    carried = carriers(over, k_grid[0], request.least, request.top)
    foretold = forecast(over, k_grid[0], request.top)
    times = tuple(hit_times(over, k, request.top) for k in k_grid)
    named = {each.token_id for of_k in times for each in of_k.ids}
    named |= {each.number for each in carried.classes if each.by == "token" and each.number is not None}
    named |= {each.token_id for each in foretold.next} if foretold else set()
    known = ask(connection, "token_texts", run_id=runs[0].run_id, token_ids=sorted(named))
    found = Learning(
        group,
        tuple(runs),
        tokens.without_losses(),
        improved,
        losses,
        times,
        carried,
        foretold,
        dict(zip(*known.select(["token_id", "text"]).to_pydict().values(), strict=True)),
        Status.ok if losses else Status.not_identified,
    )
    return found, Times.of(group, tokens, k_grid[0])


def carriers_sql(group: Group, runs: Sequence[Run]) -> str:
    """The query that gives each token's part of the slope between the last two runs."""
    before, last = runs[-2:]
    ln_ratio = math.log((last.x or 1.0) / (before.x or 1.0))
    ids = {"run_id": before.run_id, "next_run_id": last.run_id}
    return spelled("slope_carriers", **ids, ln_ratio=ln_ratio, ties=group.ties.value)
