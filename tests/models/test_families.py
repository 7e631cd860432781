"""The families of conf/model: S counted from each shape, by formula and in the reference tables; revisions."""

import csv
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from omegaconf import OmegaConf

from rbpx.config.options import Bos
from rbpx.models.architecture import non_embedding_params, total_params
from rbpx.models.load import load_model
from tests.support.checkpoints import CONTEXT, VOCAB_ROWS, build_tokenizer
from tests.support.commands import here
from tests.support.families import NAMES, read_family
from tests.support.formulas import FORMULAS


def build(shape: dict[str, Any]) -> Any:
    from transformers import AutoConfig, AutoModelForCausalLM

    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(AutoConfig.for_model(**shape))


_LLAMA = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 40,
    "max_position_embeddings": CONTEXT,
}
_LAYERS = {"hidden_size": 16, "num_hidden_layers": 2}
_DELTA = {
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 4,
    "linear_conv_kernel_dim": 4,
}
TINY: dict[str, dict[str, Any]] = {
    "bloom": {"hidden_size": 16, "n_layer": 2, "n_head": 2},
    "gemma": _LLAMA | {"head_dim": 8},
    "gemma2": _LLAMA | {"head_dim": 8},
    "gemma3_text": _LLAMA | {"head_dim": 8},
    "gpt2": {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": CONTEXT},
    "gpt_neo": {"hidden_size": 16, "num_layers": 2, "num_heads": 2, "attention_types": [[["global", "local"], 1]]},
    "gpt_neox": _LAYERS | {"num_attention_heads": 2, "intermediate_size": 64},
    "llama": _LLAMA,
    "llama4_text": _LLAMA
    | {"head_dim": 8, "intermediate_size_mlp": 48, "num_local_experts": 4, "interleave_moe_layer_step": 2},
    "mamba": _LAYERS | {"state_size": 4, "conv_kernel": 4, "expand": 2, "time_step_rank": 1},
    "ministral3": _LLAMA | {"head_dim": 8},
    "olmo2": _LLAMA,
    "olmo3": _LLAMA,
    "opt": _LAYERS | {"num_attention_heads": 2, "ffn_dim": 64, "word_embed_proj_dim": 16},
    "qwen2": _LLAMA,
    "qwen3": _LLAMA | {"head_dim": 8},
    "qwen3_5_text": _LLAMA | _DELTA | {"num_hidden_layers": 4, "head_dim": 8},
    "rwkv": _LAYERS | {"attention_hidden_size": 16, "intermediate_size": 64},
    "smollm3": _LLAMA,
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


@pytest.mark.parametrize("name", NAMES)
def test_every_size_has_the_S_of_its_shape_by_formula_and_the_smallest_that_of_its_model(name: str) -> None:
    family = read_family(name)
    assert family.family == name
    assert family.bos == Bos.tokenizer
    shapes = {size: family.shape_of(size) for size in family.sizes}
    for size, config in family.sizes.items():
        assert FORMULAS[shapes[size]["model_type"]](shapes[size]) == config.non_embedding_params, f"{name} {size}"
    smallest, config = next(iter(family.sizes.items()))
    model = build(shapes[smallest])
    unknown = sorted(key for key in shapes[smallest] if not hasattr(model.config, key))
    assert not unknown, f"{name} {smallest}: {unknown} of the shape is no key of the configuration"
    assert non_embedding_params(model) == config.non_embedding_params


# As others counted them: presets of keras-hub and of RWKV's Keras port.
@pytest.mark.parametrize(
    ("name", "size", "published"),
    [("bloom", "560m", 559_214_592), ("gemma-3", "270m", 268_098_176), ("rwkv", "169m", 169_342_464)],
)
def test_a_shape_outside_the_reference_tables_gives_the_total_that_was_published(
    name: str, size: str, published: int
) -> None:
    assert total_params(build(read_family(name).shape_of(size))) == published


@pytest.mark.parametrize("name", NAMES)
def test_every_size_says_where_its_shape_is_published_and_sizes_grow_or_differ_in_seed(name: str) -> None:
    family = read_family(name)
    assert family.sizes
    for size, config in family.sizes.items():
        assert isinstance(size, str), f"{name}: {size} was read as a number"
        source = config.source or family.source
        assert source, f"{name} {size}"
        assert "https://" in source, f"{name} {size}"
        assert config.id.count("/") == 1
    counts = [(config.non_embedding_params or 0, config.training_seed or 0) for config in family.sizes.values()]
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


# -------------------------------------------------------------------------------------------------- on the command line


def test_a_family_composes_on_the_command_line_with_its_bos_policy(cwd: Path) -> None:
    printed = OmegaConf.create(here("model=pythia", "--cfg", "job", cwd=cwd, check=0).stdout)
    assert (printed.model.family, printed.model.bos) == ("pythia", "tokenizer")
    assert list(printed.model.sizes) == list(read_family("pythia").sizes)


def test_help_lists_every_family(cwd: Path) -> None:
    words = here("--help", "all", cwd=cwd, check=0).stdout
    assert set(NAMES) <= set(re.findall(r"[\w.-]*\w", words))


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
    assert "openai-community/gpt2 is no folder here and not in the hub's cache" in lines[0]
    assert "python -m rbpx download model=gpt2 size=gpt2 dataset=pydoc limit=2" in lines[0]
    assert "Traceback" not in answer.stderr
