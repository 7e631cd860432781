"""A folder of weights in, the transformers model out: on one device, or split over several."""

import logging
import re
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch

from rbpx.config.placement import Split
from rbpx.errors import MeasureError, RbpxError
from rbpx.models.conversion import convert
from rbpx.models.head import input_device
from rbpx.models.weights import weight_files

_OF_A_LAYER = re.compile(r"\.\d+\..*\.weight$")


def load_weights(
    folder: Path, name: str, dtype: torch.dtype, device: torch.device, pickled: bool = False, split: Split | None = None
) -> Any:
    """The causal language model of a folder, in evaluation mode, all its weights from its own files.

    Args:
        folder: of the model.
        name: as asked, for errors.
        dtype: of its weights, never the checkpoint's own choice.
        device: where it goes as a whole.
        pickled: whether tensors may be read from pytorch_model.bin where there are no safetensors.
        split: puts it over several devices instead.

    Raises:
        RbpxError: transformers does not know such a model, or the weights and config.json do not fit each other.
        MeasureError: it does not fit into memory.
    """
    from transformers import AutoModelForCausalLM
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    files = weight_files(folder, name, pickled)
    safe = files[0].suffix == ".safetensors"
    try:
        if split is not None and not safe:
            folder, safe = convert(folder, files, split.folder), True
        model, report = AutoModelForCausalLM.from_pretrained(
            folder,
            dtype=dtype,
            use_safetensors=safe,
            weights_only=True,  # of a pickle: tensors, no code
            trust_remote_code=False,
            local_files_only=True,
            output_loading_info=True,
            **_placed(split),
        )
        model = model.eval() if split is not None else model.to(device).eval()
    except RbpxError:
        raise
    except Exception as problem:  # a wrong config.json fails in as many ways as there are architectures
        if is_out_of_memory(problem):
            how = "use device=split" if split is None else "give memory= other limits, or use a smaller dtype"
            raise MeasureError(f"{name} does not fit into memory ({first_line(problem)}); {how}") from None
        if isinstance(problem, UnpicklingError):
            raise RbpxError(
                f"{name} has a pickle that is no plain file of tensors (damaged, or with code in it); it is not opened"
            ) from None
        raise RbpxError(f"{name} cannot be loaded as a causal language model: {first_line(problem)}") from None
    missing = sorted(report["missing_keys"])
    if missing:  # transformers would fill them with random numbers
        raise RbpxError(f"{name} lacks {len(missing)} of its weights, first {missing[0]}; is the download complete?")
    unused = sorted(key for key in report["unexpected_keys"] if _OF_A_LAYER.search(key))
    if unused:  # weights of layers that config.json does not have
        raise RbpxError(f"{name} has weights that config.json has no place for, first {unused[0]}; check config.json")
    return model


def _placed(split: Split | None) -> dict[str, Any]:
    """What transformers is told of the devices: nothing for one, or accelerate's map over all of them."""
    if split is None:
        return {}
    gpus = torch.cuda.device_count()
    strange = [device for device in split.limits or () if device != "cpu" and int(device) >= gpus]
    if strange:
        raise RbpxError(f"memory names GPU {strange[0]}, and torch sees {gpus} of them, counted from 0; name others")
    logger = logging.getLogger("accelerate.big_modeling")
    logger.setLevel(logging.ERROR)  # it warns that parts are offloaded, as they should be
    limits = None if split.limits is None else dict(split.limits)
    return {"device_map": "auto", "max_memory": limits, "offload_folder": split.folder}


def devices_of(model: Any) -> tuple[str, ...]:
    """Where a model computes and where its weights lie, each once: `cuda:0`, `cpu`, `disk`."""
    placed = getattr(model, "hf_device_map", {}).values()
    names = (f"cuda:{place}" if isinstance(place, int) else str(place) for place in placed)
    return tuple(dict.fromkeys([str(input_device(model)), *names]))


def is_out_of_memory(problem: BaseException) -> bool:
    """Whether memory ran out, of a GPU or of the CPU."""
    return isinstance(problem, torch.OutOfMemoryError | MemoryError) or "DefaultCPUAllocator" in str(problem)


def first_line(problem: Exception) -> str:
    """What went wrong inside a library, as a part of our own line."""
    lines = [line.strip() for line in str(problem).split("\n") if line.strip()]
    return f"{type(problem).__name__}: {lines[0][:200] if lines else 'no reason given'}"
