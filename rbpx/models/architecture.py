"""The architecture of a model, read without its weights: built on torch's meta device from local files only.

About 20 ms a model, and once two seconds for the imports.
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
from rbpx.models.context import context_of
from rbpx.models.folder import local_folder
from rbpx.models.parameter_count import non_embedding_params, total_params

BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}  # of one number
_MIB = 2**20


@dataclass(frozen=True)
class Architecture:
    """What a causal language model is made of.

    Attributes:
        non_embedding_params: S.
        total_params: all parameters, each once.
        vocab_size: V, rows of the vocabulary.
        head_width: D, width of the head's input.
        width: of the hidden states.
        layers: L, number of layers.
        inner: widest linear map inside a layer.
        heads: H, attention heads; 0 without attention.
        attention_width: A, width of all heads together.
        eager: whether attention writes its [H, T, T] scores to memory.
        state: numbers that a token has in the scan of a state-space model, per layer; 0 without one.
        context: tokens that it reads at once, None if its configuration sets no limit.
    """

    non_embedding_params: int
    total_params: int
    vocab_size: int
    head_width: int
    width: int
    layers: int
    inner: int
    heads: int
    attention_width: int
    eager: bool
    state: int
    context: int | None

    def weights_mib(self, dtype: str) -> float:
        """All parameters in that precision, MiB."""
        return self.total_params * BYTES[dtype] / _MIB


@dataclass(frozen=True)
class LocalModel:
    """What is known of a model without loading it or asking the hub.

    Attributes:
        folder: its files on this machine, for a hub id in the hub's cache; None if there are none.
        weights_mib: of its safetensors on disk, MiB; None if they are not on this machine.
        architecture: None if neither its family nor a folder gives it.
    """

    folder: Path | None
    weights_mib: float | None
    architecture: Architecture | None


def look_up(model: str, revision: str | None, shape: dict[str, Any]) -> LocalModel:
    """What is known of a model on this machine; the shape in its family's file takes precedence over its configuration.

    Args:
        model: hub id, folder or bundled name.
        revision: as requested.
        shape: keys of a transformers configuration from the family's file; empty if it has none.

    Raises:
        RbpxError: the id looks like a path without a model, or is not a valid hub id.
    """
    folder = local_folder(model) or _in_cache(model, revision)
    weights = [] if folder is None else [path.stat().st_size for path in folder.glob("*.safetensors")]
    if shape:
        architecture = _of_family(json.dumps(shape))
    else:
        architecture = None if folder is None else _of_folder(folder, (folder / "config.json").stat().st_mtime_ns)
    return LocalModel(folder=folder, weights_mib=sum(weights) / _MIB if weights else None, architecture=architecture)


def declared_architecture(model: str, shape: dict[str, Any], pickled: bool = False) -> Architecture | None:
    """The architecture by what is the same on all machines that measure a model: its family's file, or its folder.

    Args:
        model: hub id, folder or bundled name.
        shape: as for `look_up`.
        pickled: whether a folder may hold its weights in a pickle.

    Returns:
        None for a hub id whose family's file has no shape, whatever the hub's cache holds.

    Raises:
        RbpxError: the id looks like a path without a model.
    """
    if shape:
        return _of_family(json.dumps(shape))
    folder = local_folder(model, pickled)
    return None if folder is None else _of_folder(folder, (folder / "config.json").stat().st_mtime_ns)


@cache
def _of_family(shape: str) -> Architecture | None:
    """The architecture of a size of a known family, built once for all jobs of a sweep."""
    return read_architecture(json.loads(shape))


@cache
def _of_folder(folder: Path, written_ns: int) -> Architecture | None:
    """The architecture of a folder whose configuration was written then, built once for all jobs of a sweep."""
    return read_architecture(folder)


def _in_cache(model: str, revision: str | None) -> Path | None:
    """The folder of a hub id's configuration in the hub's cache; the network is not used."""
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        path = try_to_load_from_cache(model, "config.json", revision=revision)
    except HFValidationError:
        raise RbpxError(f"model.id={model} is not a hub id ORG/NAME; check its spelling") from None
    return Path(path).parent if isinstance(path, str) else None


def read_architecture(source: dict[str, Any] | Path) -> Architecture | None:
    """The architecture of a configuration, or of the one in a folder; None if transformers cannot build it."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    from transformers import AutoConfig, AutoModelForCausalLM

    try:
        if isinstance(source, Path):
            config = AutoConfig.from_pretrained(source, trust_remote_code=False, local_files_only=True)
        else:
            config = AutoConfig.for_model(**source)
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config, trust_remote_code=False)
        return architecture_of(model)
    except Exception:  # each architecture fails in its own way; measuring reports it, here it is only unknown
        return None


def architecture_of(model: Any) -> Architecture | None:
    """The architecture of a causal language model, on any device; None if its configuration does not give it."""
    head = model.get_output_embeddings()
    config = model.config.get_text_config(decoder=True)
    width = getattr(config, "hidden_size", None)
    layers = getattr(config, "num_hidden_layers", None)
    if head is None or not isinstance(width, int) or not isinstance(layers, int):
        return None
    vocab_size, head_width = head.weight.shape
    heads = getattr(config, "num_attention_heads", None) or 0
    inner = _widest_inside(model, head)
    state = getattr(config, "state_size", None) or 0
    return Architecture(
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
        context=context_of(model),
    )


def _widest_inside(model: nn.Module, head: nn.Module) -> int:
    """The longest side of a matrix that is neither an embedding nor the head."""
    excluded = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    excluded.update(id(parameter) for parameter in head.parameters())
    sides = [max(p.shape) for p in model.parameters() if p.ndim == 2 and id(p) not in excluded]
    return max(sides, default=0)
