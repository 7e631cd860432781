"""How many tokens a model reads at once: from its configuration, by whatever name, and its position embeddings."""

from collections.abc import Iterator
from types import NoneType
from typing import Any

from torch import nn

# What configurations of transformers call the longest input; `attribute_map` adds the names of each architecture.
_NAMES = (
    "max_position_embeddings",
    "max_target_positions",
    "max_seq_len",
    "max_sequence_length",
    "seq_length",
    "model_max_length",
    "context_length",
    "n_positions",
    "n_ctx",
)


def context_of(model: Any) -> int | None:
    """The longest input of a model, in tokens; None if it reads inputs of any length.

    The least of what its configuration says, which for rotary positions is the length it was trained on, and of the
    rows of its learned position embeddings, beyond which it cannot read.

    Args:
        model: a causal language model of transformers, on any device, meta too.
    """
    text = model.config.get_text_config(decoder=True)
    named = (getattr(text, name, None) for name in _NAMES)
    lengths = [length for length in named if isinstance(length, int) and length > 0]  # -1 is none, for XLNet
    tables = _position_tables(model, (type(model.config), type(text)))
    return min([*lengths[:1], *map(_n_positions, tables)], default=None)


def _position_tables(module: nn.Module, configs: tuple[type, ...]) -> Iterator[nn.Embedding]:
    """The tables of learned positions, without those of encoders of images or sound, which have their own config."""
    for name, child in module.named_children():
        if isinstance(child, nn.Embedding):
            if "position" in name or name == "wpe":
                yield child
        elif isinstance(getattr(child, "config", None), (NoneType, *configs)):
            yield from _position_tables(child, configs)


def _n_positions(table: nn.Embedding) -> int:
    """Positions of a table; RoBERTa and its kin count from the row after the padding's, OPT and BART from an offset."""
    first = int(getattr(table, "offset", 0)) if table.padding_idx is None else table.padding_idx + 1
    return table.num_embeddings - first
