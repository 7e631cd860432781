"""A store as a dataset of a hub, read from there as others would."""

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

from tests.support.composed import here
from tests.support.dataset_hub import DatasetHub, serving
from tests.support.stores import Family, Measured, manifests, run_folders

PLACE = "hf://datasets/us/ours"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[DatasetHub]:
    from huggingface_hub import constants

    with serving(DatasetHub()) as running:
        monkeypatch.setattr(constants, "ENDPOINT", running.url)
        template = constants.HUGGINGFACE_CO_URL_TEMPLATE.split("/{repo_id}")[1]
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", f"{running.url}/{{repo_id}}{template}")
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setenv("HF_TOKEN", "hf_testing")
        yield running


def _published(hub: DatasetHub) -> dict[str, bytes]:
    return hub.repos["us/ours"].revisions["main"]


def test_a_store_is_published_and_read_from_the_hub(
    hub: DatasetHub, measured: Measured, cwd: Path, tmp_path: Path
) -> None:
    answer = here("store", "publish", PLACE, f"store={measured.store}", cwd=cwd, check=0)
    assert answer.stderr.strip().splitlines()[-1].startswith("published 4 runs, ")
    files = _published(hub)
    assert sorted(name for name in files if name.startswith("tokens/")) == [
        f"tokens/{run_id}.parquet" for run_id in sorted(run_folders(measured.store))
    ]
    from huggingface_hub import HfFileSystem

    system = HfFileSystem(endpoint=hub.url, token="hf_testing", skip_instance_cache=True)
    tokens_there = pyarrow.dataset.dataset(system.glob("datasets/us/ours/tokens/*.parquet"), filesystem=system)
    reader = duckdb.connect()
    reader.register("tokens", tokens_there)
    query = "SELECT run_id, count(*), sum(greater) FROM tokens GROUP BY ALL"
    expected = {}
    for run_id, folder in run_folders(measured.store).items():
        tokens = pq.read_table(folder / "tokens.parquet")
        expected[run_id] = (tokens.num_rows, sum(tokens["greater"].to_pylist()))
    assert {row[0]: row[1:] for row in reader.sql(query).fetchall()} == expected


def test_the_card_names_the_files_of_each_relation(hub: DatasetHub, measured: Measured, cwd: Path) -> None:
    here("store", "publish", PLACE, f"store={measured.store}", cwd=cwd, check=0)
    files = _published(hub)
    from huggingface_hub import DatasetCard

    card: Any = DatasetCard(files["README.md"].decode())
    globs = {config["config_name"]: config["data_files"] for config in card.data.to_dict()["configs"]}
    assert {"tokens", "rank_counts", "documents", "runs", "observations", "vocab"} <= globs.keys()
    for pattern in globs.values():
        assert [name for name in files if Path(name).match(pattern)], f"{pattern} matches nothing"
    n_tokens = sum(facts["n_tokens"] for facts in manifests(measured.store).values())
    assert f"4 runs, {n_tokens:,} tokens" in card.text
    assert "| mine | " in card.text
    assert "xs, s, m, l |" in card.text


def test_datasets_loads_a_relation_by_the_card(hub: DatasetHub, measured: Measured, cwd: Path, tmp_path: Path) -> None:
    """From a folder with the published files, since `datasets` asks hubs as a process of its own would."""
    here("store", "publish", PLACE, f"store={measured.store}", cwd=cwd, check=0)
    for name, raw in _published(hub).items():
        path = tmp_path / "copy" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(raw)
    from datasets import load_dataset

    rows = load_dataset(str(tmp_path / "copy"), "tokens", split="train", cache_dir=str(tmp_path / "cache"))
    assert len(rows) == sum(facts["n_tokens"] for facts in manifests(measured.store).values())


def test_neither_paths_of_this_machine_nor_html_are_published(
    hub: DatasetHub, family: Family, cwd: Path, tmp_path: Path
) -> None:
    text = tmp_path / "secret folder" / "mine.txt"
    text.parent.mkdir()
    text.write_text("A text that is long enough to be scored.\n" * 20)
    words = [*family.words("xs"), f"dataset.path='{text}'", "model.family='<img src=x>|y'"]
    here("measure", *words, "store=s", cwd=tmp_path, check=0, writes=True)
    here("store", "publish", PLACE, "store=s", cwd=tmp_path, check=0)
    files = _published(hub)
    card = files["README.md"].decode()
    assert "<img" not in card
    assert "| &lt;img src=x&gt;&#124;y | " in card
    for name in ("runs.parquet", "observations.parquet"):
        printed = str(pq.read_table(io.BytesIO(files[name])).to_pylist())
        assert str(tmp_path) not in printed
        assert "secret folder" not in printed
    config = json.loads(pq.read_table(io.BytesIO(files["runs.parquet"]))["config"][0].as_py())
    assert config["dataset"]["path"] == "mine.txt"


def test_a_run_that_is_gone_goes_from_the_hub_too(hub: DatasetHub, own_store: Path, cwd: Path) -> None:
    here("store", "publish", PLACE, f"store={own_store}", cwd=cwd, check=0)
    run_id = min(run_folders(own_store))
    here("store", "rm", run_id, f"store={own_store}", cwd=cwd, check=0)
    here("store", "publish", PLACE, f"store={own_store}", cwd=cwd, check=0)
    assert not [name for name in _published(hub) if run_id in name]
    assert len([name for name in _published(hub) if name.startswith("tokens/")]) == 3


@pytest.mark.parametrize(
    ("place", "refuses", "says", "status"),
    [
        ("hf://datasets/ours", None, "publish takes hf://datasets/ORG/NAME", 2),
        ("hf://datasets/../x", None, "publish: Repo id must use alphanumeric chars", 2),
        (PLACE, 401, "cannot be written (401); log in with `hf auth login`", 2),
        (PLACE, 403, "cannot be written (403); log in", 2),
        (PLACE, 500, "cannot be written (500); run the same line again", 1),
    ],
)
def test_what_a_hub_refuses_is_one_line(
    place: str, refuses: int | None, says: str, status: int, hub: DatasetHub, measured: Measured, cwd: Path
) -> None:
    hub.refuses = refuses
    answer = here("store", "publish", place, f"store={measured.store}", cwd=cwd, check=status)
    assert says in answer.stderr.strip().splitlines()[-1]
    assert "us/ours" not in hub.repos
    assert json.dumps(answer.stdout) == '""'
