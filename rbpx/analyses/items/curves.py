"""What the pictures of items draw: accuracy, and exact match at each k, of each size with intervals over items."""

from dataclasses import dataclass

from rbpx.analyses.items.analysis import GroupItems
from rbpx.laws.interval import Estimate

__all__ = ["SuccessCurve", "success_curves"]


@dataclass(frozen=True)
class SuccessCurve:
    """One series: S, share and both ends of each size; NaN for an end that is not known."""

    name: str
    S: list[float]
    y: list[float]
    lo: list[float]
    hi: list[float]


def success_curves(items: GroupItems) -> list[SuccessCurve]:
    """Accuracy where there are choices, then exact match at each k; of all items, or of each slice its accuracy."""
    parts = list(dict.fromkeys(each.part for each in items.runs))
    curves = []
    for part in parts:
        runs = [each for each in items.runs if each.part == part]
        S = [float(each.run.non_embedding_params) for each in runs]
        name = "accuracy" if runs[0].scores.chance is not None else "greedy"
        curves.append(_curve(name if part is None else f"{name}, {part}", S, [each.scores.acc for each in runs]))
        if part is None:
            for at, match in enumerate(runs[0].matches):
                of = [each.matches[at].measured for each in runs if len(each.matches) > at]
                if len(of) == len(runs) and not (name == "greedy" and match.k == 1):
                    curves.append(_curve(f"exact match at {match.k:,}", S, of))
    return [curve for curve in curves if curve.S]


def _curve(name: str, S: list[float], estimates: list[Estimate]) -> SuccessCurve:
    known = [(s, each) for s, each in zip(S, estimates, strict=True) if each.value is not None]
    nan = float("nan")
    columns = [[nan if end is None else end for end in ends] for ends in ((e.value, e.lo, e.hi) for _, e in known)]
    y, lo, hi = ([row[at] for row in columns] for at in range(3))
    return SuccessCurve(name, [s for s, _ in known], y, lo, hi)
