"""The longest input of a model is found by whatever name, and models of every architecture do what the table says."""

from importlib.metadata import version
from pathlib import Path

import pytest
import torch

from rbpx.models.architecture import read_architecture
from rbpx.models.load import load_model
from tests.support.architectures import tiny_config
from tests.support.census import beyond, default_context, read_table, save_tiny
from tests.support.checkpoints import CONTEXT
from tests.support.places import PROJECT

ROWS = {row["architecture"]: row for row in read_table()}
# A position that MPT and GPT-2 have not is an error, StableLM goes on with its rotations; RoBERTa begins to count after
# the padding's row; Qwen 3.5 nests its text model; Bloom's biases and Mamba's scan have no end.
CONTEXTS = {
    "mpt": (CONTEXT, "fails"),
    "gpt2": (CONTEXT, "fails"),
    "roberta": (CONTEXT - 1, "fails"),
    "stablelm": (CONTEXT, "reads on"),
    "qwen3_5": (CONTEXT, "reads on"),
    "bloom": (None, "no limit"),
    "mamba": (None, "no limit"),
}


@pytest.mark.parametrize("model_type", CONTEXTS)
def test_the_context_is_the_longest_input_that_a_model_reads(model_type: str, tmp_path: Path) -> None:
    save_tiny(model_type, tmp_path)
    loaded = load_model(str(tmp_path), None, "float32", torch.device("cpu"))
    assert (loaded.context, beyond(loaded)) == CONTEXTS[model_type]
    planned = read_architecture(tmp_path)
    assert planned.context == loaded.context, "a plan cuts the same windows"


def test_a_length_that_is_none_is_not_taken_for_one() -> None:
    config = tiny_config("xlnet")
    assert config.max_position_embeddings == -1
    planned = read_architecture({"model_type": "xlnet", "d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 64})
    assert planned is None or planned.context is None


def test_positions_of_an_images_encoder_are_not_those_of_the_text() -> None:
    """GIT reads images as 14 x 14 patches and one token more."""
    assert default_context("git") == "1024"


# ------------------------------------------------------------------------------------------------- the table of all


def test_the_table_has_every_architecture_of_the_tested_transformers() -> None:
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    if f"transformers=={version('transformers')}\n" not in (PROJECT / "constraints.txt").read_text():
        pytest.skip("the table is of the version of constraints.txt")
    assert {name: row["model"] for name, row in ROWS.items()} == dict(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)


def test_every_head_that_is_known_in_float32_is_known_in_16_bits() -> None:
    measured = {name: row for name, row in ROWS.items() if row["head"] and not row["refused"]}
    assert len(measured) > 100
    assert not [name for name, row in measured.items() if row["head"] == "unknown"]
    other = {name: row["in_16_bits"] for name, row in measured.items() if row["in_16_bits"] != row["head"]}
    assert set(other) == {"deepseek_v4", "xlstm"}, "whose own code fails in 16 bits, xlstm's beyond a chunk of tokens"
    assert all("RuntimeError" in told for told in other.values())
