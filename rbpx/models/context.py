"""How many tokens a model reads at once: from its configuration, whatever that calls it, and its position embeddings."""

from typing import Any

from torch import nn

# What configurations of transformers call the longest input; `attribute_map` adds the names of each architecture.
_NAMES = ("max_position_embeddings", "max_target_positions", "max_seq_len", "max_sequence_length", "seq_length")
_NAMES += ("model_max_length", "context_length", "n_positions", "n_ctx")


def context_of(model: Any) -> int | None:
    """The longest input of a model, in tokens; None if it reads inputs of any length.

    The least of what its configuration says, which for rotary positions is the length it was trained on, and of the
    rows of its learned position embeddings, beyond which it cannot read.

    Args:
        model: a causal language model of transformers, on any device, meta too.
    """
    config = model.config.get_text_config(decoder=True)
    named = (getattr(config, name, None) for name in _NAMES)
    lengths = [length for length in named if isinstance(length, int) and length > 0]  # -1 is none, for XLNet
    return min([*lengths[:1], *_learned_positions(model)], default=None)


def _learned_positions(model: nn.Module) -> list[int]:
    """Positions that each table of learned position embeddings has."""
    tables = [
        module
        for name, module in model.named_modules()
        if isinstance(module, nn.Embedding) and ("position" in name.rpartition(".")[2] or name.endswith("wpe"))
    ]
    return [
        # RoBERTa and its kin count positions from the one after the padding's row, OPT and BART from an offset
        table.num_embeddings - (getattr(table, "offset", 0) if table.padding_idx is None else table.padding_idx + 1)
        for table in tables
    ]
