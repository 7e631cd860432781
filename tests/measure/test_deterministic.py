"""deterministic=true: the same bits for every batch size, because each window is computed alone, in one thread."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.support.commands import here
from tests.support.stores import cell_records, columns_of, manifests, run_folders


def measured(checkpoint: Path, texts: Path, store: Path, cwd: Path, *words: str) -> Path:
    """The run of a store that holds it alone."""
    request = ["model=hub", f"model.id={checkpoint}", "dataset=file", f"dataset.path={texts}", "--store", store]
    here("measure", *request, *words, cwd=cwd, check=0)
    (run,) = run_folders(store).values()
    return run


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Windows and threads of every forward pass from now on."""
    from rbpx.measure.reading import reading

    seen: list[tuple[int, int]] = []
    plain = reading.head_input

    def watched(model: Any, ids_BT: torch.Tensor) -> torch.Tensor:
        seen.append((len(ids_BT), torch.get_num_threads()))
        return plain(model, ids_BT)

    monkeypatch.setattr(reading, "head_input", watched)
    return seen


def test_two_batch_sizes_give_the_same_bits(
    passes: list[tuple[int, int]],
    tiny_checkpoint: Callable[..., Path],
    long_jsonl: Path,
    cwd: Path,
    tmp_path: Path,
) -> None:
    place = (tiny_checkpoint("qwen2"), long_jsonl)
    threads = torch.get_num_threads()
    runs = {
        budget: measured(*place, tmp_path / budget, cwd, f"tokens_per_batch={budget}", "deterministic=true")
        for budget in ("100", "4096")
    }
    assert set(passes) == {(1, 1)}, "one window a pass, one thread"
    assert torch.get_num_threads() == threads
    assert not torch.are_deterministic_algorithms_enabled(), "what follows is computed as before"
    one, other = (columns_of(run, "tokens") for run in runs.values())
    assert len(one["logprob"]) > 200
    assert all(one[name].tobytes() == other[name].tobytes() for name in one if name != "run_id")
    assert runs["100"].name == runs["4096"].name
    passes.clear()
    measured(*place, tmp_path / "plain", cwd)
    assert max(n_windows for n_windows, _ in passes) > 1, "plainly they are batched"


def test_what_was_measured_plainly_does_not_answer_for_it(
    tiny_checkpoint: Callable[..., Path], tiny_jsonl: Path, cwd: Path, tmp_path: Path
) -> None:
    """Their numbers agree up to rounding only, so each is a cell and a run of its own; one of them enters a fit."""
    store, place = tmp_path / "store", (tiny_checkpoint("qwen2"), tiny_jsonl)
    measured(*place, store, cwd)
    request = ["model=hub", f"model.id={place[0]}", "dataset=file", f"dataset.path={place[1]}", "--store", store]
    here("measure", *request, "deterministic=true", cwd=cwd, check=0)
    assert {facts["deterministic"] for facts in manifests(store).values()} == {False, True}
    assert len({cell["cell_key"] for cell in cell_records(store)}) == 2
    assert sorted(cell["config"]["deterministic"] for cell in cell_records(store)) == [False, True]
    again = here("measure", *request, "deterministic=true", cwd=cwd, check=0)
    assert "nothing to measure" in again.stderr
    rows = json.loads(here("status", *request, "deterministic=true", "--format", "json", cwd=cwd, check=0).stdout)
    assert [row["state"] for row in rows] == ["done"]
