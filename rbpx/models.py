"""A model as asked in, a loaded model with its head, its size and the hashes of what was loaded out."""

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from rbpx.content import digest
from rbpx.errors import MeasureError, RbpxError
from rbpx.head import Head, check_causal, open_head
from rbpx.params import non_embedding_params, total_params
from rbpx.weights import fetch, hash_model

_OF_A_LAYER = re.compile(r"\.\d+\..*\.weight$")


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A causal language model ready to be measured.

    Attributes:
        name: as asked.
        model: the transformers model, in evaluation mode on its device.
        tokenizer: its tokenizer.
        head: hidden states to float32 logits.
        commit: the hub's commit, None for a folder.
        context: tokens it can read at once; None if its configuration sets no limit.
        non_embedding_params: S.
        total_params: all parameters.
        weights_hash: of the configuration and the bytes of the weights.
        tokenizer_hash: of the vocabulary, the merges and the special tokens.
    """

    name: str
    model: Any
    tokenizer: Any
    head: Head
    commit: str | None
    context: int | None
    non_embedding_params: int
    total_params: int
    weights_hash: str
    tokenizer_hash: str


def load_tokenizer(folder: Path, name: str) -> Any:
    """The fast tokenizer of a model folder.

    Raises:
        RbpxError: there is none, or it does not tell where in the text its tokens lie.
    """
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    except (OSError, ValueError, KeyError, ImportError, TypeError, json.JSONDecodeError) as problem:
        raise RbpxError(f"{name} has no tokenizer that can be loaded: {_first_line(problem)}") from None
    if not tokenizer.is_fast:
        raise RbpxError(f"{name} has a slow tokenizer, which does not locate tokens in the text; add a tokenizer.json")
    if not tokenizer("a", add_special_tokens=False)["input_ids"]:
        raise RbpxError(f"{name} has no tokenizer: {folder} lacks tokenizer.json; copy it from the model's source")
    return tokenizer


def hash_tokenizer(tokenizer: Any) -> str:
    """Identity of a tokenizer: everything that decides which ids a text becomes."""
    state = json.loads(tokenizer.backend_tokenizer.to_str())
    state.pop("truncation", None)  # set by the last call, not by the tokenizer's files
    state.pop("padding", None)
    return digest([state, sorted(tokenizer.all_special_ids)])


def load_model(
    name: str, revision: str | None, dtype: str, device: torch.device, cache: Path | None = None
) -> LoadedModel:
    """Load a model from a hub id, a folder or the package: safetensors only, no code of the model's own.

    Args:
        name: ORG/NAME, a folder, or `rbpx:` and a path inside the package.
        revision: branch, tag or commit of a hub id.
        dtype: float32, bfloat16 or float16, never the checkpoint's own choice.
        device: where it runs.
        cache: file that keeps the hashes of large files.

    Raises:
        RbpxError: it is no model, its weights do not fill it, or its tokenizer does not fit.
        MeasureError: the hub does not answer.
    """
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    folder, commit = fetch(name, revision)
    model = _load_weights(folder, name, getattr(torch, dtype))
    tokenizer = load_tokenizer(folder, name)
    rows = model.get_input_embeddings().weight.shape[0]
    highest = max(tokenizer.get_vocab().values())
    if highest >= rows:
        raise RbpxError(f"{name} has a tokenizer that does not fit: its ids reach {highest}, the model has {rows} rows")
    model = model.to(device).eval()
    try:
        check_causal(model)
        head = open_head(model)
    except RbpxError as problem:
        raise RbpxError(f"{name} cannot be measured: {problem}") from None
    if head.after == "not finite" and dtype != "float32":
        raise MeasureError(f"{name} gives logits that are no finite numbers in {dtype}; measure it with dtype=float32")
    if head.logits is None and dtype != "float32":
        raise RbpxError(
            f"{name} changes its logits after the head in a way unknown here; measure it with dtype=float32"
        )
    return LoadedModel(
        name=name,
        model=model,
        tokenizer=tokenizer,
        head=head,
        commit=commit,
        context=getattr(model.config.get_text_config(), "max_position_embeddings", None),
        non_embedding_params=non_embedding_params(model),
        total_params=total_params(model),
        weights_hash=hash_model(folder, name, cache),
        tokenizer_hash=hash_tokenizer(tokenizer),
    )


def _load_weights(folder: Path, name: str, dtype: torch.dtype) -> Any:
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    try:
        model, report = AutoModelForCausalLM.from_pretrained(
            folder,
            dtype=dtype,
            use_safetensors=True,
            trust_remote_code=False,
            local_files_only=True,
            output_loading_info=True,
        )
    except (MemoryError, torch.OutOfMemoryError) as problem:
        raise MeasureError(f"{name} does not fit into memory: {_first_line(problem)}") from None
    except Exception as problem:  # a wrong config.json fails in as many ways as there are architectures
        raise RbpxError(f"{name} cannot be loaded as a causal language model: {_first_line(problem)}") from None
    missing = sorted(report["missing_keys"])
    if missing:  # transformers would fill them with random numbers
        raise RbpxError(f"{name} lacks {len(missing)} of its weights, first {missing[0]}; is the download complete?")
    unused = sorted(key for key in report["unexpected_keys"] if _OF_A_LAYER.search(key))
    if unused:  # weights of layers that config.json does not have
        raise RbpxError(f"{name} has weights that config.json has no place for, first {unused[0]}; check config.json")
    return model


def _first_line(problem: Exception) -> str:
    lines = [line.strip() for line in str(problem).split("\n") if line.strip()]
    return f"{type(problem).__name__}: {lines[0][:200] if lines else 'no reason given'}"
