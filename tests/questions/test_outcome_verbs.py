"""The question `outcomes`, on stores that were drawn."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.asking import Asked, Rows, ask
from tests.support.composed import here
from tests.support.stores import columns_of
from tests.support.synthetic import Truth, write_store


@pytest.fixture(scope="module")
def independent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tokens that share no luck."""
    root = tmp_path_factory.mktemp("independent") / "store"
    write_store(root, Truth(shared=0.0), seed=5, n_documents=200, n_tokens=60)
    return root


@pytest.fixture(scope="module")
def gathered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tokens that share a quarter of their luck with their document."""
    root = tmp_path_factory.mktemp("gathered") / "store"
    write_store(root, Truth(shared=0.25), seed=6, n_documents=400, n_tokens=120)
    return root


@pytest.fixture(scope="module")
def asked(gathered: Path) -> Asked:
    return ask(gathered, "outcomes", k=[10, 100], n=[1, 2, 5, 10], resamples=50)


def laws(found: Rows) -> dict[tuple[int | None, str], dict[str, Any]]:
    return {(row["n"], row["correction"]): row for row in found if row["kind"] == "law"}


# --------------------------------------------------------------------------------------------------------- outcomes


def test_a_kept_law_is_fitted_again_from_the_counts_that_it_carries(gathered: Path, asked: Asked, cwd: Path) -> None:
    law = laws([row for row in asked.rows if row["k"] == 10])[None, "free"]
    shown = json.loads(here("show", law["fit_id"], "--store", gathered, cwd=cwd, check=0).stdout)
    assert shown["reproduced"]["alpha"] == pytest.approx(law["alpha"], rel=1e-9)
    assert shown["reproduced"]["largest_relative_difference"] <= 1e-9


def test_independent_tokens_come_back_at_every_length(independent: Path) -> None:
    found = ask(independent, "outcomes", k=10, n=[1, 2, 5], resamples=100).rows
    told = laws(found)
    assert len(told) == 3 + 1 + 3 + 1  # each N and all of them; the same but N = 1 corrected; one r for all
    for law in told.values():
        assert (law["law"], law["method"], law["status"]) == ("rbp", "mle", "ok")
        assert law["alpha_lo"] < 0.1 < law["alpha_hi"]
    for row in (row for row in found if row["kind"] == "rbp"):
        truth = math.exp(-4 * row["non_embedding_params"] ** -0.1 * 10**-0.35)
        assert row["rbp"] == pytest.approx(truth, abs=0.04)
        assert row["rbp_lo"] < row["rbp"] < row["rbp_hi"]
    assert told[None, "free"]["params"]["r"] < 0.02


def test_the_correlation_of_gathered_hits_is_fitted_as_it_is_counted(asked: Asked) -> None:
    told = laws([row for row in asked.rows if row["k"] == 10])
    of_five = [row for row in asked.of_kind("outcomes") if row["k"] == 10 and row.get("n") == 5 and "size" in row]
    correlation = np.mean([row["correlation"] for row in of_five])
    assert told[None, "free"]["params"]["r"] == pytest.approx(correlation, abs=0.02)
    bias = {correction: told[None, correction]["params"]["bias_against_tokens"] for correction in ("none", "measured")}
    assert abs(bias["measured"]["value"]) < abs(bias["none"]["value"]) / 2


# --------------------------------------------------------------------------------------------------------- learners


def test_what_is_learned_from_outcomes_is_judged_by_the_true_hits(gathered: Path) -> None:
    found = ask(gathered, "outcomes", k=10, n=[1, 4], resamples=50).of_kind("learner")
    one, four = found
    assert [(row["learner"], row["n"]) for row in found] == [("outcomes", 1), ("outcomes", 4)]
    tokens = columns_of(gathered / "runs" / one["run_ids"][0], "tokens")
    scored = tokens["position"] > 1  # the first of a document has none before it
    assert one["rbp"] == pytest.approx(float(np.mean(tokens["greater"][scored] + 1 <= 10)), rel=1e-12)
    p = one["rbp"]
    of_share = -p * math.log(p) - (1 - p) * math.log(1 - p)  # the loss of one chance for all tokens
    assert one["log_loss_nats"] < four["log_loss_nats"] < of_share  # sequences of one token are labels
    assert one["told_nats"] == pytest.approx(one["log_loss_nats"], rel=1e-9)  # as each label is an outcome
    assert four["auc_lo"] > 0.5  # luck is shared with the smaller model's document
    assert abs(four["excess"]) < (p - p**4) / 4  # each token with the outcome of its sequence is off by all of it
    assert "ln_frequency" not in one["coefficients"]  # one token id only: no feature
