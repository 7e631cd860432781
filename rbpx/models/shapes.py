"""A model as asked in, its shape out: built without weights on torch's meta device, from what is on this machine alone.

Some 20 ms a model, and two seconds once for the imports.
"""

import json
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import nn

from rbpx.errors import RbpxError
from rbpx.models.costs import Shape
from rbpx.models.size import non_embedding_params, total_params
from rbpx.models.weights import local_folder

_MIB = 2**20


@dataclass(frozen=True)
class ModelHere:
    """What is known of a model without loading or asking for anything.

    Attributes:
        folder: its files on this machine, of a hub id those in the hub's cache; None where there are none.
        weights_mib: of its safetensors on disk, MiB; None where they are not here.
        shape: None where neither its family nor a folder tells.
    """

    folder: Path | None
    weights_mib: float | None
    shape: Shape | None


def look_up(model: str, revision: str | None, shape: dict[str, Any]) -> ModelHere:
    """What is known of a model here; a known family's shape counts before its configuration.

    Args:
        model: hub id, folder or bundled name.
        revision: as asked.
        shape: keys of a transformers configuration, empty where the family tells none.

    Raises:
        RbpxError: the id looks like a path and there is no model in it, or it cannot be a hub id.
    """
    folder = local_folder(model) or _in_cache(model, revision)
    weights = [] if folder is None else [path.stat().st_size for path in folder.glob("*.safetensors")]
    if shape:
        found = _of_keys(json.dumps(shape))
    else:
        found = None if folder is None else read_shape(folder)
    return ModelHere(folder=folder, weights_mib=sum(weights) / _MIB if weights else None, shape=found)


@cache
def _of_keys(shape: str) -> Shape | None:
    """The shape of a known family's size, built once for all jobs of a sweep."""
    return read_shape(json.loads(shape))


def _in_cache(model: str, revision: str | None) -> Path | None:
    """The folder of a hub id's configuration in the hub's cache; no network is touched."""
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        found = try_to_load_from_cache(model, "config.json", revision=revision)
    except HFValidationError:
        raise RbpxError(f"model.id={model} is no hub id ORG/NAME; check its spelling") from None
    return Path(found).parent if isinstance(found, str) else None


def read_shape(source: dict[str, Any] | Path) -> Shape | None:
    """The shape of a configuration, or of the one in a folder; None where transformers cannot build a model of it."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    from transformers import AutoConfig, AutoModelForCausalLM

    try:
        if isinstance(source, Path):
            config = AutoConfig.from_pretrained(source, trust_remote_code=False, local_files_only=True)
        else:
            config = AutoConfig.for_model(**source)
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config, trust_remote_code=False)
    except Exception:  # as many errors as architectures; measuring tells which, here the shape is only unknown
        return None
    return shape_of_model(model)


def shape_of_model(model: Any) -> Shape | None:
    """The shape of a causal language model, on any device; None where its configuration does not tell it."""
    head = model.get_output_embeddings()
    config = model.config.get_text_config()
    width = getattr(config, "hidden_size", None)
    layers = getattr(config, "num_hidden_layers", None)
    if head is None or not isinstance(width, int) or not isinstance(layers, int):
        return None
    vocab_size, head_width = head.weight.shape
    heads = getattr(config, "num_attention_heads", None) or 0
    inner = _widest_inside(model, head)
    state = getattr(config, "state_size", None) or 0
    return Shape(
        non_embedding_params=non_embedding_params(model),
        total_params=total_params(model),
        vocab_size=vocab_size,
        head_width=head_width,
        width=width,
        layers=layers,
        inner=inner,
        heads=heads,
        attention_width=heads * (getattr(config, "head_dim", None) or width // heads) if heads else 0,
        eager=bool(heads) and model.config._attn_implementation == "eager",
        state=state * (getattr(config, "intermediate_size", None) or width),
        context=getattr(config, "max_position_embeddings", None),
    )


def _widest_inside(model: nn.Module, head: nn.Module) -> int:
    """The longest side of a matrix that is neither an embedding nor the head."""
    outside = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    outside.update(id(parameter) for parameter in head.parameters())
    sides = [max(p.shape) for p in model.parameters() if p.ndim == 2 and id(p) not in outside]
    return max(sides, default=0)
