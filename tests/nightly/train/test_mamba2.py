"""A ladder of Mamba-2 models: what a shape holds, a training that goes on, ranks as a plain loop has them."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from omegaconf import OmegaConf
from transformers import AutoModelForCausalLM, AutoTokenizer

from experiments.ladder.model import build_model
from rbpx.models.architecture import non_embedding_params
from tests.support.commands import here
from tests.support.trainings import MAMBA_2, a_site, assert_same, recipe_file, trained, written


def test_s_of_a_mamba_2_is_counted_by_hand() -> None:
    """Two layers of width 4, inner width 8, two heads, a state of 16: 40 channels go through the convolution of 4."""
    projections, convolution, of_heads, norms = 4 * (8 + 40 + 2) + 8 * 4, 40 * 4 + 40, 3 * 2, 8 + 4
    shape = OmegaConf.create({"architecture": "mamba2", "hidden": 4, "layers": 2, "heads": 2})
    with torch.device("meta"):
        model = build_model(OmegaConf.create({"vocab_size": 50, "context": 32}), shape, 0)
    assert non_embedding_params(model) == 2 * (projections + convolution + of_heads + norms) + 4


def test_a_mamba_2_trained_in_two_goes_is_that_of_one_and_its_ranks_are_those_of_a_plain_loop(
    cwd: Path, tmp_path: Path, small_evaluation: str
) -> None:
    whole, grown = tmp_path / "whole", tmp_path / "grown"
    site = a_site(tmp_path / "site", {"corpus/own.py": written(6000, "matrix")[:95_000]})
    trained(
        "--recipe", recipe_file(tmp_path, site, MAMBA_2, budgets={"tiny": [1280]}), "tokens=2560", f"output={whole}"
    )
    shutil.copytree(whole / "text", grown / "text")
    path = recipe_file(tmp_path, site, MAMBA_2)
    trained("--recipe", path, "tokens=1280", f"output={grown}")
    trained("--recipe", path, "tokens=2560", f"output={grown}")
    assert_same(whole, grown)

    folder, text = whole / "tiny" / "2.56k", written(2, "ring")
    facts = json.loads((folder / "training.json").read_text())
    S = 2 * (8 * (16 + 48 + 2) + 16 * 8 + 48 * 5 + 3 * 2 + 16 + 8) + 8
    assert facts["training_flops"] == 6 * (300 * 8 + S) * 2560
    (tmp_path / "text.txt").write_text(text)
    of = ("--config-dir", whole, "model=whole", "dataset=file", f"dataset.path={tmp_path / 'text.txt'}")
    store = ("--store", tmp_path / "store")
    here("measure", *of, *store, cwd=cwd, check=0)
    columns = "non_embedding_params AS S, position, token_id, greater, ties, logprob"
    query = f"SELECT {columns} FROM tokens JOIN runs USING (run_id) ORDER BY position"
    rows = json.loads(here("sql", query, "--format", "json", *store, cwd=cwd, check=0).stdout)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    ids = AutoTokenizer.from_pretrained(folder)(text)["input_ids"][: len(rows) + 1]
    assert {row["S"] for row in rows} == {S}
    with torch.no_grad():
        for row in rows:  # each token from its own context, read anew
            logits = model(torch.tensor([ids[: row["position"]]])).logits[0, -1].double().numpy()
            true = logits[row["token_id"]]
            margin = 1e-4 * np.abs(logits).max()
            greater, equal = (logits > true + margin).sum(), (np.abs(logits - true) <= margin).sum() - 1
            assert row["token_id"] == ids[row["position"]]
            assert greater <= row["greater"] <= row["greater"] + row["ties"] <= greater + equal
            assert row["logprob"] == pytest.approx(true - np.log(np.exp(logits).sum()), abs=1e-4)
