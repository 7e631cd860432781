"""How large a model is: a causal language model in, S (its number of non-embedding parameters) out."""

from typing import Any, cast

from torch import nn


def non_embedding_params(model: nn.Module) -> int:
    """Count S, the size that the laws are stated in: parameters without embeddings and without the output head.

    Left out are the weights of every `nn.Embedding` (tokens and learned positions) and all parameters of the output
    head, tied or not. Everything else counts, once where it is shared: opt-350m's project_in and project_out too.
    `num_parameters(exclude_embeddings=True)` of transformers is not S: it keeps an untied head (6.4 M of pythia-14m's).

    Args:
        model: a causal language model with the `get_output_embeddings` of transformers, on any device, meta too.
    """
    head: nn.Module | None = cast(Any, model).get_output_embeddings()
    left_out = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    if head is not None:
        left_out.update(id(parameter) for parameter in head.parameters())
    return sum(parameter.numel() for parameter in model.parameters() if id(parameter) not in left_out)


def total_params(model: nn.Module) -> int:
    """Count all parameters, embeddings and output head included, each once where it is shared."""
    return sum(parameter.numel() for parameter in model.parameters())
