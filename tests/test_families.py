"""The families of conf/model: S counted from each shape, by formula and in the reference tables; BOS; revisions."""

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from omegaconf import OmegaConf

from rbpx.config import Bos, ModelConfig
from rbpx.corpus import Document
from rbpx.errors import RbpxError
from rbpx.grid import Cell
from rbpx.params import non_embedding_params, total_params
from rbpx.tokens import acting_bos, cut_windows
from tests.commands import here
from tests.conftest import TINY_TEXT, build_tokenizer
from tests.stores import Family

pytest_plugins = ["tests.stores"]

CONF = Path(__file__).parents[1] / "conf" / "model"
NAMES = sorted(path.stem for path in CONF.glob("*.yaml") if path.stem not in ("hub", "ladder"))


def read_family(name: str) -> ModelConfig:
    """A family as Hydra reads it: its file merged into the schema."""
    found = OmegaConf.to_object(
        OmegaConf.merge(OmegaConf.structured(ModelConfig), OmegaConf.load(CONF / f"{name}.yaml"))
    )
    assert isinstance(found, ModelConfig)
    return found


def build(shape: dict[str, Any]) -> Any:
    from transformers import AutoConfig, AutoModelForCausalLM

    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**shape))
    assert {parameter.device.type for parameter in model.parameters()} == {"meta"}
    return model


# ----------------------------------------------------------------------------------------------------- S by formula


def of_gpt(d: int, layers: int) -> int:
    """Attention and a fourfold MLP with biases, two norms a layer and a last one."""
    return layers * (4 * (d * d + d) + (8 * d * d + 5 * d) + 4 * d) + 2 * d


def of_opt(s: dict[str, Any]) -> int:
    d, layers, width = s["hidden_size"], s["num_hidden_layers"], s["word_embed_proj_dim"]
    assert s["ffn_dim"] == 4 * d
    projections = 2 * d * width if width != d else 0
    last_norm = 2 * d if s.get("do_layer_norm_before", True) else 0
    return of_gpt(d, layers) - 2 * d + projections + last_norm


def of_neox(s: dict[str, Any]) -> int:
    assert s["intermediate_size"] == 4 * s["hidden_size"]
    return of_gpt(s["hidden_size"], s["num_hidden_layers"])


def of_llama(s: dict[str, Any], norms: int = 2, per_layer: Callable[[int, int, int], int] = lambda h, q, kv: 0) -> int:
    """Grouped attention and a gated MLP without biases; `per_layer` adds to that, of head, q and kv width."""
    d, layers, heads = s["hidden_size"], s["num_hidden_layers"], s["num_attention_heads"]
    head = s.get("head_dim", d // heads)
    q, kv = heads * head, s["num_key_value_heads"] * head
    attention, mlp = 2 * d * q + 2 * d * kv, 3 * d * s["intermediate_size"]
    return layers * (attention + mlp + norms * d + per_layer(head, q, kv)) + d


FORMULAS: dict[str, Callable[[dict[str, Any]], int]] = {
    "gpt2": lambda s: of_gpt(s["n_embd"], s["n_layer"]),
    "opt": of_opt,
    "gpt_neox": of_neox,
    "qwen2": lambda s: of_llama(s, per_layer=lambda head, q, kv: q + 2 * kv),  # biases
}


@pytest.mark.parametrize("name", NAMES)
def test_every_size_has_the_S_of_its_shape(name: str) -> None:
    found = read_family(name)
    assert found.family == name
    for size, config in found.sizes.items():
        shape = found.shape_of(size)
        model = build(shape)
        unknown = sorted(key for key in shape if not hasattr(model.config, key))
        assert not unknown, f"{name} {size}: {unknown} of the shape is no key of the configuration"
        assert non_embedding_params(model) == config.non_embedding_params, f"{name} {size}"
        assert FORMULAS[shape["model_type"]](shape) == config.non_embedding_params, f"{name} {size}, by formula"


@pytest.mark.parametrize("name", NAMES)
def test_every_size_says_where_its_shape_is_published_and_sizes_grow(name: str) -> None:
    found = read_family(name)
    assert found.sizes
    for size, config in found.sizes.items():
        assert isinstance(size, str), f"{name}: {size} was read as a number"
        source = config.source or found.source
        assert source, f"{name} {size}"
        assert "https://" in source, f"{name} {size}"
        assert config.id.count("/") == 1
    counts = [config.non_embedding_params or 0 for config in found.sizes.values()]
    assert counts == sorted(set(counts))


# ------------------------------------------------------------------------------------------------- the reference tables


def read_table(shared_data: Path, name: str) -> dict[str, dict[str, str]]:
    with (shared_data / "reference" / name).open(newline="", encoding="utf-8") as table:
        return {next(iter(row.values())): row for row in csv.DictReader(table)}


@pytest.mark.parametrize("name", NAMES)
def test_sizes_are_verified_where_the_reference_tables_hold_them_and_nowhere_else(name: str, shared_data: Path) -> None:
    counts = read_table(shared_data, "non_embedding_params.csv")
    shapes = read_table(shared_data, "architectures.csv")
    found = read_family(name)
    for size, config in found.sizes.items():
        assert config.verified == (config.id in counts or config.id in shapes), f"{name} {size}"
        for table in (counts, shapes):
            if config.id in table:
                assert int(table[config.id]["non_embedding_params"]) == config.non_embedding_params, f"{name} {size}"


def test_every_model_of_the_table_of_shapes_is_in_its_family_with_that_shape(shared_data: Path) -> None:
    for id_, row in read_table(shared_data, "architectures.csv").items():
        found = read_family(row["family"])
        size = next(size for size, config in found.sizes.items() if config.id == id_)
        model = build(found.shape_of(size))
        config = model.config
        built = [config.num_hidden_layers, config.hidden_size, config.num_attention_heads, config.vocab_size]
        assert built == [int(row[key]) for key in ("layers", "hidden", "heads", "vocab_rows")], id_
        assert config.max_position_embeddings == int(row["max_positions"]), id_
        assert config.tie_word_embeddings == bool(int(row["tied_embeddings"])), id_
        assert total_params(model) == int(row["total_params_hf_causal_lm"]), id_


def test_embeddings_are_as_released(shared_data: Path) -> None:
    counts, compared = read_table(shared_data, "non_embedding_params.csv"), 0
    for name in NAMES:
        found = read_family(name)
        for size, config in found.sizes.items():
            if config.id in counts:
                model = build(found.shape_of(size))
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
    words = here("--help", cwd=cwd, check=0).stdout.replace(",", " ").split()
    assert set(NAMES) <= set(words)


def test_without_a_hub_a_size_ends_in_one_line(cwd: Path, tmp_path: Path) -> None:
    words = ("model=gpt2", "size=gpt2", "dataset=pydoc", "limit=2", f"store={tmp_path / 's'}")
    answer = here("measure", *words, cwd=cwd)
    lines = [line for line in answer.stderr.splitlines() if line.startswith("rbpx: ")]
    assert answer.returncode == 1
    assert len(lines) == 1
    assert "the hub did not deliver openai-community/gpt2" in lines[0]
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


# -------------------------------------------------------------------------------------------------------------- the BOS

HAVE_A_BOS = ("gpt2", "opt", "gpt_neox")
CELL = Cell(
    family="ladder",
    size="3k",
    model="rbpx:ladder/3k",
    model_hash="0" * 16,
    revision=None,
    non_embedding_params=3312,
    dataset="pydoc",
    text_hash="1" * 16,
    protocol="paper",
    window=512,
    bos="tokenizer",
    dtype="float32",
    limit=1000,
    seed=42,
)


def test_cells_keep_the_keys_that_they_had_before_there_was_a_bos_policy() -> None:
    assert (CELL.key, CELL.failure_key) == ("aebbd355b13a6fd0", "ae249ee43550495a")
    assert len({replace(CELL, bos=bos.value).key for bos in Bos}) == 3


@pytest.mark.parametrize("arch", HAVE_A_BOS)
@pytest.mark.parametrize("window", [2, 7, 10_000])
def test_windows_begin_as_the_policy_says(arch: str, window: int) -> None:
    tokenizer = build_tokenizer(arch)
    documents = [Document(n, str(n), text) for n, text in enumerate(TINY_TEXT)]
    for bos, first in ((Bos.add, [tokenizer.bos_token_id]), (Bos.none, [])):
        for cut, text in zip(cut_windows(documents, tokenizer, window, bos), TINY_TEXT, strict=True):
            of_text = tokenizer.convert_tokens_to_ids(tokenizer.tokenize(text))
            assert cut.ids.tolist() == (first + of_text)[:window]
            special = [token in tokenizer.all_special_ids for token in cut.ids]
            plain = [not before and not this for before, this in pairwise(special)]
            assert cut.scored.tolist() == [False, *plain]


def test_a_bos_is_read_and_costs_no_scored_token_but_the_last_that_no_longer_fits() -> None:
    """GPT-2's first token has no predecessor, and with a BOS it has one that is special: never scored."""
    tokenizer, documents = build_tokenizer("gpt2"), [Document(0, "0", TINY_TEXT[0])]
    (own,), (with_bos,) = (cut_windows(documents, tokenizer, 10_000, bos) for bos in (Bos.tokenizer, Bos.add))
    assert own.scored[1:].all()
    assert with_bos.scored.tolist() == [False, *own.scored.tolist()]
    assert (with_bos.n_bytes, with_bos.n_bytes_scored) == (own.n_bytes, own.n_bytes_scored)
    assert cut_windows(documents, tokenizer, 10, Bos.add)[0].n_scored == 8


def test_a_policy_acts_where_it_changes_tokens() -> None:
    acts = {(arch, bos.value): acting_bos(build_tokenizer(arch), bos).value for arch in HAVE_A_BOS for bos in Bos}
    changed = {asked for asked, acting in acts.items() if acting != "tokenizer"}
    assert changed == {("gpt2", "add"), ("gpt_neox", "add"), ("opt", "none")}
    assert all(acts[asked] == asked[1] for asked in changed)


def test_a_bos_is_not_made_up_for_a_tokenizer_without_one() -> None:
    with pytest.raises(RbpxError, match=r"model\.bos=add"):
        acting_bos(build_tokenizer("qwen2"), Bos.add)


def test_policies_that_give_the_same_tokens_are_one_run_and_others_are_not(
    tiny_checkpoint: Callable[..., Path], tiny_jsonl: Path, cwd: Path, tmp_path: Path
) -> None:
    store = f"store={tmp_path / 's'}"
    model = f"model.id={tiny_checkpoint('opt')}"
    words = ("model=hub", model, "dataset=file", f"dataset.path={tiny_jsonl}", store)
    here("measure", "-m", *words, "model.bos=tokenizer,add,none", cwd=cwd, check=0)
    answer = here("sql", "SELECT run_id, bos, config FROM runs", store, "--format", "json", cwd=cwd, check=0)
    runs = {json.loads(row["config"])["model"]["bos"]: row for row in json.loads(answer.stdout)}
    assert {asked: run["bos"] for asked, run in runs.items()} == {
        "tokenizer": "tokenizer",
        "add": "tokenizer",
        "none": "none",
    }
    assert runs["tokenizer"]["run_id"] == runs["add"]["run_id"] != runs["none"]["run_id"]


def test_runs_with_and_without_a_bos_never_enter_one_fit(family: Family, own_store: Path, cwd: Path) -> None:
    here("measure", *family.words(), "model.bos=add", f"store={own_store}", cwd=cwd, check=0)
    words = ("fit", "laws=[cross_entropy]", f"store={own_store}", "resamples=20")
    rows = json.loads(here(*words, "--format", "json", cwd=cwd, check=0).stdout)
    assert [row["n_points"] for row in rows] == [4, 4]
    assert not set(rows[0]["run_ids"]) & set(rows[1]["run_ids"])
    titles = [line.strip() for line in here(*words, cwd=cwd, check=0).stdout.splitlines()]
    assert {"mine on file", "mine on file, bos"} <= set(titles), "folded before `add`"
