"""The families of conf/model: S counted from each shape, by formula and in the reference tables; revisions."""

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from omegaconf import OmegaConf

from rbpx.config.model.family import ModelConfig
from rbpx.models.architecture import non_embedding_params, total_params
from rbpx.models.load import load_model
from tests.support.checkpoints import CONTEXT, VOCAB_ROWS, build_tokenizer
from tests.support.commands import here
from tests.support.formulas import FORMULAS, of_gpt
from tests.support.places import CONF, DOCS

_LOCAL = ("hub", "ladder", "ladder-seeds")  # without a published shape
NAMES = sorted(path.stem for path in (CONF / "model").glob("*.yaml") if path.stem not in _LOCAL)


def read_family(name: str) -> ModelConfig:
    """A family as Hydra reads it: its file merged into the schema."""
    family = OmegaConf.to_object(
        OmegaConf.merge(OmegaConf.structured(ModelConfig), OmegaConf.load(CONF / "model" / f"{name}.yaml"))
    )
    assert isinstance(family, ModelConfig)
    return family


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


_LLAMA = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 40,
    "max_position_embeddings": CONTEXT,
}
_LAYERS = {"hidden_size": 16, "num_hidden_layers": 2}
TINY: dict[str, dict[str, Any]] = {
    "bloom": {"hidden_size": 16, "n_layer": 2, "n_head": 2},
    "gemma": _LLAMA | {"head_dim": 8},
    "gemma2": _LLAMA | {"head_dim": 8},
    "gpt2": {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": CONTEXT},
    "gpt_neo": {"hidden_size": 16, "num_layers": 2, "num_heads": 2, "attention_types": [[["global", "local"], 1]]},
    "gpt_neox": _LAYERS | {"num_attention_heads": 2, "intermediate_size": 64},
    "llama": _LLAMA,
    "mamba": _LAYERS | {"state_size": 4, "conv_kernel": 4, "expand": 2, "time_step_rank": 1},
    "olmo2": _LLAMA,
    "opt": _LAYERS | {"num_attention_heads": 2, "ffn_dim": 64, "word_embed_proj_dim": 16},
    "qwen2": _LLAMA,
    "qwen3": _LLAMA | {"head_dim": 8},
    "rwkv": _LAYERS | {"attention_hidden_size": 16, "intermediate_size": 64},
}


@pytest.mark.parametrize("model_type", sorted({read_family(name).shape["model_type"] for name in NAMES}))
def test_every_architecture_of_the_families_can_be_measured(model_type: str, tmp_path: Path) -> None:
    """A tiny model of it is causal, its head is understood, and S is recounted."""
    from transformers import AutoConfig, AutoModelForCausalLM

    shape = TINY[model_type]
    tokens = {"vocab_size": VOCAB_ROWS, "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}
    config = AutoConfig.for_model(model_type, **tokens, **shape)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path)
    build_tokenizer("gpt_neox").save_pretrained(tmp_path)
    loaded = load_model(str(tmp_path), None, "float32", torch.device("cpu"))
    assert loaded.head.logits is not None, "logits are made from hidden states, a few positions at a time"
    assert loaded.head.after == ("softcap 30" if model_type == "gemma2" else "identity")
    assert loaded.non_embedding_params == FORMULAS[model_type](shape)


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


@pytest.mark.parametrize("name", NAMES)
def test_every_size_says_where_its_shape_is_published_and_sizes_grow(name: str) -> None:
    family = read_family(name)
    assert family.sizes
    for size, config in family.sizes.items():
        assert isinstance(size, str), f"{name}: {size} was read as a number"
        source = config.source or family.source
        assert source, f"{name} {size}"
        assert "https://" in source, f"{name} {size}"
        assert config.id.count("/") == 1
    counts = [config.non_embedding_params or 0 for config in family.sizes.values()]
    assert counts == sorted(set(counts))


# ------------------------------------------------------------------------------------------------- the reference tables


def read_table(shared_data: Path, name: str) -> dict[str, dict[str, str]]:
    with (shared_data / "reference" / name).open(newline="", encoding="utf-8") as table:
        return {next(iter(row.values())): row for row in csv.DictReader(table)}


@pytest.mark.parametrize("name", NAMES)
def test_sizes_are_verified_where_the_reference_tables_hold_them_and_nowhere_else(name: str, shared_data: Path) -> None:
    counts = read_table(shared_data, "non_embedding_params.csv")
    shapes = read_table(shared_data, "architectures.csv")
    family = read_family(name)
    for size, config in family.sizes.items():
        assert config.verified == (config.id in counts or config.id in shapes), f"{name} {size}"
        for table in (counts, shapes):
            if config.id in table:
                assert int(table[config.id]["non_embedding_params"]) == config.non_embedding_params, f"{name} {size}"


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


def test_help_lists_every_family(cwd: Path) -> None:
    words = here("--help", cwd=cwd, check=0).stdout
    assert set(NAMES) <= set(re.findall(r"[\w.-]*\w", words))


def test_the_documentation_names_every_family() -> None:
    page = (DOCS / "howto" / "my-model.md").read_text(encoding="utf-8")
    assert set(NAMES) <= set(re.findall(r"[\w.-]*\w", page))


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


def test_an_unknown_bos_policy_is_refused_in_one_line(cwd: Path) -> None:
    answer = here("measure", "model=gpt2", "dataset=pydoc", "model.bos=always", cwd=cwd, check=2)
    assert len(answer.stderr.strip().splitlines()) == 1
    assert "always" in answer.stderr
    assert "tokenizer, add, none" in answer.stderr


def test_without_a_hub_a_size_ends_in_one_line(cwd: Path, tmp_path: Path) -> None:
    words = ("model=gpt2", "size=gpt2", "dataset=pydoc", "limit=2", f"store={tmp_path / 's'}")
    answer = here("measure", *words, cwd=cwd)
    lines = [line for line in answer.stderr.splitlines() if line.startswith("rbpx: ")]
    assert answer.returncode == 1
    assert len(lines) == 1
    assert "openai-community/gpt2 is not in the hub's cache here" in lines[0]
    assert "python -m rbpx download model=gpt2 size=gpt2 dataset=pydoc limit=2" in lines[0]
    assert "Traceback" not in answer.stderr


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
