"""Measures predictions of where a run ends: how far off they are, how wide, and how often they hold.

Each of the 18 public curves (arXiv 2503.12811, `../shared/reference/schedules_multipower.csv.gz`: two sizes with nine
schedules) is predicted at a quarter, half and three quarters of its plan from (a) each pair of finished runs of its
size, one of them annealed, (b) all runs of the other size, (c) itself alone. A run is never predicted from one that
shares its beginning: wsd, wsdld and wsdcon are branches of a constant run, and all are one run; nor are both of a pair
of one. Each curve counts alike, however many pairs predict it. The measured end is the median of the last three states.

Beside the answer stand the drop of the nearest finished run of the size from the same step, and E + B t^-b fitted to
the states after the warm-up by least squares.

    python benchmarks/schedules.py [CURVES, at most so many]
"""

import itertools
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.optimize import curve_fit

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rbpx.laws.schedule.ending import backtest, predict_ending, same_run
from rbpx.laws.schedule.law import ANNEALED, Training
from tests.support.schedules import curves

PARTS = (0.25, 0.5, 0.75)
FROM = {"a": "two of its size", "b": "the other size", "c": "itself"}
OTHERS = ("nearest drop", "E + B t^-b")
GOALS = {  # at a part of the plan: median and 90th percentile in nats, coverage, width in nats
    ("a", 0.5): (0.010, 0.018, 0.9, 0.04),
    ("a", 0.75): (None, None, 0.9, None),
    ("b", 0.5): (0.013, None, 0.85, None),
    ("c", 0.5): (None, None, 0.9, None),
}


class Predicted(NamedTuple):
    """One prediction beside what was measured."""

    curve: str
    y: float
    truth: float
    lo: float = np.nan
    hi: float = np.nan

    @property
    def schedule(self) -> str:
        """The kind of its schedule."""
        return self.curve.split()[1].split("_")[0]


def finished_for(name: str, runs: dict[str, Training], kind: str) -> Iterator[Sequence[Training]]:
    """The finished runs from which a curve is predicted."""
    run = runs[name]
    if kind == "c":
        yield ()
    elif kind == "b":
        yield [of for of in runs.values() if of.S != run.S]
    else:
        apart = [of for of in runs.values() if of.S == run.S and not same_run(of, run)]
        for pair in itertools.combinations(apart, 2):
            if not same_run(*pair) and max(map(Training.annealed, pair)) > ANNEALED:
                yield pair


def without_rates(seen: Training) -> float:
    """The end by E + B t^-b, whatever the rates."""
    counts = seen.step_N > seen.begin
    t_N, loss_N = seen.step_N[counts] / 1e4, seen.loss_N[counts]
    start, least = (float(loss_N.min()) - 0.3, 0.3, 0.5), ([0, 0, 0.01], [np.inf, np.inf, 5])
    (E, B, b), _ = curve_fit(lambda t, E, B, b: E + B * t**-b, t_N, loss_N, start, bounds=least, max_nfev=10000)
    return float(E + B * (len(seen.rate_T) / 1e4) ** -b)


def predictions(runs: dict[str, Training], names: Sequence[str], kind: str, part: float) -> dict[str, list[Predicted]]:
    """Predictions of curves at a part of their plans, by method."""
    found: dict[str, list[Predicted]] = {}
    tested: dict[tuple[int, ...], list[float]] = {}
    for name in names:
        run = runs[name]
        seen, truth = run.until(part * len(run.rate_T)), float(np.median(run.loss_N[-3:]))
        for finished in finished_for(name, runs, kind):
            key = tuple(map(id, finished))
            tested[key] = tested[key] if key in tested else backtest(finished)
            ending = predict_ending(seen, finished, tested[key])
            if ending.y.value is None or ending.y.lo is None or ending.y.hi is None:
                continue
            found.setdefault("answer", []).append(Predicted(name, ending.y.value, truth, ending.y.lo, ending.y.hi))
            if ending.drop is not None:
                found.setdefault("nearest drop", []).append(Predicted(name, ending.drop, truth))
        if seen.n_states > 5:
            found.setdefault("E + B t^-b", []).append(Predicted(name, without_rates(seen), truth))
    return {method: of for method, of in found.items() if of}


def summed(predicted: Sequence[Predicted]) -> tuple[float, float, float, float, float]:
    """Median, 90th percentile and worst of the errors, coverage, median width; each curve counts alike."""
    weight = {name: 1 / sum(of.curve == name for of in predicted) for name in {of.curve for of in predicted}}
    w_P, error_P = np.array([(weight[of.curve], abs(of.y - of.truth)) for of in predicted]).T
    width_P, holds_P = np.array([(of.hi - of.lo, of.lo <= of.truth <= of.hi) for of in predicted]).T

    def at(values_P: np.ndarray, share: float) -> float:
        order = np.argsort(values_P)
        return float(values_P[order][np.searchsorted(np.cumsum(w_P[order]), share * w_P.sum() * (1 - 1e-9))])

    covered = float(w_P @ holds_P / w_P.sum())
    return at(error_P, 0.5), at(error_P, 0.9), float(error_P.max()), covered, at(width_P, 0.5)


def goal(kind: str, part: float, answer: tuple[float, ...]) -> str:
    """What of the goals is met."""
    wanted = GOALS.get((kind, part))
    if wanted is None:
        return "-"
    most = [answer[0] <= (wanted[0] or 9), answer[1] <= (wanted[1] or 9), answer[3] >= (wanted[2] or 0)]
    return "met" if all([*most, answer[4] <= (wanted[3] or 9)]) else "missed"


def main(most: int | None) -> None:
    """Prints a table by part of the plan and what is known, and one by schedule at half."""
    runs = curves()
    names = list(runs)[:most]
    print("| at | from | curves | median | 90th | worst | coverage | width | goals |"
          " drop: median, worst | E + B t^-b: median |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    by_schedule: list[str] = []
    for part, (kind, told) in itertools.product(PARTS, FROM.items()):
        found = predictions(runs, names, kind, part)
        answer = summed(found["answer"])
        cells = [f"{part:.0%}", told, str(len({of.curve for of in found["answer"]}))]
        cells += [f"{value:.4f}" for value in answer[:3]] + [f"{answer[3]:.2f}", f"{answer[4]:.4f}"]
        cells.append(goal(kind, part, answer))
        for method in OTHERS:
            of = summed(found[method]) if method in found else None
            cells.append("-" if of is None else f"{of[0]:.4f}" + (f", {of[2]:.4f}" if method != OTHERS[1] else ""))
        print(f"| {' | '.join(cells)} |")
        for schedule in dict.fromkeys(each.schedule for each in found["answer"]):
            of = summed([each for each in found["answer"] if each.schedule == schedule])
            by_schedule.append(
                f"| {schedule} | {part:.0%} | {told} | {of[0]:.4f} | {of[2]:.4f} | {of[3]:.2f} | {of[4]:.4f} |"
            )
    print("\n| schedule | at | from | median | worst | coverage | width |\n|---|---|---|---|---|---|---|")
    print("\n".join(sorted(by_schedule)))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else None)
