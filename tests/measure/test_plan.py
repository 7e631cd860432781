"""`plan`: a row a cell, without a hub; what is counted, estimated and unknown, held against real runs."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.checkpoints import CONTEXT, build_checkpoint
from tests.support.commands import here
from tests.support.families import read_family
from tests.support.items import documents
from tests.support.ladder import bundled_id
from tests.support.stores import Measured, manifests, snapshot

NO_HUB = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HUB_OFFLINE": "0"}  # nobody listens there


def plan(*words: object, cwd: Path, env: dict[str, str] | None = None) -> list[dict[str, Any]]:
    answer = here("plan", *words, "--format", "json", cwd=cwd, env=env, check=0)
    rows: list[dict[str, Any]] = json.loads(answer.stdout)
    return rows


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A folder of configuration with a text that lies on a hub."""
    (tmp_path / "conf" / "dataset").mkdir(parents=True)
    (tmp_path / "conf" / "dataset" / "far.yaml").write_text("name: far\nkind: hub\n")
    return tmp_path / "conf"


def test_a_known_family_is_planned_without_a_hub_and_nothing_is_written(
    elsewhere: Path, cwd: Path, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    words = ("--config-dir", elsewhere, "model=pythia", "dataset=far", "--store", store)
    rows = plan(*words, cwd=cwd, env=NO_HUB)
    sizes = read_family("pythia").sizes
    assert [row["size"] for row in rows] == list(sizes)
    assert [row["non_embedding_params"] for row in rows] == [size.non_embedding_params for size in sizes.values()]
    by_size = {row["size"]: row for row in rows}
    assert by_size["160m"]["total_params"] == 162_322_944  # with the untied head
    assert by_size["160m"]["weights_mib"] == pytest.approx(162_322_944 * 4 / 2**20)
    for row in rows:
        assert row["memory_mib"] > row["weights_mib"]
        assert row["state"] == "missing"
        unknown = ("tokens", "tokens_counted", "flops", "disk_mib", "time_s", "time_from", "cell_key")
        assert [row[name] for name in unknown] == [None] * len(unknown)
    assert not store.exists()


def test_a_model_that_nobody_knows_is_empty_not_an_error(cwd: Path, tmp_path: Path) -> None:
    (row,) = plan("model=hub", "model.id=nobody/knows", "dataset=pydoc", "--store", tmp_path, cwd=cwd, env=NO_HUB)
    assert row["state"] == "missing"
    assert [row[name] for name in ("non_embedding_params", "memory_mib", "flops", "fits")] == [None] * 4
    assert row["tokens"] > 1000
    words = ("model=hub", "model.id=nobody/knows", "dataset=wikipedia", "--store", tmp_path)
    said = here("plan", *words, cwd=cwd, env=NO_HUB, check=0).stdout
    assert "A plan reads no hub, and this machine has no readable config.json of knows knows: S, memory" in said
    assert "Tokens of wikipedia are unknown" in said


def test_a_cell_that_failed_says_why(cwd: Path, tmp_path: Path) -> None:
    words = ("model=gpt2", "size=gpt2", "dataset=pydoc", "limit=2", "--store", tmp_path / "store")
    here("measure", *words, cwd=cwd, check=1)
    (row,) = plan(*words, cwd=cwd)
    assert (row["state"], "hub" in row["error"]) == ("failed", True)
    assert f"gpt2 gpt2 on pydoc failed: {row['error']}" in here("plan", *words, cwd=cwd, check=0).stdout


def test_what_is_done_tells_what_it_took(measured: Measured, cwd: Path) -> None:
    before = snapshot(measured.store)
    rows = plan(*measured.family.words(), "--store", measured.store, cwd=cwd)
    assert snapshot(measured.store) == before
    facts = manifests(measured.store)
    assert [row["state"] for row in rows] == ["done"] * 4
    for row in rows:
        run = facts[row["run_id"]]
        folder = measured.store / "runs" / row["run_id"]
        assert row["tokens_counted"]
        assert (row["tokens"], row["time_s"], row["time_from"]) == (run["n_tokens"], run["wall_s"], "measured")
        assert row["non_embedding_params"] == run["non_embedding_params"]
        assert row["total_params"] == run["total_params"]
        assert row["disk_mib"] == pytest.approx(sum(p.stat().st_size for p in folder.iterdir()) / 2**20)


def test_a_new_model_with_a_tokenizer_of_the_store_has_counted_tokens_and_flops(
    measured: Measured, tiny_text: list[str], cwd: Path, tmp_path: Path
) -> None:
    from transformers import AutoTokenizer

    d, layers, V = 40, 2, 320
    build_checkpoint("gpt2", tmp_path / "new", hidden_size=d, layers=layers)
    words = ["model=hub", f"model.id={tmp_path / 'new'}", *measured.family.words()[3:]]
    (row,) = plan(*words, "--store", measured.store, cwd=cwd)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "new")
    S = layers * (12 * d * d + 13 * d) + 2 * d
    tokens, work = 0, 0
    for text in tiny_text:
        ids = tokenizer(text)["input_ids"][:CONTEXT]
        special = [id_ in tokenizer.all_special_ids for id_ in ids]
        scored = sum(not (special[t] or special[t - 1]) for t in range(1, len(ids)))
        if scored:
            tokens += scored
            work += 2 * S * len(ids) + 2 * V * d * scored + 4 * layers * d * len(ids) ** 2
    assert row["non_embedding_params"] == S
    assert (row["tokens"], row["tokens_counted"]) == (tokens, True)
    assert row["flops"] == pytest.approx(work, rel=1e-12)
    assert row["state"] == "missing"
    sizes = {record["size"] for record in plan(*measured.family.words(), "--store", measured.store, cwd=cwd)}
    assert row["time_from"] in {f"mine {size} on file" for size in sizes}


def test_what_items_begin_with_alike_is_planned_once(cwd: Path, tmp_path: Path) -> None:
    """Estimated before any run; then counted by a run, held against what is read where each beginning is read once."""
    from rbpx.data.harness_windows import cut_as_harness
    from rbpx.measure.reading.branches import read_once
    from rbpx.models.folder import local_folder
    from rbpx.models.tokenizer import load_tokenizer

    before = "".join(f"def lines_{n}(file):\n    return [line for line in file]\n\n" for n in range(8))
    names = ("count", "write", "close", "split")
    choices = [f" {name}s every line of the file that was opened by it" for name in names]
    questions = [f"{name} = {n}  # what {name}" for n, name in enumerate(names)]
    rows = [{"q": before + question, "choices": choices, "right": 1} for question in questions]
    file = tmp_path / "items.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ("dataset=file", f"dataset.path={file}", "dataset.context=[q]", "dataset.choices=choices")
    words += ("dataset.right=right", "--store", str(tmp_path / "store"))

    folder = local_folder(bundled_id("3k"))
    windows = cut_as_harness(documents(questions, choices, before), load_tokenizer(folder, "3k"), 512)
    n_read, n_pairs = read_once(windows)
    assert n_read < sum(window.n_read for window in windows) / 3

    (estimated,) = plan("model=ladder", "size=7k", *words, cwd=cwd)
    here("measure", "model=ladder", "size=3k", *words, cwd=cwd, check=0)
    (counted,) = plan("model=ladder", "size=7k", *words, cwd=cwd)
    S, V, d = 7272, 4096, 24
    n_scored = sum(window.n_scored for window in windows)
    work = 2 * S * n_read + 2 * V * d * n_scored + 4 * d * n_pairs
    assert (counted["tokens"], counted["tokens_counted"]) == (n_scored, True)
    assert 1 <= counted["flops"] / work < 1.05, "beginnings that are not worth a pass are read again"
    assert 0.6 < estimated["tokens"] / n_scored < 1.6
    assert 0.6 < estimated["flops"] / work < 1.6
