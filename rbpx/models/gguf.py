"""GGUF files, as llama.cpp and its kin run them: how transformers opens one, and whether it read all that is in it.

The reader of transformers takes the shape, the tokenizer and the weights from the file and expands these to the dtype
that is asked for. What it does not know it leaves out without a word: a tensor, a scaling of positions, the rule by
which a tokenizer cuts digits. So what it made is held against the file here, and what differs is mended or refused.
"""

from collections.abc import Sequence
from math import isclose
from pathlib import Path
from typing import Any, Final

import torch

from rbpx.errors import RbpxError
from rbpx.files.gguf import GgufHeader, check_file, is_gguf

_NEXT: Final = "measure the model's safetensors"
_ROPE_FACTORS: Final = "rope_freqs.weight"
_MOST_MADE: Final = 2  # times the numbers of a file, which `take_rest` counts exactly once they are read
# Rules by which llama.cpp cuts a text for byte pairs that transformers' reader takes for GPT-2's own. Its tokenizers of
# the first kind are GPT-2's indeed; those of the second put each digit alone before.
_AS_GPT2: Final = ("gpt-2", "phi-2", "mpt", "olmo", "jais")
_LONE_DIGITS: Final = ("starcoder", "refact", "command-r", "smollm", "codeshell")
# Keys of the architecture that transformers' reader leaves out, with the attributes of its configuration which say the
# same; they have to agree. One that is not here and not read is refused.
_SAME: Final = {
    "attention.key_length": ("head_dim", "state_size"),
    "attention.value_length": ("head_dim", "state_size"),
    "attention.sliding_window": ("sliding_window",),
    "attn_logit_softcapping": ("attn_logit_softcapping",),
    "final_logit_softcapping": ("final_logit_softcapping",),
    "expert_feed_forward_length": ("moe_intermediate_size", "intermediate_size"),
    "feed_forward_length": ("intermediate_size", "n_inner", "ffn_dim"),
    "context_length": ("max_position_embeddings", "n_positions"),
    "vocab_size": ("vocab_size",),
}
_NOTHING: Final = {  # keys that say nothing where they have this value
    "rope.scaling.type": "none",
    "expert_count": 0,
    "expert_used_count": 0,
    "attention.causal": True,
}
_TURNED, _BASE = "rope.dimension_count", "rope.freq_base"  # checked by the frequencies that are made of them


def pretrained(place: Path) -> tuple[Path, dict[str, Any]]:
    """What the functions `from_pretrained` of transformers are given for a model's folder or its GGUF file.

    Returns:
        The folder, and the words that name the file in it; none for a folder.
    """
    return (place.parent, {"gguf_file": place.name}) if is_gguf(place) else (place, {})


def weights_options(path: Path, name: str) -> dict[str, Any]:
    """What `from_pretrained` is told besides, so that it expands all weights when it loads them, on any device.

    Raises:
        RbpxError: transformers does not read the architecture from such files, or makes more of it than is there.
    """
    from transformers import AutoConfig, AutoModelForCausalLM, GgufConfig

    n_there = _check_architecture(path, name).n_numbers
    folder, file = pretrained(path)
    config = AutoConfig.from_pretrained(folder, **file, local_files_only=True)
    with torch.device("meta"):
        n_made = sum(parameter.numel() for parameter in AutoModelForCausalLM.from_config(config).parameters())
    if n_made > _MOST_MADE * n_there:  # what is missing would be drawn at random, in memory, before it is missed
        raise RbpxError(
            f"{name} describes a model of {n_made:,} numbers, and has {n_there:,} in its tensors; copy it from its "
            "source again"
        )
    return {"config": config, "quantization_config": GgufConfig(dequantize=True)}


def _check_architecture(path: Path, name: str) -> GgufHeader:
    from transformers.integrations.gguf import GGUF_ARCHS
    from transformers.modeling_gguf_pytorch_utils import GGUF_SUPPORTED_ARCHITECTURES

    header = check_file(path, name)
    own = header.architecture
    aliases = {"qwen2moe": "qwen2_moe", "qwen3moe": "qwen3_moe", "gpt-oss": "gpt_oss", "minimax-m2": "minimax_m2"}
    if own not in GGUF_ARCHS and aliases.get(own, own) not in GGUF_SUPPORTED_ARCHITECTURES:
        raise RbpxError(f"{name} is of architecture {own[:80]}, which transformers does not read from GGUF; {_NEXT}")
    return header


def take_rest(model: Any, path: Path, name: str) -> None:
    """Hold a loaded model against its file, and give it the factors of its rotations, which the reader leaves out.

    Llama 3 divides the frequency of each pair of dimensions by a factor of its own, which is a tensor of the file.

    Raises:
        RbpxError: the file says something that the model lacks.
    """
    header = check_file(path, name)
    rotary = getattr(model.base_model, "rotary_emb", None)
    buffers = () if rotary is None else rotary.named_buffers()
    frequencies = [buffer for key, buffer in buffers if key.endswith("inv_freq") and not key.startswith("original")]
    _check_rotations(frequencies, header, name)
    n_read = sum(parameter.numel() for parameter in model.parameters())
    factors = header.tensors.get(_ROPE_FACTORS)
    if factors is not None:
        if [len(each) for each in frequencies] != [factors.n_numbers] or factors.type != "F32":
            raise RbpxError(f"{name} scales its positions by {_ROPE_FACTORS} in a way that rbpx does not know; {_NEXT}")
        frequencies[0].div_(_floats(path, _ROPE_FACTORS).to(frequencies[0].device))
        n_read += factors.n_numbers
    if n_read != header.n_numbers:
        raise RbpxError(
            f"{name} has {header.n_numbers:,} numbers in its tensors, and what transformers reads of them has "
            f"{n_read:,}, so it leaves some out; {_NEXT}"
        )
    _check_keys(model, header, name)


def cut_as_llama(tokenizer: Any, path: Path, name: str) -> None:
    """Let a tokenizer of byte pairs cut a text as llama.cpp does before pairs are joined, where the reader does not.

    Raises:
        RbpxError: the file names a rule that neither knows.
    """
    from tokenizers import pre_tokenizers
    from transformers.integrations.gguf.gguf_tokenizer_mapping import GGUF_PRE_TOKENIZER_SPLITS

    metadata = check_file(path, name).metadata
    rule = str(metadata.get("tokenizer.ggml.pre", "default"))
    if metadata.get("tokenizer.ggml.model") != "gpt2" or rule in GGUF_PRE_TOKENIZER_SPLITS or rule in _AS_GPT2:
        return
    if rule not in _LONE_DIGITS:
        raise RbpxError(f"{name} cuts its texts by the rule {rule[:80]}, which transformers does not know; {_NEXT}")
    backend = tokenizer.backend_tokenizer
    digits = pre_tokenizers.Digits(individual_digits=True)
    backend.pre_tokenizer = pre_tokenizers.Sequence([digits, backend.pre_tokenizer])


def _check_rotations(frequencies: Sequence[torch.Tensor], header: GgufHeader, name: str) -> None:
    """Refuse positions that are turned by other angles than the file says, in every kind of layer.

    The i-th of n pairs of dimensions is turned by base^(-i / n) radians a token.

    Raises:
        RbpxError: they are.
    """
    base, n_dimensions = (header.metadata.get(f"{header.architecture}.{key}") for key in (_BASE, _TURNED))
    for key, said, ours in (
        (_TURNED, n_dimensions, {2 * len(each) for each in frequencies}),
        (_BASE, base, {float(each[1].double() ** -len(each)) for each in frequencies if len(each) > 1}),
    ):
        if said is not None and ours and not any(isclose(said, own, rel_tol=1e-3) for own in ours):
            raise RbpxError(f"{name} says {key}={said}, of which transformers makes {max(ours):g}; {_NEXT}")


def _floats(path: Path, tensor: str) -> torch.Tensor:
    """A small tensor of 32-bit numbers."""
    from gguf import GGUFReader

    (found,) = [each for each in GGUFReader(path).tensors if each.name == tensor]
    return torch.tensor(found.data).flatten()


def _check_keys(model: Any, header: GgufHeader, name: str) -> None:
    """Refuse what the file says of the architecture and the model's configuration does not.

    Raises:
        RbpxError: there is such a thing.
    """
    from transformers.integrations.ggml import GGUF_CONFIG_MAPPING
    from transformers.integrations.gguf import GGUF_CONFIG_ARCHS

    own, config = header.architecture, model.config.get_text_config(decoder=True)
    if own in GGUF_CONFIG_ARCHS:  # these name every key that they need, and fail without it
        return
    read = {key for key, attribute in GGUF_CONFIG_MAPPING.get(own, {}).items() if attribute}
    for full, value in header.metadata.items():
        key = full.removeprefix(f"{own}.")
        if key == full or key in read or key in (_TURNED, _BASE) or _NOTHING.get(key) == value:
            continue
        ours = [getattr(config, attribute, None) for attribute in _SAME.get(key, ())]
        if value not in ours:
            told = next((str(one) for one in ours if one is not None), "nothing")
            said = f"{full[:80]}={str(value)[:80]}"
            raise RbpxError(f"{name} says {said}, of which transformers makes {told}; {_NEXT}")
