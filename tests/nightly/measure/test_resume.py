"""What is finished is kept: kills, two processes at once, cells that fail, and what a second start still has to do."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.commands import here
from tests.support.stores import (
    Family,
    build_member,
    cell_records,
    columns_of,
    run_folders,
)
from tests.support.warm import Warm

SLOWLY = "tokens_per_batch=1"  # one document at a time: long enough to be caught at it


def answers(store: Path) -> dict[tuple[str, str, str], str]:
    """Which run answers which request, by what people call it."""
    return {(r["family"], r["size"], r["dataset"]): r["run_id"] for r in cell_records(store)}


def index_rows(store: Path, query: str, cwd: Path) -> list[dict[str, Any]]:
    """What a client of DuckDB gets from the index."""
    import duckdb

    with duckdb.connect(str(store / "rbpx.duckdb"), read_only=True) as index:
        return index.execute(query).to_arrow_table().to_pylist()


@pytest.mark.parametrize("cells", ["different", "same"])
def test_two_processes_measure_into_one_store_at_once(
    cells: str, family: Family, long_jsonl: Path, cwd: Path, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    sizes = ("s", "m") if cells == "different" else ("s", "s")
    both = [Warm("measure", *family.words(size, text=long_jsonl), SLOWLY, "--store", store, cwd=cwd) for size in sizes]
    outputs = [process.communicate(timeout=300) for process in both]
    assert [process.returncode for process in both] == [0, 0], outputs
    # Both found their cell missing, so neither began after the other had ended.
    assert all("tokens/s" in stderr and "Traceback" not in stderr for _, stderr in outputs)
    assert len(run_folders(store)) == len(set(sizes))
    assert {size for _, size, _ in answers(store)} == set(sizes)
    assert not list(store.glob("runs/.*"))
    indexed = index_rows(store, "SELECT run_id, count(*) AS n FROM tokens GROUP BY ALL", cwd)
    n_tokens = {run_id: len(columns_of(folder, "tokens")["position"]) for run_id, folder in run_folders(store).items()}
    assert {row["run_id"]: row["n"] for row in indexed} == n_tokens
    assert index_rows(store, "SELECT count(*) AS n FROM runs", cwd) == [{"n": len(set(sizes))}]


# ------------------------------------------------------------------------------------------------------ cells that fail


def spoil(folder: Path, with_nan: bool) -> None:
    """Make a model's last weights not a number, or good again."""
    from safetensors.numpy import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    weights["transformer.ln_f.weight"][:] = np.nan if with_nan else 1.0
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


@pytest.fixture
def fragile(family: Family, tmp_path: Path) -> Family:
    """Three models, of which the middle one has weights that are not numbers."""
    folders = {size: family.folders[size] for size in ("xs", "m")}
    folders["s"] = build_member(tmp_path / "models" / "s", "s")
    spoil(folders["s"], with_nan=True)
    return Family(folders, family.text)


def test_a_cell_that_fails_is_kept_with_its_reason_until_it_is_repaired(
    fragile: Family, cwd: Path, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    words = [*fragile.words("xs", "s", "m"), "resamples=50", "--store", store]
    answer = here("run", *words, cwd=cwd, check=1)
    assert "Traceback" not in answer.stderr
    messages = [line for line in answer.stderr.splitlines() if line.startswith("rbpx: mine s on file failed")]
    assert len(messages) == 1
    assert "non-finite logits" in messages[0]
    assert "a law needs at least 3" in answer.stdout  # the two that were measured
    assert {size for _, size, _ in answers(store)} == {"xs", "m"}

    failures_query = ["sql", "SELECT * FROM failures", "--store", store, "--format", "json"]
    (failure,) = json.loads(here(*failures_query, cwd=cwd, check=0).stdout)
    assert (failure["family"], failure["size"], failure["dataset"]) == ("mine", "s", "file")
    assert "non-finite logits" in failure["error"]
    assert failure["at"].startswith("20")
    assert index_rows(store, "SELECT size FROM failures", cwd) == [{"size": "s"}]
    assert "non-finite logits" in here("status", "--store", store, cwd=cwd, check=0).stdout

    finished = {name: (path / "manifest.json").stat().st_mtime_ns for name, path in run_folders(store).items()}
    spoil(fragile.folders["s"], with_nan=False)
    again = here("run", *words, cwd=cwd, check=0)
    assert again.stderr.count("tokens/s") == 1
    assert "cross-entropy" in again.stdout
    assert {size for _, size, _ in answers(store)} == {"xs", "s", "m"}
    assert {name: (store / "runs" / name / "manifest.json").stat().st_mtime_ns for name in finished} == finished
    assert json.loads(here(*failures_query, cwd=cwd, check=0).stdout) == []
    assert index_rows(store, "SELECT size FROM failures", cwd) == []


def test_a_cell_that_fails_again_is_one_failure(fragile: Family, cwd: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    for _ in range(2):
        here("measure", *fragile.words("xs", "s"), "--store", store, cwd=cwd, check=1)
    assert len(list((store / "failures").glob("*.json"))) == 1


@pytest.mark.parametrize("harm", ["no tokenizer", "half a tokenizer", "half its weights", "no configuration"])
def test_a_model_that_is_harmed_does_not_stop_the_others(harm: str, family: Family, cwd: Path, tmp_path: Path) -> None:
    folder = build_member(tmp_path / "models" / "s", "s")
    if harm == "no tokenizer":
        for path in folder.glob("tokenizer*"):
            path.unlink()
    elif harm == "half a tokenizer":
        (folder / "tokenizer.json").write_text('{"version": "1.0", "model": {"type": "BPE"}}')
    elif harm == "half its weights":
        whole = (folder / "model.safetensors").read_bytes()
        (folder / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    else:
        (folder / "config.json").write_text("{}")
    harmed = Family({size: family.folders[size] for size in ("xs", "m")} | {"s": folder}, family.text)
    store = tmp_path / "store"
    answer = here("measure", *harmed.words("xs", "s", "m"), "--store", store, cwd=cwd)
    assert "Traceback" not in answer.stderr, answer.stderr[-2000:]
    assert answer.returncode == 1, answer.stderr
    assert {size for _, size, _ in answers(store)} == {"xs", "m"}
    (failure,) = [json.loads(path.read_text()) for path in (store / "failures").glob("*.json")]
    assert failure["size"] == "s"
    assert str(folder) in failure["error"]
