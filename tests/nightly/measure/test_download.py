"""Fetching what a sweep needs: the sizes that are said are those that come, and nothing else does."""

import json
import shlex
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import Answer, rbpx, start
from tests.support.hub import Hub, environment, serving_others
from tests.support.hub_datasets import add_known
from tests.support.stores import cell_records

WANTED = ["config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]
MIB = 2**20


def needed_bytes(folder: Path) -> int:
    return sum((folder / name).stat().st_size for name in WANTED)


def rows_of(answer: Answer) -> dict[str, dict[str, Any]]:
    return {row["repository"]: row for row in json.loads(answer.stdout)}


def brought(hub: Hub) -> list[str]:
    """The files of which bytes were asked for."""
    lines = [line.split() for line in hub.asked]
    return sorted({path for method, path, *_ in lines if method == "GET" and ("/resolve/" in path or "/cdn/" in path)})


@pytest.fixture
def others(shared_data: Path) -> Iterator[Hub]:
    """A hub with the known datasets."""
    with serving_others() as hub:
        add_known(hub, shared_data / "data")
        yield hub


def test_the_command_that_is_named_fetches_the_texts_once_and_then_no_network_is_needed(
    others: Hub, cwd: Path, tmp_path: Path
) -> None:
    env, store = environment(others.url, tmp_path / "home"), tmp_path / "a store"
    offline = env | {"HF_HUB_OFFLINE": "1"}
    words = ["-m", "size=3k,7k", "dataset=gsm8k,wikipedia", "limit=5", f"store={store}"]
    lines = rbpx("measure", *words, cwd=cwd, env=offline, check=1).stderr.splitlines()
    told = [line for line in lines if line.startswith("rbpx: ")]
    assert others.asked == []
    assert len(told) == 2, "a line for each dataset, without which no model is loaded"
    (command,) = {line.partition("fetch it where there is a network: ")[2] for line in told}
    typed = shlex.split(command)
    assert typed[:4] == ["python", "-m", "rbpx", "download"], "one command fetches all of it"
    rows = rows_of(rbpx(*typed[3:], "--format", "json", cwd=cwd, env=env, check=0))
    assert [(row["state"], row["n_bytes_here"]) for row in rows.values()] == [("fetched", 0)] * 2
    _, folder = others.repos["openai/gsm8k"]["main"]
    files = {path.relative_to(folder).as_posix(): path.stat().st_size for path in (folder / "main").iterdir()}
    sent = {path.partition("/resolve/")[2].partition("/")[2]: n for path, n in others.sent.items() if "gsm8k/" in path}
    sent = {path: n for path, n in sent.items() if path.endswith(".parquet")}
    assert sent == files, "each file of that subset once, and no other"
    assert rows["openai/gsm8k"]["n_bytes"] == sum(sent.values())
    assert rows["wikimedia/wikipedia"]["n_bytes"] == 0 < rows["wikimedia/wikipedia"]["n_read_bytes"]
    assert not [path for path in brought(others) if "20231101.de" in path]

    others.asked.clear()
    again = rbpx("download", *words, "--format", "json", cwd=cwd, env=env, check=0)
    assert {row["state"] for row in rows_of(again).values()} == {"here"}
    assert "nothing to fetch" in again.stderr
    assert brought(others) == []

    others.asked.clear()
    measured = rbpx("measure", *words, cwd=cwd, env=offline, check=0)
    assert "failed" not in measured.stderr
    assert others.asked == []
    assert len(cell_records(store)) == 4


def test_a_download_that_is_killed_fetches_what_is_not_whole_when_it_is_typed_again(
    others: Hub, tiny_checkpoint: Callable[..., Path], cwd: Path, tmp_path: Path
) -> None:
    folder = tiny_checkpoint("gpt2", hidden_size=640)
    whole = (folder / "model.safetensors").read_bytes()
    assert len(whole) > 25 * MIB, "huggingface_hub writes 10 MiB at once, and half of it comes before the kill"
    others.add("org/large", folder)
    words, env = ["model=hub", "model.id=org/large", "--store", tmp_path / "store"], environment(others.url, tmp_path)
    others.faults["model.safetensors"] = "stalls"
    process = start("download", *words, cwd=cwd, env=env)
    until = time.monotonic() + 60
    while not [p for p in (tmp_path / "hub").rglob("*.incomplete") if p.stat().st_size >= 10 * MIB]:
        assert time.monotonic() < until, process.communicate()
        time.sleep(0.05)
    process.kill()
    stdout, _ = process.communicate()
    assert "0 B" in stdout, "sizes are said before anything comes"

    others.faults.clear()
    others.sent.clear()
    row = rows_of(rbpx("download", *words, "--format", "json", cwd=cwd, env=env, check=0))["org/large"]
    assert row["n_bytes"] == needed_bytes(folder)
    assert row["n_bytes_here"] <= row["n_bytes"] - len(whole), "of the small files those that had come"
    come = sum(others.served("org/large", name) for name in WANTED)
    assert come == row["n_bytes"] - row["n_bytes_here"], "a file that is whole comes once"
    assert next((tmp_path / "hub").glob("models--org--large/snapshots/*/model.safetensors")).read_bytes() == whole
