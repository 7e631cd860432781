"""Distributions of ranks and the entropy of errors: how often intervals hold the truth, and what stays in the store."""

import json
from pathlib import Path

import numpy as np

from rbpx.config.request import Request
from rbpx.questions.entropy.ask import answer as entropy
from rbpx.runs.select.sizes import select
from rbpx.store.sql import connect
from tests.support.commands import here
from tests.support.drawn_answers import of_rank_distributions
from tests.support.synthetic import Truth, V, write_store


def test_jackknife_and_extrapolation_stand_on_either_side_of_the_true_entropy(tmp_path: Path) -> None:
    """The entropy of the law that the ranks are drawn from, by its exact sum; ten draws of ranks for one size."""
    truth = Truth(S=(1_000_000,), shared=0.0, beta=0.7)
    p = np.diff(np.exp(-truth.C * 1e6**-truth.alpha * np.arange(1, V) ** -truth.beta), prepend=0.0)
    p = np.append(p, 1 - p.sum())
    true = float(-np.sum(p[p > 0] * np.log(p[p > 0])))
    below, above, plug_in = [], [], []
    for seed in range(10):
        store = write_store(tmp_path / str(seed), truth, seed, n_documents=100, n_tokens=100)
        with connect(store) as connection:
            (group,) = select(connection, Request())
            found = entropy(connection, group, Request(resamples=20)).rows[0]
        below.append(found["error_entropy_jackknife_nats"])
        above.append(found["error_entropy_extrapolated_nats"])
        plug_in.append(found["error_entropy_nats"])
    assert np.mean(plug_in) < np.mean(below) < true < np.mean(above)
    assert true - np.mean(below) < 0.7 * (true - np.mean(plug_in))


def test_intervals_over_documents_hold_the_truth_as_often_as_they_say() -> None:
    held = of_rank_distributions(200)
    assert all(178 <= n <= 198 for n in held.values()), held


def test_the_distributions_stay_in_the_store_whatever_is_fitted_later(tmp_path: Path, cwd: Path) -> None:
    sizes = (1_000, 30_000, 1_000_000, 30_000_000)
    store = write_store(tmp_path / "store", Truth(S=sizes, shared=0.1), seed=3, n_documents=60, n_tokens=200).root
    query = (
        "SELECT distribution, (params->>'$.nats_behind')::DOUBLE AS behind, params->>'$.neg_ln_rbp_1' AS derived "
        "FROM rank_fits WHERE ties = 'pessimistic'"
    )
    for verb in ("ranks", "fit"):
        here(verb, "resamples=50", "--store", store, cwd=cwd, check=0)
    kept = json.loads(here("sql", query, "--store", store, "--format", "json", cwd=cwd, check=0).stdout)
    assert len(kept) == 4 * 8
    assert all(row["behind"] is not None for row in kept if row["distribution"] == "power_law")
    assert all(row["derived"] is not None for row in kept if row["distribution"] == "lognormal_paper")
