"""Measures predictions along one axis over public series: how many hold, and what other sources would say of them.

Each series is predicted at every larger size (or number of tokens) from its smallest ones, from three up. The Winkler
score is the width of the 95 % interval in ln y and 40 times how far outside of it the value lies. The factor of a
source would make 95 % of its values lie inside; beside it stands that of all other sources, each counting alike. Last
stands the share of errors below an expected error: the share of the interval that half of the errors of other sources
are below.

Sources, from `../shared/reference`: Pythia on Wikipedia; OLMo's ladder by text, along size at each ratio of tokens and
along tokens at each size; the Gemstones, each run along tokens, eight or nine checkpoints; Step Law's best runs; models
with routing (arXiv 2202.01169) along the size of their dense part, by number of experts and loss. Left out are series
of fewer than four places, and of routing those sizes of one family that occur twice.

    python benchmarks/public_series.py [SERIES, at most so many of a source]
"""

import csv
import gzip
import io
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.support.predictions import predict_batch

REFERENCE = Path(__file__).resolve().parent.parent.parent / "shared" / "reference"
FEWEST = 4  # places of a series
FEWEST_PREDICTED = 10  # of a source, for it to say something of others
LOSSES = ("c4", "curation_corpus", "lambada", "pile", "validation", "wikitext103")


class Series(NamedTuple):
    """Values of one quantity along one axis."""

    source: str
    x: list[float]
    y: list[float]


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


class Predicted(NamedTuple):
    """One prediction: from how many places, |error| in ln y, and the interval on its side and in all."""

    source: str
    m: int
    error: float
    half: float
    width: float


def predicted(of: Series) -> Iterator[Predicted]:
    """Every larger place of a series from the smallest ones."""
    for m in range(3, len(of.x)):
        for x, y in zip(of.x[m:], of.y[m:], strict=True):
            median, lo, hi = np.log(predict_batch(of.x[:m], [of.y[:m]], x)[0]).tolist()
            half = hi - median if math.log(y) > median else median - lo
            yield Predicted(of.source, m, abs(math.log(y) - median), half, hi - lo)


def quantile(values: list[list[float]], share: float) -> float:
    """The quantile of several lists, each counting alike."""
    of = np.concatenate(values)
    weight = np.concatenate([np.full(len(each), 1 / len(each)) for each in values])
    order = np.argsort(of)
    return float(of[order][np.searchsorted(np.cumsum(weight[order]), share * weight.sum())])


def main(most: int | None) -> None:
    """Print a line for each source, from three places and from more."""
    chosen: dict[str, list[Series]] = {}
    for each in series() if REFERENCE.is_dir() else ():
        if len(each.x) >= FEWEST and len(set(each.x)) == len(each.x):
            chosen.setdefault(each.source, []).append(each)
    known = [one for of in chosen.values() for each in of[:most] for one in predicted(each)]
    print("| source | from | n | inside | Winkler | error | its own factor | that of others | below expected |")
    print("|---" * 9 + "|")
    for source in chosen:
        of_others = [[each for each in known if each.source == name] for name in chosen if name != source]
        of_others = [of for of in of_others if len(of) >= FEWEST_PREDICTED]
        others = [[each.error / each.half for each in of] for of in of_others]
        shares = [[each.error / each.width for each in of] for of in of_others]
        for title, is_few in (("three", True), ("more", False)):
            own = [each for each in known if each.source == source and (each.m == 3) is is_few]
            if not own or not others:
                continue
            error, half, width = (np.array([each[at] for each in own]) for at in (2, 3, 4))
            winkler = float(np.mean(width + 40 * np.maximum(error - half, 0)))
            cells = [f"{np.mean(error <= half):.3f}", f"{winkler:.3f}", f"{np.median(error):.4f}"]
            cells += [f"{quantile([(error / half).tolist()], 0.95):.2f}", f"{quantile(others, 0.95):.2f}"]
            below = float(np.mean(error < quantile(shares, 0.5) * width))
            print(f"| {source} | {title} | {len(own)} | " + " | ".join(cells) + f" | {below:.2f} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else None)
