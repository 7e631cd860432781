"""Tiny random checkpoints as real folders, with tokenizers of their own, and the texts that they are measured on."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerFast

ARCHITECTURES = ("gpt2", "opt", "opt350", "gpt_neox", "qwen2")
CONTEXT = 64  # positions that a tiny checkpoint has
VOCAB_ROWS = 320  # rows of its embedding, some 20 more than its tokenizer has entries
INITIALIZER_STD = 0.2  # ten times the usual: spreads the logits to a standard deviation of about 1
_ROLES = ("bos_token", "eos_token", "unk_token")

_PROSE = (
    "A ship that leaves the harbour at dawn carries salt, rope and letters. The letters are read twice: once by the "
    "one who writes them, and once by the one who waits. Between the two lies the sea, which reads nothing."
)
TINY_TEXT = (
    _PROSE,
    "a",  # one token: nothing to predict
    "of",
    "def add(a, b):\n    return a + b\n",
    "Grüße aus Zürich, 東京 und Αθήνα \N{SAILBOAT}",
    "One ends here.<|endoftext|>Another begins.</s>And a third.",  # specials inside a text
    "\n\n".join(f"{n}. {_PROSE}" for n in range(1, 9)),  # far longer than the context
    "The sea reads nothing.",
)


def build_checkpoint(
    arch: str,
    folder: Path,
    seed: int = 0,
    *,
    hidden_size: int = 32,
    layers: int = 2,
    twins: int = 0,
    context: int = CONTEXT,
) -> Path:
    """Save a checkpoint with random float32 weights and its tokenizer, as `from_pretrained` reads them.

    Args:
        arch: one of ARCHITECTURES; `opt350` has the shape of opt-350m (project_in and _out, layer norm after).
        folder: where to; made if missing.
        seed: of the weights; nothing else is random.
        hidden_size: a multiple of 8; with `layers`, makes the sizes of a family.
        layers: transformer blocks.
        context: positions.
        twins: so many of the last rows of embedding and head, all without a token, repeat the rows of the first ASCII
            letters: logits that tie exactly.
    """
    import torch
    from transformers import AutoModelForCausalLM

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_config(_config(arch, hidden_size, layers, context))
    tokenizer = build_tokenizer(arch)
    if twins:
        originals = [tokenizer.convert_tokens_to_ids(chr(ord("a") + n)) for n in range(twins)]
        assert len(tokenizer) <= VOCAB_ROWS - twins, "a twin would be a token of its own"
        with torch.no_grad():
            for matrix in (model.get_input_embeddings().weight, model.get_output_embeddings().weight):
                matrix[VOCAB_ROWS - twins :] = matrix[originals]
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def build_tokenizer(arch: str) -> "PreTrainedTokenizerFast":
    """Train a byte-level BPE of some 300 entries, its special tokens numbered and placed as the real family's are."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    first, last, named = {
        "gpt2": ([], ["<|endoftext|>"], dict.fromkeys(_ROLES, "<|endoftext|>")),
        "opt": (["<s>", "<pad>", "</s>"], [], dict.fromkeys(_ROLES, "</s>") | {"pad_token": "<pad>"}),
        "gpt_neox": (["<|endoftext|>"], [], dict.fromkeys(_ROLES, "<|endoftext|>")),
        "qwen2": ([], ["<|endoftext|>"], dict.fromkeys(("eos_token", "pad_token"), "<|endoftext|>")),
    }[arch.removesuffix("350")]
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=300 - len(last), special_tokens=first, initial_alphabet=alphabet, show_progress=False
    )
    backend.train_from_iterator([_PROSE], trainer)
    backend.add_special_tokens(last)
    if "</s>" in first:
        start = backend.token_to_id("</s>")
        backend.post_processor = processors.TemplateProcessing(single="</s> $A", special_tokens=[("</s>", start)])
    return PreTrainedTokenizerFast(tokenizer_object=backend, model_max_length=CONTEXT, **named)


def _config(arch: str, hidden_size: int, layers: int, context: int) -> "PretrainedConfig":
    from transformers import AutoConfig

    kind = arch.removesuffix("350")
    post_norm = kind != arch
    own: dict[str, Any] = {
        "gpt2": {},
        "opt": {
            "ffn_dim": 4 * hidden_size,
            "word_embed_proj_dim": hidden_size // 2 if post_norm else hidden_size,
            "do_layer_norm_before": not post_norm,
        },
        "gpt_neox": {"intermediate_size": 4 * hidden_size},
        "qwen2": {"intermediate_size": 3 * hidden_size, "num_key_value_heads": 2},
    }[kind]
    return AutoConfig.for_model(
        kind,
        vocab_size=VOCAB_ROWS,
        **dict.fromkeys(("bos_token_id", "eos_token_id")),
        hidden_size=hidden_size,
        num_hidden_layers=layers,
        num_attention_heads=4,
        max_position_embeddings=context,
        tie_word_embeddings=kind != "gpt_neox",
        **{"init_std" if kind == "opt" else "initializer_range": INITIALIZER_STD},
        **own,
    )
