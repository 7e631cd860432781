"""Describes a model without loading its weights, to cut texts for another engine."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rbpx.errors import RbpxError
from rbpx.models.architecture import read_architecture
from rbpx.models.folder import hash_model
from rbpx.models.hub import check_snapshot, fetch
from rbpx.models.tokenizer import count_ids, hash_tokenizer, load_tokenizer


@dataclass(frozen=True, eq=False)
class Model:
    """The properties of every measured causal language model.

    Attributes:
        commit: the hub's; None for a folder.
        context: longest input in tokens.
        non_embedding_params: S.
        weights_hash: of the configuration and the bytes of the weights; None where these are not here.
        tokenizer_hash: of the vocabulary, the merges and the special tokens.
    """

    name: str
    tokenizer: Any
    commit: str | None
    context: int | None
    non_embedding_params: int
    active_params: int | None
    total_params: int
    weights_hash: str | None
    tokenizer_hash: str


@dataclass(frozen=True, eq=False)
class DescribedModel(Model):
    """A model as its configuration and its tokenizer describe it, with V, the rows that compete for a rank."""

    folder: Path
    vocab_size: int

    @property
    def n_rows(self) -> int:
        """Rows of the embedding; larger ids cannot be read."""
        return self.vocab_size


def describe_model(name: str, revision: str | None, cache: Path | None = None, pickled: bool = False) -> DescribedModel:
    """Describe a model: ORG/NAME, a folder, or `rbpx:` and a path inside the package.

    `cache` is a file of hashes of large files; `pickled` allows a folder with its weights in a pickle.

    Raises:
        RbpxError: transformers cannot build its architecture, or its tokenizer does not fit.
        MeasureError: the hub does not answer, or delivered corrupt files.
    """
    folder, commit = fetch(name, revision, pickled, weights=False)
    check_snapshot(folder, name, pickled, cache, weights=False)
    architecture = read_architecture(folder)
    if architecture is None:
        raise RbpxError(
            f"{name} has a config.json from which transformers builds no causal language model; check the file"
        )
    tokenizer = load_tokenizer(folder, name)
    count_ids(tokenizer, architecture.vocab_size, name)
    return DescribedModel(
        name=name,
        folder=folder,
        tokenizer=tokenizer,
        vocab_size=architecture.vocab_size,
        commit=commit,
        context=architecture.context,
        non_embedding_params=architecture.non_embedding_params,
        active_params=architecture.active_params,
        total_params=architecture.total_params,
        weights_hash=hash_model(folder, name, cache, pickled) if commit is None else None,
        tokenizer_hash=hash_tokenizer(tokenizer),
    )
