"""How models were trained, in the store: from files, keys and checkpoints' names; seeds of one size are replicates."""

import json
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from rbpx.config.grid import members
from rbpx.config.model.family import ModelConfig
from rbpx.config.model.training import TrainingFacts
from rbpx.errors import RbpxError
from rbpx.measure.grid import read_training
from rbpx.store.store import Store
from tests.support.commands import here
from tests.support.places import CONF
from tests.support.stores import Family, build_member, cell_records, snapshot


def rows(answer: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(answer.stdout)
    return found


def of_family(name: str, *words: str) -> dict[str, TrainingFacts]:
    """What is known of each model of a family's file under some overrides."""
    model = OmegaConf.merge(
        OmegaConf.structured(ModelConfig),
        OmegaConf.load(CONF / "model" / f"{name}.yaml"),
        OmegaConf.from_dotlist(list(words)),
    )
    return {member.size: member.training for member in members(OmegaConf.to_object(model), None)[1]}  # type: ignore[arg-type]


@pytest.mark.parametrize("family", ["pythia", "pythia-deduped"])
def test_a_checkpoint_of_pythia_knows_its_step_and_its_tokens(family: str) -> None:
    # README of EleutherAI/pythia: 299,892,736,000 tokens, and 2,097,152,000 between checkpoints of 1,000 steps.
    assert set(of_family(family).values()) == {TrainingFacts(training_tokens=299_892_736_000, training_step=143_000)}
    assert of_family(family, "revision=main") == of_family(family)
    at = of_family(family, "revision=step1000")
    assert set(at.values()) == {TrainingFacts(training_tokens=2_097_152_000, training_step=1000)}
    assert set(of_family(family, "revision=step0").values()) == {TrainingFacts(training_tokens=0, training_step=0)}
    assert set(of_family(family, "revision=refs/pr/1").values()) == {TrainingFacts()}


def test_a_family_without_a_rule_knows_nothing_of_a_checkpoint() -> None:
    assert set(of_family("gpt2", "revision=step1000").values()) == {TrainingFacts()}


def test_keys_go_before_the_file_and_may_list_a_value_for_each_model() -> None:
    known = of_family("hub", "id=[a/x,a/y]", "family=f", "tokens=3e9", "seed=[0,null]", "variant=muon", "step=2k")
    assert known["x"] == TrainingFacts(3_000_000_000, training_step=2000, training_seed=0, variant="muon")
    assert known["y"] == TrainingFacts(3_000_000_000, training_step=2000, variant="muon")
    assert of_family("pythia", "tokens=5", "sizes.70m.training_seed=7")["70m"] == TrainingFacts(
        5, None, 143_000, None, 7
    )


@pytest.mark.parametrize(
    ("word", "what"),
    [
        ("tokens=many", "model.tokens is many; give a whole number from 0"),
        ("tokens=1.5", "model.tokens is 1.5; give a whole number"),
        ("step=-1", "model.step is -1; give a whole number from 0"),
        ("flops=x", "model.flops is x; give a number from 0"),
        ("seed=true", "model.seed is True"),
        ("seed=[1,2,3]", "model.seed lists 3 values for 2 models"),
    ],
)
def test_a_fact_that_is_none_is_told_with_its_value(word: str, what: str) -> None:
    with pytest.raises(RbpxError) as told:
        of_family("hub", "id=[a/x,a/y]", "family=f", word)
    assert what in str(told.value)


def test_what_lies_beside_a_model_is_read_and_checked(tmp_path: Path) -> None:
    assert read_training(tmp_path) == TrainingFacts()
    path = tmp_path / "training.json"
    path.write_text('{"size": "7k", "steps": 976, "tokens": 7995392, "training_seed": 4, "curve_nats": [1.0]}')
    assert read_training(tmp_path) == TrainingFacts(training_tokens=7_995_392, training_step=976, training_seed=4)
    for text, what in (
        ("[1]", "not a JSON object"),
        ("{", "not a JSON object"),
        ('{"tokens": "8X"}', "training.json: tokens is 8X"),
        ('{"variant": 3e-4}', "training.json: variant=0.0003 was read as a number"),
    ):
        path.write_text(text)
        with pytest.raises(RbpxError, match=what):
            read_training(tmp_path)


def test_models_of_one_label_and_different_seeds_both_count(family: Family, tmp_path: Path, cwd: Path) -> None:
    store = ["--store", tmp_path / "store"]
    for seed in (0, 1):
        folder = build_member(tmp_path / f"{seed}" / "xs", "xs", seed)
        (folder / "training.json").write_text(json.dumps({"tokens": 1000, "steps": 10, "training_seed": seed}))
        here("measure", *Family({"xs": folder}, family.text).words("xs"), "limit=4", *store, cwd=cwd, check=0)
    query = "SELECT size, training_tokens, training_step, training_seed FROM runs ORDER BY ALL"
    listed = rows(here("sql", query, "--format", "json", *store, cwd=cwd, check=0))
    assert [(row["size"], row["training_seed"]) for row in listed] == [("xs", 0), ("xs", 1)]
    assert {(row["training_tokens"], row["training_step"]) for row in listed} == {(1000, 10)}


def test_facts_of_models_measured_before_come_in_without_measuring_and_stay_known(
    own_store: Path, family: Family, cwd: Path
) -> None:
    store, runs = ["--store", own_store], snapshot(own_store / "runs")
    for record in cell_records(own_store):  # as an earlier version wrote them
        plain = {name: value for name, value in record.items() if not name.startswith(("training_", "unique", "seal"))}
        Store(own_store).write_record("cells", record["cell_key"], plain)
    listed = ["sql", "SELECT size, training_tokens, training_seed FROM runs ORDER BY size", "--format", "json", *store]
    for words, facts in (
        ([], [(None, None)] * 4),
        (["model.seed=[0,null,1,2]", "model.tokens=1e6"], [(10**6, seed) for seed in (2, 1, None, 0)]),
        ([], [(10**6, seed) for seed in (2, 1, None, 0)]),  # what is not said again stays known
    ):
        here("measure", *family.words("xs", "s", "m", "l"), *words, *store, cwd=cwd, check=0)
        told = [tuple(row.values()) for row in rows(here(*listed, cwd=cwd, check=0))]
        assert told == [(size, *fact) for size, fact in zip(("l", "m", "s", "xs"), facts, strict=True)]
    assert snapshot(own_store / "runs") == runs
