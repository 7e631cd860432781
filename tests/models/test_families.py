"""The families of conf/model: S counted from each shape, by formula and in the reference tables; revisions."""

import csv
from pathlib import Path
from typing import Any

import pytest
import torch

from rbpx.config.options import Bos
from rbpx.models.architecture import non_embedding_params, total_params
from tests.support.architectures import on_meta
from tests.support.families import NAMES, read_family
from tests.support.formulas import FORMULAS
from tests.support.places import EXPERIMENTS


def build(shape: dict[str, Any]) -> Any:
    from transformers import AutoConfig

    return on_meta(AutoConfig.for_model(**shape))


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


# All parameters as others counted them: presets of keras-hub and of RWKV's Keras port; for 176b, the model card.
# From 4b, keras-hub's Gemma 3 has 64 rows less in its embedding.
PUBLISHED_TOTALS = {
    ("bloom", "560m"): 559_214_592,
    ("bloom", "1b1"): 1_065_314_304,
    ("bloom", "1b7"): 1_722_408_960,
    ("bloom", "3b"): 3_002_557_440,
    ("bloom", "176b"): 176_247_271_424,
    ("gemma-3", "270m"): 268_098_176,
    ("gemma-3", "1b"): 999_885_952,
    ("gemma-3", "4b"): 3_880_099_328 + 64 * 2560,
    ("gemma-3", "12b"): 11_765_788_416 + 64 * 3840,
    ("gemma-3", "27b"): 27_009_002_240 + 64 * 5376,
    ("rwkv", "169m"): 169_342_464,
    ("rwkv", "430m"): 430_397_440,
}


@pytest.mark.parametrize(("name", "size"), PUBLISHED_TOTALS)
def test_shapes_outside_the_reference_tables_give_the_totals_that_were_published(name: str, size: str) -> None:
    assert total_params(build(read_family(name).shape_of(size))) == PUBLISHED_TOTALS[name, size]


def test_gemstones_have_the_parameters_that_their_authors_counted() -> None:
    with (EXPERIMENTS / "published" / "gemstones_checkpoints.csv").open(newline="", encoding="utf-8") as table:
        published = {f"{row['width']}x{row['depth']}": int(row["params"]) for row in csv.DictReader(table)}
    family = read_family("gemstones")
    assert {size: total_params(build(family.shape_of(size))) for size in family.sizes} == published


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


def test_S_and_embeddings_are_as_released(shared_data: Path) -> None:
    """S as the authors of the RBP paper have it: param_count.json of ybq22/relative-based-scaling-law."""
    counts, compared = read_table(shared_data, "non_embedding_params.csv"), 0
    for name in NAMES:
        family = read_family(name)
        for size, config in family.sizes.items():
            if config.id in counts:
                model = build(family.shape_of(size))
                assert non_embedding_params(model) == int(counts[config.id]["non_embedding_params"]), config.id
                tables = [m for m in model.modules() if isinstance(m, torch.nn.Embedding)]
                assert sum(m.weight.numel() for m in tables) == int(counts[config.id]["embedding_params"]), config.id
                assert model.config.vocab_size == int(counts[config.id]["vocab_size"]), config.id
                compared += 1
    assert compared >= 27
