"""Reads the scored tokens of prompts from a file that an inference engine wrote.

Three kinds of files are read: tables with a row for each token; answers of vLLM with `prompt_logprobs`, which has one
`{token id: {logprob, rank, decoded_token}}` for each token, whose rank counts the logits that are at least the token's
(vllm/v1/sample/sampler.py); and answers of SGLang with `meta_info.input_token_logprobs`, a list of [logprob, token id,
text] without ranks.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rbpx.errors import RbpxError
from rbpx.files.cells import number, quoted
from rbpx.files.rows import Row, check_names, read_rows
from rbpx.ties import Ties

_SHORT = {"doc_id": "doc", "token_id": "token"}  # names of columns
_MOST = 2**31 - 2  # the length of a document is a position and 1, in 32 bits
# By which a log-probability may be off, relative to itself: bfloat16's unit roundoff, and float32.
_UNIT = 2**-8 + 2**-14
_ROUNDED = (1 + _UNIT) / (1 - _UNIT)


@dataclass(frozen=True)
class EngineToken:
    """A scored token as an engine tells it; counts that it does not tell are None.

    Attributes:
        doc_id: of its document.
        position: in it, the first token being 0.
        token_id: of the vocabulary.
        logprob: nats.
        greater: other tokens with a greater logit.
        ties: other tokens with its logit; where `greater` is None, with its logit or a greater one.
        text: of the token.
    """

    doc_id: int
    position: int
    token_id: int
    logprob: float
    greater: int | None
    ties: int | None
    text: str | None = None


def read_engine_rows(path: Path, ties: Ties | None) -> tuple[str, list[EngineToken]]:
    """The SHA-256 of a file, and its tokens in order of document and position.

    Args:
        path: CSV, JSON, JSONL or Parquet.
        ties: the rule of ranks that say none; vLLM's are pessimistic in any case.

    Raises:
        RbpxError: it cannot be read, or a token is not one, is there twice, or its rank has no rule.
    """
    rows = read_rows(path, one_object=True)
    check_names(rows.columns, path)
    tokens: dict[tuple[int, int], EngineToken] = {}
    for document, row in enumerate(_answers(rows.rows)):
        for token in _tokens(row, document, ties):
            key = (token.doc_id, token.position)
            if key in tokens:
                raise RbpxError(
                    f"{row.place}: position {key[1]} of document {key[0]} appears twice; remove one of them"
                )
            tokens[key] = token
    if not tokens:
        raise RbpxError(f"{path} has no scored token; give a file with at least one")
    return rows.sha256, [tokens[key] for key in sorted(tokens)]


def exclusion(token: EngineToken, vocab_size: int) -> str | None:
    """How the rank and the log-probability of a token exclude each other; None where they do not.

    If r tokens, itself included, are at least as probable as a token of probability p, then r p <= 1; and the best of V
    has p >= 1/V. r tokens that tie reach 1/r. As engines round, two log-probabilities that are counted as equal may
    differ: with the relative error u of each, from l to l (1 + u) / (1 - u). u is the unit roundoff of bfloat16, 2^-8,
    the coarsest in use, and 2^-14 for what float32 loses in a softmax over a vocabulary.
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


def _answers(rows: Sequence[Row]) -> Iterator[Row]:
    """The rows of a file, an answer with several choices as one for each."""
    for row in rows:
        choices = row.values.get("choices")
        if isinstance(choices, list) and choices and all(isinstance(choice, dict) for choice in choices):
            yield from (Row(row.path, row.number, row.line, choice) for choice in choices)
        else:
            yield row


def _tokens(row: Row, document: int, ties: Ties | None) -> Iterator[EngineToken]:
    values = row.values
    meta = values.get("meta_info")
    own = values.get("doc_id")
    doc_id = document if own in (None, "") else _whole(row.place, "doc_id", own)
    if "prompt_logprobs" in values:
        yield from tokens_of_prompt(values, doc_id, row.place)
    elif isinstance(meta, dict) and "input_token_logprobs" in meta:
        yield from _of_sglang(row, doc_id, meta["input_token_logprobs"])
    elif "resps" in values and "arguments" in values:
        raise RbpxError(
            f"{row.path} has the samples of lm-evaluation-harness, which log a sum for each request and no tokens; "
            "import their scores: python -m rbpx import samples FILE source=NAME"
        )
    else:
        yield _of_table(row, ties)


def tokens_of_prompt(answer: Mapping[str, Any], doc_id: int, place: str) -> Iterator[EngineToken]:
    """The tokens of one prompt as vLLM tells them; the first has no logprob, since nothing stands before it.

    Args:
        answer: `prompt_logprobs`, and `prompt_token_ids` where they were asked for.
        doc_id: of its document.
        place: where it stands, for errors.

    Raises:
        RbpxError: a token is not one, or it is not told which of several is the prompt's.
    """
    told, ids = answer["prompt_logprobs"], answer.get("prompt_token_ids")
    if not isinstance(told, list) or (ids is not None and (not isinstance(ids, list) or len(ids) != len(told))):
        raise RbpxError(f"{place}: prompt_logprobs is not a list as long as prompt_token_ids; give vLLM's answer whole")
    for position, entry in enumerate(told):
        if entry is None:
            continue
        n_named = len(entry) if isinstance(entry, dict) else 0
        if not n_named or (ids is None and n_named != 1):
            raise RbpxError(
                f"{place}: token {position} of prompt_logprobs names {n_named} tokens, and no "
                "prompt_token_ids says which is the prompt's; ask with return_token_ids=true, or prompt_logprobs=0"
            )
        name = next(iter(entry)) if ids is None else str(_whole(place, "token id", ids[position]))
        of_token = entry.get(name)
        if not isinstance(of_token, dict):
            raise RbpxError(f"{place}: token {position} of prompt_logprobs lacks the prompt's token {name}")
        rank, text = _count(place, of_token, "rank", least=1), of_token.get("decoded_token")
        token_id, logprob = _whole(place, "token id", name), _logprob(place, of_token.get("logprob"))
        ties = None if rank is None else rank - 1
        yield EngineToken(doc_id, position, token_id, logprob, None, ties, text if isinstance(text, str) else None)


def _of_sglang(row: Row, doc_id: int, told: Any) -> Iterator[EngineToken]:
    for position, entry in enumerate(told if isinstance(told, list) else [told]):
        if not isinstance(entry, list) or len(entry) < 2:
            raise RbpxError(f"{row.place}: input_token_logprobs is not a list of [logprob, token id, text]")
        logprob, token_id, text = (*entry, None)[:3]
        if logprob is not None:
            token_id, logprob = _whole(row.place, "token id", token_id), _logprob(row.place, logprob)
            yield EngineToken(doc_id, position, token_id, logprob, None, None, text if isinstance(text, str) else None)


def _of_table(row: Row, rule: Ties | None) -> EngineToken:
    values = {str(name).strip().lower(): value for name, value in row.values.items() if value not in (None, "")}
    values = {name: values[short] for name, short in _SHORT.items() if short in values} | values
    missing = next((name for name in ("doc_id", "position", "token_id", "logprob") if name not in values), None)
    if missing is not None:
        raise RbpxError(
            f"{row.place}: no {missing}; a token has doc_id, position, token_id, logprob, and rank or greater and ties"
        )
    doc_id, position, token_id = (_whole(row.place, name, values[name]) for name in ("doc_id", "position", "token_id"))
    rank, greater, ties = (_count(row.place, values, name, int(name == "rank")) for name in ("rank", "greater", "ties"))
    most = math.inf if greater is None or ties is None else greater + ties + 1
    if rank is not None and not (greater or 0) < rank <= most:
        raise RbpxError(
            f"{row.place}: rank {rank} does not follow from greater {greater} and ties {ties}; leave it out"
        )
    if rank is not None and greater is None and ties is None:
        if rule not in (Ties.pessimistic, Ties.optimistic):
            raise RbpxError(f"{row.place}: this rank has no tie rule; give ties=pessimistic or ties=optimistic")
        greater, ties = (None, rank - 1) if rule is Ties.pessimistic else (rank - 1, None)
    return EngineToken(doc_id, position, token_id, _logprob(row.place, values["logprob"]), greater, ties)


def _count(place: str, values: Mapping[str, Any], name: str, least: int = 0) -> int | None:
    value = values.get(name)
    return None if value in (None, "") else _whole(place, name, value, least)


def _whole(place: str, name: str, value: Any, least: int = 0) -> int:
    exact = value if type(value) is int else number(value)
    if exact is None or not least <= exact <= _MOST or exact != int(exact):
        raise RbpxError(f"{place}: {name} {quoted(value)} is not a whole number from {least} to {_MOST:,}")
    return int(exact)


def _logprob(place: str, value: Any) -> float:
    exact = value if type(value) is float else number(value)
    if exact is None or not -1e30 < exact <= 1e-3:
        raise RbpxError(f"{place}: logprob {quoted(value)} is not the logarithm of a probability")
    return min(float(exact), 0.0)
