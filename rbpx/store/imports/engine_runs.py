"""Imports the tokens that another engine scored as a run of the store, with the record of its cell."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rbpx.config.imports import ImportRequest
from rbpx.errors import RbpxError
from rbpx.files.digest import digest
from rbpx.store import schema
from rbpx.store.imports.engine_rows import EngineToken, exclusion, read_engine_rows
from rbpx.store.store import Record, Store, now
from rbpx.version import __version__

_NEEDED = ("engine", "engine_version", "family", "size", "S", "dataset", "vocab_size", "dtype")
_LARGEST = 1 << 24  # entries of a vocabulary, each of which gets a row; those in use have up to a million
_PROTOCOL = "engine"  # how the engine cut and scored the text, where no protocol is named


@dataclass(frozen=True)
class EngineRun:
    """What an import of tokens brought.

    Attributes:
        run_id: of the run.
        n_tokens: scored tokens.
        n_documents: their documents.
        is_new: whether it was not in the store before.
        told: what its engine told of ranks, for people.
    """

    run_id: str
    n_tokens: int
    n_documents: int
    is_new: bool
    told: str


def import_tokens(store: Store, path: Path, request: ImportRequest) -> EngineRun:
    """Check every token of a file, then write them as one run.

    Its identity are the tokens, what is told of each, and the names, engine and version that the request gives. Its
    text_hash is of the tokens, so that it is never taken for a text that rbpx read.

    Raises:
        RbpxError: the request lacks a name, or the file or a token is invalid.
        MeasureError: the store cannot be written.
    """
    missing = [name for name in _NEEDED if getattr(request, name) in (None, "")]
    if missing:
        raise RbpxError(
            f"import tokens needs {', '.join(f'{name}=' for name in missing)}: engine=vllm engine_version=0.11.0 "
            "family=NAME size=7b S=6500000000 dataset=NAME vocab_size=32000 dtype=bfloat16"
        )
    assert request.vocab_size is not None
    if not 1 <= request.vocab_size <= _LARGEST:
        raise RbpxError(
            f"vocab_size={request.vocab_size} is not from 1 to {_LARGEST:,}; give the rows of the model's head"
        )
    sha256, tokens = read_engine_rows(path, request.ties)
    _check_tokens(tokens, request.vocab_size, path)
    names = ("doc_id", "position", "token_id", "greater", "ties", "logprob")
    columns = {n: pa.array([getattr(token, n) for token in tokens], schema.TOKENS.field(n).type) for n in names}
    text_hash = _hash([columns[name] for name in ("doc_id", "position", "token_id")])
    vocab = _vocab(tokens)
    tokenizer_hash = digest([vocab, request.vocab_size])
    named: Record = {name: getattr(request, name) for name in (*_NEEDED, "revision", "variant")}
    named["protocol"] = request.protocol or _PROTOCOL
    run_id = digest([schema.FORMAT, named, tokenizer_hash, _hash(list(columns.values()))])
    told = _told(columns)
    run = EngineRun(run_id, len(tokens), len(columns["doc_id"].unique()), not store.has_run(run_id), told)
    if request.dry_run:
        return run
    facts: Record = {
        **{name: named[name] for name in ("protocol", "dtype", "engine", "engine_version", "vocab_size")},
        "run_id": run_id,
        "non_embedding_params": request.S,
        "n_documents": run.n_documents,
        "n_skipped": 0,
        "n_tokens": run.n_tokens,
        "n_bytes": None,
        "cross_entropy_nats": -float(columns["logprob"].to_numpy().mean(dtype=np.float64)),
        "text_hash": text_hash,
        "tokenizer_hash": tokenizer_hash,
        "device": f"{request.engine} {request.engine_version}",
        "started_at": now(),
        "versions": {"rbpx": __version__, str(request.engine): str(request.engine_version)},
    }
    key = digest(["engine", named, text_hash])
    record: Record = {
        "cell_key": key,
        "run_id": run_id,
        **{name: named[name] for name in ("family", "size", "revision", "dataset", "variant")},
        "model": f"{request.family} {request.size}",
        "asked_at": now(),
        "config": {"engine": request.engine, "file": path.name, "sha256": sha256, "ranks": told},
    }
    store.prepare()
    if not store.has_vocab(tokenizer_hash):
        texts = [vocab.get(i, f"#{i}") for i in range(request.vocab_size)]
        ids = list(range(request.vocab_size))
        of = {"tokenizer_hash": [tokenizer_hash] * len(ids), "token_id": ids, "text": texts}
        store.write_vocab(tokenizer_hash, pa.table(of, schema=schema.VOCAB))
    if run.is_new:
        store.write_run(run_id, facts, _tables(run_id, columns))
    store.write_record("cells", key, record)
    return run


def _check_tokens(tokens: Sequence[EngineToken], vocab_size: int, path: Path) -> None:
    for token in tokens:
        greater, ties = token.greater or 0, token.ties or 0
        beyond = {"token_id": token.token_id, "greater": greater, "ties": ties, "greater and ties": greater + ties}
        for name, value in beyond.items():
            if value >= vocab_size:
                raise RbpxError(
                    f"{path}: {name} {value:,} at position {token.position} of document {token.doc_id} is not below "
                    f"vocab_size={vocab_size}; give the rows of the model's vocabulary"
                )
        excluded = exclusion(token, vocab_size)
        if excluded is not None:
            place = f"{path}: position {token.position} of document {token.doc_id}"
            raise RbpxError(f"{place}: {excluded}; give both as one pass of the model tells them, at temperature 1")


def _hash(columns: list[Any]) -> str:
    """A hash of the values of columns, nulls told from zeros."""
    hashed = hashlib.sha256()
    for column in columns:
        hashed.update(column.is_valid().cast(pa.int8()).to_numpy(zero_copy_only=False).tobytes())
        hashed.update(column.fill_null(0).to_numpy(zero_copy_only=False).tobytes())
    return hashed.hexdigest()[:16]


def _vocab(tokens: Sequence[EngineToken]) -> dict[int, str]:
    """The texts of token ids, as far as the engine told them; half a character is its escape."""
    told = {token.token_id: token.text for token in tokens if token.text is not None}
    return {token_id: text.encode("utf-8", "backslashreplace").decode() for token_id, text in told.items()}


def _told(columns: dict[str, Any]) -> str:
    greater, ties = (columns[name].null_count == 0 for name in ("greater", "ties"))
    if greater:
        return "ranks with ties apart" if ties else "optimistic ranks"
    return "pessimistic ranks" if ties else "logprobs, and not the rank of every token"


def _tables(run_id: str, columns: dict[str, Any]) -> dict[str, pa.Table]:
    of_run = {"run_id": [run_id] * len(columns["doc_id"])}
    tokens = schema.with_all(pa.table(of_run | columns), schema.TOKENS)
    in_float64 = tokens.set_column(6, "logprob", tokens["logprob"].cast(pa.float64()))
    counts = in_float64.group_by(["run_id", "greater", "ties"]).aggregate([("logprob", "count"), ("logprob", "sum")])
    counts = counts.rename_columns(["run_id", "greater", "ties", "n_tokens", "sum_logprob"])
    counts = counts.sort_by([("greater", "ascending"), ("ties", "ascending")]).cast(schema.RANK_COUNTS)
    by_document = tokens.group_by(["run_id", "doc_id"]).aggregate([("position", "max"), ("position", "count")])
    documents = by_document.sort_by("doc_id").rename_columns(["run_id", "doc_id", "last", "n_scored"])
    documents = documents.append_column("source_id", documents["doc_id"].cast(pa.string()))
    documents = documents.append_column("n_tokens", pc.add(documents["last"], 1))
    documents = schema.with_all(documents, schema.DOCUMENTS)
    return {"tokens": tokens, "rank_counts": counts, "documents": documents}
