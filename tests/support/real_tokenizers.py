"""Tiny checkpoints with the tokenizers of the real families, as the files that the real repositories have."""

import gzip
import json
from pathlib import Path
from typing import Any

ROWS = {"gpt2": 50257, "opt": 50272, "gpt_neox": 50304, "qwen2": 151936}
HELLO_WORLD = {"gpt2": [15496, 995], "opt": [2, 31414, 232], "gpt_neox": [12092, 1533], "qwen2": [9707, 1879]}
_FILES = {
    "gpt2": {"vocab.json": "gpt2_encoder.json", "merges.txt": "gpt2_vocab.bpe"},
    "opt": {"vocab.json": "opt_gpt2-vocab.json", "merges.txt": "opt_gpt2-merges.txt"},
    "gpt_neox": {"tokenizer.json": "gpt_neox_20B_tokenizer.json.gz"},
    "qwen2": {
        "vocab.json": "qwen2_vocab.json",
        "merges.txt": "qwen2_merges.txt",
        "tokenizer_config.json": "qwen2_tokenizer_config.json",
    },
}
_CONFIGS: dict[str, dict[str, Any]] = {
    "gpt2": {"model_max_length": 1024},
    "opt": {
        "tokenizer_class": "GPT2Tokenizer",
        "add_bos_token": True,
        "add_prefix_space": False,
        "pad_token": "<pad>",
        **dict.fromkeys(("bos_token", "eos_token", "unk_token"), "</s>"),
    },
    "gpt_neox": {
        "tokenizer_class": "GPTNeoXTokenizer",
        "add_prefix_space": False,
        **dict.fromkeys(("bos_token", "eos_token", "unk_token"), "<|endoftext|>"),
    },
}


def real_config(arch: str, hidden_size: int, context: int, **more: Any) -> Any:
    """The configuration of a model of one layer, with as many rows as the real ones; a llama has those of GPT-NeoX."""
    from transformers import AutoConfig

    own: dict[str, Any] = {
        "gpt2": {},
        "opt": {"ffn_dim": 32, "word_embed_proj_dim": hidden_size},
        "gpt_neox": {"intermediate_size": 32},
        "qwen2": {"intermediate_size": 32, "num_key_value_heads": 1},
        "llama": {"intermediate_size": 32, "num_key_value_heads": 1},
    }[arch]
    own |= {"hidden_size": hidden_size, "num_hidden_layers": 1, "num_attention_heads": 2}
    own |= {"max_position_embeddings": context, "tie_word_embeddings": arch not in ("gpt_neox", "llama")}
    return AutoConfig.for_model(arch, vocab_size=ROWS["gpt_neox" if arch == "llama" else arch], **own, **more)


def load_real(arch: str, tokenizers: Path, folder: Path) -> Any:
    """The tokenizer of a family, by way of files in an empty folder."""
    from transformers import AutoTokenizer

    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"model_type": arch}))
    write_tokenizer(arch, tokenizers, folder)
    return AutoTokenizer.from_pretrained(folder)


def write_tokenizer(arch: str, tokenizers: Path, folder: Path) -> None:
    """Put the files of a tokenizer into a folder, as the real repository has them."""
    for name, source in _FILES[arch].items():
        raw = (tokenizers / source).read_bytes()
        (folder / name).write_bytes(gzip.decompress(raw) if source.endswith(".gz") else raw)
    if arch in _CONFIGS:
        (folder / "tokenizer_config.json").write_text(json.dumps(_CONFIGS[arch]))
