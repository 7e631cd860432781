"""The families of conf/model: S counted from each shape, by formula and in the reference tables; revisions."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from omegaconf import OmegaConf

from rbpx.models.architecture import non_embedding_params, total_params
from tests.support.commands import here
from tests.support.families import NAMES, read_family
from tests.support.formulas import FORMULAS, of_gpt


def build(shape: dict[str, Any]) -> Any:
    from transformers import AutoConfig, AutoModelForCausalLM

    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**shape))
    assert {parameter.device.type for parameter in model.parameters()} == {"meta"}
    return model


@pytest.mark.parametrize("name", NAMES)
def test_every_size_has_the_S_of_its_shape(name: str) -> None:
    family = read_family(name)
    assert family.family == name
    for size, config in family.sizes.items():
        shape = family.shape_of(size)
        model = build(shape)
        unknown = sorted(key for key in shape if not hasattr(model.config, key))
        assert not unknown, f"{name} {size}: {unknown} of the shape is no key of the configuration"
        assert non_embedding_params(model) == config.non_embedding_params, f"{name} {size}"
        assert FORMULAS[shape["model_type"]](shape) == config.non_embedding_params, f"{name} {size}, by formula"


# All parameters as others counted them: presets of keras-hub and of RWKV's Keras port; for 176b, the model card.
PUBLISHED_TOTALS = {
    ("bloom", "560m"): 559_214_592,
    ("bloom", "1b1"): 1_065_314_304,
    ("bloom", "1b7"): 1_722_408_960,
    ("bloom", "3b"): 3_002_557_440,
    ("bloom", "176b"): 176_247_271_424,
    ("rwkv", "169m"): 169_342_464,
    ("rwkv", "430m"): 430_397_440,
}


@pytest.mark.parametrize(("name", "size"), PUBLISHED_TOTALS)
def test_shapes_outside_the_reference_tables_give_the_totals_that_were_published(name: str, size: str) -> None:
    assert total_params(build(read_family(name).shape_of(size))) == PUBLISHED_TOTALS[name, size]


# ------------------------------------------------------------------------------------------------- the reference tables


def read_table(shared_data: Path, name: str) -> dict[str, dict[str, str]]:
    with (shared_data / "reference" / name).open(newline="", encoding="utf-8") as table:
        return {next(iter(row.values())): row for row in csv.DictReader(table)}


def test_every_model_of_the_table_of_shapes_is_in_its_family_with_that_shape(shared_data: Path) -> None:
    for id_, row in read_table(shared_data, "architectures.csv").items():
        family = read_family(row["family"])
        size = next(size for size, config in family.sizes.items() if config.id == id_)
        model = build(family.shape_of(size))
        config = model.config
        built = [config.num_hidden_layers, config.hidden_size, config.num_attention_heads, config.vocab_size]
        assert built == [int(row[key]) for key in ("layers", "hidden", "heads", "vocab_rows")], id_
        assert config.max_position_embeddings == int(row["max_positions"]), id_
        assert config.tie_word_embeddings == bool(int(row["tied_embeddings"])), id_
        assert total_params(model) == int(row["total_params_hf_causal_lm"]), id_


def test_embeddings_are_as_released(shared_data: Path) -> None:
    counts, compared = read_table(shared_data, "non_embedding_params.csv"), 0
    for name in NAMES:
        family = read_family(name)
        for size, config in family.sizes.items():
            if config.id in counts:
                model = build(family.shape_of(size))
                tables = [m for m in model.modules() if isinstance(m, torch.nn.Embedding)]
                assert sum(m.weight.numel() for m in tables) == int(counts[config.id]["embedding_params"]), config.id
                assert model.config.vocab_size == int(counts[config.id]["vocab_size"]), config.id
                compared += 1
    assert compared >= 27


# -------------------------------------------------------------------------------------------------- on the command line


@pytest.mark.parametrize("name", NAMES)
def test_a_family_composes_on_the_command_line_with_its_bos_policy(name: str, cwd: Path) -> None:
    printed = OmegaConf.create(here(f"model={name}", "--cfg", "job", cwd=cwd, check=0).stdout)
    assert printed.model.family == name
    assert printed.model.bos == "tokenizer"
    assert list(printed.model.sizes) == list(read_family(name).sizes)


def test_another_S_than_the_family_gives_is_a_wrong_request(
    tiny_checkpoint: Callable[..., Path], tiny_jsonl: Path, cwd: Path, tmp_path: Path
) -> None:
    folder = tiny_checkpoint("gpt_neox", hidden_size=16, layers=1)
    counted = of_gpt(16, 1)
    (tmp_path / "model").mkdir()
    words = ("--config-dir", tmp_path, "model=own", "dataset=file", f"dataset.path={tiny_jsonl}")
    for S, status in ((counted, 0), (counted + 1, 2)):
        sizes = {"tiny": {"id": str(folder), "non_embedding_params": S}}
        (tmp_path / "model" / "own.yaml").write_text(json.dumps({"family": "own", "sizes": sizes}))
        answer = here("measure", *words, f"store={tmp_path / str(S)}", cwd=cwd, check=status)
    lines = [line for line in answer.stderr.splitlines() if line.startswith("rbpx: ")]
    assert len(lines) == 1
    assert f"S = {counted:,}" in lines[0]
    assert f"{counted + 1:,}" in lines[0]


def test_the_steps_of_pythia_are_cells_of_their_own(cwd: Path, tmp_path: Path) -> None:
    """Without a hub each cell fails, and is kept under its key."""
    store = f"store={tmp_path / 's'}"
    words = ("model=pythia", "size=[14m,70m]", "dataset=pydoc", "limit=2", store)
    answer = here("measure", "-m", *words, "model.revision=step1000,step2000", cwd=cwd)
    assert answer.returncode == 1
    rows = json.loads(here("sql", "FROM failures", store, "--format", "json", cwd=cwd, check=0).stdout)
    assert sorted(row["size"] for row in rows) == ["14m", "14m", "70m", "70m"]
    assert len({row["cell_key"] for row in rows}) == 4
    assert {step for row in rows for step in ("step1000", "step2000") if step in row["error"]} == {
        "step1000",
        "step2000",
    }
