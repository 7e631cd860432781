"""Measures how often the prediction over forms covers a new model, on ladders drawn where its forms hold and fail.

Each cell is a truth (exponent, irreducible part, scatter of the models) and a number of sizes. For each cell ladders
are drawn, each with one more model of ten times the largest size on the same documents. Beside the coverage stands the
median half width in ln y, and its ratio to that of a plain mixture: half of the prior on a power law, half on a grid of
E, and independent scatter. Before them come ladders that hardly scatter, and such with repeats of a size; before these,
if `../shared` exists, public points.

    python benchmarks/prediction_coverage.py [DRAWS, default 1000]
"""

import csv
import itertools
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rbpx.laws.power.law import fit_power_law
from tests.support.predictions import predict_batch
from tests.support.singly import below

Floats = NDArray[np.float64]

DECADE = math.log(10)
REFERENCE = Path(__file__).resolve().parent.parent.parent / "shared" / "reference"


@dataclass(frozen=True)
class Truth:
    """The law that ladders are drawn from.

    Attributes:
        alpha: exponent.
        n: number of sizes.
        E: irreducible part, in units of the drop of y over the ladder.
        scatter: standard deviation of ln y of one model about the law.
        decades: decades that the sizes span.
        rho: correlation of the scatter of two models half a decade apart.
        bend: exponent above the middle of the ladder over the one below it; 1 is no bend.
        repeats: how many models of each size, from the smallest up, where these are not single ones.
        own: standard deviation of one of them about its size.
    """

    alpha: float
    n: int
    E: float
    scatter: float
    decades: float = 2.0
    rho: float = 0.0
    bend: float = 1.0
    repeats: tuple[int, ...] = ()
    own: float = 0.0

    def draw(self, draws: int, generator: np.random.Generator) -> tuple[Floats, Floats]:
        """Logarithms: S of all models, the new one last, [n + 1]; y of each ladder, [draws, n + 1]."""
        x = np.linspace(0, self.decades * DECADE, self.n)
        x = np.append(x, x[-1] + DECADE)
        knee = np.logaddexp(0, (x - x[: self.n].mean()) / 0.5) * 0.5
        power = np.exp(-self.alpha * (x + (self.bend - 1) * knee))
        ln_law = np.log(self.E * (power[0] - power[self.n - 1]) + power)
        noise = generator.standard_normal((draws, self.n + 1))
        if self.rho:
            apart = np.abs(x[:, None] - x) / (DECADE / 2)
            noise = noise @ np.linalg.cholesky(self.rho**apart).T
        ln_y = ln_law + self.scatter * noise
        if self.repeats:
            x, ln_y = (np.repeat(each, [*self.repeats, 1], axis=-1) for each in (x, ln_y))
            ln_y = ln_y + self.own * generator.standard_normal(ln_y.shape)
        return x, ln_y


GRID = [
    Truth(*cell) for cell in itertools.product((0.06, 0.12, 0.25), (5, 7, 10), (0.0, 0.3, 1.0), (0.003, 0.01, 0.03))
]
CONDITIONS: dict[str, list[Truth]] = {
    "forms true, two decades": GRID,
    "1.2 decades": [replace(truth, decades=1.2) for truth in GRID],
    "scatter correlated .5 a half decade": [replace(truth, rho=0.5) for truth in GRID],
    **{
        f"exponent times {bend} in the middle": [replace(truth, bend=bend) for truth in GRID if truth.E == 0]
        for bend in (0.5, 0.8, 1.5)
    },
}


SMOOTH = [
    Truth(alpha, n, E, scatter)
    for alpha, E in ((0.34, 0.59), (0.34, 1.29), (0.2, 1.66), (0.12, 1.0))
    for n, scatter in itertools.product((5, 7, 10), (0.001, 0.0003))
]
THREE = [
    Truth(alpha, 3, E, scatter, decades)
    for alpha, E, scatter in (
        *((0.34, 0.59, 0.001), (0.34, 1.29, 0.003), (0.2, 1.66, 0.003), (0.12, 1.0, 0.003), (0.12, 0.0, 0.003)),
        *((0.12, 0.3, 0.01), (0.25, 0.3, 0.01), (0.12, 0.3, 0.03), (0.25, 0.3, 0.03), (0.25, 0.3, 0.06)),
    )
    for decades in (1.0, 2.0)
]
REPEATS = [
    Truth(0.12, n, 0.0, scatter, repeats=repeats, own=own)
    for n, scatter, own in itertools.product((5, 7), (0.003, 0.0), (0.0, 0.0003, 0.001, 0.003))
    for repeats in ((3,) * n, (3, 3) + (1,) * (n - 2))
    if scatter or own
]


def plain_mixture(x: Floats, ln_y_BN: Floats) -> Floats:
    """Both ends of the plain mixture's interval at the last x, [draws, 2], from weighted lines through ln(y - E)."""
    n = ln_y_BN.shape[1]
    y_BN = np.exp(ln_y_BN)
    centres, scales, weights = [], [], []
    shares = np.linspace(0, 0.98, 26)
    for share in shares:
        E_B1 = share * y_BN.min(axis=1, keepdims=True)
        g_BN = 1 - E_B1 / y_BN
        J_BN2 = np.stack([g_BN, -g_BN * (x[:n] - x[:n].mean())], axis=2)
        A_B22 = J_BN2.swapaxes(1, 2) @ J_BN2
        target_BN = g_BN * np.log(y_BN - E_B1)
        theta_B2 = np.linalg.solve(A_B22, (J_BN2 * target_BN[..., None]).sum(1)[..., None])[..., 0]
        sse_B = ((target_BN - (J_BN2 * theta_B2[:, None]).sum(2)) ** 2).sum(1)
        power_B = np.exp(theta_B2[:, 0] - theta_B2[:, 1] * (x[n] - x[:n].mean()))
        law_B = E_B1[:, 0] + power_B
        at_B2 = np.stack([power_B / law_B, -power_B / law_B * (x[n] - x[:n].mean())], axis=1)
        unit_B = 1 + (at_B2 * np.linalg.solve(A_B22, at_B2[..., None])[..., 0]).sum(1)
        prior = 0.5 if share == 0 else 0.5 / (len(shares) - 1)
        centres.append(np.log(law_B))
        scales.append(np.sqrt(sse_B / (n - 2) * unit_B))
        weights.append(np.log(prior) - (n - 2) / 2 * np.log(sse_B) - 0.5 * np.linalg.slogdet(A_B22)[1])
    centre, scale, weight = (np.array(part).T for part in (centres, scales, weights))
    weight = np.exp(weight - weight.max(axis=1, keepdims=True))
    weight /= weight.sum(axis=1, keepdims=True)
    ends = []
    for tail in (0.025, 0.975):
        lo, hi = (centre - 30 * scale).min(axis=1), (centre + 30 * scale).max(axis=1)
        for _ in range(30):
            middle = (lo + hi) / 2
            is_below = (weight * stdtr(n - 2, (middle[:, None] - centre) / scale)).sum(axis=1) < tail
            lo, hi = np.where(is_below, middle, lo), np.where(is_below, hi, middle)
        ends.append((lo + hi) / 2)
    return np.stack(ends, axis=1)


def cell(truth: Truth, draws: int, seed: int) -> tuple[float, float, float]:
    """Coverage over forms; then median half widths in ln y over the first 100 ladders, over forms and plain."""
    x, ln_y = truth.draw(draws, np.random.default_rng(seed))
    sizes, y, new = np.exp(x[:-1]), np.exp(ln_y[:, :-1]), math.exp(x[-1])
    below_B = below(sizes, y, new, np.exp(ln_y[:, -1]))
    over, plain = np.log(predict_batch(sizes, y[:100], new)[:, 1:]), plain_mixture(x, ln_y[:100, :-1])
    held = (below_B >= 0.025) & (below_B <= 0.975)
    return float(held.mean()), float(np.median(np.ptp(over, axis=1)) / 2), float(np.median(np.ptp(plain, axis=1)) / 2)


def print_drawn(draws: int) -> None:
    """Print a line for each condition, then one for each cell."""
    lines = []
    print(f"| {draws:,} ladders a cell | cells | coverage, mean | worst | cells below .90 | width over plain | most |")
    print("|---|---|---|---|---|---|---|")
    for name, truths in CONDITIONS.items():
        cells = [cell(truth, draws, seed) for seed, truth in enumerate(truths)]
        held, half, plain = np.array(cells).T
        print(
            f"| {name} | {len(cells)} | {held.mean():.3f} | {held.min():.3f} | {(held < 0.9).sum()} | "
            f"{np.median(half / plain):.2f} | {(half / plain).max():.2f} |",
            flush=True,
        )
        for truth, (of, width, beside) in zip(truths, cells, strict=True):
            row = (name, truth.alpha, truth.n, truth.E, truth.scatter, f"{of:.3f}", f"{width:.4f}", f"{beside:.4f}")
            lines.append("| " + " | ".join(map(str, row)) + " |")
    print("\n| condition | alpha | sizes | E | scatter | coverage | half width | plain |\n|" + 8 * "---|")
    print("\n".join(lines))


def print_scores(truths: Sequence[Truth], draws: int) -> None:
    """Print for each cell the coverage, the mean Winkler score and the median |error|, in ln y, with seeds 0, 1, ..."""
    print(
        "\n| alpha | sizes | E | scatter | repeats | their scatter | coverage | Winkler | median error |\n|"
        + 9 * "---|"
    )
    for seed, truth in enumerate(truths):
        x, ln_y = truth.draw(draws, np.random.default_rng(seed))
        ln_ends = np.log(predict_batch(np.exp(x[:-1]), np.exp(ln_y[:, :-1]), math.exp(x[-1])))
        middle, lo, hi, new = *ln_ends.T, ln_y[:, -1]
        outside = np.maximum(0, np.maximum(lo - new, new - hi))
        numbers = (np.mean(outside == 0), np.mean(hi - lo + 40 * outside), np.median(np.abs(middle - new)))
        of = (truth.alpha, truth.n, truth.E, truth.scatter, " ".join(map(str, truth.repeats)), truth.own)
        print("| " + " | ".join([*map(str, of), *(f"{number:.4f}" for number in numbers)]) + " |", flush=True)


def rows_of(name: str) -> list[dict[str, str]]:
    """The rows of a public table."""
    with (REFERENCE / name).open() as file:
        return list(csv.DictReader(file))


def public_series() -> dict[str, list[tuple[list[float], list[float], int]]]:
    """Sizes, values and the fewest sizes to predict from: Pythia; OLMo's ladder by text, a series for each budget."""
    pythia = rows_of("pythia_wikipedia_figure8a.csv")
    S = [float(row["non_embedding_params"]) for row in pythia]
    series = {
        "Pythia, cross-entropy": [(S, [float(row["cross_entropy_nats"]) for row in pythia], 4)],
        "Pythia, -ln RBP_1": [(S, [-math.log(float(row["rbp_1"])) for row in pythia], 4)],
    }
    last = {row["run"]: row for row in rows_of("olmo_ladder.csv")}
    texts = [name for name in next(iter(last.values())) if name.endswith(("_nats", "_bpb"))]
    targets = [row for row in last.values() if row["role"] == "target"]
    for budget in ("1xC", "2xC", "5xC", "10xC"):
        fitted = [row for run, row in last.items() if run.endswith(f"-{budget}")]
        for text in texts:
            ladder = sorted((float(row["params"]), float(row[text])) for row in fitted)
            series.setdefault(f"OLMo at one D/N, its largest from three: {_kind(text)}", []).append(
                (*_columns(ladder), 3)
            )
            if budget == "10xC":
                far = sorted(ladder + [(float(row["params"]), float(row[text])) for row in targets if row[text]])
                name = f"OLMo 7B and 13B of other D/N, from 10xC: {_kind(text)}"
                series.setdefault(name, []).append((*_columns(far), 4))
    return series


def _kind(text: str) -> str:
    return "C4" if text.endswith("_nats") else "7 tasks, bits per byte"


def _columns(ladder: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [S for S, _ in ladder], [y for _, y in ladder]


def print_public() -> None:
    """Print the share of larger models that intervals from smaller ones cover, over forms and by least squares."""
    print("\n| points | predictions | over forms | least squares |\n|---|---|---|---|")
    for name, ladders in public_series().items():
        over, line = [], []
        for S, y, fewest in ladders:
            for m in range(fewest, len(S)):
                over += held(S, y, m, forms=True)
                line += held(S, y, m, forms=False)
        print(f"| {name} | {len(over)} | {np.mean(over):.2f} | {np.mean(line):.2f} |")


def held(S: Sequence[float], y: Sequence[float], m: int, forms: bool) -> list[bool]:
    """Whether the interval from the m smallest sizes covers each larger one, over forms or by least squares."""
    inside = []
    for at, value in zip(S[m:], y[m:], strict=True):
        if forms:
            _, lo, hi = predict_batch(S[:m], [y[:m]], at)[0]
        else:
            there = fit_power_law(S[:m], y[:m]).predict(at)
            lo, hi = there.lo or 0.0, there.hi or math.inf
        inside.append(bool(lo <= value <= hi))
    return inside


if __name__ == "__main__":
    if REFERENCE.is_dir():
        print_public()
    DRAWS = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    print_scores(SMOOTH + REPEATS + THREE, DRAWS)
    print_drawn(DRAWS)
