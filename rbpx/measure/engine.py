"""Measures one cell by a running vLLM server: cuts its text here, asks for log-probabilities and ranks, writes the run.

vLLM's rank counts the log-probabilities that are at least the token's own (vllm/v1/sample/ops/logprobs.py), which is
pessimistic; ties are unknown. The server documents `GET /version`, `GET /v1/models` and `POST /v1/completions` with
`prompt_logprobs` and `return_token_ids` (docs.vllm.ai).
"""

import json
import logging
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from secrets import token_hex
from time import sleep
from typing import Any, Final
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, Request, build_opener

import numpy as np
import pyarrow as pa

from rbpx.config.grid import Cell
from rbpx.config.model.placement import EngineConfig
from rbpx.data.hub_texts import Sample
from rbpx.data.windows import Window
from rbpx.errors import MeasureError, RbpxError
from rbpx.files.digest import digest
from rbpx.measure.cell import Begin, New, scored_windows, versions, write_cell
from rbpx.measure.extract import distinct_windows
from rbpx.measure.protocol import ResolvedProtocol, resolve_described
from rbpx.models.description import DescribedModel, describe_model
from rbpx.store import schema
from rbpx.store.imports.cells import CellError
from rbpx.store.imports.engine_tokens import EngineToken, token_columns, tokens_of_prompt
from rbpx.store.store import Record, Store, now

KEY_VARIABLE: Final = "VLLM_API_KEY"  # vLLM's own variable
_SHORT_S: Final = 10.0  # timeout of a request without computation
_WAITS_S: Final = (1.0, 4.0, 16.0)  # before each retry
_PASSING: Final = (429, 502, 503, 504)  # busy, or starting behind a gateway; 500 is an engine failure
_CLAMPED: Final = -9999.0  # vLLM's stand-in for an infinite log-probability
_LOOK: Final = "look at its log, and type the same again"
_LOGGER = logging.getLogger(__name__)


class _PassingError(MeasureError):
    """A temporary failure; the request can be retried."""


@dataclass(frozen=True)
class ServedModel:
    """A model that a server has loaded.

    Attributes:
        root: hub id or folder that it was loaded from; its name where the server does not say.
        context: tokens of prompt and answer together.
    """

    name: str
    root: str
    context: int


class Server:
    """Client of the server of an engine; each call is one request."""

    def __init__(self, config: EngineConfig) -> None:
        self.name = f"engine={config.name} at {config.root}"
        self._config = config
        self._answered = False  # after a first answer, failures are retried

    def version(self) -> str:
        """The version of its engine.

        Raises:
            MeasureError: the server does not answer, or answers something else; so does each method.
        """
        return str(self._ask("/version")["version"])

    def models(self) -> list[ServedModel]:
        """The models that it serves."""
        return [
            ServedModel(m["id"], m.get("root") or m["id"], m.get("max_model_len") or sys.maxsize)
            for m in self._ask("/v1/models")["data"]
        ]

    def prompt_logprobs(self, model: str, prompts: Sequence[list[int]]) -> list[dict[str, Any]]:
        """The unchecked answer for each prompt: its `prompt_logprobs` and `prompt_token_ids`.

        Each request has its own cache salt: with reuse of prefixes log-probabilities have depended on the order of
        requests (vllm-project/vllm#42019).
        """
        asked = {
            "model": model,
            "prompt": list(prompts),
            "max_tokens": 1,  # vLLM generates at least one
            "temperature": 0.0,
            "prompt_logprobs": 0,  # of the prompt's own tokens alone
            "return_token_ids": True,
            "cache_salt": token_hex(16),
        }
        answer = self._ask("/v1/completions", asked, self._config.timeout_s)
        choices = {choice["index"]: choice for choice in answer["choices"]}
        return [choices[at] for at in range(len(prompts))]

    def _ask(self, path: str, body: object = None, timeout_s: float = _SHORT_S) -> dict[str, Any]:
        for wait_s in _WAITS_S:
            try:
                return self._ask_once(path, body, timeout_s)
            except _PassingError as problem:
                if not self._answered:  # it was never there
                    raise
                _LOGGER.warning(f"{problem}; asking again in {wait_s:g} s")
                sleep(wait_s)
        return self._ask_once(path, body, timeout_s)

    def _ask_once(self, path: str, body: object, timeout_s: float) -> dict[str, Any]:
        headers, key = {"Content-Type": "application/json"}, os.environ.get(KEY_VARIABLE, "").strip()
        if key:
            headers["Authorization"] = f"Bearer {key}"
        data = None if body is None else json.dumps(body).encode()
        try:
            status, raw = _fetch(Request(self._config.root + path, data, headers), timeout_s)
        except (OSError, HTTPException) as problem:  # refused, cut off, not found
            reason = getattr(problem, "reason", problem)
            if isinstance(reason, TimeoutError):
                raise MeasureError(
                    f"{self.name} gave no answer to {path} in {timeout_s:g} s; raise engine.timeout_s, or {_LOOK}"
                ) from None
            raise _PassingError(f"{self.name} does not answer {path} ({_line(reason)}); {_LOOK}") from None
        if status != HTTPStatus.OK or not raw.startswith(b"{"):
            kind = _PassingError if status in _PASSING else MeasureError
            raise kind(f"{self.name} answers {path} with {status}: {_line(raw)}; {_LOOK}, or check engine.url")
        self._answered = True
        answer: dict[str, Any] = json.loads(raw)
        return answer


class _NoRedirect(HTTPRedirectHandler):
    """A redirect is the answer: following it would send the key to another address."""

    def redirect_request(self, *_: object) -> None:
        """Ask nothing else."""


def _fetch(request: Request, timeout_s: float) -> tuple[int, bytes]:
    try:
        with build_opener(_NoRedirect).open(request, timeout=timeout_s) as response:
            return response.status, response.read()
    except HTTPError as error:
        return error.code, error.read()


def _line(said: object) -> str:
    text = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
    return (" ".join(text.split()) or f"no words, {type(said).__name__}")[:200]


@dataclass(frozen=True, eq=False)
class ServedCell:
    """A server with the model of a cell, and the protocol by which its text is cut here."""

    server: Server
    version: str
    served: ServedModel
    protocol: ResolvedProtocol[DescribedModel]

    def columns(
        self,
        windows: Sequence[Window],
        tokens_per_request: int,
        advance: Callable[[int], None],
        rng: np.random.Generator | None = None,
    ) -> dict[str, pa.Array]:
        """The columns of `tokens` for the scored tokens of windows; null where the engine gives no value.

        Equal choices are sent once; `advance` is called with the number of tokens just scored.

        Raises:
            MeasureError: the server fails, reads less than a window, or answers with other tokens, too few of them, no
                probability of one, or a rank that its log-probability excludes.
        """
        once, told = distinct_windows(windows), dict[int, list[EngineToken]]()
        longest, most = max(len(window.ids) for window in once.windows), self.served.context
        if longest >= most:
            raise MeasureError(
                f"{self.server.name} takes {most:,} tokens, one of which it generates itself, but a window has "
                f"{longest:,}; start it with --max-model-len {longest + 1}, or give "
                f"protocol.window={self.protocol.window - (longest + 1 - most)}"
            )
        order: list[int] = list(range(len(once.windows)))
        if rng is not None:
            shuffled = rng.permutation(order).tolist()
            order = order[::-1] if shuffled == order else shuffled  # a shuffle of few may change nothing
        for batch in _batches(order, once.windows, tokens_per_request):
            answers = self.server.prompt_logprobs(self.served.name, [once.windows[at].ids.tolist() for at in batch])
            for at, answer in zip(batch, answers, strict=True):
                told[at] = _scored(once.windows[at], answer, self.protocol.loaded.vocab_size)
            advance(sum(once.windows[at].n_scored for at in batch))
        return once.columns_of_all(token_columns([token for at in sorted(told) for token in told[at]]))


def _batches(order: Sequence[int], windows: Sequence[Window], n_tokens: int) -> list[list[int]]:
    batches, in_batch = list[list[int]](), n_tokens
    for at in order:
        if in_batch + len(windows[at].ids) > n_tokens:
            batches.append([])
            in_batch = 0
        batches[-1].append(at)
        in_batch += len(windows[at].ids)
    return batches


def _scored(window: Window, answer: dict[str, Any], vocab_size: int) -> list[EngineToken]:
    ids, place = window.ids.tolist(), f"the engine's answer to document {window.doc_id}"
    if answer.get("prompt_token_ids") not in (None, ids):
        raise MeasureError(f"{place} is about other tokens than were sent; nothing was written")
    whole = {"prompt_logprobs": answer.get("prompt_logprobs"), "prompt_token_ids": ids}
    try:
        found = {token.position: token for token in tokens_of_prompt(whole, window.doc_id, vocab_size)}
    except CellError as problem:
        raise RbpxError(f"{place}: {problem}") from None
    scored = np.flatnonzero(window.scored).tolist()
    unsaid = [at for at in scored if at not in found or found[at].logprob <= _CLAMPED]
    if unsaid:
        raise MeasureError(f"{place} has no probability of token {unsaid[0]}; its logits may not be finite")
    return [replace(found[at], position=window.start + at) for at in scored]


def reach(cell: Cell, engine: EngineConfig, store: Store, version: str | None = None) -> ServedCell:
    """Find the model of a cell on a server of `version`, by default `engine.version`; resolve the cell's protocol.

    Raises:
        RbpxError: the model or its tokenizer does not match the request or the family's file.
        MeasureError: the server fails, or serves another model or version.
    """
    server = Server(engine)
    has = server.version()
    for wanted, remedy in ((engine.version, "drop engine.version="), (version, "measure the run anew")):
        if wanted not in (None, has):
            raise MeasureError(f"{server.name} is version {has}, not {wanted}; start one of that version, or {remedy}")
    described, models = describe_model(cell.model, cell.revision, store.hashes, cell.pickled), server.models()
    for model in models:
        is_here = described.commit is None and Path(model.root).resolve() == described.folder  # on this machine too
        is_own = cell.model in (model.name, model.root) or is_here
        if (model.name == engine.model) if engine.model is not None else is_own:
            return ServedCell(server, has, model, resolve_described(cell, described))
    raise MeasureError(
        f"{server.name} serves {', '.join(model.name for model in models)[:300] or 'nothing'}, not "
        f"{engine.model or cell.model}; measure that size alone with size=, or name the model as the server does with "
        "engine.model="
    )


def measure_by_engine(
    cell: Cell,
    engine: EngineConfig,
    sample: Sample,
    store: Store,
    tokens_per_request: int,
    config: Record,
    begin: Begin,
) -> Record:
    """Measure a cell that the store lacks by a server; return the record that links it to its run.

    Where the weights are not on this machine, the model's name and commit replace their hash in the run's identity.

    Raises:
        RbpxError: as in `reach`.
        MeasureError: as in `reach`, or the server reads less than a window.
    """
    started_at = now()
    asked = reach(cell, engine, store)
    protocol, described, version = asked.protocol, asked.protocol.loaded, asked.version
    windows = scored_windows(cell, protocol, sample.documents)
    weights = described.weights_hash or [cell.model, cell.revision, described.commit]
    identity = [schema.FORMAT, engine.name, version, weights, described.tokenizer_hash, cell.text_hash, cell.protocol]
    run_id = digest([*identity, protocol.window, cell.dtype, *protocol.departures()])
    new: New | None = None
    if not store.has_run(run_id):
        advance = begin(windows, 1)
        wall_from = time.monotonic()
        columns = asked.columns(windows, tokens_per_request, advance)
        wall_s = time.monotonic() - wall_from
        went = {
            "engine": engine.name,
            "engine_version": version,
            "device": f"{engine.name} {version}",
            "n_processes": 1,
            "tokens_per_s": len(columns["doc_id"]) / wall_s,
            "wall_s": wall_s,
            "started_at": started_at,
            "versions": versions() | {engine.name: version},
        }
        new = columns, {}, went
    return write_cell(cell, protocol, windows, sample, store, run_id, started_at, config, new)
