"""Fetching what a sweep needs: the sizes that are said are those that come, and nothing else does."""

import json
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rbpx.models.hub import fetch, needed_files
from tests.support.commands import Answer, here
from tests.support.hub import CHUNK, Hub

WANTED = ["config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]


def needed_bytes(folder: Path) -> int:
    return sum((folder / name).stat().st_size for name in WANTED)


# ------------------------------------------------------------------------------------------------ models alone, here


@pytest.fixture
def models(hub: Hub, tiny_checkpoint: Callable[..., Path]) -> Hub:
    """A hub with org/tiny, org/other, and org/gated, whose files are refused."""
    hub.add("org/tiny", tiny_checkpoint("gpt2"))
    hub.add("org/other", tiny_checkpoint("gpt2", seed=1))
    hub.add("org/gated", tiny_checkpoint("gpt2", seed=2))
    hub.gated["org/gated"] = 403
    return hub


@pytest.fixture
def of_file(tiny_jsonl: Path, tmp_path: Path) -> list[object]:
    """The words for a text of this machine and a store."""
    return ["dataset=file", f"dataset.path={tiny_jsonl}", f"store={tmp_path / 'store'}"]


def ids(*names: str) -> list[object]:
    return ["model=hub", f"model.id=[{','.join(f'org/{name}' for name in names)}]", "model.family=mine"]


def rows_of(answer: Answer) -> dict[str, dict[str, Any]]:
    return {row["repository"]: row for row in json.loads(answer.stdout)}


def test_what_is_said_is_what_comes_a_second_time_nothing_does_and_then_no_network_is_needed(
    models: Hub, of_file: list[object], cwd: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that is refused stops no other one."""
    words = (*ids("tiny", "gated"), *of_file)
    answer = here("download", *words, "--format", "json", cwd=cwd, check=1)
    rows = rows_of(answer)
    assert {name: row["state"] for name, row in rows.items()} == {"org/tiny": "fetched", "org/gated": "failed"}
    commit, folder = models.repos["org/tiny"]["main"]
    row = rows["org/tiny"]
    assert (row["commit"], row["n_files"], row["n_bytes_here"]) == (commit, len(WANTED), 0)
    assert row["n_bytes"] == needed_bytes(folder) == sum(models.served("org/tiny", name) for name in WANTED)
    line = next(line for line in answer.stderr.splitlines() if line.startswith("rbpx: mine gated on file failed"))
    assert rows["org/gated"]["error"] in line
    assert "gated" in rows["org/gated"]["error"]
    models.sent.clear()
    again = here("download", *ids("tiny"), *of_file, "--format", "json", cwd=cwd, check=0)
    assert rows_of(again)["org/tiny"]["state"] == "here"
    assert [path for path in models.sent if "/resolve/" in path or "/cdn/" in path] == []
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    here("measure", *ids("tiny"), *of_file, cwd=cwd, check=0)
    models.asked.clear()
    shutil.rmtree(tmp_path / "home")
    measured = here("download", *ids("tiny"), *of_file, cwd=cwd, check=0)
    assert "nothing to fetch: no cell that is missing needs the hub" in measured.stderr
    assert (models.asked, measured.stdout) == ([], "")


def test_on_a_disk_that_is_too_small_nothing_is_begun(
    models: Hub, of_file: list[object], cwd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    n_bytes = needed_bytes(models.repos["org/tiny"]["main"][1])
    for free, status in ((n_bytes - 1, 1), (n_bytes, 0)):
        monkeypatch.setattr(shutil, "disk_usage", lambda place, free=free: SimpleNamespace(free=free))
        answer = here("download", *ids("tiny"), *of_file, cwd=cwd, check=status)
        assert ("make room" in answer.stderr) == bool(status)
        assert bool(models.resolved()) == (status == 0)
        assert "org/tiny" in answer.stdout


def test_the_command_that_is_named_has_the_words_that_choose_cells_and_no_others(
    models: Hub, of_file: list[object], cwd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    words = [*ids("tiny"), *of_file, "model.revision=main"]
    answer = here("run", *words, "k=[1,10]", "laws=[rbp]", cwd=cwd, check=1)
    line = next(line for line in answer.stderr.splitlines() if "fetch it" in line)
    assert "org/tiny at revision main is no folder here and not in the hub's cache" in line
    assert shlex.split(line.partition(" network: ")[2]) == ["python", "-m", "rbpx", "download", *map(str, words)]


# ------------------------------------------------------------------------------------------------------------ a file


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
def test_a_download_that_breaks_off_goes_on_there_and_its_bytes_are_counted_once(name: str, models: Hub) -> None:
    folder = models.repos["org/tiny"]["main"][1]
    _, files, _ = needed_files("org/tiny", None, False, True)
    assert {file.path: file.n_bytes for file in files} == {each: (folder / each).stat().st_size for each in WANTED}
    assert not any(file.is_here for file in files)
    models.faults[name] = "breaks once"
    came: list[int] = []
    fetched, _ = fetch("org/tiny", None, advance=came.append)
    assert sum(came) == needed_bytes(folder)
    whole = (folder / name).read_bytes()
    assert (fetched / name).read_bytes() == whole
    (asked,) = (line.split()[2] for line in models.asked if "bytes=" in line)
    assert asked == f"bytes={len(whole) // 2 // CHUNK * CHUNK}-"
    assert all(file.is_here for file in needed_files("org/tiny", None, False, True)[1])
