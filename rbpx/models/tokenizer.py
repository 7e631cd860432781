"""Loads the fast tokenizer of a model, and computes the hash that identifies it."""

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from rbpx.errors import RbpxError, first_line
from rbpx.files.digest import digest
from rbpx.models.folder import PACKAGE
from rbpx.models.gguf import cut_as_llama, pretrained


def load_tokenizer(folder: Path, name: str) -> Any:
    """The fast tokenizer of a model folder or GGUF file; bundled models share one in their parent folder.

    Raises:
        RbpxError: there is none, or it does not report the offsets of its tokens in the text.
    """
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    holder, file = pretrained(folder)
    of_kind = PreTrainedTokenizerFast if file else AutoTokenizer  # the latter reads a file's vocabulary once more
    if folder.is_relative_to((PACKAGE / "ladder").resolve()):
        holder = next((each for each in (folder, *folder.parents) if (each / "tokenizer.json").is_file()), folder)
    try:
        tokenizer = of_kind.from_pretrained(holder, trust_remote_code=False, local_files_only=True, **file)
        why = "" if tokenizer.is_fast and tokenizer("a", add_special_tokens=False)["input_ids"] else "it has none"
    except (OSError, ValueError, KeyError, ImportError, TypeError) as problem:
        why = first_line(problem)
    if why:
        raise RbpxError(
            f"{name} has no fast tokenizer ({why}), and others do not say which characters a token stands for; copy "
            f"tokenizer.json into {folder}"
        )
    if file:
        cut_as_llama(tokenizer, folder, name)
    return tokenizer


def count_ids(tokenizer: Any, rows: int, name: str) -> int:
    """Number of ids of a tokenizer; later rows of the vocabulary have no token.

    Added tokens may lie beyond the model's rows; texts without them can still be read. Raises RbpxError where those of
    its training do.
    """
    added = set(tokenizer.get_added_vocab().values())
    n_ids = int(max(tokenizer.get_vocab().values())) + 1
    if any(token_id >= rows and token_id not in added for token_id in tokenizer.get_vocab().values()):
        raise RbpxError(
            f"{name} has a tokenizer that does not fit: its ids go up to {n_ids - 1}, but the model has {rows} rows"
        )
    return n_ids


def hash_tokenizer(tokenizer: Any) -> str:
    """The identity of a tokenizer: a hash of all that decides a text's ids."""
    return _hash(tokenizer.backend_tokenizer.to_str(), tuple(sorted(tokenizer.all_special_ids)))


@lru_cache(maxsize=4)  # the models of a family share a tokenizer, whose text has megabytes
def _hash(text: str, special_ids: tuple[int, ...]) -> str:
    state = json.loads(text)
    state.pop("truncation", None)  # set by the last call, not by the tokenizer's files
    state.pop("padding", None)
    return digest([state, list(special_ids)])
