"""A GPU is not waited for before the next batch: on torch's device without values, whatever would wait raises."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from rbpx.data.windows import Window
from rbpx.measure.extract import measure_windows
from rbpx.measure.reading import reading
from rbpx.measure.reading.reading import Batch, Reading, read_batch
from rbpx.models.architecture import context_of
from rbpx.models.devices import uploaded
from rbpx.models.head import NO_PAST, Head, float32_product, head_input
from rbpx.models.lengths import Lengths
from rbpx.models.load import LoadedModel
from rbpx.models.past import empty_past
from tests.support.architectures import tiny_config
from tests.support.measuring import ALONE

ARCHITECTURES = ("gpt_neox", "opt", "bloom", "llama", "qwen3", "gemma2", "olmo2", "mamba")
WITHOUT_CACHE = ("mamba",)
V, T = 200, 24


def loaded_on(device: str, arch: str) -> LoadedModel:
    """A model with random weights, or with none on the device that has no values; its head is not probed."""
    torch.manual_seed(0)
    with torch.device(device):
        model: Any = AutoModelForCausalLM.from_config(tiny_config(arch, vocab_size=V), dtype=torch.bfloat16).eval()
    head = Head(float32_product(model.get_output_embeddings(), torch.bfloat16), None, "identity", V)
    counts = {"non_embedding_params": 1, "active_params": 1, "total_params": 1}
    facts: dict[str, Any] = {"context": context_of(model), "commit": None, "weights_hash": None, "tokenizer_hash": ""}
    facts |= {"tokenizer": None, "n_token_ids": V, "lengths": Lengths()}
    return LoadedModel(name=arch, model=model, head=head, **counts, **facts)


def windows() -> list[Window]:
    ids = np.random.default_rng(0).integers(V, size=(3, T)).astype(np.int32)
    return [Window(doc_id, row, np.arange(T) > 0, T, T) for doc_id, row in enumerate(ids)]


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_a_batch_is_launched_without_a_look_at_any_value(arch: str) -> None:
    loaded = loaded_on("meta", arch)
    launched = read_batch(loaded, Batch(windows()), loaded.head.rank, loaded.head.rank)
    with pytest.raises(TypeError, match="meta"):  # what waits is the function that is returned
        launched()


@pytest.mark.parametrize("arch", [arch for arch in ARCHITECTURES if arch not in WITHOUT_CACHE])
def test_a_batch_is_launched_on_from_a_beginning_without_a_look_at_any_value(arch: str) -> None:
    loaded = loaded_on("meta", arch)
    past = empty_past(loaded.model)
    with torch.inference_mode():
        ids = torch.zeros(2, T // 2, dtype=torch.int64, device="meta")
        begun = past.read_on(loaded.model, ids, None)
    read_batch(loaded, Batch(windows(), begun, [0, 1, 1]), loaded.head.rank, loaded.head.rank)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_states_are_those_of_a_model_without_a_cache_bit_by_bit(arch: str) -> None:
    loaded = loaded_on("cpu", arch)
    ids = torch.from_numpy(np.stack([window.ids for window in windows()]).astype(np.int64))
    with torch.inference_mode():
        for some in (ids, ids[:2, 1:]):  # the second time with the arguments of the first
            assert torch.equal(
                head_input(loaded.model, some, loaded.keeps_nothing), head_input(loaded.model, some, NO_PAST)
            )


def test_the_next_batch_is_launched_before_a_value_is_waited_for_and_the_last_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As on a GPU, but for where it computes."""
    loaded = loaded_on("cpu", "gpt_neox")
    expected = measure_windows(Reading(loaded, windows(), ALONE, T, lambda n: None))
    came = list[str]()

    def launched(loaded: LoadedModel, batch: Batch) -> Callable[[], int]:
        came.append(f"launched {batch.windows[0].doc_id}")
        values = read_batch(loaded, batch, loaded.head.rank, loaded.head.rank)

        def value() -> int:
            came.append(f"value {batch.windows[0].doc_id}")
            return len(values()[0].doc_id_N)

        return value

    monkeypatch.setattr(reading, "input_device", lambda model: torch.device("cuda"))
    monkeypatch.setattr(reading, "uploaded", lambda arrays, device: uploaded(arrays, torch.device("cpu")))
    assert Reading(loaded, windows(), ALONE, T, lambda n: None).measure(launched) == [T - 1] * 3
    assert came == ["launched 0", "launched 1", "value 0", "launched 2", "value 1", "value 2"]
    found = measure_windows(Reading(loaded, windows(), ALONE, T, lambda n: None))
    assert all(np.array_equal(found[name], expected[name]) for name in expected)
