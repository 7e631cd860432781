"""A ladder of Mamba-2 models: what a shape holds, a training that goes on, ranks as a plain loop has them."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from rbpx.config.recipe import LadderSize, Mamba2Size, Recipe
from rbpx.errors import RbpxError
from rbpx.models.architecture import non_embedding_params, total_params
from rbpx.train.design import total_params as planned_params
from rbpx.train.model import build_model
from tests.support.commands import here
from tests.support.trainings import KEYS, a_site, assert_same, written

MAMBA = "+shapes.tiny={architecture: mamba2, hidden: 8, layers: 2, heads: 2, state: 4, chunk: 8}"


@pytest.fixture
def words(tmp_path: Path, small_evaluation: str) -> tuple[str, ...]:
    """Keys of a ladder of one tiny Mamba-2."""
    site = a_site(tmp_path / "site", {"corpus/own.py": written(6000, "matrix")[:95_000]})
    return ("train", f"text.site={site}", *(MAMBA if "shapes" in key else key for key in KEYS))


@pytest.mark.parametrize(
    "shape",
    [
        Mamba2Size(16, 1, 2),
        Mamba2Size(24, 3, 4, state=5, expand=3, convolution=3, chunk=64),
        LadderSize(24, 2, 2),
    ],
)
def test_the_parameters_of_a_shape_are_those_of_the_model_that_is_built(shape: Mamba2Size | LadderSize) -> None:
    recipe = Recipe(vocab_size=50, shapes={"one": shape})
    with torch.device("meta"):
        model = build_model(recipe, shape, 0)
    assert shape.non_embedding_params == non_embedding_params(model)
    assert planned_params(recipe, shape) == total_params(model)


def test_s_of_a_mamba_2_is_counted_by_hand() -> None:
    """Two layers of width 3, inner width 6, two heads, a state of 5: 16 channels go through the convolution."""
    projections, convolution, of_heads, norms = 3 * (6 + 16 + 2) + 6 * 3, 16 * 4 + 16, 3 * 2, 6 + 3
    shape = Mamba2Size(3, 2, 2, state=5)
    assert shape.non_embedding_params == 2 * (projections + convolution + of_heads + norms) + 3


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"architecture": "rnn"}, r"shapes\.a\.architecture=rnn is not built here; known: gpt_neox, mamba2"),
        ({"architecture": "mamba2"}, r"shapes\.a\.heads=3 cannot share the inner width 16 .* give a divisor of it"),
    ],
)
def test_a_shape_that_cannot_be_built_is_refused(fields: dict[str, str], message: str) -> None:
    with pytest.raises(RbpxError, match=message):
        Recipe(shapes={"a": {"hidden": 8, "layers": 1, "heads": 3, **fields}})


def test_a_mamba_2_trained_in_two_goes_is_that_of_one_and_its_ranks_are_those_of_a_plain_loop(
    words: tuple[str, ...], cwd: Path, tmp_path: Path
) -> None:
    whole, grown = tmp_path / "whole", tmp_path / "grown"
    here(*words, "tokens=2560", "budgets=[1280]", f"output={whole}", cwd=cwd, check=0)
    shutil.copytree(whole / "text", grown / "text")
    here(*words, "tokens=1280", f"output={grown}", cwd=cwd, check=0)
    here(*words, "tokens=2560", f"output={grown}", cwd=cwd, check=0)
    assert_same(whole, grown)

    folder, text = whole / "tiny" / "2.56k", written(2, "ring")
    facts, shape = json.loads((folder / "training.json").read_text()), Mamba2Size(8, 2, 2, state=4, chunk=8)
    assert facts["training_flops"] == 6 * (300 * 8 + shape.non_embedding_params) * 2560
    (tmp_path / "text.txt").write_text(text)
    of = ("--config-dir", whole, "model=whole", "dataset=file", f"dataset.path={tmp_path / 'text.txt'}")
    store = ("--store", tmp_path / "store")
    here("measure", *of, *store, cwd=cwd, check=0)
    columns = "non_embedding_params AS S, position, token_id, greater, ties, logprob"
    query = f"SELECT {columns} FROM tokens JOIN runs USING (run_id) ORDER BY position"
    rows = json.loads(here("sql", query, "--format", "json", *store, cwd=cwd, check=0).stdout)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    ids = AutoTokenizer.from_pretrained(folder)(text)["input_ids"][: len(rows) + 1]
    assert {row["S"] for row in rows} == {shape.non_embedding_params}
    with torch.no_grad():
        for row in rows:  # each token from its own context, read anew
            logits = model(torch.tensor([ids[: row["position"]]])).logits[0, -1].double().numpy()
            true = logits[row["token_id"]]
            margin = 1e-4 * np.abs(logits).max()
            greater, equal = (logits > true + margin).sum(), (np.abs(logits - true) <= margin).sum() - 1
            assert row["token_id"] == ids[row["position"]]
            assert greater <= row["greater"] <= row["greater"] + row["ties"] <= greater + equal
            assert row["logprob"] == pytest.approx(true - np.log(np.exp(logits).sum()), abs=1e-4)
