"""Compares laws in active and in all parameters: which predicts larger models with experts better, and its exponent."""

from collections.abc import Sequence
from typing import Final

import duckdb
import numpy as np

from rbpx.config.request import Request
from rbpx.display.section import interval_of
from rbpx.display.view import View, decimal, text, with_ends
from rbpx.display.vocabulary import decimals, law_title
from rbpx.errors import RbpxError, number_of
from rbpx.laws.experts import compare_sizes
from rbpx.laws.intervals.estimate import flat
from rbpx.laws.names import IMPORTED
from rbpx.questions.result import Result
from rbpx.runs.group import Group
from rbpx.runs.points.sizes import known_points
from rbpx.runs.select.sizes import tokens_of
from rbpx.store.store import Record

_LAWS: Final = ("rbp", "cross_entropy", *IMPORTED)
_K: Final = (1, 10, 100)
_WORDS: Final = {
    "active": "the parameters that a token uses foretell",
    "total": "all parameters foretell",
    None: "neither size foretells",
}


def is_routed(group: Group) -> bool:
    """Returns whether a group has models with experts, all trained on equally many tokens."""
    return any(run.is_routed for run in group.runs) and len({tokens_of(run) for run in group.runs}) == 1


def check_routed(groups: Sequence[Group], request: Request) -> None:
    """Refuses runs without models with experts.

    Raises:
        RbpxError: no group has models with experts trained on equally many tokens.
    """
    if not any(map(is_routed, groups)):
        raise RbpxError(
            "size_by=[active,total] needs models with active_params below S, of five sizes and equally many tokens; "
            f"store={request.store} has none; import them with a column active_params beside S"
        )


def compare_size_laws(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> Result:
    """Compares the two laws for every quantity of a group with enough models with experts.

    Nothing is stored, because each law is fitted to a part of the runs.
    """
    chosen, rows, said = set(request.laws.names) if request.laws.by_name else set(_LAWS), list[Record](), list[str]()
    for points in known_points(connection, group, request, chosen, _K) if is_routed(group) else ():
        known = [(run, y) for run, y in zip(points.runs, points.y_N, strict=True) if np.isfinite(y) and y > 0]
        N, S, y = np.array([(run.used_params, run.non_embedding_params, y) for run, y in known]).reshape(-1, 3).T
        found = compare_sizes(N, S, S / N, y, n_replicates=request.resamples, seed=request.seed)
        if found is None:
            continue
        laws = found.pop("laws")
        shared = {**group.names(), "law": points.law, "k": points.k, **flat(found)}
        rows += [
            {**shared, "form": law["form"], **flat({"error": law["error"]}), "params": flat(law["constants"])}
            for law in laws
        ]
        bilinear, experts = laws[-1]["constants"]["d"], ""
        if bilinear.leaves_out_0:
            less = "less" if (bilinear.value or 0.0) > 0 else "more"
            experts = f"; experts help {less} the larger a model is (d = {interval_of(bilinear, 4)})"
        said.append(
            f"{law_title(points.law, points.k)} of {group.title}: {number_of(found['n_held_out'], 'model')} with "
            f"{' and '.join(f'{size:.3g}' for size in found['held_out'])} active parameters held out, "
            f"{_WORDS[found['better']]} them better: the error of ln y by all parameters minus that by those that a "
            f"token uses is {interval_of(found['difference'], 4)}; α differs by "
            f"{interval_of(found['alpha_difference'], 4)}{experts}."
        )
    table = LAWS.table("Larger models foretold by size", rows, group.title)
    return Result([group], rows, [table] if rows else [], said)


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
    with_ends("product", "d", None, decimals(4), "above 0: experts help less the larger a model is", spare=1),
)  # fmt: skip
