"""Output heads: what a model does behind its head is found and done alike, or the model is measured whole."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from rbpx.errors import RbpxError
from rbpx.models.head import float32_product
from tests.support.checkpoints import VOCAB_ROWS, build_tokenizer
from tests.support.heads import (
    assert_rows_of_the_models_own_logits,
    build_head,
    check_in_16_bits,
    check_in_float32,
    check_little,
    head_product_in_float64,
)
from tests.support.measuring import load, measure, windows_of
from tests.support.reference import reference_rank

SOME = ("gemma2", "cohere", "phi, bias", "minicpm3")  # a cap, a factor, a bias, states that are divided


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a tiny random model of each kind."""
    return cache(lambda name: build_head(name, tmp_path_factory.mktemp("heads") / "model"))


# --------------------------------------------------------------------------------------------------------- float32


@pytest.mark.parametrize("name", SOME)
def test_rows_and_logits_are_those_that_the_model_itself_emits(
    name: str, checkpoint: Callable[[str], Path], tiny_text: list[str]
) -> None:
    check_in_float32(name, checkpoint(name), tiny_text)


# ---------------------------------------------------------------------------------------- behind the head, unknown


def by_position(logits_BTV: Tensor, ids_BT: Tensor) -> Tensor:
    """Something a little different at each position."""
    _, n_tokens, width = logits_BTV.shape
    return logits_BTV + torch.sin(torch.arange(n_tokens)[:, None] * 0.3 + torch.arange(width))


def by_token(logits_BTV: Tensor, ids_BT: Tensor) -> Tensor:
    """A bonus for repeating the token just read."""
    return logits_BTV + 3 * torch.nn.functional.one_hot(ids_BT, logits_BTV.shape[-1])


def by_vocabulary(logits_BTV: Tensor, ids_BT: Tensor) -> Tensor:
    """A bias that is none of the head's."""
    return logits_BTV + torch.sin(torch.arange(logits_BTV.shape[-1]) * 0.7).to(logits_BTV.dtype)


def without_padding_rows(logits_BTV: Tensor, ids_BT: Tensor) -> Tensor:
    """The rows of padding cut off."""
    return logits_BTV[..., :310]


UNKNOWN = [by_position, by_token, by_vocabulary]


def change_logits(monkeypatch: pytest.MonkeyPatch, change: Callable[[Tensor, Tensor], Tensor]) -> None:
    """From now on every GPT-2 does `change` behind its head."""
    from transformers import GPT2LMHeadModel

    plain = GPT2LMHeadModel.forward

    def forward(self: Any, input_ids: Tensor, **kwargs: Any) -> Any:
        output = plain(self, input_ids, **kwargs)
        output.logits = change(output.logits, input_ids)
        return output

    monkeypatch.setattr(GPT2LMHeadModel, "forward", forward)


@pytest.mark.parametrize("change", UNKNOWN, ids=lambda change: change.__name__)
def test_a_model_that_does_something_unknown_is_measured_whole_and_right(
    change: Callable[[Tensor, Tensor], Tensor],
    monkeypatch: pytest.MonkeyPatch,
    tiny_checkpoint: Callable[..., Path],
    tiny_text: list[str],
) -> None:
    change_logits(monkeypatch, change)
    loaded = load(tiny_checkpoint("gpt2"))
    assert (loaded.head.logits, loaded.head.after) == (None, "unknown")
    assert loaded.head.vocab_size == VOCAB_ROWS
    windows = windows_of(loaded, tiny_text)
    assert_rows_of_the_models_own_logits(
        measure(loaded, windows), loaded.model, windows, loaded.tokenizer.all_special_ids
    )


@pytest.mark.parametrize("change", UNKNOWN, ids=lambda change: change.__name__)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_model_that_does_something_unknown_is_not_measured_in_16_bits(
    change: Callable[[Tensor, Tensor], Tensor],
    dtype: str,
    monkeypatch: pytest.MonkeyPatch,
    tiny_checkpoint: Callable[..., Path],
) -> None:
    change_logits(monkeypatch, change)
    with pytest.raises(RbpxError, match="change after its head as rbpx does not know; measure it with dtype=float32"):
        load(tiny_checkpoint("gpt2"), dtype)


def test_a_factor_that_a_model_applies_in_place_is_found(
    monkeypatch: pytest.MonkeyPatch, tiny_checkpoint: Callable[..., Path]
) -> None:
    change_logits(monkeypatch, lambda logits_BTV, ids_BT: logits_BTV.mul_(3))
    assert load(tiny_checkpoint("gpt2")).head.after == "scale 3"


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_rows_that_a_model_cuts_off_its_logits_do_not_compete(
    dtype: str, monkeypatch: pytest.MonkeyPatch, tiny_checkpoint: Callable[..., Path], tiny_text: list[str]
) -> None:
    change_logits(monkeypatch, without_padding_rows)
    loaded = load(tiny_checkpoint("gpt2"), dtype)
    assert (loaded.head.after, loaded.head.vocab_size) == ("identity", 310)
    windows = windows_of(loaded, tiny_text)
    rows = measure(loaded, windows)
    if dtype == "float32":
        assert_rows_of_the_models_own_logits(rows, loaded.model, windows, loaded.tokenizer.all_special_ids)
    assert rows["greater"].max() < 310


def test_a_head_of_zeros_ties_every_token_with_every_other(
    tiny_checkpoint: Callable[..., Path], tmp_path: Path
) -> None:
    """As some recipes begin: the head is zero before the first step."""
    from safetensors.torch import load_file, save_file

    folder = tiny_checkpoint("gpt_neox", folder=tmp_path / "zero")
    weights = load_file(folder / "model.safetensors")
    weights["embed_out.weight"].zero_()
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    loaded = load(folder)
    rows = measure(loaded, windows_of(loaded, ["The sea reads nothing."]))
    assert set(rows["greater"].tolist()) == {0}
    assert set(rows["ties"].tolist()) == {VOCAB_ROWS - 1}
    np.testing.assert_allclose(rows["logprob"], -np.log(VOCAB_ROWS), atol=1e-6)


def test_a_model_without_a_head_is_refused_in_one_line(
    monkeypatch: pytest.MonkeyPatch, tiny_checkpoint: Callable[..., Path]
) -> None:
    from transformers import GPT2LMHeadModel

    monkeypatch.setattr(GPT2LMHeadModel, "get_output_embeddings", lambda self: None)
    with pytest.raises(RbpxError, match="head"):
        load(tiny_checkpoint("gpt2"))


# --------------------------------------------------------------------------------------------------------- 16 bits


@pytest.mark.parametrize(("name", "dtype"), list(zip(SOME, ["bfloat16", "float16"] * 2, strict=True)))
def test_logits_of_16_bit_models_are_float32_products(name: str, dtype: str, checkpoint: Callable[[str], Path]) -> None:
    check_in_16_bits(name, checkpoint(name), dtype)


@pytest.mark.parametrize(
    ("name", "dtype"), [("cohere, 1.05", "bfloat16"), ("gemma2, 1000", "float16"), ("hyperclovax, 1.001", "bfloat16")]
)
def test_a_factor_near_1_and_a_high_cap_are_found(name: str, dtype: str, checkpoint: Callable[[str], Path]) -> None:
    check_little(name, checkpoint(name), dtype)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA")
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("width", [9001, 9024])
def test_a_head_of_any_width_gives_the_logits_of_its_rows_on_a_gpu(width: int, bias: bool) -> None:
    torch.manual_seed(0)
    head = torch.nn.Linear(32, width, bias=bias, device="cuda", dtype=torch.bfloat16).requires_grad_(False)
    states_ND = torch.randn(50, 32, device="cuda", dtype=torch.bfloat16)
    expected_NV = states_ND.double() @ head.weight.double().T + (head.bias.double() if bias else 0.0)
    torch.testing.assert_close(
        float32_product(head, torch.bfloat16).logits(states_ND).double(), expected_NV, rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("arch", ["gpt2", "gpt_neox"])
def test_rows_of_a_bfloat16_model_are_counted_on_float32_logits(
    arch: str, tiny_checkpoint: Callable[..., Path], tiny_text: list[str]
) -> None:
    loaded = load(tiny_checkpoint(arch), "bfloat16")
    windows = windows_of(loaded, tiny_text)
    rows = measure(loaded, windows, 1)
    expected = []
    for window in windows:
        with torch.no_grad():
            ids_T = torch.from_numpy(window.ids.astype(np.int64))
            states_TD = loaded.model.base_model(ids_T[None], use_cache=False)[0][0]
        logits_TV = head_product_in_float64(loaded, states_TD).float().tolist()
        expected += [reference_rank(logits_TV[t - 1], int(window.ids[t])) for t in np.flatnonzero(window.scored)]
    greater, ties, logprob = (np.asarray(values) for values in zip(*expected, strict=True))
    assert ((rows["greater"] != greater) | (rows["ties"] != ties)).sum() <= len(expected) / 1000
    np.testing.assert_allclose(rows["logprob"], logprob, rtol=0, atol=1e-4)
    assert rows["ties"].sum() == 0, "bfloat16 logits would tie"


@pytest.mark.parametrize("on_disk", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_the_dtype_is_the_one_asked_for_whatever_the_checkpoint_says(
    dtype: str, on_disk: str, tiny_checkpoint: Callable[..., Path], tmp_path: Path
) -> None:
    from transformers import AutoModelForCausalLM

    stored = AutoModelForCausalLM.from_pretrained(tiny_checkpoint("qwen2"), dtype=getattr(torch, on_disk))
    stored.save_pretrained(tmp_path)
    build_tokenizer("qwen2").save_pretrained(tmp_path)
    loaded = load(tmp_path, dtype)
    assert {p.dtype for p in loaded.model.parameters()} == {getattr(torch, dtype)}
    wanted = dict(stored.named_parameters())
    for name, parameter in loaded.model.named_parameters():
        assert torch.equal(parameter, wanted[name].to(getattr(torch, dtype))), name
