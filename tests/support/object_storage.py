"""A server that speaks S3 (moto's) on loopback, which can be told to refuse and to lose what it did."""

import json
import threading
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
}


@dataclass
class Fault:
    """What goes wrong with the requests that it is about.

    Attributes:
        kind: `refuse` (503), `deny` (403) or `lose` (does what it is asked, then refuses).
        method: of HTTP, or any.
        about: what the path and the query contain.
        times: how often; for ever where None.
        seen: how often it has happened.
    """

    kind: str
    method: str = ""
    about: str = ""
    times: int | None = None
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
        if fault is None:
            return answer(environ, start)  # type: ignore[no-any-return]
        if fault.kind == "lose":
            b"".join(answer(environ, lambda *_: None))
            return _error(start, "refuse")
        environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        return _error(start, fault.kind)


def _error(start: Any, kind: str) -> list[bytes]:
    code, status = _ERRORS[kind]
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>no</Message></Error>".encode()
    start(status, [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
    return [body]


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
