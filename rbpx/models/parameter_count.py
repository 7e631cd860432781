"""The parameter counts of a model: S (non-embedding parameters) and the total."""

from typing import Any, cast

from torch import nn


def non_embedding_params(model: nn.Module) -> int:
    """Count S, the size that the laws are stated in: parameters without embeddings and without the output head.

    Excluded are the weights of every `nn.Embedding` (tokens and learned positions) and all parameters of the output
    head, tied or not. Everything else counts, once if it is shared, including opt-350m's project_in and project_out.
    `num_parameters(exclude_embeddings=True)` of transformers is not S: it counts an untied head (6.4 M of pythia-14m).

    Args:
        model: a causal language model with the `get_output_embeddings` of transformers, on any device, meta too.
    """
    head: nn.Module | None = cast(Any, model).get_output_embeddings()
    excluded = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    if head is not None:
        excluded.update(id(parameter) for parameter in head.parameters())
    return sum(parameter.numel() for parameter in model.parameters() if id(parameter) not in excluded)


def total_params(model: nn.Module) -> int:
    """Count all parameters, including embeddings and output head, each once if it is shared."""
    return sum(parameter.numel() for parameter in model.parameters())
