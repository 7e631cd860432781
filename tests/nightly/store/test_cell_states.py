"""Where cells stand: marks of processes that live, died or fell silent, and the grid that `status` prints."""

import json
import re
import time
from pathlib import Path
from typing import Any

from rbpx.config.grid import Cell
from rbpx.store.store import Store
from tests.support.checkpoints import TINY_TEXT
from tests.support.composed import here
from tests.support.stores import Family, write_jsonl
from tests.support.warm import Warm


def wait_until(holds: Any, seconds: float = 60.0) -> None:
    began = time.monotonic()
    while not holds():
        assert time.monotonic() - began < seconds, "it did not happen"
        time.sleep(0.02)


def grid_of(shown: str) -> dict[tuple[str, ...], list[str]]:
    """Rows of the grid by family and size, words of two spaces apart."""
    lines = shown.split("state of the cells")[1].strip().splitlines()
    rows = [re.split(r"\s{2,}", line.strip()) for line in lines if "─" not in line]
    end = next((place for place, row in enumerate(rows) if len(row) < 3), len(rows))
    return {tuple(row[:2]): row[2:] for row in rows[:end]}


def test_status_shows_a_killed_measurement_as_stopped_and_the_next_one_finishes_it(cwd: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    text = write_jsonl(tmp_path / "text.jsonl", *(f"Letter {n}: {text}" for n in range(10) for text in TINY_TEXT))
    words = ["model=ladder", "size=3.2m", "dataset=file", f"dataset.path={text}", "--store", str(store)]
    process = Warm("measure", *words, cwd=cwd)
    wait_until(lambda: list(store.glob("running/[!.]*.json")))
    running = here("status", *words, cwd=cwd, check=0).stdout
    process.kill()
    process.communicate()
    stopped = here("status", *words, cwd=cwd, check=0).stdout
    everything = here("status", "--store", store, cwd=cwd, check=0).stdout
    here("measure", *words, "limit=1000", cwd=cwd, check=0)
    done = here("status", *words, cwd=cwd, check=0).stdout
    assert grid_of(running)["ladder", "3.2m"][0].startswith("running")
    assert f"process {process.pid} on" in running
    assert grid_of(stopped)["ladder", "3.2m"] == grid_of(everything)["ladder", "3.2m"] == ["stopped"]
    assert grid_of(done)["ladder", "3.2m"] == ["done"]
    assert list(store.glob("running/*")) == []


def test_a_size_measured_on_one_text_is_missing_on_the_other(family: Family, cwd: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    text = write_jsonl(tmp_path / "other.jsonl", "The letters are read twice: once by the one who writes them.")
    here("measure", *family.words("xs", "s"), "--store", store, cwd=cwd, check=0)
    words = ["pydoc" if word == "dataset=file" else word for word in family.words("s", text=text)]
    words[words.index("pydoc")] = "dataset=pydoc"
    here("measure", *words, "--store", store, cwd=cwd, check=0)
    here("measure", *words, "dtype=bfloat16", "--store", store, cwd=cwd, check=0)
    shown = here("status", "--store", store, cwd=cwd, check=0).stdout
    assert grid_of(shown) == {
        ("family", "size"): ["file", "pydoc", "pydoc bfloat16"],
        ("mine", "xs"): ["done", "missing", "missing"],
        ("mine", "s"): ["done", "done", "done"],
    }


def test_a_named_grid_tells_done_failed_and_missing(family: Family, cwd: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    here("measure", *family.words("xs"), "--store", store, cwd=cwd, check=0)
    here("measure", "model=gpt2", "size=gpt2", *family.words()[3:], "--store", store, cwd=cwd, check=1)
    words = ("-m", "model=gpt2", "size=gpt2,medium", *family.words()[3:], "--store", store)
    shown = here("status", *words, cwd=cwd, check=0).stdout
    assert "2 cells: 1 failed, 1 missing" in shown
    assert "failed: gpt2 gpt2 on file: openai-community/gpt2 is no folder here and not in the hub's cache" in shown
    assert "python -m rbpx download model=gpt2 size=gpt2 dataset=file" in shown
    mine = json.loads(here("status", *family.words("xs", "s"), "--store", store, "--format", "json", cwd=cwd).stdout)
    assert [(row["size"], row["state"]) for row in mine] == [("xs", "done"), ("s", "missing")]
    by_name = [word for word in family.words("xs", "s") if not word.startswith("dataset.path=")]
    named = json.loads(here("status", *by_name, "--store", store, "--format", "json", cwd=cwd, check=0).stdout)
    assert [(row["run_id"], row["state"]) for row in named] == [(row["run_id"], row["state"]) for row in mine]


# ------------------------------------------------------------------------- a cell whose text is not on this machine

CELL = Cell(
    family="mine", size="xl", model="m", model_hash=None, revision=None, non_embedding_params=None, dataset="file",
    text_hash=None, protocol="paper", window=512, whole=False, stride=None, padding="counted", bos="tokenizer",
    dtype="float32", limit=1000, seed=42,
)  # fmt: skip
CONFIG = {
    "dtype": "float32",
    "limit": 1000,
    "seed": 42,
    "model": {"bos": "tokenizer"},
    "protocol": {"name": "paper", "window": 512},
}


def done(store: Store, run_id: str, asked_at: str, **changed: Any) -> None:
    """A run, and the record that answers CELL by it, with some changes."""
    (store.root / "runs" / run_id).mkdir(parents=True)
    key = run_id * 2
    record = {"cell_key": key, "run_id": run_id, "model": "m", "revision": None, "asked_at": asked_at, **CELL.names()}
    store.write_record("cells", key, {**record, "config": CONFIG, **changed, "cell_key": key})
