"""The families of conf/model: S counted from each shape, by formula and in the reference tables; revisions."""

import csv
from pathlib import Path
from typing import Any

import pytest

from rbpx.config.options import Bos
from rbpx.models.architecture import non_embedding_params, total_params
from tests.support.architectures import on_meta
from tests.support.families import NAMES, read_family
from tests.support.formulas import FORMULAS


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


# S as the authors of the RBP paper released it: param_count.json of ybq22/relative-based-scaling-law.
@pytest.mark.parametrize(
    ("name", "size", "released"),
    [
        ("gpt2", "gpt2", 85_056_000),
        ("opt", "350m", 303_357_952),
        ("pythia", "14m", 1_189_888),
        ("qwen2.5", "0.5B", 357_898_112),
    ],
)
def test_one_model_of_each_family_of_the_paper_has_the_released_count(name: str, size: str, released: int) -> None:
    assert non_embedding_params(build(read_family(name).shape_of(size))) == released


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
