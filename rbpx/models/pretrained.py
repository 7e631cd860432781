"""Loads the weights of a model folder with transformers' `from_pretrained`, onto one device or split over several."""

import logging
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import nullcontext, redirect_stderr
from io import StringIO
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, Final

import torch
from safetensors import safe_open

from rbpx.config.model.family import is_gguf
from rbpx.config.model.placement import Split
from rbpx.errors import RbpxError, first_line
from rbpx.models.architecture import auto_class, beside_text, build, read_config
from rbpx.models.devices import is_out_of_memory
from rbpx.models.folder import weight_files
from rbpx.models.gguf import pretrained, take_rest
from rbpx.models.tensor_parallel import TensorGroup, load_split

# Tensors that older versions of an architecture saved, and that a model computes for itself.
_COMPUTED: Final = re.compile(r"rotary_emb\.inv_freq$|(^|\.)(attn|attention)\.(masked_)?bias$|(^|\.)version$")
_OF_QUANTISED: Final = re.compile(r"scale|zeros|absmax|quant|qweight|g_idx|packed|SCB")
_OF_ADAPTER: Final = re.compile(r"\blora_[A-Z]")
_FLOATS: Final = ("F16", "BF16", "F32", "F64")  # what safetensors calls the types that need no scale


def load_weights(
    folder: Path,
    name: str,
    dtype: torch.dtype,
    device: torch.device,
    pickled: bool = False,
    split: Split | TensorGroup | None = None,
) -> Any:
    """The language model of a folder or GGUF file, in evaluation mode, with all its weights from its own files.

    A multimodal model is loaded whole where transformers has no class for its text alone.

    Raises:
        RbpxError: transformers does not know the architecture, or the weights do not match config.json.
    """
    from transformers import GgufConfig
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    files = weight_files(folder, name, pickled)
    safe, is_file = files[0].suffix == ".safetensors", is_gguf(folder)
    if split is not None and (is_file or (isinstance(split, Split) and not safe)):  # accelerate loses tied weights
        raise RbpxError(f"{name} has no safetensors, so it is measured on one device; drop device=split or parallel=")
    try:
        config = read_config(folder, name)
        options = {
            "dtype": dtype,
            "use_safetensors": safe,
            "weights_only": True,  # of a pickle: tensors, no code
            "trust_remote_code": False,
            "local_files_only": True,
            "output_loading_info": True,
            "ignore_mismatched_sizes": True,  # they are refused below, by name
            # With peft installed, transformers would apply an adapter in the folder unasked.
            "adapter_kwargs": {"subfolder": "(none)"},
        }
        if isinstance(split, TensorGroup):
            model, report = load_split(folder, config, split, **options)
        else:
            if split is not None:
                options |= _device_map(split)
            elif device.type != "cpu":
                options["device_map"] = {"": device}  # each tensor goes there directly from its file
            holder, file = pretrained(folder)
            if is_file:
                options["quantization_config"] = GgufConfig(dequantize=True)  # all weights are expanded on loading
            with redirect_stderr(StringIO()) if is_file else nullcontext():  # a bar that transformers cannot turn off
                model, report = auto_class(config).from_pretrained(holder, **file, **options)
        model = model.eval() if split is not None else model.to(device).eval()
    except RbpxError:
        raise
    except Exception as problem:  # errors of a wrong config.json differ by architecture
        if is_out_of_memory(problem):
            raise
        if isinstance(problem, UnpicklingError):  # torch's own words advise to run the code
            raise RbpxError(f"{name} has a pickle that is corrupt or holds code; use weights in safetensors") from None
        if "trust_remote_code" in str(problem):
            raise RbpxError(
                f"{name} needs code of its own, and rbpx runs none; use a checkpoint of an architecture of transformers"
            ) from None
        advice = "; measure the model's safetensors" if is_file else ""
        raise RbpxError(f"{name} cannot be loaded as a causal language model: {first_line(problem)}{advice}") from None
    _check_names(model, config, report, name)
    if not is_file and not _says_quantised(config):
        _check_numbers(model, files, report["unexpected_keys"], name)
    if is_file:
        take_rest(model, folder, name)
    return model


def _check_names(model: Any, config: Any, report: Any, name: str) -> None:
    beside = {id(parameter) for parameters in beside_text(model).values() for parameter in parameters}
    others = {key for key, parameter in model.named_parameters() if id(parameter) in beside}
    missing = sorted(set(report["missing_keys"]) - others)
    unexpected = _left_over(model, config, report["unexpected_keys"])
    also = f", and its file has {unexpected[0]}" if unexpected else ""
    if missing and (prefix := _prefix(unexpected, missing)):
        raise RbpxError(f"{name} has weights whose names all begin with {prefix}: strip it from the names in its files")
    for what, keys in (  # transformers would fill both with random numbers
        ("of other shapes than config.json says", sorted({key for key, *_ in report["mismatched_keys"]} - others)),
        ("too few", missing),
    ):
        if keys:
            raise RbpxError(
                f"{name} has {len(keys)} weights {what}, the first is {keys[0]}{also}; check config.json, "
                "and whether the download is complete"
            )
    if unexpected:
        raise RbpxError(
            f"{name}: {len(unexpected)} of the tensors in its files have no place in config.json, the first is "
            f"{unexpected[0]} ({_meaning(model, unexpected[0])}); without them it is another model: check config.json"
        )


def _left_over(model: Any, config: Any, unused: Collection[str]) -> list[str]:
    """The tensors in a model's files that it did not take, though they may belong to its computation.

    Without buffers that it computes, scales that its quantiser knows, and towers and projectors of a multimodal model.
    What transformers itself declares as unused is not in its report.
    """
    if not unused:
        return []
    from transformers import AutoModelForMultimodalLM as Multimodal

    saved = model.state_dict().keys()
    computed = [f".{key}" for key, _ in model.named_buffers() if key not in saved]
    beside = beside_text(model)
    if type(model.config) is not type(config) and type(config) in Multimodal._model_mapping:
        beside = beside_text(build(config, Multimodal))  # the class for its text alone has no towers
    quantised = _says_quantised(config)
    return sorted(
        key
        for key in unused
        if not _COMPUTED.search(key)
        and not any(buffer.endswith(f".{key}") for buffer in computed)
        and not beside.keys() & set(key.split("."))
        and not (quantised and _OF_QUANTISED.search(key))
    )


def _says_quantised(config: Any) -> bool:
    parts = (config, config.get_text_config(decoder=True))
    return any(getattr(part, "quantization_config", None) is not None for part in parts)


def _prefix(unexpected: Sequence[str], missing: Sequence[str]) -> str:
    found = [key.removesuffix(name) for key in unexpected[:1] for name in missing if key.endswith(f".{name}")]
    return next((prefix for prefix in found if all(key.startswith(prefix) for key in unexpected)), "")


def _meaning(model: Any, key: str) -> str:
    paths = [f".{path}" for path, _ in model.named_modules()]
    above, _, own = key.rpartition(".")
    if _OF_ADAPTER.search(key):
        return "a part of an adapter that is not merged"
    if _OF_QUANTISED.search(key):
        return "the file is quantised, and config.json has no quantization_config"
    for number in re.finditer(r"\.\d+(?=\.)", key):
        if not any(path.endswith(f".{key[: number.end()]}") for path in paths):
            return "a layer more than config.json says"
    if own == "bias" and any(path.endswith(f".{above}") for path in paths):
        return "a bias in the file that config.json switches off"
    return "a part that this architecture has not"


def _check_numbers(model: Any, files: Sequence[Path], unused: Collection[str], name: str) -> None:
    tensors = {**model.state_dict(), **dict(model.named_buffers())}
    whole = {key.rpartition(".")[2] for key, tensor in tensors.items() if not tensor.is_floating_point()}
    ignored = model._keys_to_ignore_on_load_unexpected or ()
    for key, kind in _matrices_of_others(files):
        if (
            key.rpartition(".")[2] not in whole  # parts of a name that are before it may differ in files
            and not any(f".{left}".endswith(f".{key}") or f".{key}".endswith(f".{left}") for left in unused)
            and not any(re.search(pattern, key) for pattern in ignored)
        ):
            raise RbpxError(
                f"{name} has integers or 8-bit numbers for weights, the first is {key} ({kind}), and config.json has "
                "no quantization_config that says how to read them; measure the model before it was quantised"
            )


def _matrices_of_others(files: Sequence[Path]) -> Iterator[tuple[str, str]]:
    for path in files:
        if path.suffix == ".safetensors":
            with safe_open(path, framework="pt") as file:
                for key in file.keys():
                    tensor = file.get_slice(key)
                    if tensor.get_dtype() not in _FLOATS and len(tensor.get_shape()) > 1:
                        yield key, tensor.get_dtype()
            continue
        for key, tensor in torch.load(path, map_location="meta", weights_only=True).items():
            if tensor.dtype not in (torch.float16, torch.bfloat16, torch.float32, torch.float64) and tensor.ndim > 1:
                yield key, str(tensor.dtype).removeprefix("torch.")


def _device_map(split: Split) -> dict[str, Any]:
    logger = logging.getLogger("accelerate.big_modeling")
    logger.setLevel(logging.ERROR)  # it would warn that parts are offloaded, which is intended
    limits = None if split.limits is None else dict(split.limits)
    return {"device_map": "auto", "max_memory": limits, "offload_folder": split.folder}
