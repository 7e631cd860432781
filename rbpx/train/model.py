"""Makes the models of a ladder, GPT-NeoX or Mamba-2, with tokenizer and optimizer, and writes them to their folders."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    Mamba2Config,
    Mamba2ForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)
from transformers.utils.logging import disable_progress_bar

from rbpx.config.recipe import LadderSize, Recipe, Shape
from rbpx.files.entries import atomic_write


def build_model(recipe: Recipe, shape: Shape, seed: int) -> PreTrainedModel:
    """A float32 model of this shape with seeded initial weights and tied embeddings."""
    torch.manual_seed(seed)
    shared: dict[str, Any] = {"vocab_size": recipe.vocab_size, "tie_word_embeddings": True}
    shared |= {"hidden_size": shape.hidden, "num_hidden_layers": shape.layers, "bos_token_id": 0, "eos_token_id": 0}
    if isinstance(shape, LadderSize):
        neox = GPTNeoXConfig(
            **shared,
            num_attention_heads=shape.heads,
            intermediate_size=4 * shape.hidden,
            max_position_embeddings=recipe.context,
            rope_parameters={"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": shape.rotary},
        )
        return GPTNeoXForCausalLM(neox)
    mamba = Mamba2Config(
        **shared,
        num_heads=shape.heads,
        head_dim=shape.expand * shape.hidden // shape.heads,
        state_size=shape.state,
        n_groups=1,
        expand=shape.expand,
        conv_kernel=shape.convolution,
        chunk_size=shape.chunk,
        pad_token_id=0,
    )
    return Mamba2ForCausalLM(mamba)


def build_optimizer(model: torch.nn.Module, recipe: Recipe) -> torch.optim.AdamW:
    """AdamW with weight decay on matrices only; the caller sets its rate before each step."""
    matrices = [p for p in model.parameters() if p.ndim > 1]
    vectors = [p for p in model.parameters() if p.ndim <= 1]
    groups = [{"params": matrices, "weight_decay": recipe.weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, betas=(0.9, 0.95), fused=True)


def write_model(
    weights: dict[str, torch.Tensor], recipe: Recipe, shape: Shape, tokenizer: Path, folder: Path, facts: Any
) -> None:
    """Write weights in bfloat16, the tokenizer and `training.json`; the folder is whole or absent."""
    model = build_model(recipe, shape, 0)
    model.load_state_dict(weights)
    disable_progress_bar()  # it would write between the lines of the training, for a file of a few MiB
    with atomic_write(folder) as parts:
        model.to(torch.bfloat16).save_pretrained(parts)
        (parts / "generation_config.json").unlink(missing_ok=True)
        PreTrainedTokenizerFast(
            tokenizer_file=str(tokenizer),
            eos_token=END_OF_TEXT,
            model_max_length=recipe.context,
            clean_up_tokenization_spaces=False,
        ).save_pretrained(parts)
        (parts / "training.json").write_text(json.dumps(facts) + "\n")


END_OF_TEXT = "<|endoftext|>"


def train_tokenizer(texts: Iterable[str], vocab_size: int) -> Tokenizer:
    """Train a byte-level BPE of `vocab_size` entries; every text round-trips, and id 0 ends a document."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[END_OF_TEXT],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer
