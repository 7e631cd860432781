"""One request to a server, and its answer: within so many bytes and seconds, and from nowhere but its own address."""

import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from http.client import HTTPException, HTTPMessage, HTTPResponse, IncompleteRead
from threading import Thread
from typing import IO, Any, Final, TypeVar
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, Request, build_opener

__all__ = ["Answer", "TooLongError", "fetch"]

T = TypeVar("T")
_PART: Final = 1 << 16  # read at once
_TOLD: Final = 4096  # bytes of an error that are read


class TooLongError(OSError):
    """An answer of more bytes than it may have."""


@dataclass(frozen=True)
class Answer:
    """What a server answers.

    Attributes:
        status: of HTTP.
        reason: in words.
        raw: its body, of an error only the beginning.
    """

    status: int
    reason: str
    raw: bytes


class _NoRedirect(HTTPRedirectHandler):
    """Leaves a redirect as the answer that it is: what follows one would send the headers on, a key among them."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        """Nothing is asked instead."""


def fetch(request: Request, timeout_s: float, most_bytes: int) -> Answer:
    """The answer to a request, whatever its status.

    A limit of a socket holds for each of its reads, and a server may answer a byte at a time; so a thread reads, and is
    left behind when the time is over. It ends with its next read.

    Args:
        request: what is asked.
        timeout_s: seconds until the whole answer is here.
        most_bytes: of the answer.

    Raises:
        TimeoutError: the time is over.
        TooLongError: it has more bytes.
        OSError, HTTPException: the server cannot be reached, or breaks off.
    """
    return _within(timeout_s, partial(_fetch, request, timeout_s, most_bytes))


def _fetch(request: Request, timeout_s: float, most_bytes: int) -> Answer:
    until = time.monotonic() + timeout_s
    try:
        with build_opener(_NoRedirect).open(request, timeout=timeout_s) as response:
            return Answer(response.status, response.reason, _read(response, until, most_bytes))
    except HTTPError as problem:
        with problem, suppress(OSError, HTTPException):
            return Answer(problem.code, str(problem.reason), problem.read(_TOLD))
        return Answer(problem.code, str(problem.reason), b"")


def _read(response: HTTPResponse, until: float, most_bytes: int) -> bytes:
    raw, promised = bytearray(), response.length
    while promised is None or len(raw) < promised:
        part = response.read1(_PART if promised is None else min(_PART, promised - len(raw)))
        if not part:
            break
        raw += part
        if len(raw) > most_bytes:
            raise TooLongError(f"more than {most_bytes:,} bytes")
        if time.monotonic() > until:
            raise TimeoutError
    if promised is not None and len(raw) < promised:
        raise IncompleteRead(bytes(raw), promised - len(raw))
    return bytes(raw)


def _within(timeout_s: float, do: Callable[[], T]) -> T:
    """What a call returns or raises, unless it takes longer."""
    future: Future[Any] = Future()

    def call() -> None:
        try:
            future.set_result(do())
        except BaseException as problem:
            future.set_exception(problem)

    Thread(target=call, name="rbpx-fetch", daemon=True).start()
    answer: T = future.result(timeout_s)
    return answer
