"""The temperature that a text prefers: a float64 search over the same tokens, and the curve of losses."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from transformers import AutoModelForCausalLM, AutoTokenizer

from rbpx.laws.temperature import loss_at, minimum
from rbpx.questions.registry import question
from rbpx.store.messages import collected_messages
from rbpx.store.store import Store
from tests.support.asking import ask, request
from tests.support.stores import SHAPES, Measured, columns_of, runs_by_size


def logits_by_hand(folder: Path, store: Path, run: dict[str, Any], text: Path) -> tuple[Any, Any]:
    """Float64 logits [N, V] and targets of the scored tokens of a run, by a plain loop over its documents."""
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder).double()
    lines = [json.loads(line)["text"] for line in text.read_text(encoding="utf-8").splitlines()]
    documents = columns_of(store / "runs" / run["run_id"], "documents")
    numbers = [int(str(source_id).rpartition(":")[2]) - 1 for source_id in documents["source_id"]]
    texts = dict(zip(documents["doc_id"].tolist(), (lines[n] for n in numbers), strict=True))
    logits, targets = [], []
    for doc_id in np.unique(run["doc_id"]):
        ids = tokenizer(texts[doc_id])["input_ids"][:64]
        mine = run["doc_id"] == doc_id
        assert [ids[position] for position in run["position"][mine]] == run["token_id"][mine].tolist()
        with torch.inference_mode():
            of_document = model(torch.tensor([ids])).logits[0].numpy()
        logits.append(of_document[run["position"][mine] - 1])
        targets.append(run["token_id"][mine])
    return np.concatenate(logits), np.concatenate(targets)


def cross_entropy(z: Any, targets: Any, beta: float) -> float:
    top = z.max(axis=1)
    ln_Z = beta * top + np.log(np.exp(beta * (z - top[:, None])).sum(axis=1))
    return float(np.mean(ln_Z - beta * z[np.arange(len(z)), targets]))


def test_temperatures_and_losses_are_those_of_a_float64_search(own_store: Path, measured: Measured) -> None:
    with collected_messages():
        question("temperature").measure(request(own_store, resamples=50))
    asked = ask(own_store, "temperature", resamples=50)
    found = asked.rows
    of_run = {row["size"]: row for row in found if row["kind"] == "run"}
    assert list(of_run) == list(SHAPES)
    for size, run in runs_by_size(own_store).items():
        z, targets = logits_by_hand(measured.family.folders[size], own_store, run, measured.family.text)
        best = minimize_scalar(lambda b, z=z, t=targets: cross_entropy(z, t, b), bounds=(0.125, 2.0), method="bounded")
        row = of_run[size]
        assert row["cross_entropy_nats"] == pytest.approx(cross_entropy(z, targets, 1.0), abs=1e-6)
        assert row["cross_entropy_nats"] == pytest.approx(-run["logprob"].mean(dtype=np.float64), abs=1e-6)
        least = min(best.fun, cross_entropy(z, targets, 0.125), cross_entropy(z, targets, 2.0))
        assert row["cross_entropy_at_temperature_nats"] == pytest.approx(least, abs=1e-6)
        if row["status"] == "ok":
            assert row["temperature"] == pytest.approx(1 / best.x, abs=1e-3)
            assert row["temperature_lo"] < row["temperature"] < row["temperature_hi"]
        else:
            assert min(abs(best.x - 0.125), abs(best.x - 2.0)) < 1e-3
    (raw, law) = [row for row in found if row["kind"] == "law"]
    assert (raw["law"], law["law"]) == ("cross_entropy", "cross_entropy_at_temperature")
    S = [of_run[size]["S"] for size in SHAPES]
    for row, name in ((raw, "cross_entropy_nats"), (law, "cross_entropy_at_temperature_nats")):
        y = [of_run[size][name] for size in SHAPES]
        assert row["alpha"] == pytest.approx(-np.polyfit(np.log(S), np.log(y), 1)[0], rel=1e-9)
    assert law["params"]["alpha_difference"] == pytest.approx(law["alpha"] - raw["alpha"], rel=1e-6)
    (first, *shown), last = asked.table(100, details=False).splitlines(), list(of_run.values())[-1]
    assert (
        f"the exponent of cross-entropy is {law['alpha']:.4f} instead of {raw['alpha']:.4f}, a difference of" in first
    )
    T = last["temperature"]
    assert (
        f"{last['size']} prefers" in first if T is None else f"{last['size']} does best at T = {T:.3f} (95 %:" in first
    )
    assert max(len(line) for line in shown if line.startswith(" ")) <= 100
    kept = [record["fit_id"] for record in Store(own_store).records("fits") if record["law"] == law["law"]]
    assert kept == [law["fit_id"]]


def test_the_minimum_between_nodes_is_that_of_the_function() -> None:
    """Losses with a known minimum: ln(exp(b) + m exp(-3 b)) - q b has one where its slope, a tanh, is q."""
    beta_J = np.arange(1, 17) / 8
    m, q = 40.0, np.array([-1.9, -0.7, 0.2, 0.8])
    share = 1 / (1 + m * np.exp(-4 * beta_J))
    loss = np.log(np.exp(beta_J) + m * np.exp(-3 * beta_J))[None] - q[:, None] * beta_J
    curves = np.stack([loss, (4 * share - 3)[None] - q[:, None], np.tile(16 * share * (1 - share), (4, 1))], axis=1)
    beta, least = minimum(curves, beta_J)
    chance = (q + 3) / 4
    exact = np.log(m * chance / (1 - chance)) / 4
    np.testing.assert_allclose(beta, exact, atol=1e-6)
    np.testing.assert_allclose(least, np.log(np.exp(exact) + m * np.exp(-3 * exact)) - q * exact, atol=1e-9)
    np.testing.assert_allclose(loss_at(beta_J, curves[0], beta_J), loss[0], rtol=1e-12)


def test_a_loss_that_falls_to_an_end_is_least_there_and_an_unknown_one_nowhere() -> None:
    beta_J = np.arange(1, 17) / 8
    curves = np.array([[beta_J**2, 2 * beta_J, 0 * beta_J + 2], [-beta_J, 0 * beta_J - 1, 0 * beta_J]])
    beta, least = minimum([*curves, np.full_like(curves[0], np.nan)], beta_J)
    np.testing.assert_allclose(beta, [0.125, 2.0, np.nan])
    np.testing.assert_allclose(least, [0.125**2, -2.0, np.nan])
