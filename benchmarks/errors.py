"""Measures the error that a prediction along one axis expects of itself, over public series, by distance and source.

Each series is foretold at every larger size (or number of tokens) from its smallest ones, from three up. A share of
.5 of the errors should be less than expected, at every distance. The three constants of
`rbpx.laws.prediction.calibration.expected_error` are fitted here, once to all sources, each with the same weight, and
once without the source that they are judged on: only the latter says how good they are. Rank correlations say whether
the expected error sorts errors better than the distance alone does.

Sources, from `../shared/reference`: Pythia on Wikipedia; OLMo's ladder by text, along size at each ratio of tokens and
along tokens at each size; the Gemstones, each run along tokens, eight or nine checkpoints; Step Law's best runs; models
with routing (arXiv 2202.01169) along the size of their dense part, by number of experts and loss. Left out are series
of fewer than four places, and of routing those sizes of one family that occur twice.

    python benchmarks/errors.py [SERIES, at most so many of a source] [FIGURE, an SVG of expected and real errors]
"""

import csv
import gzip
import io
import math
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import vl_convert
from numpy.typing import NDArray
from scipy.stats import spearmanr

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rbpx.display.chart.colours import GROUNDS, config
from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.prediction.calibration import expected_error
from rbpx.laws.prediction.prediction import predict_batch

REFERENCE = Path(__file__).resolve().parent.parent.parent / "shared" / "reference"
DECADES = ((0.0, 0.3), (0.3, 0.6), (0.6, 1.0), (1.0, 3.0))
FEWEST = 4  # places of a series
FEWEST_FORETOLD = 10  # of a source, for it to count when constants are fitted
LOSSES = ("c4", "curation_corpus", "lambada", "pile", "validation", "wikitext103")


class Series(NamedTuple):
    """Values of one quantity along one axis."""

    source: str
    x: list[float]
    y: list[float]


class Foretold(NamedTuple):
    """One prediction: decades beyond the series, |error| in ln y, sd by the interval, and what was expected."""

    source: str
    decades: float
    error: float
    spread: float
    expected: float


def rows_of(name: str) -> list[dict[str, str]]:
    """The rows of a public table."""
    data = (REFERENCE / name).read_bytes()
    return list(csv.DictReader(io.StringIO((gzip.decompress(data) if name.endswith(".gz") else data).decode())))


def series() -> Iterator[Series]:
    """Every series."""
    rows = rows_of("pythia_wikipedia_figure8a.csv")
    S = [float(row["non_embedding_params"]) for row in rows]
    yield Series("Pythia", S, [float(row["cross_entropy_nats"]) for row in rows])
    yield Series("Pythia", S, [-math.log(float(row["rbp_1"])) for row in rows])
    last = {row["run"]: row for row in rows_of("olmo_ladder.csv") if row["role"] == "fit"}
    for text in (name for name in next(iter(last.values())) if name.endswith(("_nats", "_bpb"))):
        for axis, other in (("params", lambda run: run.split("-")[1]), ("tokens", lambda run: run.split("-")[0])):
            for group in sorted({other(run) for run in last}):
                points = [(float(row[axis]), float(row[text])) for run, row in last.items() if other(run) == group]
                yield along("OLMo", points)
    rows = rows_of("gemstones_checkpoints.csv")
    for run in dict.fromkeys(row["run"] for row in rows):
        points = sorted((float(row["tokens"]), float(row["loss_nats"])) for row in rows if row["run"] == run)
        ln_D = np.log([D for D, _ in points])
        nearest = {int(np.abs(ln_D - at).argmin()) for at in np.linspace(ln_D[0], ln_D[-1], 9)}
        yield along("Gemstones", [points[at] for at in nearest])
    best: dict[tuple[float, float], float] = {}
    for row in rows_of("steplaw_dense.csv"):
        cell = float(row["non_embedding_params"]), float(row["training_tokens"])
        best[cell] = min(best.get(cell, math.inf), float(row["smooth_loss"]))
    for axis in (0, 1):
        for value in sorted({cell[1 - axis] for cell in best}):
            yield along("Step Law", [(cell[axis], y) for cell, y in best.items() if cell[1 - axis] == value])
    ends: dict[str, dict[str, str]] = {}
    for row in rows_of("routing_curves.csv.gz"):
        if row["hyper_id"] not in ends or float(row["step"]) > float(ends[row["hyper_id"]]["step"]):
            ends[row["hyper_id"]] = row
    families: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for row in ends.values():
        kind = tuple(row[name] for name in ("num_experts", "k", "router_type", "routing_frequency"))
        families.setdefault(kind, []).append(row)
    for members in families.values():
        for loss in LOSSES:
            with_loss = [row for row in members[::-1] if row[f"loss_{loss}"]]
            known = {float(row["dense_parameter_count"]): float(row[f"loss_{loss}"]) for row in with_loss}
            if known:
                yield along("routing", list(known.items()))


def along(source: str, points: Sequence[tuple[float, float]]) -> Series:
    """Points in order."""
    x, y = zip(*sorted(points), strict=True)
    return Series(source, list(x), list(y))


def foretold(of: Series) -> Iterator[Foretold]:
    """Every larger place of a series from the smallest ones."""
    for m in range(3, len(of.x)):
        for x, y in zip(of.x[m:], of.y[m:], strict=True):
            ends = predict_batch(of.x[:m], [of.y[:m]], x)[0]
            median, lo, hi = np.log(ends).tolist()
            expected = expected_error(Estimate(*ends.tolist()), x / of.x[m - 1]) or math.nan
            decades = math.log10(x / of.x[m - 1])
            yield Foretold(of.source, decades, abs(math.log(y) - median), (hi - lo) / (2 * 1.96) * 0.6745, expected)


def fitted(known: Sequence[Foretold]) -> NDArray[np.float64]:
    """Ln factor and both exponents: least absolute deviations of ln |error|, each source of ten or more alike."""
    counts = Counter(each.source for each in known)
    known = [each for each in known if counts[each.source] >= FEWEST_FORETOLD]
    y, X = np.log([max(each.error, 1e-5) for each in known]), design(known)
    weight = np.array([1 / counts[each.source] for each in known])
    theta = np.linalg.lstsq(X, y, rcond=None)[0]
    for _ in range(100):
        by = weight / np.maximum(np.abs(y - X @ theta), 1e-3)
        theta = np.linalg.solve((X * by[:, None]).T @ X, (X * by[:, None]).T @ y)
    return np.asarray(theta)


def design(known: Sequence[Foretold]) -> NDArray[np.float64]:
    """A constant, ln of the spread, ln of the decades."""
    return np.array([[1, math.log(each.spread), math.log(max(each.decades, 0.1))] for each in known])


def shares(errors: NDArray[np.float64], expected: NDArray[np.float64], decades: NDArray[np.float64]) -> str:
    """The share of errors less than expected, by distance, with the number of predictions."""
    cells = []
    for lo, hi in DECADES:
        there = (decades > lo) & (decades <= hi)
        cells.append(f"{np.mean(errors[there] < expected[there]):.2f} ({there.sum()})" if there.any() else "")
    return " | ".join(cells)


def figure(known: Sequence[Foretold]) -> str:
    """Realised against expected error, as SVG: the medians of each source and distance, and the middle half of errors.

    A cell of fewer than ten predictions is left out.
    """
    cells = []
    for source in dict.fromkeys(each.source for each in known):
        for lo, hi in DECADES:
            there = [each for each in known if each.source == source and lo < each.decades <= hi]
            if len(there) >= FEWEST_FORETOLD:
                low, middle, high = np.quantile([each.error for each in there], (0.25, 0.5, 0.75)).tolist()
                distance = f"beyond {lo:g}" if hi == DECADES[-1][1] else f"{lo:g} to {hi:g}"
                cell = {
                    "source": source,
                    "decades": distance,
                    "expected": float(np.median([e.expected for e in there])),
                }
                cells.append(cell | {"realised": middle, "lo": low, "hi": high})
    ends = [min(min(cell["lo"], cell["expected"]) for cell in cells), max(cell["hi"] for cell in cells)]
    scale = {"type": "log", "domain": ends, "nice": True}
    across = {"field": "expected", "type": "quantitative", "scale": scale, "title": "expected |error|, ln y"}
    colour = {"field": "source", "type": "nominal"}
    spec = {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "width": 420,
        "height": 300,
        "data": {"values": cells},
        "layer": [
            {
                "data": {"values": [{"expected": end, "realised": end} for end in ends]},
                "mark": {"type": "line", "strokeDash": [4, 4], "color": "#888888"},
                "encoding": {"x": across, "y": {"field": "realised", "type": "quantitative", "scale": scale}},
            },
            {
                "mark": "rule",
                "encoding": {
                    "x": across,
                    "y": {"field": "lo", "type": "quantitative", "scale": scale, "title": "realised |error|, ln y"},
                    "y2": {"field": "hi"},
                    "color": colour,
                },
            },
            {
                "mark": {"type": "point", "filled": True, "size": 80},
                "encoding": {
                    "x": across,
                    "y": {"field": "realised", "type": "quantitative", "scale": scale},
                    "color": colour,
                    "shape": {"field": "decades", "type": "nominal"},
                },
            },
        ],
    }
    look = config("light") | {"background": GROUNDS["light"], "padding": 12}
    return str(
        vl_convert.vegalite_to_svg(spec, config=look | {"font": "Liberation Sans, Arial, Helvetica, sans-serif"})
    )


def main(most: int | None, svg: Path | None) -> None:
    """Print the constants, then a line for each source."""
    chosen: dict[str, list[Series]] = {}
    for each in series() if REFERENCE.is_dir() else ():
        if len(each.x) >= FEWEST and len(set(each.x)) == len(each.x):
            chosen.setdefault(each.source, []).append(each)
    known = [one for of in chosen.values() for each in of[:most] for one in foretold(each)]
    print(f"{sum(map(len, chosen.values()))} public series beside the project; constants from all sources:")
    if known:
        factor, of_spread, of_decades = fitted(known)
        print(f"{math.exp(factor):.2f} spread^{of_spread:.2f} decades^{of_decades:.2f}\n")
    print("| source | series | below, to .3 decades | to .6 | to 1 | beyond | ranked by it | by distance |")
    print("|---" * 8 + "|")
    for source, of in chosen.items():
        judged = [each for each in known if each.source == source]
        theta = fitted([each for each in known if each.source != source])
        errors, decades, own = (np.array([each[at] for each in judged]) for at in (2, 1, 4))
        without = np.exp(design(judged) @ theta)
        for title, expected in ((f"{source}, not used", without), (f"{source}, as in use", own)):
            ranked, by_distance = (spearmanr(errors, each)[0] for each in (expected, decades))
            cells = (title, len(of[:most]), shares(errors, expected, decades), f"{ranked:.2f}", f"{by_distance:.2f}")
            print("| " + " | ".join(map(str, cells)) + " |")
    if svg is not None and known:
        svg.write_text(figure(known), encoding="utf-8")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else None, Path(sys.argv[2]) if len(sys.argv) > 2 else None)
