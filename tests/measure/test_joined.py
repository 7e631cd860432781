"""Items that join their context, by command: how many are left out is said and stored, questions answer on the rest."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support import quiz
from tests.support.asking import ask
from tests.support.composed import here
from tests.support.stores import cell_records, columns_of, manifests

# The tiny tokenizer makes one token of "the": the wrong choice of JOINS has none of its own.
ITEMS: list[dict[str, Any]] = [{"q": f"which {n}", "c": [" salt", " rope"], "r": n % 2} for n in range(20)]
JOINS = {"q": "th", "c": [" salt", "e"], "r": 0}
AT = 7  # its row, from 0


def measure(store: Path, model: Path, path: Path, *words: str, check: int = 0) -> str:
    """What is said of a measurement of items, in one line."""
    keys = ("dataset=file", f"dataset.path={path}", "dataset.context=[q]", "dataset.choices=c", "dataset.right=r")
    cwd = store.parent / "cwd"
    cwd.mkdir(exist_ok=True)
    said = here("measure", "model=hub", f"model.id={model}", *keys, *words, "--store", store, cwd=cwd, check=check)
    return " ".join(said.stderr.split())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("joined")


@pytest.fixture(scope="module")
def joining(folder: Path) -> Path:
    return quiz.written(folder / "joining.jsonl", [*ITEMS[:AT], JOINS, *ITEMS[AT + 1 :]])


@pytest.fixture(scope="module")
def model(tiny_checkpoint: Callable[..., Path]) -> Path:
    return tiny_checkpoint("gpt2", hidden_size=16)


@pytest.fixture(scope="module")
def spelling(tiny_checkpoint: Callable[..., Path], folder: Path) -> Path:
    """A model whose tokens are single bytes, so that it joins nothing."""
    path = tiny_checkpoint("gpt2", folder=folder / "spelling", hidden_size=24)
    tokenizer = json.loads((path / "tokenizer.json").read_text())
    tokenizer["model"]["merges"] = []
    (path / "tokenizer.json").write_text(json.dumps(tokenizer))
    return path


@pytest.fixture(scope="module")
def store(folder: Path, model: Path, joining: Path) -> tuple[Path, str]:
    """A store with the items measured, and what was said of it."""
    return folder / "s", measure(folder / "s", model, joining)


def test_19_of_20_items_are_measured_and_that_is_said_and_stored(store: tuple[Path, str]) -> None:
    root, said = store
    assert "gpt2-0 on joining: 1 of 20 items left out, because the tokenizer joins a target to its context" in said
    ((run_id, facts),) = manifests(root).items()
    assert (facts["n_documents"], facts["n_skipped"]) == (19, 1)
    tokens, documents = (columns_of(root / "runs" / run_id, name) for name in ("tokens", "documents"))
    item_of = {row: item for row, item in zip(documents["source_id"], documents["item"], strict=True)}
    left_out = item_of[str(AT + 1)]
    assert len(item_of) == 20
    assert {*tokens["item"].tolist()} == {*range(20)} - {left_out}
    assert facts["n_tokens"] == tokens["correct"].sum()
    assert documents["n_scored"][documents["item"] == left_out].tolist() == [0, 0]


def test_accuracy_and_the_views_of_items_are_of_the_19(store: tuple[Path, str]) -> None:
    root, _ = store
    (run_id,) = manifests(root)
    tokens, nats = columns_of(root / "runs" / run_id, "tokens"), dict[tuple[int, bool], float]()
    for item, correct, logprob in zip(tokens["item"], tokens["correct"], tokens["logprob"], strict=True):
        nats[int(item), bool(correct)] = nats.get((int(item), bool(correct)), 0.0) - float(logprob)
    items = sorted({item for item, _ in nats})
    (row,) = ask(root, "items", resamples=50).of_kind("items")
    assert row["n_items"] == len(items) == 19
    assert row["acc"] == pytest.approx(np.mean([nats[item, True] < nats[item, False] for item in items]))
    # Items behind the one that was left out are still shown under their own numbers.
    for item in (items[0], items[-1]):
        seen = " ".join(here("view", f"doc={item}", "--store", root, cwd=root.parent / "cwd", check=0).stdout.split())
        assert f"{'yes' if nats[item, True] < nats[item, False] else 'no'} " in seen.partition(f"Item {item}")[2]


def test_the_cell_is_refused_where_that_is_asked_for_and_nothing_is_written(
    store: tuple[Path, str], model: Path, joining: Path
) -> None:
    root, _ = store
    before = manifests(root)
    said = measure(root, model, joining, "dataset.joined=refuse", check=2)
    assert f"item {AT + 1}, choice 1, has the target 'e', which the tokenizer joins to its context" in said
    assert manifests(root) == before


def test_items_that_stand_alone_are_the_same_run_under_either_setting(folder: Path, model: Path) -> None:
    clean, root = quiz.written(folder / "clean.jsonl", ITEMS), folder / "clean"
    for setting in ("skip", "refuse"):
        assert "left out" not in measure(root, model, clean, f"dataset.joined={setting}")
    asked, answered = zip(*((cell["cell_key"], cell["run_id"]) for cell in cell_records(root)), strict=True)
    assert len({*asked}) == 2
    assert len({*answered}) == 1


def test_where_every_item_joins_there_is_nothing_to_measure(folder: Path, model: Path) -> None:
    said = measure(folder / "none", model, quiz.written(folder / "all.jsonl", [JOINS]), check=2)
    assert "dataset all has nothing to score: the tokenizer joins a target of each of its items" in said


def test_a_text_has_no_items_that_join(folder: Path, model: Path, tiny_jsonl: Path) -> None:
    said = here("measure", "model=hub", f"model.id={model}", "dataset=file", f"dataset.path={tiny_jsonl}",
                "dataset.joined=refuse", "--store", folder / "t", cwd=folder / "cwd", check=2).stderr  # fmt: skip
    assert "dataset.joined=refuse is for items" in said


def test_what_a_run_left_out_is_left_out_where_it_is_measured_again(store: tuple[Path, str]) -> None:
    """An audit asks for right choices alone, and the one of the item that was left out stands by itself."""
    root, _ = store
    said = here("audit", "dtype=float32", "--store", root, cwd=root.parent / "cwd", check=0)
    assert "no rank moved" in " ".join(said.stdout.split())


def test_models_of_two_tokenizers_answer_on_the_items_that_both_have(
    folder: Path, model: Path, spelling: Path, joining: Path
) -> None:
    root = folder / "two"
    for each in (model, spelling):
        measure(root, each, joining, "model.family=mine")
    of_items = {row["size"]: row["n_items"] for row in ask(root, "items", resamples=50).of_kind("items")}
    assert sorted(of_items.values()) == [19, 20]
    passes = [row for row in ask(root, "attempts", resamples=50).rows if row["kind"] == "pass"]
    assert {row["n_items"] for row in passes} == {19}
