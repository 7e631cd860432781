"""Measures what `decide` says against drawn truths: a CSV of runs is imported, asked, and each number is looked up.

Three worlds, 40 runs a draw (8 sizes of 3e7 to 6e9 parameters, 5 numbers of tokens each), ln y scattering by .003:
Chinchilla's form; one whose exponent of S falls by a third beyond a size that is drawn from the upper half of the
sizes; and one whose four runs of most compute lie 1 to 3 % too high, since they were undertrained. Four more of 36
runs, 6 sizes on each of 6 budgets a factor of 3 apart: Chinchilla's form, the same exponent that falls, and one whose
runs of the largest budget all lie 1 to 5 % too high, as their schedules were cut short, or too low. Asked for is a
budget of 5.6 times the most compute, one run with that compute, and 1e13 tokens to serve.

For each kind of number: how many draws answer it, and how many of these hold the truth, which is the world's own,
found by a search along its surface; the same of answers without the largest runs, where the others do not predict
these. The truth of what a run would show is one more run of the world, well trained. Of each world: how many draws
have a status, name the largest runs, and leave runs out.

    python benchmarks/decisions.py [DRAWS, default 50] [WORLD ...]
"""

import csv
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize_scalar

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.support.commands import here
from tests.support.surfaces import TRUE

Floats = NDArray[np.float64]
Law = Callable[[float, float], float]
SCATTER = 0.003
SIZES = 3e7 * np.geomspace(1, 200, 8)
RATIOS = np.geomspace(6, 200, 5)
TIMES, SERVED = 5.6, 1e13
BENT, UNDERTRAINED = "bent", "undertrained"
OF_BUDGETS, CUT, LONGER = "budgets", "budgets, cut short", "budgets, longer"
WORLDS = ("chinchilla", BENT, UNDERTRAINED, OF_BUDGETS, f"{OF_BUDGETS}, {BENT}", CUT, LONGER)
COMBINED, WITHOUT = "combined", "without_largest"
Held = dict[tuple[str, str], bool | None]


def world(name: str, rng: np.random.Generator) -> Law:
    """The true loss of a well-trained run."""
    at = math.log(SIZES[-1]) - rng.uniform(0, 0.5) * math.log(SIZES[-1] / SIZES[0])

    def loss(S: float, D: float) -> float:
        ln_S = math.log(S)
        if name.endswith(BENT):
            ln_S -= np.logaddexp(0.0, (ln_S - at) / 0.5) * 0.5 / 3
        return float(TRUE["E"] + TRUE["A"] * math.exp(-TRUE["alpha"] * ln_S) + TRUE["B"] * D ** -TRUE["beta"])

    return loss


def design(name: str) -> list[tuple[float, float]]:
    """S and D of each run."""
    if not name.startswith(OF_BUDGETS):
        return [(S, S * ratio) for S in SIZES for ratio in RATIOS]
    return [(S, C / 6 / S) for C in 6e18 * 3.0 ** np.arange(6) for S in math.sqrt(C / 120) * np.geomspace(0.25, 4, 6)]


def best_size(loss: Law, C: float) -> float:
    """S of the least loss of a budget."""
    return math.exp(minimize_scalar(lambda s: loss(math.exp(s), C / 6 / math.exp(s)), bounds=(15, 28)).x)


def serving(loss: Law, C: float, T: float) -> tuple[float, float, float]:
    """S, D and the share saved of the least 6 S D + 2 S T with the loss of the best run of C."""
    best = best_size(loss, C)
    aim = loss(best, C / 6 / best)

    def cost(s: float) -> tuple[float, float]:
        S = math.exp(s)
        if loss(S, 1e18) >= aim:
            return math.inf, math.inf
        D = math.exp(brentq(lambda d: loss(S, math.exp(d)) - aim, math.log(1e6), math.log(1e18)))
        return 6 * S * D + 2 * S * T, D

    sizes = np.linspace(math.log(best / 60), math.log(best), 4000)
    at = min(sizes, key=lambda s: cost(s)[0])
    least, D = cost(at)
    return math.exp(at), D, 1 - least / (C + 2 * best * T)


def truths(loss: Law, C: float, at: tuple[float, float], best: dict[str, float], rng: np.random.Generator) -> dict:
    """The number of each kind; what another split loses, and what a run shows, at the size that was said to be best."""
    S = best_size(loss, C)
    said, D = best["S"], C / 6 / best["S"]
    new = np.exp(SCATTER * rng.standard_normal(2))
    served = serving(loss, C, SERVED)
    return {
        ("best", "S"): S,
        ("best", "D"): C / 6 / S,
        ("best", "y"): loss(said, D) * new[0],
        ("best", "half"): loss(said / 2, 2 * D) / loss(said, D) - 1,
        ("best", "fivefold"): loss(said / 5, 5 * D) / loss(said, D) - 1,
        ("served", "S"): served[0],
        ("served", "D"): served[1],
        ("served", "saved"): served[2],
        ("asked", "y"): loss(*at) * new[1],
        ("runs", "E"): TRUE["E"],
    }


def judged(name: str, draw: int, folder: Path) -> tuple[dict[str, Held], tuple[bool, bool, bool]]:
    """Whether each number that `decide` says holds, None where it says none, by method.

    Returns:
        These, and whether the answer has a status, the largest runs are named, and runs are left out.
    """
    rng = np.random.default_rng((WORLDS.index(name), draw))
    loss, runs = world(name, rng), design(name)
    y = np.array([loss(*run) for run in runs]) * np.exp(SCATTER * rng.standard_normal(len(runs)))
    C = np.array([6 * S * D for S, D in runs])
    if name == UNDERTRAINED:
        y[np.argsort(C)[-4:]] *= 1 + rng.uniform(0.01, 0.03, 4)
    if name in (CUT, LONGER):
        off = rng.uniform(0.01, 0.05) * rng.uniform(0.7, 1.3, 6)
        y[-6:] *= 1 + off if name == CUT else 1 - off
    budget = TIMES * C.max()
    at = math.sqrt(budget / 6 / 20), math.sqrt(budget / 6 * 20)
    table = folder / "runs.csv"
    with table.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["model", "S", "D", "loss_nats"])
        rows.writerows([f"run{n}", S, D, loss] for n, ((S, D), loss) in enumerate(zip(runs, y, strict=True)))
    common = ("--store", folder / f"{name}{draw}")
    here("import", table, "source=us", "family=ours", "dataset=web", *common, cwd=folder, check=0, writes=True)
    point, more = (f"S={at[0]:.6g}", f"D={at[1]:.6g}"), (f"flops={budget:.6g}", f"inference_tokens={SERVED:g}")
    said = here("decide", *point, *more, "--format", "json", *common, cwd=folder, check=0, writes=True)
    told: dict[str, Held] = {}
    answers = json.loads(said.stdout)
    for method in (COMBINED, WITHOUT):
        rows_of = {row["kind"]: row for row in answers if (row["method"] or COMBINED) == method}
        if not rows_of:
            continue
        best = rows_of.get("best")
        if best is None or best["S"] is None:
            best = {"S": best_size(loss, budget)}
        held: Held = {}
        for (kind, number), truth in truths(loss, budget, at, best, rng).items():
            row = rows_of.get(kind, {})
            lo, hi = row.get(f"{number}_lo"), row.get(f"{number}_hi")
            held[kind, number] = None if lo is None or hi is None else lo <= truth <= hi
        told[method] = held
    answer = next(row for row in answers if row["kind"] == "asked")
    return told, (answer["status"] != "ok", WITHOUT in told, any(row["kind"] == "outlier" for row in answers))


def main() -> None:
    """Print a row for each world and kind of number."""
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    print(f"{draws} draws a world\n")
    for name in sys.argv[2:] or WORLDS:
        with TemporaryDirectory() as folder:
            told = [judged(name, draw, Path(folder)) for draw in range(draws)]
        doubted, named, left_out = np.mean([said for _, said in told], axis=0)
        print(f"{name}: a status {doubted:.2f}, the largest named {named:.2f}, runs left out {left_out:.2f}\n")
        print("| number | answered | inside | answered without | inside |\n|---|---|---|---|---|")
        for kind in told[0][0][COMBINED]:
            cells = []
            for method in (COMBINED, WITHOUT):
                answered = [each for of, _ in told if (each := of.get(method, {}).get(kind)) is not None]
                cells += [f"{len(answered) / draws:.2f}", f"{np.mean(answered):.2f}" if answered else "none"]
            print(f"| {' '.join(kind)} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
