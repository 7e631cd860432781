"""Reads a model's architecture without its weights, by building it on torch's meta device from local files.

Of a multimodal model, the part that reads text counts.
"""

import json
import os
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import nn

from rbpx.config.model.family import is_gguf
from rbpx.errors import RbpxError
from rbpx.models.folder import local_folder
from rbpx.models.gguf import pretrained

BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}  # of one number
_MIB = 2**20
_ATTENTION_OF_TORCH = (None, "eager", "sdpa", "flex_attention")
_MOST_LAYERS = 10_000
_OTHER_SENSES = ("vision_config", "audio_config", "vq_config")  # parts of a configuration whose models read no text


@dataclass(frozen=True)
class Architecture:
    """The sizes of a causal language model.

    Attributes:
        non_embedding_params: S.
        active_params: those of S that one token uses; None where the experts per token are unknown.
        total_params: each once.
        held_params: those and the parameters that no text passes, which are loaded too.
        vocab_size: V, rows of the vocabulary.
        head_width: D, width of the head's input.
        inner: widest linear map inside a layer.
        attention_width: A, width of all heads together, the mean of all layers.
        context: longest input, tokens.
    """

    non_embedding_params: int
    active_params: int | None
    total_params: int
    held_params: int
    vocab_size: int
    head_width: int
    width: int
    layers: int
    inner: int
    attention_width: float
    context: int | None

    def weights_mib(self, dtype: str) -> float:
        """Size of all parameters in a precision, MiB."""
        return self.held_params * BYTES[dtype] / _MIB


@dataclass(frozen=True)
class LocalModel:
    """What is known of a model without loading it or contacting the hub; the folder may be in the hub's cache."""

    folder: Path | None
    weights_mib: float | None
    architecture: Architecture | None


def look_up(model: str, revision: str | None, shape: dict[str, Any]) -> LocalModel:
    """Look a model up on this machine; the shape in its family's file takes precedence over its configuration."""
    folder = local_folder(model) or _in_cache(model, revision)
    files = [] if folder is None else [folder] if is_gguf(folder) else folder.glob("*.safetensors")
    weights = [path.stat().st_size for path in files]
    return LocalModel(folder, sum(weights) / _MIB if weights else None, _architecture(shape, folder))


def declared_architecture(model: str, shape: dict[str, Any], pickled: bool = False) -> Architecture | None:
    """The architecture that every machine derives alike: from the family's file, or from the model's folder.

    None for a hub id whose family's file has no shape, whatever the hub's cache holds.
    """
    return _architecture(shape, None if shape else local_folder(model, pickled))


def _architecture(shape: dict[str, Any], folder: Path | None) -> Architecture | None:
    if shape:
        return _read(json.dumps(shape), 0)
    if folder is None:
        return None
    return _read(folder, (folder if is_gguf(folder) else folder / "config.json").stat().st_mtime_ns)


@cache
def _read(source: str | Path, written_ns: int) -> Architecture | None:
    """`read_architecture`, cached for all jobs of a sweep until a folder's configuration changes."""
    return read_architecture(json.loads(source) if isinstance(source, str) else source)


def _in_cache(model: str, revision: str | None) -> Path | None:
    from huggingface_hub import try_to_load_from_cache

    path = try_to_load_from_cache(model, "config.json", revision=revision)
    return Path(path).parent if isinstance(path, str) else None


def read_config(source: dict[str, Any] | Path, name: str = "the model") -> Any:
    """The configuration of transformers in a folder or GGUF file, or of its keys; `name` is for errors.

    Raises:
        RbpxError: it asks for attention code that transformers would fetch from a hub, or for absurdly many layers.
    """
    from transformers import AutoConfig
    from transformers.utils.logging import set_verbosity_error

    if "TRANSFORMERS_VERBOSITY" not in os.environ:
        set_verbosity_error()  # its reports say that tensors "can be ignored" which are refused here
    if isinstance(source, Path):
        folder, file = pretrained(source)
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True, **file)
    else:
        config = AutoConfig.for_model(**source)
    parts = [config]
    for part in parts:
        code = getattr(part, "_attn_implementation", None)
        if code not in _ATTENTION_OF_TORCH and ("/" in code or find_spec("kernels") is not None):
            raise RbpxError(
                f"{name} asks for attn_implementation={code}, which is code from a hub, and rbpx runs none; take that "
                "key out of its config.json"
            )
        layers = getattr(part, "num_hidden_layers", None)
        if isinstance(layers, int) and layers > _MOST_LAYERS:
            raise RbpxError(
                f"{name} has {layers:,} layers by its config.json, and no model has more than {_MOST_LAYERS:,}; check "
                "the file"
            )
        parts += filter(None, (getattr(part, key, None) for key in getattr(part, "sub_configs", ())))
    return config


def auto_class(config: Any) -> Any:
    """The class of transformers that loads a model to read text: a causal one, or else a multimodal one."""
    from transformers import AutoModelForCausalLM, AutoModelForMultimodalLM

    both = (AutoModelForCausalLM, AutoModelForMultimodalLM)
    return next((auto for auto in both if type(config) in auto._model_mapping), AutoModelForCausalLM)


def build(config: Any, auto: Any) -> Any:
    """A model of a class of transformers on the meta device, without weights."""
    with torch.device("meta"):
        return auto.from_config(config, trust_remote_code=False)


def read_architecture(source: dict[str, Any] | Path) -> Architecture | None:
    """The architecture of a configuration, folder or GGUF file; None if transformers cannot build it."""
    try:
        config = read_config(source)
        model = build(config, auto_class(config))
    except Exception:  # errors of a wrong configuration differ by architecture; measuring reports them
        return None
    return architecture_of(model)


def architecture_of(model: Any) -> Architecture | None:
    """The architecture of a model on any device; None if its configuration does not give it."""
    head = model.get_output_embeddings()
    config = model.config.get_text_config(decoder=True)
    of_layers = layers_of(config)
    width = getattr(of_layers[0], "hidden_size", None)
    layers = getattr(config, "num_hidden_layers", None)
    if head is None or not isinstance(width, int) or not isinstance(layers, int):
        return None
    vocab_size, head_width = head.weight.shape
    heads = [getattr(layer, "num_attention_heads", None) or 0 for layer in of_layers]
    widths = [
        H * (getattr(layer, "head_dim", None) or width // H) if H else 0
        for H, layer in zip(heads, of_layers, strict=True)
    ]
    return Architecture(
        non_embedding_params=non_embedding_params(model),
        active_params=active_params(model),
        total_params=total_params(model),
        held_params=sum(parameter.numel() for parameter in model.parameters()),
        vocab_size=vocab_size,
        head_width=head_width,
        width=width,
        layers=layers,
        inner=max((max(p.shape) for p in _inside(model) if p.ndim == 2), default=0),
        attention_width=sum(widths) / len(widths),
        context=context_of(model),
    )


def layers_of(config: Any) -> list[Any]:
    """The configuration of each layer where they differ, else the one of all layers."""
    return list(config.per_layer_config) if getattr(config, "is_heterogeneous", False) else [config]


def beside_text(model: nn.Module) -> dict[str, list[nn.Parameter]]:
    """The parameters of a multimodal model that no text passes, by the names of its towers and projectors.

    Text passes the module whose configuration is the one of text, and the output head. Where text has no configuration
    of its own, all but the towers that have one and what is around these.
    """
    config: Any = getattr(model, "config", None)
    if config is None:
        return {}
    whole: Any = model
    of_text = type(config.get_text_config(decoder=True))
    is_nested = of_text is not type(config)
    towers = {type(getattr(config, name, None)) for name in _OTHER_SENSES} - {type(None), type(config)}
    if not is_nested and not towers:
        return {}
    body = next((part for part in model.modules() if type(getattr(part, "config", None)) is of_text), model)
    text = {body if is_nested else whole.get_input_embeddings(), whole.get_output_embeddings()}
    found: dict[str, list[nn.Parameter]] = {}
    around = [] if body in text and body is model else [model]
    for module in around:
        for name, child in module.named_children():
            inside = set(child.modules())
            if child in text:
                continue
            if inside & text:
                around.append(child)
            elif is_nested or any(type(getattr(part, "config", None)) in towers for part in inside):
                found.setdefault(name, []).extend(child.parameters())
        if is_nested:
            for name, parameter in module.named_parameters(recurse=False):
                found.setdefault(name, []).append(parameter)
    shared = {id(parameter) for part in text if part is not None for parameter in part.parameters()}
    found = {name: [each for each in own if id(each) not in shared] for name, own in found.items()}
    return {name: own for name, own in found.items() if own}


def non_embedding_params(model: nn.Module) -> int:
    """Count S, the size used by the laws: parameters that text passes, without embeddings and output head.

    Excludes the weights of every `nn.Embedding` (tokens and learned positions) and all parameters of the output head,
    tied or not. Counts everything else, once if shared, including opt-350m's project_in and project_out. transformers'
    `num_parameters(exclude_embeddings=True)` is not S: it counts an untied head (6.4 M of pythia-14m).
    """
    return sum(parameter.numel() for parameter in _inside(model))


def active_params(model: nn.Module) -> int | None:
    """Count the parameters of S that one token uses; S for a dense model.

    With k of E experts per token, k / E of the experts' weights count; the router and shared experts count whole. None
    where a layer of experts does not say its k.
    """
    idle, inside = 0.0, {id(parameter) for parameter in _inside(model)}
    for name, layer in model.named_modules():
        above, _, own = name.rpartition(".")
        if not type(layer).__name__.endswith("Experts") or own.startswith("shared"):
            continue
        weights = [parameter for parameter in layer.parameters() if id(parameter) in inside]
        if not weights:
            continue
        k = _experts_of_a_token(model, model.get_submodule(above))
        if k is None:
            return None
        E = getattr(layer, "num_experts", None) or max(len(weight) for weight in weights)
        idle += sum(weight.numel() for weight in weights) * max(0.0, 1 - k / E)
    return non_embedding_params(model) - round(idle)


def _experts_of_a_token(model: Any, around: nn.Module) -> int | None:
    said = [vars(module).get("top_k") for module in (around, *around.children())]
    said.append(getattr(model.config.get_text_config(decoder=True), "top_k_experts", None))
    return next((k for k in said if isinstance(k, int)), None)


def _inside(model: nn.Module) -> list[nn.Parameter]:
    head: nn.Module | None = model.get_output_embeddings()  # type: ignore[operator]
    excluded = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    if head is not None:
        excluded.update(id(parameter) for parameter in head.parameters())
    return [parameter for parameter in _of_text(model) if id(parameter) not in excluded]


def _of_text(model: nn.Module) -> list[nn.Parameter]:
    beside = {id(parameter) for parameters in beside_text(model).values() for parameter in parameters}
    return [parameter for parameter in model.parameters() if id(parameter) not in beside]


def total_params(model: nn.Module) -> int:
    """Count all parameters that text passes, each once if it is shared."""
    return sum(parameter.numel() for parameter in _of_text(model))


# Names of the longest input in transformers' configurations; `attribute_map` adds those of each architecture.
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
    """The longest input of a model on any device (meta too), in tokens; None if it has no limit.

    The smaller of the length in its configuration (for rotary positions, the training length) and the rows of its
    learned position embeddings.
    """
    text = layers_of(model.config.get_text_config(decoder=True))[0]
    named = (getattr(text, name, None) for name in _NAMES)
    lengths = [length for length in named if isinstance(length, int) and length > 0]  # -1 is none, for XLNet
    of_text = {id(parameter) for parameter in _of_text(model)}
    tables = [
        module
        for name, module in model.named_modules()
        if isinstance(module, nn.Embedding)
        and id(module.weight) in of_text
        and ("position" in (own := name.rpartition(".")[2]) or own == "wpe")
    ]
    return min([*lengths[:1], *map(_n_positions, tables)], default=None)


def _n_positions(table: nn.Embedding) -> int:
    """In RoBERTa's family they start after the padding row, in OPT and BART at an offset."""
    first = int(getattr(table, "offset", 0)) if table.padding_idx is None else table.padding_idx + 1
    return table.num_embeddings - first
