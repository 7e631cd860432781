"""Loads the weights of a model folder with transformers' `from_pretrained`, onto one device or split over several."""

import logging
import re
from contextlib import nullcontext, redirect_stderr
from io import StringIO
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch

from rbpx.config.model.family import is_gguf
from rbpx.config.model.placement import Split
from rbpx.errors import RbpxError, first_line
from rbpx.models.devices import is_out_of_memory
from rbpx.models.folder import weight_files
from rbpx.models.gguf import pretrained, take_rest, weights_options
from rbpx.models.tensor_parallel import TensorGroup, load_split

_LAYER_WEIGHT = re.compile(r"\.\d+\..*\.weight$")  # other unused tensors are buffers of older versions


def load_weights(
    folder: Path,
    name: str,
    dtype: torch.dtype,
    device: torch.device,
    pickled: bool = False,
    split: Split | TensorGroup | None = None,
) -> Any:
    """The causal language model of a folder or GGUF file, in evaluation mode, with all its weights from its own files.

    Args:
        folder: of the model.
        name: as requested, for errors.
        dtype: of its weights; the checkpoint's own choice is ignored.
        device: where it is placed in one piece.
        pickled: whether tensors may be read from pytorch_model.bin if there are no safetensors.
        split: placement over several devices, or the processes that share it; None for one device.

    Raises:
        RbpxError: transformers does not know the architecture, or the weights do not match config.json.
    """
    from transformers import AutoModelForCausalLM
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    files = weight_files(folder, name, pickled)
    safe, is_file = files[0].suffix == ".safetensors", is_gguf(folder)
    if split is not None and (is_file or (isinstance(split, Split) and not safe)):  # accelerate loses tied weights
        raise RbpxError(f"{name} has no safetensors, so it is measured on one device; drop device=split or parallel=")
    try:
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
            model, report = load_split(folder, split, **options)
        else:
            if is_file:
                options |= weights_options(folder, name)
            elif split is not None:
                options |= _device_map(split)
            elif device.type != "cpu":
                options["device_map"] = {"": device}  # each tensor goes there directly from its file
            holder, file = pretrained(folder)
            with redirect_stderr(StringIO()) if is_file else nullcontext():  # a bar that transformers cannot turn off
                model, report = AutoModelForCausalLM.from_pretrained(holder, **file, **options)
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
        raise RbpxError(f"{name} cannot be loaded as a causal language model: {first_line(problem)}") from None
    unexpected = sorted(report["unexpected_keys"])
    also = f", and its file has {unexpected[0]}" if unexpected else ""
    for what, keys in (  # transformers would fill the first two kinds with random numbers
        ("of other shapes than config.json says", [key for key, *_ in report["mismatched_keys"]]),
        ("too few", report["missing_keys"]),
        ("of layers that config.json lacks", filter(_LAYER_WEIGHT.search, unexpected)),
    ):
        if named := sorted(keys):
            raise RbpxError(
                f"{name} has {len(named)} weights {what}, the first is {named[0]}{also}; check config.json, "
                "and whether the download is complete"
            )
    if is_file:
        take_rest(model, folder, name)
    return model


def _device_map(split: Split) -> dict[str, Any]:
    """The arguments of `from_pretrained` for several devices: accelerate's automatic map."""
    logger = logging.getLogger("accelerate.big_modeling")
    logger.setLevel(logging.ERROR)  # it would warn that parts are offloaded, which is intended
    limits = None if split.limits is None else dict(split.limits)
    return {"device_map": "auto", "max_memory": limits, "offload_folder": split.folder}
