"""deterministic=true: the same bits for every batch size, because each window is computed alone, in one thread."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.support.checkpoints import TINY_TEXT
from tests.support.commands import here
from tests.support.stores import cell_records, columns_of, manifests, run_folders, write_jsonl


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Windows and threads of every forward pass from now on."""
    from rbpx.measure.reading import reading

    seen: list[tuple[int, int]] = []
    plain = reading.head_input

    def watched(model: Any, ids_BT: torch.Tensor, past: Any) -> torch.Tensor:
        seen.append((len(ids_BT), torch.get_num_threads()))
        return plain(model, ids_BT, past)

    monkeypatch.setattr(reading, "head_input", watched)
    return seen


def test_two_batch_sizes_give_the_same_bits_and_what_was_measured_plainly_does_not_answer_for_it(
    passes: list[tuple[int, int]], tiny_checkpoint: Callable[..., Path], cwd: Path, tmp_path: Path
) -> None:
    """Plain and deterministic numbers agree up to rounding only, so each is a cell and a run of its own."""
    texts = write_jsonl(tmp_path / "texts.jsonl", *(f"Letter {n}: {TINY_TEXT[0]}" for n in range(8)))
    words = ["model=hub", f"model.id={tiny_checkpoint('qwen2')}", "dataset=file", f"dataset.path={texts}", "--store"]
    threads = torch.get_num_threads()
    here("measure", *words, tmp_path / "100", cwd=cwd, check=0)
    assert max(n_windows for n_windows, _ in passes) > 1, "plainly they are batched"
    passes.clear()
    for budget in ("100", "4096"):
        asked = (f"tokens_per_batch={budget}", "deterministic=true")
        here("measure", *words, tmp_path / budget, *asked, cwd=cwd, check=0)
    assert set(passes) == {(1, 1)}, "one window a pass, one thread"
    assert torch.get_num_threads() == threads
    assert not torch.are_deterministic_algorithms_enabled(), "what follows is computed as before"
    facts = manifests(tmp_path / "100")
    assert {each["deterministic"] for each in facts.values()} == {False, True}
    assert sorted(cell["config"]["deterministic"] for cell in cell_records(tmp_path / "100")) == [False, True]
    (other,) = run_folders(tmp_path / "4096").values()
    assert facts[other.name]["deterministic"]
    one, two = (columns_of(tmp_path / budget / "runs" / other.name, "tokens") for budget in ("100", "4096"))
    assert len(one["logprob"]) > 200
    assert all(one[name].tobytes() == two[name].tobytes() for name in one if name != "run_id")
