"""Pictures along training: trajectories of one group in; quantities against D, and how early tokens settle, out."""

from collections.abc import Sequence
from typing import Any, Final

import altair as alt
import numpy as np

from rbpx.analyses.trajectory.analysis import Trajectories, Trajectory
from rbpx.display.chart.colours import MOST_SERIES
from rbpx.display.chart.drawing import colour, dash, data, linear, logarithmic, shape, spec_of, tips
from rbpx.display.chart.figure import Figure, Undrawn
from rbpx.display.chart.sheet import decimal, magnitude, named, sheet_of
from rbpx.display.names import law_title
from rbpx.display.numbers import short
from rbpx.display.spread import spread
from rbpx.groups.question import spelled

__all__ = ["curve_of", "figures"]

_D_TITLE: Final = "D, training tokens"
_MOST_LAWS: Final = 2
_STEPS: Final = 40


def figures(result: Trajectories, at: int, fit_ids: Sequence[str]) -> list[Figure | Undrawn]:
    """Cross-entropy and -ln RBP at the smallest k along training, then how early tokens settle.

    Args:
        result: of one group.
        at: its number, part of names.
        fit_ids: of its fits.
    """
    kinds = sorted(
        dict.fromkeys((each.law, each.k) for each in result.laws),
        key=lambda kind: ({"cross_entropy": 0, "rbp": 1}.get(kind[0], 2), kind[1] or 0),
    )
    found: list[Figure | Undrawn] = [_trajectories(result, law, k, at, fit_ids) for law, k in kinds[:_MOST_LAWS]]
    return [*found, *_settled(result, at, fit_ids)]


def curve_of(each: Trajectory) -> list[tuple[float, float]]:
    """D and y of a law from its first point to the last; none where there is no law."""
    after = each.after
    if after is None or after.law.alpha is None or after.law.C is None:
        return []
    E = after.law.params.get("E") or 0.0
    D_L = np.geomspace(after.D, each.D[-1], _STEPS)
    y_L = E + np.exp(np.log(after.law.C) - after.law.alpha * np.log(D_L))
    return list(zip(D_L.tolist(), (each.sign * y_L).tolist(), strict=True))


def _trajectories(result: Trajectories, law: str, k: int | None, at: int, ids: Sequence[str]) -> Figure:
    of_law = [each for each in result.laws if (each.law, each.k) == (law, k)]
    of_law = spread(of_law, MOST_SERIES)
    order = [each.name for each in of_law]
    points: list[dict[str, Any]] = [
        {"size": each.name, "D": D, "y": each.sign * y} for each in of_law for D, y in zip(each.D, each.y, strict=True)
    ]
    lines = [{"size": each.name, "D": D, "y": y} for each in of_law for D, y in curve_of(each)]
    what = law_title(law, k)
    name, title = f"trajectory-{at}-{law}{k or ''}", f"{what} along training: {result.group.title}"
    x, y = logarithmic(alt.X, "D", _D_TITLE), logarithmic(alt.Y, "y", what)
    hue, form, line = colour("size", "size", order), shape("size", "size", order), dash("size", order)
    marks = alt.Chart(data(points)).mark_point().encode(
        x=x, y=y, color=hue, shape=form, tooltip=tips(size="size", D="D|.3~s", y=f"{what}|.4~g")
    )  # fmt: skip
    curves = [alt.Chart(data(lines)).mark_line().encode(x=x, y=y, color=hue, strokeDash=line)] if lines else []
    rows = [[named(row["size"]), magnitude(row["D"]), magnitude(row["y"])] for row in points]
    sheet = sheet_of(name, f"{title}: values", [("size", "size"), ("D", "D"), (what, "y")], rows)
    falls = [f"{each.name} from {short(each.sign * each.y[0])} to {short(each.sign * each.y[-1])}" for each in of_law]
    caption = "Points: what was measured or imported. Lines: y = E + B·D^−β from the end of the warm-up."
    spec = spec_of(alt.layer(*curves, marks), 320)
    run_ids = tuple(dict.fromkeys(run_id for each in of_law for run in each.runs for run_id in run.run_ids))
    return Figure(
        name, title, f"{what}: {'; '.join(falls)}.", caption, spec, sheet, spelled("laws", fit_ids=ids), run_ids
    )


def _settled(result: Trajectories, at: int, ids: Sequence[str]) -> list[Figure]:
    series = [each for each in result.histories if each.along == "training"]
    series = spread([each for each in series if each.k == series[0].k], MOST_SERIES)
    if not series:
        return []
    rows: list[dict[str, Any]] = [
        {"size": each.of, "D": D, "share": share}
        for each in series
        for D, share in zip(each.at, each.settled_by, strict=True)
    ]
    order = [each.of for each in series]
    name, title = f"settled-{at}", f"Tokens whose state is final, k = {series[0].k}: {result.group.title}"
    x, y = logarithmic(alt.X, "D", _D_TITLE), linear(alt.Y, "share", "share of tokens", form=".0%")
    hue, form, line = colour("size", "size", order), shape("size", "size", order), dash("size", order)
    base = alt.Chart(data(rows)).encode(x=x, y=y, color=hue)
    tooltip = tips(size="size", D="D|.3~s", share="settled|.1%")
    spec = spec_of(
        alt.layer(base.mark_line().encode(strokeDash=line), base.mark_point().encode(shape=form, tooltip=tooltip)), 260
    )
    cells = [[named(row["size"]), magnitude(row["D"]), decimal(row["share"])] for row in rows]
    sheet = sheet_of(name, f"{title}: values", [("size", "size"), ("D", "D"), ("share settled", "share")], cells)
    says = "; ".join(f"{each.of}: {each.settled_by[0]:.0%} from the first checkpoint on" for each in series)
    caption = "Share of the tokens of the text that from a checkpoint on stay a hit, or stay a miss, to the last one."
    run_ids = tuple(result.group.run_ids)
    return [Figure(name, title, f"{says}.", caption, spec, sheet, spelled("laws", fit_ids=ids), run_ids)]
