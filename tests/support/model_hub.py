"""A hub on this machine: repositories of models behind HF_ENDPOINT, as huggingface_hub asks for them, and misbehaving.

Large files are redirected to a place of their own and named by SHA-256, small ones by git's hash of a blob; ranges are
served, so a download that broke off can go on.
"""

import hashlib
import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import pytest

from tests.support.dataset_hub import DatasetHub
from tests.support.loopback import served

LARGE = (".safetensors", ".bin")  # kept in LFS
LOGIN = b"<html>Please log in to this network</html>"
SILENT_S = 12
CHUNK = 1000
Answer = tuple[int, dict[str, str], bytes]


def git_hash(raw: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(raw) + raw).hexdigest()


def other_bytes(raw: bytes) -> bytes:
    """As many bytes, one of them another."""
    return raw[:-1] + bytes([raw[-1] ^ 1])


@dataclass
class Hub:
    """Repositories of models.

    Attributes:
        repos: ORG/NAME -> revision -> (commit, folder).
        gated: ORG/NAME -> status with which its files are refused.
        faults: file name -> what happens to its bytes: `breaks once` (half of them come, then the line is cut),
            `breaks` (and whatever is asked after the half, too), `stalls` (half of them come, then nothing for long),
            `wrong bytes`.
        mood: of the whole hub: `well`, `silent`, `hangs up`, `503`, `log in first` (a page), `login elsewhere`.
        datasets: repositories of datasets beside them, if any.
        asked: method, path and range of each request.
        sent: path -> bytes of its content that were sent.
        url: where it listens.
    """

    repos: dict[str, dict[str, tuple[str, Path]]] = field(default_factory=dict)
    gated: dict[str, int] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)
    mood: str = "well"
    datasets: DatasetHub | None = None
    asked: list[str] = field(default_factory=list)
    sent: dict[str, int] = field(default_factory=dict)
    url: str = ""

    def add(self, model: str, folder: Path, revision: str = "main") -> str:
        """Serve a folder as a revision of a repository; returns its commit."""
        commit = hashlib.sha1(f"{model} {revision}".encode()).hexdigest()
        self.repos.setdefault(model, {})[revision] = (commit, folder)
        return commit

    def resolved(self) -> list[str]:
        """Names of the files that were asked for, each once."""
        return sorted({line.split()[1].rsplit("/", 1)[1] for line in self.asked if "/resolve/" in line})

    def served(self, model: str, name: str) -> int:
        """Bytes of a file of the main revision of a model that were sent."""
        raw = (self.repos[model]["main"][1] / name).read_bytes()
        large = f"/cdn/{hashlib.sha256(raw).hexdigest()}/{name}"
        return sum(
            n for path, n in self.sent.items() if path == large or re.fullmatch(f"/{model}/resolve/.*/{name}", path)
        )

    def answer(self, path: str) -> Answer:
        """What a request for a path is answered, before any fault of its bytes."""
        parts = urlsplit(path).path.strip("/").split("/")
        if parts[0] == "cdn":
            return 200, {"ETag": f'"{parts[1]}"'}, self._large(parts[1])
        api = parts[:2] == ["api", "models"]
        org, name, what, label, *rest = [unquote(part) for part in [*(parts[2:] if api else parts), "revision", "main"]]
        model = f"{org}/{name}"
        repo = self.repos.get(model)
        if repo is None:
            return 401, {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"}, b""
        found = [(commit, folder) for known, (commit, folder) in repo.items() if label in (known, commit)]
        if not found:
            return 404, {"X-Error-Code": "RevisionNotFound", "X-Error-Message": "Invalid rev id"}, b""
        commit, folder = found[0]
        files = {p.relative_to(folder).as_posix(): p for p in sorted(folder.rglob("*")) if p.is_file()}
        if api and what == "revision":
            siblings = [_sibling(name, p.read_bytes()) for name, p in files.items()]
            return 200, {}, json.dumps({"id": model, "sha": commit, "siblings": siblings}).encode()
        if api and what == "tree":
            return 200, {}, json.dumps([_entry(name, p.read_bytes()) for name, p in files.items()]).encode()
        assert what == "resolve", path
        if model in self.gated:
            return self.gated[model], {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access is restricted"}, b""
        # What the listing appends so that short paths have all parts.
        wanted = "/".join(rest[:-2])
        if wanted not in files:
            return 404, {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": commit}, b""
        raw = files[wanted].read_bytes()
        if not wanted.endswith(LARGE):
            return 200, {"X-Repo-Commit": commit, "ETag": f'"{git_hash(raw)}"', "Accept-Ranges": "bytes"}, raw
        content = hashlib.sha256(raw).hexdigest()
        elsewhere = self.url.replace("127.0.0.1", "localhost")  # large files lie on another host
        linked = {"X-Linked-Etag": f'"{content}"', "X-Linked-Size": str(len(raw)), "X-Repo-Commit": commit}
        return 302, linked | {"Location": f"{elsewhere}/cdn/{content}/{quote(wanted)}"}, b""

    def _large(self, content: str) -> bytes:
        for repo in self.repos.values():
            for _, folder in repo.values():
                for path in folder.rglob("*"):
                    if path.name.endswith(LARGE) and hashlib.sha256(path.read_bytes()).hexdigest() == content:
                        return path.read_bytes()
        raise AssertionError(f"nothing hashes to {content}")


def _entry(name: str, raw: bytes) -> dict[str, Any]:
    plain = {"type": "file", "path": name, "size": len(raw), "oid": git_hash(raw)}
    if not name.endswith(LARGE):
        return plain
    return plain | {"lfs": {"oid": hashlib.sha256(raw).hexdigest(), "size": len(raw), "pointerSize": 134}}


def _sibling(name: str, raw: bytes) -> dict[str, Any]:
    plain = {"rfilename": name, "size": len(raw), "blobId": git_hash(raw)}
    if not name.endswith(LARGE):
        return plain
    return plain | {"lfs": {"sha256": hashlib.sha256(raw).hexdigest(), "size": len(raw), "pointerSize": 134}}


@contextmanager
def serving_others() -> Iterator[Hub]:
    """An empty hub of models and datasets for other processes, which `environment` leads to it."""
    this = Hub(datasets=DatasetHub())

    class Handler(_Handler):
        hub = this

    with served(Handler) as this.url:
        yield this


@contextmanager
def serving(monkeypatch: pytest.MonkeyPatch, cache: Path) -> Iterator[Hub]:
    """An empty hub on loopback while the block lasts; huggingface_hub of this process asks it and keeps its files."""
    from huggingface_hub import constants

    this = Hub()

    class Handler(_Handler):
        hub = this

    with served(Handler) as this.url:
        monkeypatch.setattr(constants, "ENDPOINT", this.url)
        template = constants.HUGGINGFACE_CO_URL_TEMPLATE.split("/{repo_id}")[1]
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", f"{this.url}/{{repo_id}}{template}")
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", CHUNK)  # what comes in less is lost when the line is cut
        yield this


def environment(url: str, home: Path) -> dict[str, str]:
    """Settings with which another process asks this hub; huggingface_hub reads them once, when it is imported."""
    quiet = {"HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1", "NO_PROXY": "127.0.0.1,localhost"}
    return {"HF_ENDPOINT": url, "HF_HOME": str(home), "HF_HUB_OFFLINE": "0"} | quiet


class _Handler(BaseHTTPRequestHandler):
    hub: Hub

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        asked = [self.command, unquote(urlsplit(self.path).path), self.headers.get("Range", "")]
        self.hub.asked.append(" ".join(asked).strip())
        self.close_connection = True
        if self.hub.mood == "silent":
            time.sleep(SILENT_S)
        elif self.hub.mood == "503":
            self._send(503, {}, b"")
        elif self.hub.mood == "log in first" or self.path.startswith("/login"):
            self._send(200, {"Content-Type": "text/html"}, LOGIN)
        elif self.hub.mood == "login elsewhere":
            self._send(302, {"Location": f"{self.hub.url}/login"}, b"")
        elif self.hub.datasets is not None and self.path.startswith(("/api/datasets/", "/datasets/")):
            self.hub.datasets.url = self.hub.url
            self._send(*self.hub.datasets.answer(self.path, self.headers))
        elif self.hub.mood == "well":
            self._send(*self.hub.answer(self.path))

    do_HEAD = do_POST = do_GET

    def _send(self, status: int, headers: dict[str, str], body: bytes) -> None:
        fault = self.hub.faults.get(unquote(self.path.rsplit("/", 1)[1]), "") if self.command == "GET" else ""
        begin = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if fault == "wrong bytes":
            body = other_bytes(body)
        whole = len(body)
        if status == 200 and begin is not None:
            status, body = 206, body[int(begin[1]) :]
            headers = headers | {"Content-Range": f"bytes {begin[1]}-{whole - 1}/{whole}"}
        self.send_response(status)
        for key, value in ({"Content-Length": str(len(body))} | headers).items():
            self.send_header(key, value)
        self.end_headers()
        if fault.startswith("breaks") and status in (200, 206):
            body = b"" if begin is not None and fault == "breaks" else body[: whole // 2]
            if fault == "breaks once":
                self.hub.faults.pop(unquote(self.path.rsplit("/", 1)[1]))
        stalls = fault == "stalls" and status in (200, 206)
        if self.command != "HEAD":
            path = unquote(urlsplit(self.path).path)
            sent = body[: whole // 2] if stalls else body
            self.hub.sent[path] = self.hub.sent.get(path, 0) + len(sent)
            self.wfile.write(sent)
        if stalls:
            self.wfile.flush()
            time.sleep(SILENT_S)

    def log_message(self, *args: Any) -> None:
        pass
