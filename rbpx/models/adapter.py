"""Applies a peft adapter to its base model: LoRA and every other method that peft can merge or apply."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from logging import getLogger
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor, nn

from rbpx.config.model.adapter import adapter_config
from rbpx.errors import RbpxError, first_line
from rbpx.models.devices import is_out_of_memory

_TRIAL_TOKENS: Final = 32
# Tolerated change of logits by a merge, relative to their norm; measured: 1e-6, 0.01, 0.002 (SmolLM2-135M).
_ROUNDING: Final = {torch.float32: 1e-3, torch.bfloat16: 0.2, torch.float16: 0.2}
_WRAPPED: Final = "base_layer"  # what peft calls a layer of the model inside its own


def put_adapter(model: Any, adapter: str, name: str, round_base: Callable[[], None] | None = None) -> tuple[Any, int]:
    """The model with an adapter, and the number of parameters that the adapter adds.

    It is merged into the weights, in place. Where `round_base` quantises the layers it stays unmerged, as in QLoRA
    training, since rounding would erase a part of it.

    Raises:
        RbpxError: the adapter changes what the model reads, is of another model, or cannot be merged.
    """
    n_rows = model.get_input_embeddings().weight.shape[0]
    ids_BT = (torch.arange(_TRIAL_TOKENS, device=model.device) * 7919 % n_rows)[None]
    n_params = _count(model)
    with _explained(adapter, name), torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of tied weights, which `_untie` handles
        tuned = _opened(model, adapter)
        added = _count(tuned) - n_params
        if round_base is not None:
            round_base()
        expected_BTV = tuned(input_ids=ids_BT, use_cache=False).logits
        if round_base is None:
            _untie(model)
            plain = tuned.merge_and_unload()
        else:
            plain = tuned.get_base_model()
        logits_BTV = plain.eval()(input_ids=ids_BT, use_cache=False).logits
        if not _alike(logits_BTV, expected_BTV, model.dtype):
            raise _refused(adapter, "in the model alone it gives other logits than in peft's")
    return plain, added


def _count(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def _alike(logits_BTV: Tensor, expected_BTV: Tensor, dtype: torch.dtype) -> bool:
    expected = expected_BTV.double()
    if not expected.isfinite().all():
        return True  # measuring will fail and name the position
    apart = (logits_BTV.double() - expected).norm()
    return bool(apart <= _ROUNDING[dtype] * expected.norm())


def _opened(model: Any, adapter: str) -> Any:
    """Peft's model, after checking that every adapter weight was loaded."""
    from peft import PeftConfig, PeftModel

    folder = str(Path(adapter).expanduser())
    with warnings.catch_warnings(record=True) as said, torch.random.fork_rng():
        warnings.simplefilter("always")
        torch.manual_seed(0)  # some initial values are random (PiSSA by niter) and stay in the base
        config = PeftConfig.from_pretrained(folder)
        if config.is_prompt_learning:
            kind = config.peft_type.value
            raise _refused(adapter, f"{kind} puts a prompt of its own before each text, which shifts its positions")
        tuned = PeftModel(model, config)
        loaded = tuned.load_adapter(folder, "default", torch_device=str(model.device))
    if loaded.unexpected_keys:
        raise _refused(adapter, f"the model has no place for {loaded.unexpected_keys[0]}")
    if loaded.missing_keys:
        raise _refused(adapter, f"it has no weights for some layers of the model ({str(loaded.missing_keys)[:200]})")
    for each in (str(warning.message) for warning in said):
        if each.startswith("Unexpected keyword arguments"):  # of a newer peft
            getLogger(__name__).warning(f"model.adapter={adapter}: {each}")
    return tuned


def _untie(model: nn.Module) -> None:
    """Copy a weight that layers share where an adapter is merged into one of them; else both would change."""
    holders: dict[int, list[tuple[nn.Module, str, bool]]] = {}
    for path, module in model.named_modules():
        for key, parameter in module.named_parameters(recurse=False):
            holders.setdefault(id(parameter), []).append((module, key, _WRAPPED in path.split(".")))
    for shared in holders.values():
        if any(is_wrapped for *_, is_wrapped in shared):
            for module, key, _ in shared[1:]:
                setattr(module, key, nn.Parameter(getattr(module, key).detach().clone(), requires_grad=False))


@contextmanager
def _explained(adapter: str, name: str) -> Iterator[None]:
    try:
        yield
    except RbpxError:
        raise
    except Exception as problem:
        if is_out_of_memory(problem):
            raise
        raise _refused(adapter, f"{name} does not take it ({first_line(problem)})") from None


def _refused(adapter: str, why: str) -> RbpxError:
    base = adapter_config(adapter).get("base_model_name_or_path")
    return RbpxError(
        f"model.adapter={adapter} cannot be used: {why}; it was trained on {base}: give its own base, or an adapter "
        "that peft merges"
    )
