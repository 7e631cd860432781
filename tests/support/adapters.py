"""Adapters of tiny checkpoints, made and saved by peft itself, with random weights that move the logits."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

needs_peft = pytest.mark.skipif(find_spec("peft") is None, reason="peft is not installed: pip install 'rbpx[adapters]'")
_LAYERS = {"qwen2": ["q_proj", "down_proj"], "gpt2": ["c_attn", "mlp.c_proj"]}
_EMBEDDING = {"qwen2": "embed_tokens", "gpt2": "wte"}
RANK = 4


def config_of(kind: str, arch: str) -> Any:
    """The configuration of a kind of adapter, for two layers of each block."""
    import peft

    layers = _LAYERS[arch]
    common: dict[str, Any] = {"task_type": "CAUSAL_LM", "target_modules": layers}
    lora: dict[str, dict[str, Any]] = {
        "lora": {},
        "dora": {"use_dora": True},
        "rslora": {"use_rslora": True},
        "pissa": {"init_lora_weights": "pissa"},
        "converted": {"init_lora_weights": "pissa"},
        "head": {"target_modules": [*layers, "lm_head"]},
        "embedding": {"target_modules": [*layers, _EMBEDDING[arch]]},
        "saved": {"modules_to_save": ["lm_head"]},
        "alora": {"alora_invocation_tokens": [5, 6]},
    }
    match kind:
        case "loha":
            return peft.LoHaConfig(r=RANK, **common)
        case "ia3":
            return peft.IA3Config(feedforward_modules=layers[1:], **common)
        case "prompt":
            return peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=4)
        case "prefix":
            return peft.PrefixTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=4)
    return peft.LoraConfig(r=RANK, **common | lora[kind])


def build_adapter(kind: str, arch: str, base: Path, folder: Path, seed: int = 0) -> Path:
    """Save an adapter of a checkpoint as `peft.PeftModel.save_pretrained` does after a training, here a random step."""
    import peft
    import torch

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        tuned = peft.get_peft_model(plain(base), config_of(kind, arch))
        more: dict[str, Any] = {}
        if kind == "converted":  # a PiSSA adapter that goes onto the base as it is, as peft's documentation makes it
            tuned.peft_config["default"].init_lora_weights = True
            tuned.save_pretrained(folder.with_name(f"{folder.name}-initial"))
            tuned.peft_config["default"].init_lora_weights = "pissa"
            more["path_initial_model_for_weight_conversion"] = str(folder.with_name(f"{folder.name}-initial"))
        with torch.no_grad():
            for parameter in tuned.parameters():
                if parameter.requires_grad:
                    parameter.add_(0.05 * torch.randn_like(parameter))
    tuned.save_pretrained(folder, **more)
    return folder


def plain(base: Path) -> Any:
    """The base as transformers loads it."""
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(base, dtype="float32").eval()


def tuned_by_peft(base: Path, folder: Path) -> Any:
    """The base with its adapter beside its weights, as peft loads it."""
    import peft

    return peft.PeftModel.from_pretrained(plain(base), folder).eval()
