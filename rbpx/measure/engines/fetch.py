"""Sends one request to a server and reads its answer, within limits of time and size, and follows no redirect."""

import time
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException, HTTPMessage, HTTPResponse, IncompleteRead
from threading import Thread
from typing import IO, Final
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, Request, build_opener

_PART: Final = 1 << 16  # bytes to read at once
_TOLD: Final = 4096  # bytes to read of an error


class TooLongError(OSError):
    """An answer has more bytes than it may have."""


@dataclass(frozen=True)
class Answer:
    """What a server answers.

    Attributes:
        status: HTTP status code.
        reason: the status in words.
        raw: its body; of an error only the beginning.
    """

    status: int
    reason: str
    raw: bytes


class _NoRedirect(HTTPRedirectHandler):
    """Returns a redirect as the answer: to follow it would send the headers, and so a key, to another address."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        """Ask nothing else."""


def fetch(request: Request, timeout_s: float, most_bytes: int) -> Answer:
    """The answer to a request, whatever its status.

    The timeout of a socket holds for each of its reads, and a server may answer a byte at a time. So a thread reads; it
    is left behind when the time is over, and ends with its next read.

    Args:
        request: the request.
        timeout_s: seconds until the whole answer has to be here.
        most_bytes: bytes that the answer may have.

    Raises:
        TimeoutError: the time is over.
        TooLongError: the answer has more bytes.
        OSError, HTTPException: the server cannot be reached, or breaks off.
    """
    future: Future[Answer] = Future()

    def call() -> None:
        try:
            future.set_result(_fetch(request, timeout_s, most_bytes))
        except BaseException as problem:
            future.set_exception(problem)

    Thread(target=call, name="rbpx-fetch", daemon=True).start()
    return future.result(timeout_s)


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
