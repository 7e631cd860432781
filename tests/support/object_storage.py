"""A server that speaks S3 (moto's) on loopback, which can be told to be slow, to refuse, to hang up and to lie."""

import json
import re
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

BUCKET: Final = "evidence"
_SIGNED: Final = (
    "AWS4-HMAC-SHA256 Credential=testing/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
)
_ERRORS: Final = {
    "refuse": ("SlowDown", "503 Slow Down"),
    "deny": ("InvalidAccessKeyId", "403 Forbidden"),
    "unknown": ("NotImplemented", "501 Not Implemented"),
}
_LISTED_SIZE: Final = re.compile(rb"<Size>(\d+)</Size>")


class _HangUp(Exception):
    """The connection ends here."""


@dataclass
class Fault:
    """What goes wrong with the requests that it is about.

    Attributes:
        kind: `slow` (by `seconds`), `refuse` (503), `deny` (403), `hang up` (in the middle of the body), `lose` (does
            what it is asked, then refuses), `forget` (says that it did what it did not), `truncate` (half a body,
            called a whole one), `lie` (about sizes), `replace` (writes whatever the condition) or `unknown` (501 to
            conditions).
        method: of HTTP, or any.
        about: what the path and the query contain.
        times: how often; for ever where None.
        seconds: of `slow`.
        seen: how often it has happened.
    """

    kind: str
    method: str = ""
    about: str = ""
    times: int | None = None
    seconds: float = 0.0
    seen: int = 0


@dataclass
class Storage:
    """A running server: its address, what goes wrong, and what was asked (method and path)."""

    port: int = 0
    faults: list[Fault] = field(default_factory=list)
    asked: list[tuple[str, str]] = field(default_factory=list)
    client: Any = None
    _lock: Any = field(default_factory=threading.Lock)

    def environment(self, cache: Path) -> dict[str, str]:
        """How a command on a machine with this cache finds it."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
            "XDG_CACHE_HOME": str(cache),
        }

    def google_environment(self, cache: Path) -> dict[str, str]:
        """How a command finds it as Google's storage, whose XML interface is that of S3 but for its conditions."""
        key = {"client_email": "", "private_key": "", "private_key_id": "", "disable_oauth": True}
        key["gcs_base_url"] = f"http://127.0.0.1:{self.port}"
        return {"GOOGLE_SERVICE_ACCOUNT_KEY": json.dumps(key), "XDG_CACHE_HOME": str(cache)}

    def put(self, folder: Path, prefix: str) -> None:
        """Copy a folder there as it is, as `aws s3 sync` does."""
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                name = f"{prefix}/{path.relative_to(folder).as_posix()}"
                self.client.put_object(Bucket=BUCKET, Key=name, Body=path.read_bytes())

    def keys(self, prefix: str) -> list[str]:
        """The names of what lies there, without the prefix."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=f"{prefix}/")
        return [each["Key"].removeprefix(f"{prefix}/") for page in pages for each in page.get("Contents", [])]

    def asked_for(self, method: str, about: str) -> int:
        """How many requests of a method there were whose path contains something."""
        return sum(asked == method and about in path for asked, path in self.asked)

    def _fault(self, method: str, place: str) -> Fault | None:
        with self._lock:
            self.asked.append((method, place))
            for fault in self.faults:
                if fault.method in ("", method) and fault.about in place and fault.times != fault.seen:
                    fault.seen += 1
                    return fault
        return None

    def serve(self, answer: Any, environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        """One request, by WSGI."""
        method, place = environ["REQUEST_METHOD"], f"{environ['PATH_INFO']}?{environ.get('QUERY_STRING', '')}"
        if not environ.get("HTTP_AUTHORIZATION", "").startswith("AWS"):  # Google's, of which moto knows nothing
            environ["HTTP_AUTHORIZATION"] = _SIGNED
        if environ.get("HTTP_X_GOOG_IF_GENERATION_MATCH") == "0":  # Google's: only where there is none
            environ["HTTP_IF_NONE_MATCH"] = "*"
        fault = self._fault(method, place)
        if fault is not None and fault.kind == "replace":
            environ.pop("HTTP_IF_NONE_MATCH", None)
            fault = None
        if fault is not None and fault.kind == "unknown" and "HTTP_IF_NONE_MATCH" not in environ:
            fault = None
        if fault is None:
            return answer(environ, start)  # type: ignore[no-any-return]
        if fault.kind == "slow":
            time.sleep(fault.seconds)
            return answer(environ, start)  # type: ignore[no-any-return]
        if fault.kind in _ERRORS:
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            return _error(start, fault.kind)
        if fault.kind == "forget":
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            start("200 OK", [("ETag", '"0"'), ("Content-Length", "0")])
            return [b""]
        told: list[Any] = []
        body = b"".join(answer(environ, lambda status, headers, *_: told.extend((status, headers))))
        status, headers = told
        if fault.kind == "lose":
            return _error(start, "refuse")
        if fault.kind == "hang up":
            start(status, headers)
            return _half_then_hang_up(body)
        if fault.kind == "truncate":
            body = body[: len(body) // 2]
            headers = [(name, value) for name, value in headers if name.lower() != "content-length"]
            headers.append(("Content-Length", str(len(body))))
        elif method == "HEAD":
            headers = [(name, "7" if name.lower() == "content-length" else value) for name, value in headers]
        else:
            body = _LISTED_SIZE.sub(lambda size: b"<Size>%d</Size>" % (int(size[1]) // 2 + 1), body)
            headers = [(name, value) for name, value in headers if name.lower() != "content-length"]
            headers.append(("Content-Length", str(len(body))))
        start(status, headers)
        return [body]


def _error(start: Any, kind: str) -> list[bytes]:
    code, status = _ERRORS[kind]
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>no</Message></Error>".encode()
    start(status, [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
    return [body]


def _half_then_hang_up(body: bytes) -> Iterator[bytes]:
    yield body[: len(body) // 2]
    raise _HangUp


@contextmanager
def storage() -> Iterator[Storage]:
    """A server with an empty bucket."""
    import boto3
    from botocore.config import Config
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        def log(self, type: str, message: str, *args: object) -> None:
            pass

    running, moto = Storage(), DomainDispatcherApplication(create_backend_app)
    server = make_server("127.0.0.1", 0, lambda e, s: running.serve(moto, e, s), threaded=True, request_handler=Quiet)
    running.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        running.client = boto3.client(
            "s3",
            endpoint_url=f"http://127.0.0.1:{running.port}",
            aws_access_key_id="testing",
            aws_secret_access_key="testing",
            region_name="us-east-1",
            config=Config(s3={"addressing_style": "path"}),
        )
        running.client.create_bucket(Bucket=BUCKET)
        yield running
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
