"""A model that fails in whatever way is a failure of its own cell, kept with its reason; all others are measured."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rbpx.data.windows import Window
from rbpx.errors import MeasureError
from rbpx.measure.distributed import ProcessGroup
from rbpx.measure.extract import measure_windows
from rbpx.measure.reading.reading import Reading
from rbpx.models.load import LoadedModel, load_model
from rbpx.models.pretrained import load_weights
from tests.support.commands import Answer, here


def told(answer: Answer) -> list[str]:
    """What was said, without what was to be scored."""
    assert "Traceback" not in answer.stderr
    return [line for line in answer.stderr.splitlines() if line.startswith("rbpx: ") and ": scores " not in line]


def words_for(folder: Path, texts: Path, store: Path) -> list[object]:
    return ["measure", "model=hub", f"model.id={folder}", "dataset=file", f"dataset.path={texts}", "--store", store]


@pytest.mark.parametrize(
    ("problem", "says"),
    [(KeyError("no such column"), "KeyError: 'no such column';"), (MemoryError(), "MemoryError: Out of memory;")],
    ids=["mistake", "without words"],
)
def test_a_mistake_in_rbpx_is_a_failure_whose_traceback_is_kept(
    problem: Exception,
    says: str,
    tiny_checkpoint: Callable[..., Path],
    tiny_jsonl: Path,
    cwd: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def tables(*args: object) -> None:
        raise problem

    monkeypatch.setattr("rbpx.measure.cell.run_tables", tables)
    store = tmp_path / "store"
    (line,) = told(here(*words_for(tiny_checkpoint("gpt2"), tiny_jsonl, store), cwd=cwd, check=1))
    assert f"{says} its traceback is in the store's relation failures" in line
    (failure,) = [json.loads(path.read_text()) for path in (store / "failures").glob("*.json")]
    assert "in tables" in failure["traceback"]
    assert "rbpx/measure/cell.py" in failure["traceback"]


# ------------------------------------------------------------------------------- files that change while they are read


@pytest.fixture
def windows() -> list[Window]:
    scored = np.arange(20) > 0
    return [Window(doc_id, np.arange(20, dtype=np.int32) + doc_id, scored, 20, 20) for doc_id in range(6)]


def ranked(loaded: LoadedModel, windows: list[Window], advance: Callable[[int], None] = lambda n: None) -> Any:
    alone = ProcessGroup(0, 1, torch.device("cpu"))
    return measure_windows(Reading(loaded, windows, alone, 20, advance))["logprob"]


@pytest.fixture
def checkpoints(tiny_checkpoint: Callable[..., Path], tmp_path: Path) -> tuple[Path, Path]:
    """A model, and the weights of another of its shape, as the next state of its training has them."""
    folder = shutil.copytree(tiny_checkpoint("gpt2"), tmp_path / "latest")
    return folder, shutil.copy(tiny_checkpoint("gpt2", seed=1) / "model.safetensors", tmp_path / "next")


def test_weights_that_are_written_over_while_they_are_measured_are_no_run_of_either_model(
    checkpoints: tuple[Path, Path], windows: list[Window]
) -> None:
    """torch maps the file into memory, so its bytes become the weights of the model that runs."""
    folder, other = checkpoints
    loaded = load_model(str(folder), None, "float32", torch.device("cpu"))

    def train_on(n_tokens: int) -> None:
        with (folder / "model.safetensors").open("r+b") as file:
            file.write(other.read_bytes())

    with pytest.raises(MeasureError, match=r"was written to while it was read \(.*safetensors\)"):
        ranked(loaded, windows, train_on)


def test_weights_that_another_file_takes_the_place_of_are_still_those_that_were_loaded(
    checkpoints: tuple[Path, Path], windows: list[Window]
) -> None:
    folder, other = checkpoints
    loaded = load_model(str(folder), None, "float32", torch.device("cpu"))
    before = ranked(loaded, windows)
    other.replace(folder / "model.safetensors")
    np.testing.assert_array_equal(ranked(loaded, windows), before)
    (folder / "model.safetensors").unlink()
    np.testing.assert_array_equal(ranked(loaded, windows), before)


def test_weights_that_are_not_those_that_were_hashed_are_not_loaded(
    checkpoints: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, other = checkpoints

    def load_late(*words: Any) -> Any:
        other.replace(folder / "model.safetensors")
        return load_weights(*words)

    monkeypatch.setattr("rbpx.models.load.load_weights", load_late)
    with pytest.raises(MeasureError, match="was written to while it was read"):
        load_model(str(folder), None, "float32", torch.device("cpu"))
