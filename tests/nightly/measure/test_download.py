"""Fetching what a sweep needs: the sizes that are said are those that come, and nothing else does."""

import csv
import io
import json
import shlex
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import Answer, here, rbpx, start
from tests.support.hub_datasets import add_known
from tests.support.model_hub import Hub, environment, serving_others

WANTED = ["config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]
UNWANTED = ["README.md", "flax_model.msgpack", "model.gguf", "onnx/model.onnx", "onnx/model.safetensors"]


UNWANTED += ["pytorch_model.bin", "tf_model.h5"]


MIB = 2**20


def crowded(folder: Path, source: Path) -> Path:
    """A checkpoint in a repository with copies of it that nothing of rbpx reads."""
    shutil.copytree(source, folder)
    for name in UNWANTED:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("not wanted")
    return folder


def needed_bytes(folder: Path) -> int:
    return sum((folder / name).stat().st_size for name in WANTED)


def rows_of(answer: Answer) -> dict[str, dict[str, Any]]:
    return {row["repository"]: row for row in json.loads(answer.stdout)}


def brought(hub: Hub) -> list[str]:
    """The files of which bytes were asked for."""
    lines = [line.split() for line in hub.asked]
    return sorted({path for method, path, *_ in lines if method == "GET" and ("/resolve/" in path or "/cdn/" in path)})


# --------------------------------------------------------------------------------- whole sweeps, each line a process


@pytest.fixture
def others(tiny_checkpoint: Callable[..., Path], shared_data: Path, tmp_path: Path) -> Iterator[Hub]:
    """A hub with two models among much else, and with the known datasets."""
    with serving_others() as hub:
        assert hub.datasets is not None
        add_known(hub.datasets, shared_data / "data")
        for model, arch in (("org/one", "gpt2"), ("org/two", "opt")):
            hub.add(model, crowded(tmp_path / "served" / model, tiny_checkpoint(arch)))
        yield hub


def sweep(store: Path) -> list[object]:
    return ["-m", "model=hub", "model.id=org/one,org/two", "dataset=gsm8k,wikipedia", "limit=5", f"store={store}"]


def states(store: Path, cwd: Path) -> list[str]:
    told = here("status", "--store", store, "--format", "json", cwd=cwd, check=0)
    return [row["state"] for row in json.loads(told.stdout)]


def test_what_is_said_is_what_comes_a_second_time_nothing_does_and_then_no_network_is_needed(
    others: Hub, cwd: Path, tmp_path: Path
) -> None:
    words, env = sweep(tmp_path / "store"), environment(others.url, tmp_path / "home")
    rows = rows_of(rbpx("download", *words, "--format", "json", cwd=cwd, env=env, check=0))
    assert {row["state"] for row in rows.values()} == {"fetched"}
    assert {row["n_bytes_here"] for row in rows.values()} == {0}
    for model in ("org/one", "org/two"):
        commit, folder = others.repos[model]["main"]
        assert (rows[model]["commit"], rows[model]["n_files"]) == (commit, len(WANTED))
        assert rows[model]["n_bytes"] == needed_bytes(folder) == sum(others.served(model, name) for name in WANTED)
        resolved = [path.split("/", 5)[5] for path in brought(others) if path.startswith(f"/{model}/resolve/")]
        assert resolved == [name for name in WANTED if not name.endswith(".safetensors")], "large ones lie elsewhere"
    assert others.datasets is not None
    gsm8k = others.datasets.repos["openai/gsm8k"]
    files = {path: raw for path, raw in gsm8k.revisions["main"].items() if path.startswith("main/")}
    sent = {path.partition("/resolve/")[2].partition("/")[2]: n for path, n in others.sent.items() if "gsm8k/" in path}
    sent = {path: n for path, n in sent.items() if path.endswith(".parquet")}
    assert sent == {path: len(raw) for path, raw in files.items()}, "each file of that subset once, and no other"
    assert rows["openai/gsm8k"]["n_bytes"] == sum(sent.values())
    assert rows["wikimedia/wikipedia"]["n_bytes"] == 0 < rows["wikimedia/wikipedia"]["n_read_bytes"]
    assert not [path for path in brought(others) if "20231101.de" in path]

    others.asked.clear()
    again = rbpx("download", *words, "--format", "json", cwd=cwd, env=env, check=0)
    assert {row["state"] for row in rows_of(again).values()} == {"here"}
    assert "nothing to fetch" in again.stderr
    assert brought(others) == []

    others.asked.clear()
    measured = rbpx("measure", *words, cwd=cwd, env=env | {"HF_HUB_OFFLINE": "1"}, check=0)
    assert "failed" not in measured.stderr
    assert others.asked == []
    assert states(tmp_path / "store", cwd) == ["done"] * 4


def test_the_command_that_a_measurement_names_without_a_network_is_the_one_that_it_needs(
    others: Hub, cwd: Path, tmp_path: Path
) -> None:
    words, env = sweep(tmp_path / "a store"), environment(others.url, tmp_path / "home")
    offline = env | {"HF_HUB_OFFLINE": "1"}
    lines = rbpx("measure", *words, cwd=cwd, env=offline, check=1).stderr.splitlines()
    told = [line for line in lines if line.startswith("rbpx: ")]
    assert others.asked == []
    assert len(told) == 2, "a line for each dataset, without which no model is loaded"
    commands = {line.partition("fetch it where there is a network: ")[2] for line in told}
    assert not [line for line in told if "check the network" in line]
    typed = shlex.split(commands.pop())
    assert typed[:4] == ["python", "-m", "rbpx", "download"]
    assert commands == set(), "one command fetches all of it"
    rbpx(*typed[3:], cwd=cwd, env=env, check=0)
    rbpx("measure", *words, cwd=cwd, env=offline, check=0)
    assert states(tmp_path / "a store", cwd) == ["done"] * 4


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


@pytest.mark.parametrize("names", [("tiny", "gated", "nosuch", "other"), ("gated",), ("nosuch", "gated")])
def test_a_cell_that_cannot_be_fetched_is_named_as_where_it_is_measured_and_stops_no_other(
    names: Sequence[str], models: Hub, of_file: list[object], cwd: Path
) -> None:
    answer = here("download", *ids(*names), *of_file, "--format", "json", cwd=cwd)
    rows = rows_of(answer)
    lost = [name for name in names if name in ("gated", "nosuch")]
    assert {name: row["state"] for name, row in rows.items()} == {
        f"org/{name}": "failed" if name in lost else "fetched" for name in names
    }
    measured = here("measure", *ids(*names), *of_file, cwd=cwd)
    assert answer.returncode == measured.returncode == (1 if len(lost) < len(names) else 2)
    for name in lost:
        line = next(line for line in answer.stderr.splitlines() if line.startswith(f"rbpx: mine {name} on file failed"))
        assert rows[f"org/{name}"]["error"] in line
        assert ("gated" if name == "gated" else "does not exist") in line
        assert f"mine {name} on file failed" in measured.stderr


def test_cells_that_are_measured_need_nothing(models: Hub, of_file: list[object], cwd: Path, tmp_path: Path) -> None:
    here("measure", *ids("tiny"), *of_file, cwd=cwd, check=0)
    shutil.rmtree(tmp_path / "home")
    models.asked.clear()
    answer = here("download", *ids("tiny"), *of_file, cwd=cwd, check=0)
    assert "nothing to fetch: no cell that is missing needs the hub" in answer.stderr
    assert (models.asked, answer.stdout) == ([], "")
    rows = rows_of(here("download", *ids("tiny", "other"), *of_file, "--format", "json", cwd=cwd, check=0))
    assert list(rows) == ["org/other"]


def test_the_parts_of_a_sweep_need_different_models(models: Hub, of_file: list[object], cwd: Path) -> None:
    told = [
        here("download", *ids("tiny", "other"), *of_file, f"shard={n}/2", "--format", "csv", cwd=cwd, check=0).stdout
        for n in (1, 2)
    ]
    rows = [row for text in told for row in csv.DictReader(io.StringIO(text))]
    assert sorted(row["repository"] for row in rows) == ["org/other", "org/tiny"]
    assert {row["state"] for row in rows} == {"fetched"}
