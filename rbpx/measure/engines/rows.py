"""What an engine tells of windows: token ids are sent as they were cut, columns of the scored tokens come back.

vLLM's rank counts the log-probabilities that are at least the token's own (vllm/v1/sample/ops/logprobs.py), so it is a
pessimistic rank: how many are greater and how many equal is not told.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from rbpx.data.windows import Window
from rbpx.errors import MeasureError, RbpxError
from rbpx.measure.engines.server import Server
from rbpx.store import schema
from rbpx.store.imports.engine_rows import EngineToken, exclusion, tokens_of_prompt

__all__ = ["engine_columns"]

_COLUMNS: Final = ("doc_id", "position", "token_id", "greater", "ties", "logprob")
_CLAMPED: Final = -9999.0  # what vLLM puts in the place of an infinite log-probability


def engine_columns(
    server: Server,
    model: str,
    windows: Sequence[Window],
    vocab_size: int,
    tokens_per_request: int,
    advance: Callable[[int], None],
) -> dict[str, pa.Array]:
    """The columns of `tokens` for the scored tokens of windows, in their order; null where the engine does not tell.

    Args:
        server: of the engine.
        model: the name under which it serves the model.
        windows: in order of (doc_id, start); those without a scored position are not sent.
        vocab_size: V.
        tokens_per_request: tokens that are sent at once, or one window.
        advance: called with the number of tokens just scored.

    Raises:
        MeasureError: the server fails, or tells other tokens, too few of them, no probability of one, or a rank that
            its log-probability excludes.
    """
    tokens = list[EngineToken]()
    for batch in _batches([window for window in windows if window.n_scored], tokens_per_request):
        answers = server.prompt_logprobs(model, [window.ids.tolist() for window in batch])
        for window, answer in zip(batch, answers, strict=True):
            tokens += _scored(window, answer, vocab_size)
        advance(sum(window.n_scored for window in batch))
    return {name: pa.array([getattr(t, name) for t in tokens], schema.TOKENS.field(name).type) for name in _COLUMNS}


def _batches(windows: Sequence[Window], n_tokens: int) -> Iterator[list[Window]]:
    batch = list[Window]()
    for window in windows:
        if batch and sum(len(each.ids) for each in batch) + len(window.ids) > n_tokens:
            yield batch
            batch = []
        batch.append(window)
    if batch:
        yield batch


def _scored(window: Window, answer: dict[str, Any], vocab_size: int) -> Iterator[EngineToken]:
    """The scored tokens of a window, each at its place in the document."""
    ids, place = window.ids.tolist(), f"the engine's answer to document {window.doc_id}"
    told, read = answer.get("prompt_logprobs"), answer.get("prompt_token_ids")
    if not isinstance(told, list) or len(told) != len(ids):
        n_told = len(told) if isinstance(told, list) else 0
        raise MeasureError(f"{place} has {n_told:,} of its {len(ids):,} tokens; nothing was written")
    if read is not None and read != ids:
        raise MeasureError(f"{place} is of other tokens than were sent; nothing was written")
    try:
        found = {token.position: token for token in tokens_of_prompt({**answer, "prompt_token_ids": ids}, 0, place)}
    except RbpxError as problem:
        raise MeasureError(f"{problem}; nothing was written") from None
    for column in np.flatnonzero(window.scored).tolist():
        token = found.get(column)
        if token is None or token.logprob <= _CLAMPED:
            raise MeasureError(f"{place} has no probability of token {column}; its logits may not be finite")
        if token.ties is not None and token.ties >= vocab_size:
            raise MeasureError(f"{place} has the rank {token.ties + 1:,} of {vocab_size:,} tokens; another model?")
        excluded = exclusion(token, vocab_size)
        if excluded is not None:
            raise MeasureError(f"{place}, token {column}: {excluded}; nothing was written")
        yield EngineToken(window.doc_id, window.start + column, ids[column], token.logprob, None, token.ties)
