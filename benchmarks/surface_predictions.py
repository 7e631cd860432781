"""Measures predictions over forms in size and tokens: the largest budget of a grid, foretold from smaller ones.

Held out are the runs within a factor of 3 of the most compute; they are foretold from all budgets below, and from
those at least one more factor of 3 below. Coverage and the Winkler score of the 95 % interval, in ln y, are means over
the points of a grid; coverage, and the mean logarithm of the ratio of scores to other ways, are then means over grids,
each with its standard error over grids. Beside the answer stand the forms mixed by exp(-BIC / 2) with intervals over
resampled runs, which was the answer before, and each form alone.

Worlds: five budgets of seven sizes each (iso), a grid of sizes and tokens, ratios of tokens to parameters, and seven
runs of 25 checkpoints, drawn from forms that are among the candidates and from others, with scatter of .2 and .8 %.
Public grids are read from `../shared/reference`, where it exists.

    python benchmarks/surface_predictions.py [DRAWS, default 10] [CASES, a CSV of every case] [WORLD or SOURCE ...]
"""

import csv
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import joblib
import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rbpx.laws.forms.t_mixture import TMixture
from rbpx.laws.intervals.estimate import Estimate, student_t
from rbpx.laws.surface.averaged import backtest_budgets, predict_over_forms
from rbpx.laws.surface.fit import Surface, fit_surface
from rbpx.laws.surface.runs import Runs

Floats = NDArray[np.float64]
REFERENCE = Path(__file__).resolve().parent.parent.parent / "shared" / "reference"
FORMS = ("chinchilla", "kaplan")
SCATTERS = (0.002, 0.008)


@dataclass(frozen=True, eq=False)
class Grid:
    """Runs of one study on one text; `world` and `design` name what was drawn, and the source of what was not."""

    world: str
    design: str
    S: Floats
    D: Floats
    y: Floats
    run: NDArray[np.int64]

    def only(self, keep: NDArray[np.bool_]) -> "Grid":
        """Some of the points."""
        return Grid(self.world, self.design, self.S[keep], self.D[keep], self.y[keep], self.run[keep])

    @property
    def runs(self) -> Runs:
        """The points as the laws take them."""
        return Runs.of(self.S, self.D, self.y, groups=self.run)


def iso(rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Five budgets, a factor of 3 apart, of seven sizes about 20 tokens per parameter."""
    rows = []
    for C in 6e18 * 3.0 ** np.arange(5):
        S = math.sqrt(C / 120) * 1.7 ** np.linspace(-2.5, 2.5, 7) * math.exp(rng.normal(0, 0.1))
        rows += [(size, C / 6 / size) for size in S]
    S, D = np.array(rows).T
    return S, D


def grid(rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Five sizes over 1.5 decades with five numbers of tokens over 1.6."""
    S, D = np.meshgrid(3e7 * np.geomspace(1, 30, 5), 6e8 * np.geomspace(1, 40, 5))
    return S.ravel(), D.ravel()


def ratios(rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Six sizes with 20 to 200 tokens per parameter."""
    S, ratio = np.meshgrid(5e7 * np.geomspace(1, 40, 6), np.array([20.0, 40, 100, 200]))
    return S.ravel(), (S * ratio).ravel()


def checkpoints(rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Seven sizes with 25 checkpoints each."""
    S = np.repeat(3e7 * np.geomspace(1, 60, 7), 25)
    return S, np.tile(np.geomspace(0.04, 1, 25), 7) * 2e10 * (S / S[0]) ** 0.3


DESIGNS: dict[str, Callable[[np.random.Generator], tuple[Floats, Floats]]] = {
    "iso": iso,
    "grid": grid,
    "ratios": ratios,
    "checkpoints": checkpoints,
}


def bent(x: Floats, ratio: float) -> Floats:
    """A logarithm that grows `ratio` times as fast above the middle."""
    return x + (ratio - 1) * 0.5 * np.logaddexp(0, (x - np.median(x)) / 0.5)


def chinchilla(s: Floats, d: Floats, E: float = 1.7, A: float = 406.4, B: float = 410.7) -> Floats:
    """Ln y with the exponents of arXiv 2203.15556."""
    return np.log(E + A * np.exp(-0.34 * s) + B * np.exp(-0.28 * d))


def kaplan(s: Floats, d: Floats) -> Floats:
    """Ln y of arXiv 2001.08361, eq. 1.5, with its constants."""
    by_size, by_data = 0.076 * (math.log(8.8e13) - s), 0.095 * (math.log(5.4e13) - d)
    return 0.095 * np.logaddexp(by_size / 0.095, by_data / 0.095)


def uneven(s: Floats, d: Floats, rng: np.random.Generator) -> Floats:
    """Chinchilla's form with smooth misfit of .4 %, correlated over e^2 in size and tokens."""
    apart = (s[:, None] - s) ** 2 + (d[:, None] - d) ** 2
    covariance = 0.004**2 * np.exp(-apart / 8) + 1e-12 * np.eye(len(s))
    return chinchilla(s, d) + np.linalg.cholesky(covariance) @ rng.standard_normal(len(s))


WORLDS: dict[str, Callable[[Floats, Floats, np.random.Generator], Floats]] = {
    "chinchilla": lambda s, d, rng: chinchilla(s, d),
    "chinchilla, small E": lambda s, d, rng: np.log(0.3 + 30 * np.exp(-0.2 * s) + 40 * np.exp(-0.18 * d)),
    "kaplan": lambda s, d, rng: kaplan(s, d),
    "exponent of S times .6": lambda s, d, rng: chinchilla(bent(s, 0.6), d),
    "exponent of S times 1.4": lambda s, d, rng: chinchilla(bent(s, 1.4), d),
    "exponent of D times .6": lambda s, d, rng: chinchilla(s, bent(d, 0.6)),
    "product of S and D": lambda s, d, rng: np.log(1.5 + 25 * np.exp(-0.16 * s) * (1 + 60 * np.exp(-0.22 * d))),
    "exponents that mix": lambda s, d, rng: np.log(
        1.2
        + np.exp(
            -0.14 * (s - np.median(s)) - 0.11 * (d - np.median(d)) - 0.006 * (s - np.median(s)) * (d - np.median(d))
        )
    ),
    "smooth misfit": uneven,
}
AMONG = ("chinchilla", "chinchilla, small E", "kaplan")  # of the worlds, those whose form is a candidate


def draw(world: str, design: str, scatter: float, seed: int) -> Grid:
    """Runs of a world; checkpoints of one share 72 % of the variance."""
    rng = np.random.default_rng((seed, list(WORLDS).index(world), list(DESIGNS).index(design)))
    S, D = DESIGNS[design](rng)
    run = np.unique(S, return_inverse=True)[1] if design == "checkpoints" else np.arange(len(S))
    ln_y = WORLDS[world](np.log(S), np.log(D), rng)
    noise = rng.standard_normal(run.max() + 1)[run]
    if design == "checkpoints":
        noise = 0.85 * noise + 0.5 * rng.standard_normal(len(S))
    return Grid(world, design, S, D, np.exp(ln_y + scatter * noise), run)


def rows_of(name: str) -> list[dict[str, str]]:
    """The rows of a public table."""
    with (REFERENCE / name).open() as file:
        return list(csv.DictReader(file))


def public() -> Iterator[Grid]:
    """Chinchilla's points but the two beyond its largest budget, the Gemstones, OLMo's ladder by text, Step Law's best.

    Of Step Law each cell of S and D has its best learning rate and batch size.
    """
    rows = rows_of("chinchilla_points.csv")
    S, C, y = (np.array([float(row[name]) for row in rows]) for name in ("params", "training_flops", "loss_nats"))
    keep = C < 5e21
    yield Grid("Chinchilla", "public", S, C / 6 / S, y, np.arange(len(S))).only(keep)
    rows = rows_of("gemstones_checkpoints.csv")
    S, D, y = (np.array([float(row[name]) for row in rows]) for name in ("params", "tokens", "loss_nats"))
    yield Grid("Gemstones", "public", S, D, y, np.unique([row["run"] for row in rows], return_inverse=True)[1])
    last = {row["run"]: row for row in rows_of("olmo_ladder.csv") if row["role"] == "fit"}
    for text in (name for name in next(iter(last.values())) if name.endswith(("_nats", "_bpb"))):
        S, D, y = (np.array([float(row[name]) for row in last.values()]) for name in ("params", "tokens", text))
        yield Grid(f"OLMo {text}", "public", S, D, y, np.arange(len(S)))
    best: dict[tuple[float, float], float] = {}
    for row in rows_of("steplaw_dense.csv"):
        cell, loss = (float(row["non_embedding_params"]), float(row["training_tokens"])), float(row["smooth_loss"])
        best[cell] = min(best.get(cell, math.inf), loss)
    S, D = np.array(list(best)).T
    yield Grid("Step Law", "public", S, D, np.array(list(best.values())), np.arange(len(S)))


@dataclass(frozen=True)
class Case:
    """One grid, foretold from below: shares inside, median hi / lo, Winkler scores and median errors of each way.

    `below` is the share of points whose error is less than was expected of the answer.
    """

    world: str
    design: str
    gap: int
    n_fitted: int
    n_held_out: int
    inside: dict[str, float]
    width: dict[str, float]
    winkler: dict[str, float]
    error: dict[str, float]
    below: float


def cases(of: Grid) -> Iterator[Case]:
    """Both gaps of one grid."""
    C = 6 * of.S * of.D
    for gap in (3, 9):
        fitted, held = of.only(C <= C.max() / gap * 1.05), of.only(C > C.max() / 3 * 1.05)
        if len(fitted.S) < 7:
            continue
        fits = [fit_surface(fitted.runs, form, n_replicates=100) for form in FORMS]
        points = list(zip(held.S.tolist(), held.D.tolist(), strict=True))
        budgets = backtest_budgets(fitted.runs, FORMS)
        answers = predict_over_forms(fits, points, budgets)
        ways = {"combined": [answer.y for answer in answers], "by BIC": [by_bic(fits, *at) for at in points]}
        ways |= {form: [answer.within.get(form, Estimate()) for answer in answers] for form in FORMS}
        scores = {name: scored(ys, np.log(held.y)) for name, ys in ways.items()}
        columns = [{name: score[at] for name, score in scores.items()} for at in range(4)]
        errors = [abs((answer.y.value or math.inf) / y - 1) for answer, y in zip(answers, held.y, strict=True)]
        below = [error < (of.expected_error or 0) for error, of in zip(errors, answers, strict=True)]
        yield Case(of.world, of.design, gap, len(fitted.S), len(points), *columns, float(np.mean(below)))


def by_bic(fits: list[Surface], S: float, D: float) -> Estimate:
    """The forms mixed by exp(-BIC / 2), each with Student's t over resampled runs."""
    kept = [(fit, fit.surface.predict(S, D, new_run=True)) for fit in fits if fit.surface is not None]
    usable = [(fit, y) for fit, y in kept if y.ends is not None and fit.bic is not None]
    if not usable:
        return Estimate()
    bic = np.array([fit.bic for fit, _ in usable], np.float64)
    weight = np.exp(-(bic - bic.min()) / 2)
    ends = np.log(np.array([y.ends for _, y in usable], np.float64))
    dofs = [fit.surface.n_runs - fit.surface.n_free for fit, _ in usable if fit.surface is not None]
    scale = np.diff(ends, axis=1)[:, 0] / 2 / [student_t(dof) for dof in dofs]
    mixture = TMixture(ends.mean(axis=1), scale, weight / weight.sum(), min(dofs))
    y, lo, hi = np.exp(mixture.quantiles((0.5, 0.025, 0.975))).tolist()
    return Estimate(y, lo, hi)


def scored(ys: list[Estimate], truth: Floats) -> tuple[float, float, float, float]:
    """The share inside, the median width, the mean Winkler score and the median |error|; a refusal is a miss."""
    known = np.array([y.value is not None and y.ends is not None for y in ys])
    if not known.any():
        return 0.0, math.nan, math.nan, math.nan
    values = [(y.value, *y.ends) for y in ys if y.value is not None and y.ends is not None]
    (y, lo, hi), at = np.log(np.array(values, np.float64)).T, truth[known]
    outside = np.maximum(lo - at, 0) + np.maximum(at - hi, 0)
    inside = float((outside == 0).sum()) / len(ys)
    return inside, float(np.median(hi - lo)), float(np.mean(hi - lo + 40 * outside)), float(np.median(np.abs(y - at)))


def print_table(title: str, found: list[Case]) -> None:
    """Print a line for each gap: coverage over grids, width, error, and the score beside those of other ways."""
    for gap in (3, 9):
        rows = [case for case in found if case.gap == gap]
        if not rows:
            continue
        inside = np.array([case.inside["combined"] for case in rows])
        before = np.array([case.inside["by BIC"] for case in rows])
        width, error = (np.median([getattr(case, name)["combined"] for case in rows]) for name in ("width", "error"))
        cells = [f"{inside.mean():.3f} ± {inside.std() / math.sqrt(len(rows)):.3f}", f"{before.mean():.3f}"]
        cells += [f"{math.exp(width):.3f}", f"{100 * error:.2f} %", f"{np.mean([case.below for case in rows]):.2f}"]
        for other in ("by BIC", *FORMS):
            ratio = np.log([case.winkler["combined"] / case.winkler[other] for case in rows])
            cells.append(f"{math.exp(np.nanmean(ratio)):.2f}")
        widths = [case.width["combined"] / case.width[case.world.split(",")[0]] for case in rows if case.world in AMONG]
        cells.append(f"{np.median(widths):.2f}" if widths else "")
        print(f"| {title} | {gap} | {len(rows)} | " + " | ".join(cells) + " |", flush=True)


def main(draws: int, file: Path | None, only: list[str]) -> None:
    """Print every table."""
    worlds = {name: truth for name, truth in WORLDS.items() if not only or name in only}
    sources = [of for of in public() if not only or of.world.split()[0] in only] if REFERENCE.is_dir() else []
    drawn = [
        joblib.delayed(lambda *of: list(cases(draw(*of))))(world, design, scatter, seed)
        for world in worlds
        for design in DESIGNS
        for scatter in SCATTERS
        for seed in range(draws)
    ]
    found = [case for of_grid in joblib.Parallel(-1)(drawn) for case in of_grid]
    known = [case for of in sources for case in cases(of)]
    heads = ("grids", "gap", "n", "inside", "before", "hi/lo", "error", "below expected")
    heads += ("Winkler over before", "over chinchilla", "over kaplan", "width over the true form's")
    print("| " + " | ".join(heads) + " |")
    print("|---" * 12 + "|")
    for title, keep in [
        ("all worlds", lambda case: True),
        ("form among the candidates", lambda case: case.world in AMONG),
        *((f"design {name}", lambda case, name=name: case.design == name) for name in DESIGNS),
        *((name, lambda case, name=name: case.world == name) for name in worlds),
    ]:
        print_table(title, [case for case in found if keep(case)])
    for source in dict.fromkeys(case.world.split()[0] for case in known):
        print_table(source, [case for case in known if case.world.startswith(source)])
    print_table("public, all", known)
    if file is not None:
        with file.open("w", newline="") as stream:
            rows = csv.writer(stream)
            rows.writerow(
                ["world", "design", "gap", "n_fitted", "n_held_out", "way", "inside", "width", "winkler", "error"]
            )
            for case in [*found, *known]:
                for way in case.inside:
                    scores = (case.inside[way], case.width[way], case.winkler[way], case.error[way])
                    rows.writerow([case.world, case.design, case.gap, case.n_fitted, case.n_held_out, way, *scores])


if __name__ == "__main__":
    arguments = sys.argv[1:]
    cases_file = Path(arguments[1]) if len(arguments) > 1 else None
    main(int(arguments[0]) if arguments else 10, cases_file, arguments[2:])
