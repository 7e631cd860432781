"""Measures predictions over forms in size and tokens: the largest budget of a grid, predicted from smaller ones.

Held out are the runs within a factor of 3 of the most compute (of public grids also those of the two budgets before);
they are predicted from all runs with a third of it, and from those with a ninth. Coverage, the Winkler score of the
95 % interval in ln y (its width plus 40 times how far outside of it the run lies) and the median error are means over
the runs of a grid, then over grids.

Worlds: five budgets of seven sizes each (iso), a grid of sizes and tokens, ratios of tokens to parameters, seven runs
of 25 checkpoints, and three or four sizes at two or three ratios, predicting the next size (six, nine, twelve); drawn
from forms that are among the candidates and from others. Public grids are read from `../shared/reference`, where it
exists. Last, for each public source: the factor that all other sources would widen its intervals by, the 95 % quantile
of their errors over the half widths of their intervals, sources counting alike.

    python benchmarks/surface_predictions.py [DRAWS, default 10] [CSV of every case] [WORLD, DESIGN or SOURCE ...]
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

from rbpx.laws.surface.averaged import backtest_budgets, predict_averaged
from rbpx.laws.surface.design import judge_design
from rbpx.laws.surface.fit import fit_surface
from rbpx.laws.surface.runs import Runs

Floats = NDArray[np.float64]
REFERENCE = Path(__file__).resolve().parent.parent.parent / "shared" / "reference"
FORMS = ("chinchilla", "kaplan")
SCATTERS = (0.002, 0.008)
REPLICATES = 60  # of the runs, by which a status says that a constant is barely determined
FEWEST = 6  # runs that predict
FEW = {"six": (3, 2), "nine": (3, 3), "twelve": (4, 3)}  # sizes and ratios of tokens to parameters
SCATTERS_OF_FEW = (0.0005, 0.002, 0.005, 0.01)


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


def few(n_S: int, n_ratios: int) -> Callable[[np.random.Generator], tuple[Floats, Floats]]:
    """So many sizes, each four times the one before, and the next one, with 20 to 50 tokens per parameter."""
    S, ratio = np.meshgrid(5e7 * 4.0 ** np.arange(n_S + 1), np.geomspace(20, 50, n_ratios))
    return lambda rng: (S.ravel(), (S * ratio).ravel())


DESIGNS: dict[str, Callable[[np.random.Generator], tuple[Floats, Floats]]] = {
    "iso": iso,
    "grid": grid,
    "ratios": ratios,
    "checkpoints": checkpoints,
    **{name: few(*of) for name, of in FEW.items()},
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
    """Runs of one grid, predicted from below.

    Attributes:
        world: of the grid.
        design: of the grid.
        scatter: of its runs; None where it was not drawn.
        gap: how many times less compute than the most the runs have that predict.
        n_fitted: how many these are.
        error: |ln predicted - ln measured| of each run that is predicted.
        half: of its interval in ln y, on the side of the run.
        width: of its interval in ln y.
        statuses: of the answer.
    """

    world: str
    design: str
    scatter: float | None
    gap: int
    n_fitted: int
    error: Floats
    half: Floats
    width: Floats
    statuses: tuple[str, ...]

    @property
    def inside(self) -> float:
        """The share of runs within their intervals."""
        return float(np.mean(self.error <= self.half))

    @property
    def winkler(self) -> float:
        """The mean score."""
        return float(np.mean(self.width + 40 * np.maximum(self.error - self.half, 0)))


def cases(of: Grid, scatter: float | None = None) -> Iterator[Case]:
    """Both gaps of one grid; of a public one from three budgets down."""
    C = 6 * of.S * of.D
    for most in C.max() / 3.0 ** np.arange(1 if scatter is not None else 3):
        for gap in (3, 9):
            fitted = of.only(most / gap * 1.05 >= C)
            held = of.only((most / 3 * 1.05 < C) & (most * 1.0001 >= C))
            if len(fitted.S) >= FEWEST and len(held.S) and not judge_design(fitted.S, fitted.D).is_collinear:
                yield predicted(fitted, held, gap, scatter)


def predicted(fitted: Grid, held: Grid, gap: int, scatter: float | None) -> Case:
    """What the runs of one grid say of others."""
    fits = [fit_surface(fitted.runs, form, n_replicates=REPLICATES) for form in FORMS]
    points = list(zip(held.S.tolist(), held.D.tolist(), strict=True))
    answers = predict_averaged(fits, points, backtest_budgets(fitted.runs, FORMS))
    heaviest = max(answers[0].weights, key=answers[0].weights.__getitem__)
    statuses = next(fit.reasons for fit in fits if fit.form == heaviest)
    y, lo, hi = np.log(np.array([(of.y.value, of.y.lo, of.y.hi) for of in answers], np.float64)).T
    error, half = np.abs(y - np.log(held.y)), np.where(np.log(held.y) > y, hi - y, y - lo)
    named = (fitted.world, fitted.design, scatter, gap, len(fitted.S))
    return Case(*named, error, half, hi - lo, tuple(status.value for status in statuses))


def print_row(title: str, gap: int | str, found: list[Case]) -> None:
    """A line: coverage with its standard error over grids, interval, score and error."""
    if not found:
        return
    inside = np.array([case.inside for case in found])
    width = math.exp(float(np.median([np.median(case.width) for case in found])))
    error = float(np.median([np.median(case.error) for case in found]))
    cells = [f"{inside.mean():.3f} ± {inside.std() / math.sqrt(len(found)):.3f}", f"{width:.3f}"]
    cells += [f"{np.mean([case.winkler for case in found]):.4f}", f"{100 * error:.2f} %"]
    print(f"| {title} | {gap} | {len(found)} | " + " | ".join(cells) + " |", flush=True)


def print_factors(sources: dict[str, list[Case]]) -> None:
    """For each source what the others say of its intervals."""
    print("\n| source | its own factor | learned from the others |\n|---|---|---|")
    for source, own in sources.items():
        others = [case for name, of in sources.items() if name != source for case in of]
        counts = [1 / len(sources[case.world.split()[0]]) for case in others]
        print(f"| {source} | {factor(own, [1.0] * len(own)):.2f} | {factor(others, counts) if others else 1:.2f} |")


def factor(found: list[Case], counts: list[float]) -> float:
    """By what intervals would be wide or narrow enough for 95 % of the runs, each case counting as given."""
    of = np.concatenate([case.error / case.half for case in found])
    weight = np.concatenate(
        [np.full(len(case.error), n / len(case.error)) for case, n in zip(found, counts, strict=True)]
    )
    order = np.argsort(of)
    return float(of[order][np.searchsorted(np.cumsum(weight[order]), 0.95 * weight.sum())])


def main(draws: int, file: Path | None, only: list[str]) -> None:
    """Print every table."""
    worlds = [name for name in WORLDS if not {*only} & {*WORLDS} or name in only]
    designs = [name for name in DESIGNS if not {*only} & {*DESIGNS} or name in only]
    sources = [of for of in public() if not only or of.world.split()[0] in only] if REFERENCE.is_dir() else []
    wanted = [
        (world, design, scatter, seed)
        for world in worlds
        for design in designs
        if design not in FEW or world in AMONG
        for scatter in (SCATTERS_OF_FEW if design in FEW else SCATTERS)
        for seed in range(draws)
    ]
    drawn = [joblib.delayed(lambda *of: list(cases(draw(*of), of[2])))(*of) for of in wanted]
    found = [case for of_grid in joblib.Parallel(-1)(drawn) for case in of_grid]
    known = [case for of in sources for case in cases(of)]
    many = [case for case in found if case.design not in FEW]
    print("| grids | gap | n | inside | hi/lo | Winkler | error |\n" + "|---" * 7 + "|")
    for title, keep in [
        ("all worlds", lambda case: True),
        ("form among the candidates", lambda case: case.world in AMONG),
        *((f"design {name}", lambda case, name=name: case.design == name) for name in DESIGNS),
        *((name, lambda case, name=name: case.world == name) for name in worlds),
    ]:
        for gap in (3, 9):
            print_row(title, gap, [case for case in many if keep(case) and case.gap == gap])
    for design in FEW:
        for scatter in SCATTERS_OF_FEW:
            print_row(
                f"{design} runs, scatter {scatter}",
                16,
                [c for c in found if (c.design, c.scatter) == (design, scatter) and c.gap == 3],
            )
    by_source: dict[str, list[Case]] = {}
    for case in known:
        by_source.setdefault(case.world.split()[0], []).append(case)
    for source, of in by_source.items():
        print_row(source, "3, 9", of)
    print_row("public, all", "3, 9", known)
    for name in sorted({status for case in [*many, *known] for status in case.statuses}):
        for title, of in (("worlds", many), ("public", known)):
            print_row(f"{title} with {name}", "3, 9", [case for case in of if name in case.statuses])
            print_row(f"{title} without", "3, 9", [case for case in of if name not in case.statuses])
    print_factors(by_source)
    if file is not None:
        with file.open("w", newline="") as stream:
            rows = csv.writer(stream)
            rows.writerow(["world", "design", "scatter", "gap", "n_fitted", "n_held_out", "inside", "winkler", "error"])
            for case in [*found, *known]:
                named = [case.world, case.design, case.scatter, case.gap, case.n_fitted, len(case.error)]
                rows.writerow([*named, case.inside, case.winkler, float(np.median(case.error))])


if __name__ == "__main__":
    arguments = sys.argv[1:]
    cases_file = Path(arguments[1]) if len(arguments) > 1 else None
    main(int(arguments[0]) if arguments else 10, cases_file, arguments[2:])
