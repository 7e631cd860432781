"""Models with every kind of output head in tiny forms, and what is held of each against its own logits."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rbpx.data.windows import Window
from rbpx.measure.extract import COLUMNS, TokenColumns
from rbpx.models.head import head_input
from rbpx.models.load import LoadedModel
from tests.support.checkpoints import CONTEXT, VOCAB_ROWS, build_tokenizer
from tests.support.measuring import load, measure, windows_of
from tests.support.reference import reference_rows

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
    "cohere": ("CohereConfig", {"logit_scale": 0.0613}, "scale 0.0613"),
    "granite": ("GraniteConfig", {"logits_scaling": 7.0}, "scale 0.142857143"),
    "hyperclovax": ("HyperCLOVAXConfig", {"logits_scaling": 0.3}, "scale 0.3"),
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
    "granite, .96": ("GraniteConfig", {"logits_scaling": 0.96}, "scale 1.04166667"),
    "hyperclovax, 1.001": ("HyperCLOVAXConfig", {"logits_scaling": 1.001}, "scale 1.001"),
    "gemma2, 250": ("Gemma2Config", {"head_dim": 8, "final_logit_softcapping": 250.0}, "softcap 250"),
    "gemma2, 1000": ("Gemma2Config", {"head_dim": 8, "final_logit_softcapping": 1000.0}, "softcap 1000"),
}


def build_head(name: str, folder: Path) -> Path:
    """A tiny random model of that kind, with biases that are not zero."""
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
    model.save_pretrained(folder)
    build_tokenizer("gpt2").save_pretrained(folder)
    return folder


def assert_rows_of_the_models_own_logits(
    rows: TokenColumns, model: Any, windows: list[Window], special: list[int]
) -> None:
    """Ranks and log-probabilities of each token are those of the whole logits, counted one after another."""
    expected = [(w.doc_id, *row) for w in windows for row in reference_rows(model, w.ids.tolist(), special)]
    for name, wanted in zip(COLUMNS[:-1], zip(*(row[:-1] for row in expected), strict=True), strict=True):
        np.testing.assert_array_equal(rows[name], wanted, err_msg=name)
    np.testing.assert_allclose(rows["logprob"], [row[-1] for row in expected], rtol=0, atol=1e-4)


def head_product_in_float64(loaded: LoadedModel, states_ND: Tensor) -> Tensor:
    """The product of the 16-bit weights and states, nothing rounded."""
    head = loaded.model.get_output_embeddings()
    product = states_ND.double() @ head.weight.double().T
    return product if getattr(head, "bias", None) is None else product + head.bias.double()


def check_in_float32(name: str, folder: Path, texts: Sequence[str]) -> None:
    """Rows and logits are those that the model itself emits; the product of the head alone would give others."""
    loaded = load(folder)
    assert loaded.head.after == HEADS[name][2]
    assert loaded.head.vocab_size == VOCAB_ROWS
    assert loaded.head.logits is not None, "measured in chunks"
    windows = windows_of(loaded, texts)
    rows = measure(loaded, windows)
    assert_rows_of_the_models_own_logits(rows, loaded.model, windows, loaded.tokenizer.all_special_ids)
    ids_BT = torch.arange(60).reshape(2, 30) * 5
    with torch.no_grad():
        own = loaded.model(ids_BT).logits
        states_BTD = head_input(loaded.model, ids_BT)
        logits = loaded.head.logits(states_BTD.flatten(0, 1))
        plain = loaded.model.get_output_embeddings()(states_BTD).log_softmax(-1)
    torch.testing.assert_close(logits, own.flatten(0, 1), rtol=1e-6, atol=1e-6)
    if loaded.head.after != "identity":
        assert (plain - own.log_softmax(-1)).abs().max() > 0.1, "what is done behind the head matters here"


def check_in_16_bits(name: str, folder: Path, dtype: str) -> None:
    """Logits are float32 products of 16-bit weights and states, and then what the model does behind its head."""
    loaded = load(folder, dtype)
    assert loaded.head.after == HEADS[name][2], "its digits come from the configuration, not from a rounded probe"
    with torch.no_grad():
        states_ND = head_input(loaded.model, torch.arange(40)[None])[0]
        logits = loaded.head.logits(states_ND)
    assert states_ND.dtype == loaded.model.dtype == getattr(torch, dtype)
    assert logits.dtype == torch.float32
    exact = head_product_in_float64(loaded, states_ND)
    what, _, number = loaded.head.after.partition(" ")
    if what != "identity":
        exact = float(number) * (torch.tanh(exact / float(number)) if what == "softcap" else exact)
    torch.testing.assert_close(logits.double(), exact, rtol=2e-6, atol=2e-6)
    rounded = logits.to(loaded.model.dtype).float()
    assert (rounded != logits).float().mean() > 0.9, "nothing is left in 16 bits"


def check_little(name: str, folder: Path, dtype: str) -> None:
    """A factor near 1 or a high cap is found in this precision."""
    loaded = load(folder, dtype)
    assert loaded.head.after == LITTLE[name][2]
    with torch.no_grad():
        states_BTD = 20 * head_input(loaded.model, torch.arange(40)[None])  # logits of up to 100, where a cap is felt
        logits_NV = loaded.head.logits(states_BTD[0])
        in_float32 = loaded.model.float()
        in_float32.get_output_embeddings().register_forward_pre_hook(lambda module, args: (states_BTD.float(),))
        own_NV = in_float32(torch.arange(40)[None]).logits[0]
    torch.testing.assert_close(logits_NV, own_NV, rtol=2e-6, atol=2e-6 * float(own_NV.abs().max()))
