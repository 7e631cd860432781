"""How often the intervals of laws in size, in k and of predictions hold the truth, over stores that are drawn."""

import math
from pathlib import Path

import numpy as np

from rbpx.config.request import Request
from rbpx.questions.fit import analysis as fit
from rbpx.questions.klaw.ask import answer as klaw
from rbpx.questions.predict.ask import answer as predict
from rbpx.runs.select.sizes import select
from rbpx.store.sql import connect
from tests.support.synthetic import Truth, write_store


def of_laws(n_draws: int, folder: Path, truth: Truth) -> list[dict[str, bool]]:
    """For each of some stores, which intervals hold the truth: of alpha at each k, of k for size, of a prediction."""
    at_100m, found = truth.C * 1e8**-truth.alpha, []
    for seed in range(n_draws):
        with connect(write_store(folder / str(seed), truth, seed)) as connection:
            request = Request(resamples=200, k=[1, 10, 100], laws=["rbp"])
            (group,) = select(connection, request)
            laws = fit.analyse(connection, group, request).laws
            covered = {f"alpha {law.k}": _holds(law.fit.alpha.lo, law.fit.alpha.hi, truth.alpha) for law in laws}
            true_factor = 10 ** (truth.beta / truth.alpha)
            of_k = [law for law in klaw(connection, group, Request(resamples=200)).rows if law["law"] == "k_law"]
            for law in of_k[1:-1]:
                worth = law["params"]["exchange"]
                covered[f"exchange {law['size']}"] = _holds(worth["lo"], worth["hi"], true_factor)
            far = predict(connection, group, Request(resamples=200, k=1, laws=["rbp"], S=1e8)).rows[0]
        new = at_100m * math.exp(np.random.default_rng([seed, 1]).normal(0, truth.scatter))  # it scatters too
        found.append(covered | {"prediction": far["lo"] <= new <= far["hi"]})
    return found


def _holds(lo: float | None, hi: float | None, value: float) -> bool:
    return (lo is None or lo <= value) and (hi is None or value <= hi)
