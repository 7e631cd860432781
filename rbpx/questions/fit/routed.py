"""Compares laws in active and in all parameters: which foretells larger models with experts, and by which exponent."""

from collections.abc import Iterator, Sequence
from typing import Final

import duckdb
import numpy as np

from rbpx.config.request import Request
from rbpx.display.section import interval_of
from rbpx.display.view import View, decimal, text, with_ends
from rbpx.display.vocabulary import decimals, law_title
from rbpx.errors import RbpxError, number_of
from rbpx.laws.intervals.estimate import flat
from rbpx.laws.names import IMPORTED
from rbpx.laws.routed import Routed, compare_sizes
from rbpx.questions.result import Result
from rbpx.runs.group import Group
from rbpx.runs.points.sizes import known_points
from rbpx.runs.select.sizes import tokens_of
from rbpx.store.store import Record

_LAWS: Final = ("rbp", "cross_entropy", *IMPORTED)
_K: Final = (1, 10, 100)
_WORDS: Final = {"active": "the parameters that a token uses", "total": "all parameters"}


_Law = tuple[str, int | None, Routed]
"""A quantity, its k, and the comparison."""


def is_routed(group: Group) -> bool:
    """Whether it has models with experts, trained on equally many tokens."""
    return any(run.is_routed for run in group.runs) and len({tokens_of(run) for run in group.runs}) == 1


def check_routed(groups: Sequence[Group], request: Request) -> None:
    """Refuse runs of which no two sizes are known.

    Raises:
        RbpxError: no group has models with experts.
    """
    if not any(map(is_routed, groups)):
        raise RbpxError(
            "size_by=[active,total] needs models with active_params below S, of five sizes and equally many tokens; "
            f"store={request.store} has none; import them with a column active_params beside S"
        )


def routed(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> Result:
    """Compare the laws of every quantity of a group; there are none without models with experts, or of few sizes.

    Nothing is kept, because each law is fitted to a part of the runs.
    """
    chosen = set(request.laws.names) if request.laws.by_name else set(_LAWS)
    found: list[_Law] = []
    for points in known_points(connection, group, request, chosen, _K) if is_routed(group) else ():
        is_known_N = np.isfinite(points.y_N) & (points.y_N > 0)
        runs = [run for run, is_known in zip(points.runs, is_known_N, strict=True) if is_known]
        N, S = (np.array([getattr(run, name) for run in runs]) for name in ("used_params", "non_embedding_params"))
        y = points.y_N[is_known_N]
        compared = compare_sizes(N, S, S / N, y, n_replicates=request.resamples, seed=request.seed)
        found += [] if compared is None else [(points.law, points.k, compared)]
    rows = _rows(group, found)
    table = LAWS.table("Larger models foretold by size", rows, group.title)
    return Result([group], rows, [table] if rows else [], [*_sentences(group, found)])


def _rows(group: Group, laws: Sequence[_Law]) -> list[Record]:
    rows = []
    for name, k, routed in laws:
        shared: Record = {"law": name, "k": k, "n_fitted": routed.n_fitted, "n_held_out": routed.n_held_out}
        shared |= {"held_out": list(routed.held_out), "better": routed.better}
        shared |= flat({"difference": routed.difference, "alpha_difference": routed.alpha_difference})
        rows += [
            {**group.names(), **shared, "form": law.form, "params": flat(law.constants)} | flat({"error": law.error})
            for law in routed.laws
        ]
    return rows


LAWS: Final = View[Record](
    "routed",
    text("y", "law", lambda row: law_title(row["law"], row["k"])),
    text("law", "form", means="in active parameters, in all of them, or in both and their product"),
    with_ends(
        "error", "error", None, decimals(4),
        "mean of |ln y − prediction| over the largest models, held out; interval over models of other S/N",
    ),
    with_ends("by ln N", "b", None, decimals(4), spare=2),
    decimal("by ln S/N", "c", spare=3),
    with_ends(
        "product", "d", None, decimals(4), "above 0: experts help less the larger a model is", spare=1,
    ),
)  # fmt: skip


def _sentences(group: Group, laws: Sequence[_Law]) -> Iterator[str]:
    """Which size foretells larger models better, how the exponents differ, and whether experts help less there."""
    for name, k, routed in laws:
        bilinear, y = routed.laws[-1].constants["d"], f"{law_title(name, k)} of {group.title}"
        sizes = " and ".join(f"{N:.3g}" for N in routed.held_out)
        better = "neither size foretells" if routed.better is None else f"{_WORDS[routed.better]} foretell"
        yield (
            f"{y}: {number_of(routed.n_held_out, 'model')} with {sizes} active parameters held out, {better} them "
            "better: the error of ln y by all parameters minus that by those that a token uses is "
            f"{interval_of(routed.difference, 4)}; α differs by {interval_of(routed.alpha_difference, 4)}."
        )
        if bilinear.leaves_out_0:
            less = "less" if (bilinear.value or 0.0) > 0 else "more"
            yield f"{y}: experts help {less} the larger a model is (d = {interval_of(bilinear, 4)})."
