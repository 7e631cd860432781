"""The bundled ladder is what its recipe says."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from omegaconf import OmegaConf
from safetensors import safe_open

from experiments.ladder.train import token_count
from tests.support.ladder import SIZES, bundled_folder, tokenizer_folder
from tests.support.places import CONF, EXPERIMENTS, LADDER

STUDY = OmegaConf.load(EXPERIMENTS / "ladder" / "ladder.yaml")


def facts_of(folder: Path) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads((folder / "training.json").read_text())
    return facts


def finished_folders(size: str) -> list[Path]:
    """The finished models of a size, by their tokens."""
    names = [None, *(name for name in SIZES[size].get("revisions", ()) if not name.startswith("raw-"))]
    return sorted((bundled_folder(size, name) for name in names), key=lambda folder: facts_of(folder)["tokens"])


def test_the_ladder_has_seven_sizes_over_three_orders_of_magnitude_in_thirty_megabytes() -> None:
    counts = [size["non_embedding_params"] for size in SIZES.values()]
    assert len(counts) >= 7
    assert max(counts) / min(counts) > 900
    assert sum(path.stat().st_size for path in LADDER.rglob("*") if path.is_file()) <= 30e6


def test_every_bundled_model_is_in_a_family_and_nothing_else_is_bundled() -> None:
    """Each folder of weights is of the ladder, or of the further seeds of its small sizes."""
    named = {bundled_folder(size, name) for size, of in SIZES.items() for name in (None, *of.get("revisions", ()))}
    seeds = CONF / "model" / "ladder-seeds.yaml"
    if seeds.is_file():
        entries = OmegaConf.to_container(OmegaConf.load(seeds))["sizes"]  # type: ignore[index,call-overload]
        named |= {LADDER.parent / entry["id"].removeprefix("rbpx:") for entry in entries.values()}
    assert {path.parent for path in LADDER.rglob("model.safetensors")} == named


@pytest.mark.parametrize("size", SIZES)
def test_a_bundled_model_is_what_the_family_says(size: str) -> None:
    # One layer has 12 d^2 + 13 d parameters, the last norm 2 d: S by hand.
    d, layers = STUDY.shapes[size].hidden, STUDY.shapes[size].layers
    assert SIZES[size]["non_embedding_params"] == layers * (12 * d * d + 13 * d) + 2 * d
    for folder in [bundled_folder(size, name) for name in (None, *SIZES[size].get("revisions", ()))]:
        config = json.loads((folder / "config.json").read_text())
        assert (config["model_type"], config["max_position_embeddings"], config["tie_word_embeddings"]) == (
            "gpt_neox",
            512,
            True,
        )
        assert (config["hidden_size"], config["num_hidden_layers"]) == (d, layers)
        with safe_open(folder / "model.safetensors", "pt") as weights:
            shapes = {name: weights.get_slice(name) for name in weights.keys()}
            assert {part.get_dtype() for part in shapes.values()} == {"BF16"}
            numbers = [int(np.prod(part.get_shape())) for name, part in shapes.items() if "embed" not in name]
        assert sum(numbers) == SIZES[size]["non_embedding_params"]
        assert not folder.name.startswith("raw-") or facts_of(folder)["variant"] == "raw"


def test_every_size_saw_the_same_tokens_with_one_tokenizer_and_bigger_is_better() -> None:
    facts = [facts_of(bundled_folder(size)) for size in SIZES]
    assert {fact["tokens"] for fact in facts} == {token_count(STUDY.tokens) // (16 * 512) * 16 * 512}
    losses = [fact["final_loss_nats"] for fact in facts]
    assert losses == sorted(losses, reverse=True)
    tokenizers = {tokenizer_folder(bundled_folder(size)) / "tokenizer.json" for size in SIZES}
    assert len({path.read_bytes() for path in tokenizers}) == 1


@pytest.mark.parametrize("size", SIZES)
def test_more_tokens_are_better(size: str) -> None:
    facts = [facts_of(folder) for folder in finished_folders(size)]
    losses = [fact["final_loss_nats"] for fact in facts]
    assert losses == sorted(losses, reverse=True)
    assert {fact.get("variant") for fact in facts} == {None}


def test_the_study_records_the_text_the_cost_and_the_curves_of_what_is_shipped() -> None:
    shipped, study = json.loads((LADDER / "text.json").read_text()), STUDY.study
    assert study.text_hash == shipped["text_hash"]
    assert {p["name"]: p["version"] for p in shipped["packages"]} == dict(STUDY.text.packages)
    assert all(p["licence"] for p in shipped["packages"])
    for size in SIZES:
        for folder in finished_folders(size):
            facts = facts_of(folder)
            of_size = study.sizes[size]
            recorded = of_size[folder.name] if folder.parent.name == size else of_size  # one model a size lies in it
            assert recorded.final_loss_nats == pytest.approx(facts["final_loss_nats"], abs=0.001)
            assert recorded.wall_s == pytest.approx(facts["wall_s"], abs=1)
