"""Runs under schedules of the learning rate, drawn from a law with known constants or read from the public curves."""

import csv
import gzip
from collections.abc import Mapping

import numpy as np
import pytest

from rbpx.laws.schedule.law import Training
from tests.support.places import SHARED

E, A, ALPHA, C = 2.6, 0.42, 0.5, 0.09
PUBLIC = SHARED / "reference" / "schedules_multipower.csv.gz"


def rates(shape: str = "cosine", steps: int = 24000, warm_up: int = 1000, peak: float = 3e-4) -> np.ndarray:
    """A plan: warm-up, then a cosine to a tenth, also from step 0, the peak held, or let fall in the last sixth."""
    step, end = np.arange(1, steps + 1), 0.1
    along = np.clip((step - warm_up) / (steps - warm_up), 0, 1)
    after = {
        "cosine": end + (1 - end) * (1 + np.cos(np.pi * along)) / 2,
        "cosine from 0": end + (1 - end) * (1 + np.cos(np.pi * step / steps)) / 2,
        "constant": np.ones(steps),
        "wsd": 1 - (1 - end) * np.clip((step - steps * 5 / 6) / (steps / 6), 0, 1),
    }[shape]
    return np.asarray(peak * np.minimum(step / warm_up, 1) * after)


def clocks(rate_T: np.ndarray, peak: float | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Progress and annealing step by step, from their definitions: each fall fades in by itself."""
    share_T = rate_T / (peak or rate_T.max())
    warm_up = next(t for t, share in enumerate(rate_T / rate_T.max()) if share >= 1 - 1e-6)
    x_T, a_T = np.zeros(len(rate_T)), np.zeros(len(rate_T))
    progress, fading, fallen = 0.0, 0.0, 0.0  # of what has fallen, `fading` is not felt yet
    for t, share in enumerate(share_T.tolist()):
        progress += share**0.6 / 1e4
        fall = share_T[t - 1] - share if t > warm_up else 0.0
        fallen, fading = fallen + fall, (fading + fall) * (1 - 1 / 200)
        x_T[t], a_T[t] = progress, fallen - fading
    return x_T, a_T


def losses(
    rate_T: np.ndarray, scatter: float = 0.002, seed: int = 0, peak: float | None = None, up: float = 0.0
) -> np.ndarray:
    """The loss of each step by the known constants, with scatter; `up` more in E."""
    x_T, a_T = clocks(rate_T, peak)
    noise_T = scatter * np.random.default_rng(seed).standard_normal(len(rate_T))
    return np.asarray(E + up + A * x_T**-ALPHA - C * a_T + noise_T)


def run(
    shape: str = "cosine", seed: int = 0, S: float = 1e8, up: float = 0.0, every: int = 100, **plan: float
) -> Training:
    """A run with a state each 100 steps, by the known constants."""
    rate_T = rates(shape, **plan)  # type: ignore[arg-type]
    step_N = np.arange(every, len(rate_T) + 1, every)
    return Training(rate_T, step_N.astype(float), losses(rate_T, seed=seed, up=up)[step_N - 1], S)


def public() -> Mapping[str, Training]:
    """The public curves; a test without them is skipped."""
    if not PUBLIC.is_file():
        pytest.skip(f"{PUBLIC} is not there: the public curves are not beside the project")
    return curves()


def curves() -> dict[str, Training]:
    """The 18 curves of Luo et al. 2025 (arXiv 2503.12811; MIT) by name, with the rates between rows interpolated."""
    rows: dict[str, list[tuple[float, float, float]]] = {}
    with gzip.open(PUBLIC, "rt") as lines:
        for row in csv.DictReader(lines):
            values = (float(row["step"]), float(row["lr"]), float(row["loss_nats"]))
            rows.setdefault(f"{row['size']} {row['schedule']}", []).append(values)
    found = {}
    for name, values_ in rows.items():
        step_N, lr_N, loss_N = np.array(values_).T
        rate_T = np.interp(np.arange(1, step_N[-1] + 1), np.r_[0, step_N], np.r_[0, lr_N])
        found[name] = Training(rate_T, step_N, loss_N, float(name.split("M")[0]) * 1e6)
    return found
