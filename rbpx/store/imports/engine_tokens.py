"""Imports tokens that another engine scored, from a file or a server's answer, as a run of the store.

Three kinds of files are read: tables with a row for each token; answers of vLLM with `prompt_logprobs`, one
`{token id: {logprob, rank, decoded_token}}` for each token, whose rank counts the logits that are at least the token's
(vllm/v1/sample/sampler.py); and answers of SGLang with `meta_info.input_token_logprobs`, a list of [logprob, token id,
text] without ranks.
"""

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rbpx.config.imports import ImportRequest
from rbpx.errors import RbpxError, number_of, reason
from rbpx.files.cells import quoted
from rbpx.files.digest import digest
from rbpx.files.rows import check_names, read_rows
from rbpx.spelling import typed
from rbpx.store import schema
from rbpx.store.columns import rank_counts
from rbpx.store.imports.cells import CellError, Number
from rbpx.store.imports.faults import refuse
from rbpx.store.imports.rules import plain
from rbpx.store.store import Record, Store, now
from rbpx.ties import Ties
from rbpx.version import __version__

_NEEDED: Final[dict[str, Any]] = {  # names, with an example
    **{"engine": "vllm", "engine_version": "0.11.0", "family": "NAME", "size": "7b", "S": 6500000000},
    **{"dataset": "NAME", "vocab_size": 32000, "dtype": "bfloat16"},
}
_COLUMNS: Final = ("doc_id", "position", "token_id", "greater", "ties", "logprob")
_OF_TOKEN: Final = ("doc_id", "position", "token_id", "logprob")  # which every token has
_SHORT: Final = {"doc": "doc_id", "token": "token_id"}  # short names of columns
_MOST: Final = 2**31 - 2  # largest position: the length of a document, one more, has 32 bits
# Relative error of a log-probability: bfloat16's unit roundoff, and float32.
_UNIT: Final = 2**-8 + 2**-14
_ROUNDED: Final = (1 + _UNIT) / (1 - _UNIT)


@dataclass(frozen=True)
class EngineToken:
    """A token scored by an engine; unknown counts are None.

    Attributes:
        position: in its document, from 0.
        logprob: nats.
        greater: other tokens with a greater logit.
        ties: other tokens with its logit; where `greater` is None, with its logit or a greater one.
    """

    doc_id: int
    position: int
    token_id: int
    logprob: float
    greater: int | None
    ties: int | None
    text: str | None = None


def read_engine_tokens(path: Path, ties: Ties | None, vocab_size: int) -> tuple[str, list[EngineToken]]:
    """The SHA-256 of a file, and its tokens in order of document and position; `ties` is the rule of ranks without one.

    Raises:
        RbpxError: it cannot be read, or tokens are invalid, repeated, or have a rank without a rule.
    """
    read, tokens, faults = read_rows(path), dict[tuple[int, int], EngineToken](), list[str]()
    check_names(read.columns, path)
    each = ((row, answer) for row in read.rows for answer in _answers(row.values))
    for document, (at, answer) in enumerate(each):
        try:
            for token in _tokens(answer, document, ties, vocab_size):
                key = (token.doc_id, token.position)
                if key in tokens:
                    raise CellError(f"position {key[1]} of document {key[0]} appears twice; remove one")
                tokens[key] = token
        except (CellError, AttributeError, LookupError, TypeError, ValueError) as problem:
            why = f"not an answer of an engine ({reason(problem)}); give it whole"
            faults.append(f"{at.place}: {problem if isinstance(problem, CellError) else why}")
    refuse(faults, len(faults), path, otherwise="")
    if not tokens:
        raise RbpxError(f"{path} has no scored token; give a file with at least one")
    return read.sha256, [tokens[key] for key in sorted(tokens)]


def _answers(values: dict[str, Any]) -> list[dict[str, Any]]:
    choices = values.get("choices")
    return choices if isinstance(choices, list) and choices else [values]


def _tokens(answer: dict[str, Any], document: int, ties: Ties | None, vocab_size: int) -> Iterator[EngineToken]:
    doc_id, meta = answer.get("doc_id"), answer.get("meta_info")
    doc_id = document if doc_id in (None, "") else doc_id
    if "prompt_logprobs" in answer:
        yield from tokens_of_prompt(answer, doc_id, vocab_size)
    elif isinstance(meta, dict) and "input_token_logprobs" in meta:
        for position, entry in enumerate(meta["input_token_logprobs"]):
            logprob, token_id, text = (*entry, None)[:3]
            told = {"doc_id": doc_id, "position": position, "token_id": token_id, "logprob": logprob, "text": text}
            yield from [_token(told, None, vocab_size)] if logprob is not None else ()
    elif isinstance(answer.get("logprobs"), dict):
        how = "ask with prompt_logprobs=1 and return_token_ids=true"
        raise CellError(f"the logprobs of echo=true name neither token ids nor ranks; {how}")
    else:
        told = {_field(name): value for name, value in answer.items() if value not in (None, "")}
        yield _token(told, ties, vocab_size)


@cache
def _field(name: str) -> str:
    return _SHORT.get(plain(name), plain(name))


def tokens_of_prompt(answer: Mapping[str, Any], doc_id: Any, vocab_size: int) -> Iterator[EngineToken]:
    """The tokens of one prompt in an answer of vLLM; the first has no logprob, since nothing precedes it.

    Raises:
        CellError: a token is invalid, or it is unknown which of several is the prompt's.
    """
    ids = answer.get("prompt_token_ids")
    for position, entry in enumerate(answer["prompt_logprobs"]):
        if entry is None:
            continue
        token_id = next(iter(entry)) if ids is None and len(entry) == 1 else None
        token_id = ids[position] if ids is not None and position < len(ids) else token_id
        of_token = entry.get(str(token_id))
        if of_token is None:
            raise CellError(
                f"token {position} of prompt_logprobs names {len(entry):,} tokens, and {quoted(token_id)} is not among "
                "them; ask with return_token_ids=true, or prompt_logprobs=0"
            )
        place = {"doc_id": doc_id, "position": position, "token_id": token_id}
        yield _token(of_token | place | {"text": of_token.get("decoded_token")}, Ties.pessimistic, vocab_size)


@cache
def _numbers(vocab_size: int) -> dict[str, Number]:

    def whole(name: str, least: int, most: int, doubt: str = "; is that the model's vocabulary?") -> Number:
        meaning = f"is not a whole number from {least} to {most:,}{doubt}"
        return Number(meaning, least, most, whole=True, scaled=False, quoted_as=name)

    logarithm = "is not the logarithm of a probability"
    return {
        **{name: whole(name, 0, _MOST, "") for name in ("doc_id", "position")},
        **{name: whole(name, 0, vocab_size - 1) for name in ("token_id", "greater", "ties")},
        "rank": whole("rank", 1, vocab_size),
        "logprob": Number(logarithm, -1e30, 1e-3, True, scaled=False, quoted_as="logprob"),
    }


def _token(told: Mapping[str, Any], rule: Ties | None, vocab_size: int) -> EngineToken:
    values = dict[str, Any]()
    for name, number in _numbers(vocab_size).items():
        cell = told.get(name)
        values[name] = None if cell is None else number.of(cell)
        if values[name] is None and name in _OF_TOKEN:
            none = f"no {name}; a token has {', '.join(_OF_TOKEN)}, and rank or greater and ties"
            raise CellError(f"{name} {quoted(cell)} {number.meaning}" if name in told else none)
    rank, others = values.pop("rank"), (values["greater"] or 0) + (values["ties"] or 0)
    if others >= vocab_size:
        raise CellError(f"greater + ties {quoted(others)} {_numbers(vocab_size)['ties'].meaning}")
    if rank is not None and values["greater"] is None and values["ties"] is None:
        if rule not in (Ties.pessimistic, Ties.optimistic):
            raise CellError("this rank has no tie rule; give ties=pessimistic or ties=optimistic")
        values["ties" if rule is Ties.pessimistic else "greater"] = rank - 1
    values |= {"logprob": min(values["logprob"], 0.0)}
    token = EngineToken(**values, text=told["text"] if isinstance(told.get("text"), str) else None)
    excluded = exclusion(token, vocab_size)
    if excluded is not None:
        where = f"position {token.position} of document {token.doc_id}"
        raise CellError(f"{where}: {excluded}; give both as one pass of the model tells them, at temperature 1")
    return token


def exclusion(token: EngineToken, vocab_size: int) -> str | None:
    """How the rank and the log-probability of a token exclude each other; None where they do not.

    If r tokens, itself included, are at least as probable as a token of probability p, then r p <= 1; the best of V has
    p >= 1/V; r tokens that tie reach 1/r. As engines round, two log-probabilities that count as equal may differ: with
    the relative error u of each, from l to l (1 + u) / (1 - u). u is the unit roundoff of bfloat16, 2^-8, the coarsest
    in use, and 2^-14 for what float32 loses in a softmax over a vocabulary.
    """
    if token.greater is None and token.ties is None:
        return None
    rank, nats = (token.greater or 0) + (token.ties or 0) + 1, -token.logprob
    said = f"rank {rank:,} and logprob {token.logprob:g} exclude each other"
    if nats * _ROUNDED < math.log(rank):
        return f"{said}: none of {rank:,} tokens that are as probable can have more than 1/{rank:,}"
    is_best = token.greater == 0 or (token.greater is None and token.ties == 0)
    if is_best and nats > math.log(vocab_size) * _ROUNDED:
        return f"{said}: the best of {vocab_size:,} tokens has at least 1/{vocab_size:,}"
    return None


def token_columns(tokens: Sequence[EngineToken]) -> dict[str, pa.Array]:
    """The columns of `tokens` except run_id and bytes; null where the engine gives nothing."""
    return {name: pa.array([getattr(t, name) for t in tokens], schema.TOKENS.field(name).type) for name in _COLUMNS}


def import_tokens(store: Store, path: Path, request: ImportRequest) -> str:
    """Check every token of a file, then write them as one run, with the record of its cell; returns what came in.

    The text_hash is of the tokens, so that it never equals that of a text that rbpx read.

    Raises:
        RbpxError: the request lacks a name, or the file or a token is invalid.
        MeasureError: the store cannot be written.
    """
    missing = [f"{name}=" for name in _NEEDED if getattr(request, name) in (None, "")]
    if missing:
        raise RbpxError(f"import tokens needs {', '.join(missing)}, as in {typed(**_NEEDED)}")
    V = request.vocab_size
    assert V is not None
    sha256, tokens = read_engine_tokens(path, request.ties, V)
    columns = token_columns(tokens)
    text_hash = _hash([columns[name] for name in ("doc_id", "position", "token_id")])
    texts = {t.token_id: t.text.encode("utf-8", "backslashreplace").decode() for t in tokens if t.text is not None}
    tokenizer_hash = digest([texts, V])
    named: Record = {name: getattr(request, name) for name in (*_NEEDED, "revision", "variant")}
    named["protocol"] = request.protocol or "engine"  # how the engine cut and scored the text
    run_id = digest([schema.FORMAT, named, tokenizer_hash, _hash(list(columns.values()))])
    is_new, n_documents, ranks = not store.has_run(run_id), len(columns["doc_id"].unique()), _ranks(columns)
    brought = f"{number_of(len(tokens), 'token')} of {number_of(n_documents, 'document')} from {path}"
    told = f"{brought} into {store.name} as run {run_id}{'' if is_new else ' (it was there already)'}: {ranks}"
    if request.dry_run:
        return told
    key = digest(["engine", named, text_hash])
    facts: Record = {
        **{name: named[name] for name in ("protocol", "dtype", "engine", "engine_version", "vocab_size")},
        "run_id": run_id,
        "non_embedding_params": request.S,
        "n_documents": n_documents,
        "n_skipped": 0,
        "n_tokens": len(tokens),
        "n_bytes": None,
        "cross_entropy_nats": -float(columns["logprob"].to_numpy().mean(dtype=np.float64)),
        "text_hash": text_hash,
        "tokenizer_hash": tokenizer_hash,
        "device": f"{request.engine} {request.engine_version}",
        "started_at": now(),
        "versions": {"rbpx": __version__, str(request.engine): str(request.engine_version)},
    }
    record: Record = {
        "cell_key": key,
        "run_id": run_id,
        **{name: named[name] for name in ("family", "size", "revision", "dataset", "variant")},
        "model": f"{request.family} {request.size}",
        "asked_at": now(),
        "config": {"engine": request.engine, "file": path.name, "sha256": sha256, "ranks": ranks},
    }
    store.prepare()
    if not store.has_vocab(tokenizer_hash):
        vocab = {"token_id": range(V), "text": [texts.get(token, f"#{token}") for token in range(V)]}
        vocab = pa.table({"tokenizer_hash": [tokenizer_hash] * V} | vocab, schema.VOCAB)
        store.write_file("vocab", tokenizer_hash, vocab)
    if is_new:
        store.write_run(run_id, facts, _tables(run_id, columns))
    store.write_record("cells", key, record)
    return told


def _hash(columns: Sequence[pa.Array]) -> str:
    """A hash of the values of columns in which nulls differ from zeros."""
    hashed = hashlib.sha256()
    for column in columns:
        hashed.update(column.is_valid().cast(pa.int8()).to_numpy(zero_copy_only=False).tobytes())
        hashed.update(column.fill_null(0).to_numpy(zero_copy_only=False).tobytes())
    return hashed.hexdigest()[:16]


def _ranks(columns: Mapping[str, pa.Array]) -> str:
    greater, ties = (columns[name].null_count == 0 for name in ("greater", "ties"))
    if greater:
        return "ranks with ties apart" if ties else "optimistic ranks"
    return "pessimistic ranks" if ties else "logprobs, and not the rank of every token"


def _tables(run_id: str, columns: Mapping[str, pa.Array]) -> dict[str, pa.Table]:
    tokens = schema.with_all(pa.table({"run_id": [run_id] * len(columns["doc_id"]), **columns}), schema.TOKENS)
    documents = tokens.group_by(["run_id", "doc_id"]).aggregate([("position", "max"), ("position", "count")])
    documents = documents.sort_by("doc_id").rename_columns(["run_id", "doc_id", "last", "n_scored"])
    documents = documents.append_column("source_id", documents["doc_id"].cast(pa.string()))
    documents = documents.append_column("n_tokens", pc.add(documents["last"], 1))
    documents = schema.with_all(documents, schema.DOCUMENTS)
    return {"tokens": tokens, "rank_counts": rank_counts(tokens), "documents": documents}
