"""Output heads: what a model does behind its head is found and done alike, or the model is measured whole."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from rbpx.data.corpus import Document
from rbpx.data.windows import Window, cut_windows
from rbpx.errors import RbpxError
from rbpx.measure.distributed import ProcessGroup
from rbpx.measure.extract import COLUMNS, TokenRows, measure_windows
from rbpx.measure.reading.reading import Reading
from rbpx.models.head import head_input, open_head
from rbpx.models.load import LoadedModel, load_model
from tests.support.checkpoints import CONTEXT, VOCAB_ROWS, build_tokenizer
from tests.support.reference import reference_rank, reference_rows

CPU = torch.device("cpu")
SHAPE: dict[str, Any] = {
    "vocab_size": VOCAB_ROWS,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": CONTEXT,
    "initializer_range": 0.2,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": None,
}
# class of the configuration, what it has of its own, what the model does behind the product of its head
HEADS: dict[str, tuple[str, dict[str, Any], str]] = {
    "gemma2": ("Gemma2Config", {"head_dim": 8, "final_logit_softcapping": 2.0}, "softcap 2"),
    "gemma2, no cap": ("Gemma2Config", {"head_dim": 8, "final_logit_softcapping": None}, "identity"),
    "nanochat": ("NanoChatConfig", {"final_logit_softcapping": 3.0}, "softcap 3"),
    "recurrent gemma": (
        "RecurrentGemmaConfig",
        {"logits_soft_cap": 2.0, "lru_width": 32, "attention_window_size": 16, "num_hidden_layers": 3, "head_dim": 8},
        "softcap 2",
    ),
    "cohere": ("CohereConfig", {"logit_scale": 0.0613}, "scale 0.0613"),
    "granite": ("GraniteConfig", {"logits_scaling": 7.0}, "scale 0.142857143"),
    "hyperclovax": ("HyperCLOVAXConfig", {"logits_scaling": 0.3}, "scale 0.3"),
    "falcon-h1": (
        "FalconH1Config",
        {"lm_head_multiplier": 0.3, "mamba_d_ssm": 32, "mamba_n_heads": 4, "mamba_d_head": 8, "mamba_d_state": 8},
        "scale 0.3",
    ),
    "minicpm3": (  # divides the states, not the logits
        "MiniCPM3Config",
        {
            "q_lora_rank": 16,
            "kv_lora_rank": 16,
            "qk_nope_head_dim": 8,
            "qk_rope_head_dim": 8,
            "v_head_dim": 8,
            "num_key_value_heads": 4,
            "dim_model_base": 8,
        },
        "identity",
    ),
    "phi, bias": ("PhiConfig", {}, "identity"),
    "gptj, bias": (
        "GPTJConfig",
        {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": CONTEXT, "rotary_dim": 4},
        "identity",
    ),
    "mamba": ("MambaConfig", {"state_size": 8}, "identity"),
    "bloom": ("BloomConfig", {"n_layer": 2, "n_head": 4}, "identity"),
}
# what is so little that the rounding of 16-bit logits hides it
LITTLE: dict[str, tuple[str, dict[str, Any], str]] = {
    "cohere, 1.05": ("CohereConfig", {"logit_scale": 1.05}, "scale 1.05"),
    "cohere, .96": ("CohereConfig", {"logit_scale": 0.96}, "scale 0.96"),
    "granite, 1.05": ("GraniteConfig", {"logits_scaling": 1.05}, "scale 0.952380952"),
    "granite, .96": ("GraniteConfig", {"logits_scaling": 0.96}, "scale 1.04166667"),
    "hyperclovax, 1.001": ("HyperCLOVAXConfig", {"logits_scaling": 1.001}, "scale 1.001"),
    "falcon-h1, 1.05": (
        "FalconH1Config",
        {"lm_head_multiplier": 1.05, "mamba_d_ssm": 32, "mamba_n_heads": 4, "mamba_d_head": 8, "mamba_d_state": 8},
        "scale 1.05",
    ),
    "gemma2, 250": ("Gemma2Config", {"head_dim": 8, "final_logit_softcapping": 250.0}, "softcap 250"),
    "gemma2, 1000": ("Gemma2Config", {"head_dim": 8, "final_logit_softcapping": 1000.0}, "softcap 1000"),
    "recurrent gemma, 1000": (
        "RecurrentGemmaConfig",
        {"logits_soft_cap": 1e3, "lru_width": 32, "attention_window_size": 16, "num_hidden_layers": 3, "head_dim": 8},
        "softcap 1000",
    ),
}
CHANGES = [name for name, (_, _, after) in HEADS.items() if after != "identity"]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a tiny random model of each kind, with biases that are not zero."""
    made: dict[str, Path] = {}

    def build(name: str) -> Path:
        if name not in made:
            import transformers

            kind, own, _ = (HEADS | LITTLE)[name]
            with torch.random.fork_rng(), warnings.catch_warnings(action="ignore"):
                torch.manual_seed(0)
                config = getattr(transformers, kind)(**(SHAPE | own))
                model = transformers.AutoModelForCausalLM.from_config(config)
                bias = getattr(model.get_output_embeddings(), "bias", None)
                assert (bias is not None) == ("bias" in name)
                if bias is not None:
                    torch.nn.init.normal_(bias)
            made[name] = tmp_path_factory.mktemp("heads") / kind
            model.save_pretrained(made[name])
            build_tokenizer("gpt2").save_pretrained(made[name])
        return made[name]

    return build


def load(folder: Path, dtype: str = "float32") -> LoadedModel:
    return load_model(str(folder), None, dtype, CPU)


def windows_of(loaded: LoadedModel, texts: list[str]) -> list[Window]:
    return cut_windows([Document(i, str(i), text) for i, text in enumerate(texts)], loaded.tokenizer, CONTEXT)


def measure(loaded: LoadedModel, windows: list[Window], budget: int = 200) -> TokenRows:
    return measure_windows(Reading(loaded, windows, ProcessGroup(0, 1, CPU), budget, lambda n: None))


def assert_rows_of_the_models_own_logits(
    rows: TokenRows, model: Any, windows: list[Window], special: list[int]
) -> None:
    expected = [(w.doc_id, *row) for w in windows for row in reference_rows(model, w.ids.tolist(), special)]
    for name, wanted in zip(COLUMNS[:-1], zip(*(row[:-1] for row in expected), strict=True), strict=True):
        np.testing.assert_array_equal(rows.columns[name], wanted, err_msg=name)
    np.testing.assert_allclose(rows.columns["logprob"], [row[-1] for row in expected], rtol=0, atol=1e-4)


# --------------------------------------------------------------------------------------------------------- float32


@pytest.mark.parametrize("name", HEADS)
def test_rows_are_those_of_the_logits_that_the_model_itself_emits(
    name: str, checkpoint: Callable[[str], Path], tiny_text: list[str]
) -> None:
    loaded = load(checkpoint(name))
    assert loaded.head.after == HEADS[name][2]
    assert loaded.head.vocab_size == VOCAB_ROWS
    assert loaded.head.logits is not None, "measured in chunks"
    windows = windows_of(loaded, tiny_text)
    assert_rows_of_the_models_own_logits(
        measure(loaded, windows), loaded.model, windows, loaded.tokenizer.all_special_ids
    )


@pytest.mark.parametrize("name", HEADS)
def test_logits_from_the_states_are_the_models_own(name: str, checkpoint: Callable[[str], Path]) -> None:
    loaded = load(checkpoint(name))
    ids_BT = torch.arange(60).reshape(2, 30) * 5
    with torch.no_grad():
        own = loaded.model(ids_BT).logits
        states_BTD = head_input(loaded.model, ids_BT)
        logits = loaded.head.logits(states_BTD.flatten(0, 1))
    torch.testing.assert_close(logits, own.flatten(0, 1), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", CHANGES)
def test_the_product_of_the_head_alone_would_give_other_probabilities(
    name: str, checkpoint: Callable[[str], Path]
) -> None:
    """So that the tests above can fail at all: what is done behind the head matters here."""
    loaded = load(checkpoint(name))
    ids_BT = torch.arange(30)[None]
    with torch.no_grad():
        plain = loaded.model.get_output_embeddings()(head_input(loaded.model, ids_BT)).log_softmax(-1)
        own = loaded.model(ids_BT).logits.log_softmax(-1)
    assert (plain - own).abs().max() > 0.1


def test_finding_the_head_leaves_no_hook_behind(tiny_checkpoint: Callable[..., Path]) -> None:
    model = load(tiny_checkpoint("gpt2")).model
    open_head(model)
    with torch.no_grad():
        head_input(model, torch.arange(5)[None])
        before = model(torch.arange(5)[None]).logits
        assert not any(module._forward_pre_hooks or module._forward_hooks for module in model.modules())
        assert before.abs().max() < 50, "no state is driven up any more"


def test_logits_of_unscored_positions_are_never_computed(
    tiny_checkpoint: Callable[..., Path], tiny_text: list[str]
) -> None:
    loaded = load(tiny_checkpoint("qwen2"))
    windows = windows_of(loaded, tiny_text)
    emitted: list[tuple[int, ...]] = []
    loaded.model.get_output_embeddings().register_forward_hook(lambda m, args, out: emitted.append(tuple(out.shape)))
    measure(loaded, windows)
    assert {len(shape) for shape in emitted} == {2}
    assert sum(shape[0] for shape in emitted) == sum(w.n_scored for w in windows)


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
    with pytest.raises(RbpxError, match="dtype=float32"):
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
    assert rows.columns["greater"].max() < 310


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
    rows = measure(loaded, windows_of(loaded, ["The sea reads nothing."])).columns
    assert set(rows["greater"].tolist()) == {0}
    assert set(rows["ties"].tolist()) == {VOCAB_ROWS - 1}
    np.testing.assert_allclose(rows["logprob"], -np.log(VOCAB_ROWS), atol=1e-6)


@pytest.mark.parametrize("missing", ["none", "not called"])
def test_a_model_whose_head_cannot_be_found_is_refused_in_one_line(
    missing: str, monkeypatch: pytest.MonkeyPatch, tiny_checkpoint: Callable[..., Path]
) -> None:
    from transformers import GPT2LMHeadModel

    elsewhere = torch.nn.Linear(1, 1)
    head = {"none": None, "not called": elsewhere}[missing]
    monkeypatch.setattr(GPT2LMHeadModel, "get_output_embeddings", lambda self: head)
    with pytest.raises(RbpxError, match="head"):
        load(tiny_checkpoint("gpt2"))


# --------------------------------------------------------------------------------------------------------- 16 bits


def head_product_in_float64(loaded: LoadedModel, states_ND: Tensor) -> Tensor:
    """The product of the 16-bit weights and states, nothing rounded."""
    head = loaded.model.get_output_embeddings()
    product = states_ND.double() @ head.weight.double().T
    return product if getattr(head, "bias", None) is None else product + head.bias.double()


BEHIND: dict[str, Callable[[Tensor], Tensor]] = {
    "identity": lambda z: z,
    "softcap 2": lambda z: 2 * torch.tanh(z / 2),
    "softcap 3": lambda z: 3 * torch.tanh(z / 3),
    "scale 0.0613": lambda z: z * 0.0613,
    "scale 0.142857143": lambda z: z / 7,
    "scale 0.3": lambda z: z * 0.3,
}


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", HEADS)
def test_logits_of_16_bit_models_are_float32_products(name: str, dtype: str, checkpoint: Callable[[str], Path]) -> None:
    loaded = load(checkpoint(name), dtype)
    assert loaded.head.after == HEADS[name][2], "its digits come from the configuration, not from a rounded probe"
    with torch.no_grad():
        states_ND = head_input(loaded.model, torch.arange(40)[None])[0]
        logits = loaded.head.logits(states_ND)
    assert states_ND.dtype == loaded.model.dtype == getattr(torch, dtype)
    assert logits.dtype == torch.float32
    exact = BEHIND[loaded.head.after](head_product_in_float64(loaded, states_ND))
    torch.testing.assert_close(logits.double(), exact, rtol=2e-6, atol=2e-6)
    rounded = logits.to(loaded.model.dtype).float()
    assert (rounded != logits).float().mean() > 0.9, "nothing is left in 16 bits"


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("name", LITTLE)
def test_a_factor_near_1_and_a_high_cap_are_found_in_every_precision(
    name: str, dtype: str, checkpoint: Callable[[str], Path]
) -> None:
    loaded = load(checkpoint(name), dtype)
    assert loaded.head.after == LITTLE[name][2]
    with torch.no_grad():
        states_BTD = 20 * head_input(loaded.model, torch.arange(40)[None])  # logits of up to 100, where a cap is felt
        logits_NV = loaded.head.logits(states_BTD[0])
        in_float32 = loaded.model.float()
        in_float32.get_output_embeddings().register_forward_pre_hook(lambda module, args: (states_BTD.float(),))
        own_NV = in_float32(torch.arange(40)[None]).logits[0]
    torch.testing.assert_close(logits_NV, own_NV, rtol=2e-6, atol=2e-6 * float(own_NV.abs().max()))


@pytest.mark.parametrize("arch", ["gpt2", "gpt_neox"])
def test_rows_of_a_bfloat16_model_are_counted_on_float32_logits(
    arch: str, tiny_checkpoint: Callable[..., Path], tiny_text: list[str]
) -> None:
    loaded = load(tiny_checkpoint(arch), "bfloat16")
    windows = windows_of(loaded, tiny_text)
    rows = measure(loaded, windows, 1).columns
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
