"""Loads a model for measuring: fetches and verifies it, and places it on its devices with its tokenizer and head."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import nn

from rbpx.config.model.adapter import ADAPTER_CONFIG, adapter_config
from rbpx.config.model.family import is_gguf
from rbpx.config.model.placement import Split
from rbpx.config.options import Quantise
from rbpx.errors import MeasureError, RbpxError, first_line
from rbpx.files.digest import digest
from rbpx.models.adapter import put_adapter
from rbpx.models.architecture import active_params, beside_text, context_of, non_embedding_params, total_params
from rbpx.models.description import Model
from rbpx.models.devices import is_out_of_memory
from rbpx.models.folder import adapter_files, hash_adapter, hash_model, weight_files
from rbpx.models.head import Head, open_head
from rbpx.models.hub import check_snapshot, fetch
from rbpx.models.lengths import Lengths, lengths_of
from rbpx.models.past import nothing_kept
from rbpx.models.pretrained import load_weights
from rbpx.models.quantise import linear_layers, round_weights, silence
from rbpx.models.tensor_parallel import TensorGroup
from rbpx.models.tokenizer import count_ids, hash_tokenizer, load_tokenizer

# 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), in eight passes over memory: a fifth of GPT-2's time on a CPU.
_TANH_GELU = ("NewGELUActivation", "FastGELUActivation")
_LOGGER = logging.getLogger(__name__)
Stamps = Mapping[Path, Sequence[int]]


def in_one_pass(model: nn.Module) -> None:
    """Replace activations that transformers computes in several operations by torch's single one.

    The model's states then differ by rounding.
    """
    for module in model.modules():
        for name, child in module.named_children():
            if type(child).__name__ in _TANH_GELU:
                setattr(module, name, nn.GELU(approximate="tanh"))


@dataclass(frozen=True, eq=False)
class LoadedModel(Model):
    """A model that is ready to be measured.

    Attributes:
        model: of transformers, in evaluation mode on its device.
        n_token_ids: later rows of the vocabulary have no token.
        files: the weight files, with their state before they were hashed.
        adapted: facts of its adapter for the manifest.
    """

    model: Any
    n_token_ids: int
    head: Head
    lengths: Lengths
    files: Stamps = field(default_factory=dict)
    adapted: Mapping[str, Any] = field(default_factory=dict)

    @property
    def n_rows(self) -> int:
        """Rows of its embedding; larger ids cannot be read."""
        return int(self.model.get_input_embeddings().weight.shape[0])

    @property
    def vocab_size(self) -> int:
        """V, rows that compete for a rank."""
        return self.head.vocab_size

    @cached_property
    def keeps_nothing(self) -> Mapping[str, Any]:
        """The arguments for reading texts from their beginning without a cache, made once."""
        return nothing_kept(self.model)

    def check_files(self, replaced: bool = False) -> None:
        """Raises MeasureError where a weight file was written to since it was hashed.

        torch maps weights into memory, so a written file would put another model under this hash; a replaced one stays
        mapped as it was, unless `replaced` counts it too.
        """
        for path, before in self.files.items():
            now = _stamp(path)
            if now != before and (replaced or (now is not None and now[-1] == before[-1])):
                raise MeasureError(
                    f"{self.name} was written to while it was read ({path}), so its numbers would be those of no model;"
                    " nothing was written; measure it again once it is finished"
                )


def _stamp(path: Path) -> Sequence[int] | None:
    """Length, time and inode of the file at a path; None where it is gone."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_size, stat.st_mtime_ns, stat.st_ino


def load_model(
    name: str,
    revision: str | None,
    dtype: str,
    device: torch.device,
    cache: Path | None = None,
    pickled: bool = False,
    split: Split | TensorGroup | None = None,
    quantise: Quantise | None = None,
    adapter: str | None = None,
) -> LoadedModel:
    """Load a model from a hub id, a folder, a GGUF file or the package (`rbpx:PATH`); runs no code of the repository.

    `cache` is as in `describe_model`; `pickled` allows tensors of pytorch_model.bin if there are no safetensors; sizes
    are of the model without its adapter.

    Raises:
        RbpxError: it is not a causal language model, weights are missing, or its tokenizer or adapter does not fit.
        MeasureError: the hub does not answer or delivered corrupt files, the model does not fit into memory, its code
            fails, or its files changed meanwhile.
    """
    _check_asked(name, split, quantise, adapter)  # before anything is fetched
    silence()
    with _in_memory(name):
        folder, commit = fetch(name, revision, pickled)
        check_snapshot(folder, name, pickled, cache)
        read = [*weight_files(folder, name, pickled), *([] if adapter is None else adapter_files(adapter, pickled))]
        files = {path: stamp for path in read if (stamp := _stamp(path)) is not None}
        base_hash = hash_model(folder, name, cache, pickled)
        group = split if isinstance(split, TensorGroup) else None
        load_here = partial(load_weights, folder, name, getattr(torch, dtype), device, pickled, split)
        model = load_here() if group is None else group.together(load_here)
        in_one_pass(model)
        # Counted before it runs, which separates tied weights that are offloaded.
        S, active, n_params = non_embedding_params(model), active_params(model), total_params(model)
        round_base = (
            None if quantise is None else partial(round_weights, linear_layers(model, quantise, name), quantise)
        )
        weights_hash, adapted = base_hash, dict[str, Any]()
        if adapter is not None:
            model, added = put_adapter(model, adapter, name, round_base)
            hashes = {"base_weights_hash": base_hash, "adapter_hash": hash_adapter(adapter, cache, pickled)}
            weights_hash, method = digest([*hashes.values()]), adapter_config(adapter)["peft_type"]
            adapted = {"added_params": added, "adapter": {"folder": adapter, "method": method, **hashes}}
        elif round_base is not None:
            round_base()
        if adapter is None and (folder / ADAPTER_CONFIG).is_file():
            _LOGGER.info(
                f"{name} has an adapter beside its weights ({ADAPTER_CONFIG}), which is not read; to have it, give "
                f"model.adapter={folder}"
            )
        tokenizer = load_tokenizer(folder, name)
        loaded = LoadedModel(
            name=name,
            model=model,
            tokenizer=tokenizer,
            n_token_ids=count_ids(tokenizer, model.get_input_embeddings().weight.shape[0], name),
            lengths=_lengths(model, name, group),
            head=_head(model, name, dtype, group),
            commit=commit,
            context=context_of(model),
            non_embedding_params=S,
            active_params=active,
            total_params=n_params,
            weights_hash=weights_hash,
            tokenizer_hash=hash_tokenizer(tokenizer),
            files=files,
            adapted=adapted,
        )
        loaded.check_files(replaced=True)
        return loaded


def _check_asked(name: str, split: Split | TensorGroup | None, quantise: Quantise | None, adapter: str | None) -> None:
    rounds, adapts = None if quantise is None else f"model.quantise={quantise.value}", f"model.adapter={adapter}"
    asked = ((rounds, "torchao", "quantise"), (None if adapter is None else adapts, "peft", "adapters"))
    for key, package, extra in asked:
        if key is not None and find_spec(package) is None:
            raise RbpxError(f"{key} needs {package}, which is not installed: pip install 'rbpx[{extra}]'")
    if rounds is not None and (is_gguf(name) or split is not None):
        raise RbpxError(
            f"{rounds} rounds safetensors on one device; drop it for {name}, or drop device=split or parallel="
        )
    if adapter is not None and split is not None:
        raise RbpxError(f"{adapts} is put into a model on one device; drop device=split or parallel=")


def _lengths(model: nn.Module, name: str, group: TensorGroup | None) -> Lengths:
    """Says what it means where the first text fails in a multimodal model."""
    try:
        return lengths_of(model, context_of(model), is_shared=group is not None)
    except RbpxError:
        raise
    except Exception as problem:  # each wants its images in its own way
        if is_out_of_memory(problem) or not beside_text(model):
            raise
        raise RbpxError(
            f"{name} is a multimodal model whose text part does not stand alone ({first_line(problem)}); measure a "
            "language model"
        ) from None


def _head(model: nn.Module, name: str, dtype: str, group: TensorGroup | None) -> Head:
    head = open_head(model, group)
    if head.product is None and (dtype != "float32" or (group is not None and head.after == "unknown")):
        what = "are not finite" if head.after == "not finite" else "change after its head as rbpx does not know"
        raise RbpxError(f"the logits of {name} {what}; measure it with dtype=float32, and without parallel=")
    return head


@contextmanager
def _in_memory(name: str) -> Iterator[None]:
    try:
        yield
    except Exception as problem:
        if not is_out_of_memory(problem):
            raise
        raise MeasureError(
            f"{name} does not fit into memory ({first_line(problem)}); use a smaller dtype or device=split, or change "
            "the limits in memory="
        ) from None
