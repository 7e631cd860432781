"""Asks a running vLLM server over HTTP for its version, its models and the log-probabilities of prompts.

vLLM documents `GET /version`, `GET /v1/models` and `POST /v1/completions` with `prompt_logprobs` and
`return_token_ids` (docs.vllm.ai, OpenAI-compatible server).
"""

import json
import logging
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from http.client import HTTPException
from secrets import token_hex
from time import sleep
from typing import Any, Final
from urllib.request import Request

from rbpx.config.model.placement import EngineConfig
from rbpx.errors import MeasureError, number_of
from rbpx.measure.engines.fetch import Answer, TooLongError, fetch

KEY_VARIABLE: Final = "VLLM_API_KEY"  # where vLLM's own tools look for a server's key
_SHORT_S: Final = 10.0  # for an answer that takes no computing
_SHORT_BYTES: Final = 1 << 20  # of such an answer
_TOKEN_BYTES: Final = 1 << 12  # of the answer about one token; vLLM takes about a hundred
_VERSION: Final = re.compile(r"[\w.+!-]{1,100}", re.ASCII)
_HEADER: Final = re.compile(r"[\x21-\x7e]+")  # the characters of a key
_WAITS_S: Final = (1.0, 4.0, 16.0)  # before a question is asked again
_PASSING: Final = (429, 502, 503, 504)  # it is busy, or starts behind a gateway; 500 is a failure of the engine
_LOOK: Final = "look at its log, and type the same again"
_LOGGER = logging.getLogger(__name__)


class _PassingError(MeasureError):
    """A failure that may pass; the same question can be asked again."""


@dataclass(frozen=True)
class ServedModel:
    """A model that a server has loaded.

    Attributes:
        name: by which a request names it.
        root: hub id or folder that it was loaded from; None where the server does not say.
        context: tokens of prompt and answer together, at most; None where the server does not say.
    """

    name: str
    root: str | None
    context: int | None


class Server:
    """A server at the address of an engine's configuration; each question is one request."""

    def __init__(self, config: EngineConfig) -> None:
        """Ask nothing yet."""
        self._config = config
        self._answered = False  # once it has answered, a failure may pass
        self._takes_salt = True

    def version(self) -> str:
        """The version of its engine.

        Raises:
            MeasureError: the server does not answer, or answers something else; so does each method.
        """
        answer = self._ask("/version")
        version = answer.get("version")
        if not isinstance(version, str) or not _VERSION.fullmatch(version):
            raise self._failed("does not say its version")
        return version

    def models(self) -> list[ServedModel]:
        """The models that it serves."""
        listed = self._ask("/v1/models").get("data")
        models = [_model(each) for each in listed] if isinstance(listed, list) else [None]
        served = [model for model in models if model is not None]
        if len(served) < len(models):
            raise self._failed("does not list its models")
        return served

    def prompt_logprobs(self, model: str, prompts: Sequence[list[int]]) -> list[dict[str, Any]]:
        """The server's answer about each prompt, unchecked: its `prompt_logprobs` and `prompt_token_ids`."""
        asked = {
            "model": model,
            "prompt": list(prompts),
            "max_tokens": 1,  # vLLM generates at least one
            "temperature": 0.0,
            "prompt_logprobs": 0,  # of the prompt's own tokens alone
            "return_token_ids": True,
        }
        choices = self._completions(asked, sum(map(len, prompts))).get("choices")
        if not isinstance(choices, list) or len(choices) != len(prompts):
            n_answers = len(choices) if isinstance(choices, list) else 0
            raise self._failed(f"gives {number_of(n_answers, 'answer')} to {number_of(len(prompts), 'prompt')}")
        by_index = {choice["index"]: choice for choice in choices if _is_whole(choice, "index")}
        if sorted(by_index) != list(range(len(prompts))):
            raise self._failed("does not say which answer belongs to which prompt")
        return [by_index[at] for at in range(len(prompts))]

    def _completions(self, asked: dict[str, Any], n_tokens: int) -> dict[str, Any]:
        """An answer for which the server takes nothing from its cache of the prefixes of earlier requests.

        Where it does, log-probabilities have depended on the order of requests (vllm-project/vllm#42019). The server
        finds blocks of its cache by their tokens and a salt, so each request has a salt of its own.
        """
        limits = (self._config.timeout_s, _SHORT_BYTES + _TOKEN_BYTES * n_tokens)
        if self._takes_salt:
            try:
                return self._ask("/v1/completions", asked | {"cache_salt": token_hex(16)}, *limits)
            except MeasureError as problem:
                if "cache_salt" not in str(problem):
                    raise
                self._takes_salt = False  # before version 0.11 an engine can be started so that it takes none
        return self._ask("/v1/completions", asked, *limits)

    def _ask(
        self, path: str, body: object | None = None, timeout_s: float = _SHORT_S, most_bytes: int = _SHORT_BYTES
    ) -> dict[str, Any]:
        """The answer to a question, asked again where the server may only be busy or starting anew."""
        for wait_s in _WAITS_S:
            try:
                return self._ask_once(path, body, timeout_s, most_bytes)
            except _PassingError as problem:
                if not self._answered:  # it was never there
                    raise
                tries = f"up to {len(_WAITS_S)} more times within {sum(_WAITS_S):g} s"
                _LOGGER.warning(f"{str(problem).removesuffix(f'; {_LOOK}')}; asking again, {tries}")
                sleep(wait_s)
        return self._ask_once(path, body, timeout_s, most_bytes)

    def _ask_once(self, path: str, body: object | None, timeout_s: float, most_bytes: int) -> dict[str, Any]:
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        key = os.environ.get(KEY_VARIABLE)
        if key and not _HEADER.fullmatch(key):  # the library's own error about a header would show it
            raise MeasureError(
                f"{KEY_VARIABLE} holds a character that no key has, such as a space or a line break; set it anew"
            )
        if key:
            headers["Authorization"] = f"Bearer {key}"
        data = None if body is None else json.dumps(body).encode()
        request = Request(self._config.root + path, data, headers)
        try:
            answered = fetch(request, timeout_s, most_bytes)
        except TooLongError as problem:
            raise self._failed(f"answers {path} with {problem}") from None
        except (OSError, HTTPException, UnicodeError) as problem:  # refused, cut off, not found, not a valid name
            reason = getattr(problem, "reason", problem)
            if isinstance(reason, TimeoutError):
                remedy = _LOOK if body is None else "raise engine.timeout_s"
                raise self._failed(f"gave no whole answer to {path} in {timeout_s:g} s", remedy) from None
            raise self._failed(f"does not answer {path} ({_line(reason)})", kind=_PassingError) from None
        if 300 <= answered.status < 400:
            next_ = "give engine.url the server's own address"
            raise self._failed(f"redirects {path} ({answered.status}), and rbpx follows no redirect", next_)
        if answered.status >= 400:
            kind = _PassingError if answered.status in _PASSING else MeasureError
            raise self._failed(f"answers {path} with {answered.status}: {_said(answered)}", kind=kind)
        try:
            answer = json.loads(answered.raw)
        except (ValueError, RecursionError):
            began = _line(answered.raw[:80].decode(errors="replace"))
            raise self._failed(f"answers {path} with something that is not JSON: {began}") from None
        if not isinstance(answer, dict):
            raise self._failed(f"answers {path} with JSON that is not an object")
        self._answered = True
        return answer

    def _failed(self, what: str, remedy: str = _LOOK, kind: type[MeasureError] = MeasureError) -> MeasureError:
        return kind(f"engine={self._config.name} at {self._config.root} {what}; {remedy}")


def _model(each: Any) -> ServedModel | None:
    """A model from a server's list; None if the entry is not one."""
    if not isinstance(each, dict) or not isinstance(each.get("id"), str):
        return None
    root, context = each.get("root"), each.get("max_model_len")
    if not isinstance(root, str | None) or not (context is None or _is_whole(each, "max_model_len")):
        return None
    return ServedModel(each["id"], root, context)


def _is_whole(values: Any, name: str) -> bool:
    return isinstance(values, dict) and type(values.get(name)) is int


def _said(answer: Answer) -> str:
    """The message of an error, {"error": {"message": ...}} in vLLM, else the beginning of the answer."""
    raw = answer.raw.decode(errors="replace")
    try:
        told = json.loads(raw)
        error = told.get("error", told)
        message = error.get("message") if isinstance(error, dict) else error
    except (ValueError, AttributeError, RecursionError):
        message = raw
    return _line(message or answer.reason)


def _line(problem: object) -> str:
    return (" ".join(str(problem).split()) or type(problem).__name__)[:200]
