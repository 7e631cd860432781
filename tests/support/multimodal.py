"""The size of a multimodal model's text, counted another way: of its text model, built without the rest."""

from typing import Any

import torch
from torch import nn

from rbpx.models.architecture import auto_class, non_embedding_params, total_params
from tests.support.architectures import tiny_multimodal


def check_size(model_type: str) -> None:
    """Assert that S and the total of what is measured are those of the text model and the output head."""
    from transformers import AutoModelForMultimodalLM

    config = tiny_multimodal(model_type)
    text = config.get_text_config(decoder=True)
    with torch.device("meta"):
        model, whole = auto_class(config).from_config(config), AutoModelForMultimodalLM.from_config(config)
        inner: Any = next(part for part in whole.modules() if type(getattr(part, "config", None)) is type(text))
        alone = type(inner)(text)
    head = whole.get_output_embeddings()
    embeddings = {id(part.weight): part.weight.numel() for part in alone.modules() if isinstance(part, nn.Embedding)}
    S = sum(p.numel() for p in alone.parameters() if id(p) not in embeddings)
    S -= sum(
        p.numel() for name, p in alone.named_parameters() if name.startswith("lm_head.") and id(p) not in embeddings
    )
    beside = 0 if head.weight is whole.get_input_embeddings().weight else sum(p.numel() for p in head.parameters())
    assert (non_embedding_params(model), total_params(model)) == (S, S + sum(embeddings.values()) + beside)


def wrappers() -> list[str]:
    """The multimodal architectures of transformers whose text has a configuration of its own."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING
    from transformers.models.auto.modeling_auto import MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES

    return [name for name in MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES if "text_config" in CONFIG_MAPPING[name].sub_configs]
