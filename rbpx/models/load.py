"""A model as asked in, a loaded model with its head, its size and the hashes of what was loaded out."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from rbpx.config.placement import Split
from rbpx.errors import MeasureError, RbpxError
from rbpx.files.digest import digest
from rbpx.models.head import Head, check_causal, open_head
from rbpx.models.pretrained import devices_of, first_line, load_weights
from rbpx.models.size import non_embedding_params, total_params
from rbpx.models.snapshot import check_snapshot, fetch
from rbpx.models.weights import hash_model


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A causal language model ready to be measured.

    Attributes:
        name: as asked.
        model: the transformers model, in evaluation mode on its device.
        tokenizer: its tokenizer.
        n_token_ids: ids that it has; rows of the vocabulary from there on stand for no token.
        head: hidden states to float32 logits.
        devices: where it computes and its weights lie: one, or of a split model several, `disk` among them.
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
    n_token_ids: int
    head: Head
    devices: tuple[str, ...]
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
        raise RbpxError(f"{name} has no tokenizer that can be loaded: {first_line(problem)}") from None
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
    name: str,
    revision: str | None,
    dtype: str,
    device: torch.device,
    cache: Path | None = None,
    pickled: bool = False,
    split: Split | None = None,
) -> LoadedModel:
    """Load a model from a hub id, a folder or the package: no code of the model's own is run.

    Args:
        name: ORG/NAME, a folder, or `rbpx:` and a path inside the package.
        revision: branch, tag or commit of a hub id.
        dtype: float32, bfloat16 or float16, never the checkpoint's own choice.
        device: where it runs.
        cache: file that keeps the hashes of large files.
        pickled: whether tensors may be read from pytorch_model.bin where there are no safetensors.
        split: puts it over several devices instead of on one.

    Raises:
        RbpxError: it is no model, its weights do not fill it, or its tokenizer does not fit.
        MeasureError: the hub does not answer or gave something else, or the model does not fit into memory.
    """
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    folder, commit = fetch(name, revision, pickled)
    check_snapshot(folder, name, pickled, cache)
    weights_hash = hash_model(folder, name, cache, pickled)
    model = load_weights(folder, name, getattr(torch, dtype), device, pickled, split)
    counts = non_embedding_params(model), total_params(model)  # before it runs: offloaded weights that are tied part
    tokenizer = load_tokenizer(folder, name)
    rows = model.get_input_embeddings().weight.shape[0]
    n_token_ids = max(tokenizer.get_vocab().values()) + 1
    if n_token_ids > rows:
        raise RbpxError(
            f"{name} has a tokenizer that does not fit: its ids reach {n_token_ids - 1}, the model has {rows} rows"
        )
    try:
        check_causal(model)
        head = open_head(model)
    except RbpxError as problem:
        raise RbpxError(f"{name} cannot be measured: {problem}") from None
    if head.after == "not finite" and dtype != "float32":
        raise MeasureError(f"{name} gives logits that are no finite numbers in {dtype}; measure it with dtype=float32")
    if head.product is None and dtype != "float32":
        raise RbpxError(
            f"{name} changes its logits after the head in a way unknown here; measure it with dtype=float32"
        )
    return LoadedModel(
        name=name,
        model=model,
        tokenizer=tokenizer,
        n_token_ids=n_token_ids,
        head=head,
        devices=devices_of(model),
        commit=commit,
        context=getattr(model.config.get_text_config(), "max_position_embeddings", None),
        non_embedding_params=counts[0],
        total_params=counts[1],
        weights_hash=weights_hash,
        tokenizer_hash=hash_tokenizer(tokenizer),
    )
