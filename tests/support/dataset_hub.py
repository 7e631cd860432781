"""A hub of datasets on this machine, as `datasets` and `huggingface_hub` ask for one; it misbehaves on request."""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.support.loopback import served

Files = dict[str, bytes]
Answer = tuple[int, dict[str, str], bytes]

NOBODY = "http://127.0.0.1:9"  # where nobody listens
LISTED_AT_ONCE = 2  # entries of a page of a tree, so that every listing has several


@dataclass
class Repo:
    """One dataset at its revisions.

    Attributes:
        revisions: label -> files by path.
        gated: whether its files are refused.
    """

    revisions: dict[str, Files]
    gated: bool = False

    def commit(self, label: str) -> str:
        """Forty digits that stand for the contents of a revision."""
        listed = [(path, hashlib.sha1(raw).hexdigest()) for path, raw in sorted(self.revisions[label].items())]
        return hashlib.sha1(repr(listed).encode()).hexdigest()

    def find(self, asked: str) -> tuple[str, Files] | None:
        """Commit and files of a label or a commit."""
        for label, files in self.revisions.items():
            if asked in (label, self.commit(label)):
                return self.commit(label), files
        return None


@dataclass
class DatasetHub:
    """What is served, and what was asked.

    Attributes:
        repos: ORG/NAME -> repository.
        asked: method and path of each request.
        sent: path -> bytes of its content that were sent.
        spoil: None, or what is done to the answer of a path; None from it leaves that answer alone.
    """

    repos: dict[str, Repo] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    sent: dict[str, int] = field(default_factory=dict)
    spoil: Callable[[str, Answer], Answer | str | None] | None = None
    url: str = ""

    def add(self, name: str, files: Mapping[str, bytes], revision: str = "main", gated: bool = False) -> Repo:
        """Serve a dataset."""
        repo = self.repos.setdefault(name, Repo({}, gated))
        repo.revisions[revision] = dict(files)
        return repo

    def paths(self, what: str = "resolve") -> list[str]:
        """Files whose content was asked for, in order."""
        return [line.split(f"/{what}/", 1)[1].split("/", 1)[1] for line in self.asked if "GET /datasets/" in line]

    def answer(self, target: str, headers: Mapping[str, str]) -> Answer:
        """What a hub says."""
        url = urlsplit(target)
        parts = [unquote(part) for part in url.path.strip("/").split("/")]
        api = parts[:2] == ["api", "datasets"]
        org, name, what, revision, *rest = parts[2:] if api else parts[1:]
        repo = self.repos.get(f"{org}/{name}")
        if repo is None:
            return 401, {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"}, b""
        found = repo.find(revision)
        if found is None:
            return 404, {"X-Error-Code": "RevisionNotFound", "X-Error-Message": "Invalid rev id"}, b""
        commit, files = found
        if what == "revision":
            siblings = [{"rfilename": path} for path in sorted(files)]
            gated = "manual" if repo.gated else False
            return _json({"id": f"{org}/{name}", "sha": commit, "siblings": siblings, "gated": gated, "private": False})
        if what == "tree":
            return self._tree(files, "/".join(rest), url.path, parse_qs(url.query))
        if repo.gated:
            return 403, {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access is restricted"}, b""
        return _file(files, "/".join(rest), commit, headers.get("Range"))

    def _tree(self, files: Files, folder: str, path: str, query: dict[str, list[str]]) -> Answer:
        recursive = query.get("recursive", ["false"])[0].lower() == "true"
        listed = _entries(files, folder, recursive)
        if folder and not listed:
            return 404, {"X-Error-Code": "EntryNotFound"}, b""
        start = int(query.get("cursor", ["0"])[0])
        status, headers, body = _json(listed[start : start + LISTED_AT_ONCE])
        if start + LISTED_AT_ONCE < len(listed):
            after = f"{self.url}{path}?recursive={recursive}&cursor={start + LISTED_AT_ONCE}"
            headers["Link"] = f'<{after}>; rel="next"'
        return status, headers, body


def _json(value: Any) -> Answer:
    return 200, {"Content-Type": "application/json"}, json.dumps(value).encode()


def _entries(files: Files, folder: str, recursive: bool) -> list[dict[str, Any]]:
    """Files and folders in a folder."""
    prefix = f"{folder}/" if folder else ""
    below = [path for path in sorted(files) if path.startswith(prefix)]
    folders = {prefix + part for path in below for part in _parents(path.removeprefix(prefix))}
    found = [_folder(path) for path in sorted(folders)] + [_entry(path, files[path]) for path in below]
    return [e for e in found if recursive or "/" not in e["path"].removeprefix(prefix)]


def _parents(path: str) -> list[str]:
    parts = path.split("/")[:-1]
    return ["/".join(parts[: i + 1]) for i in range(len(parts))]


def _folder(path: str) -> dict[str, Any]:
    return {"type": "directory", "path": path, "oid": hashlib.sha1(path.encode()).hexdigest(), "size": 0}


def _entry(path: str, raw: bytes) -> dict[str, Any]:
    entry = {"type": "file", "path": path, "size": len(raw), "oid": hashlib.sha1(raw).hexdigest()}
    if _is_large(path):
        entry["lfs"] = {"oid": hashlib.sha256(raw).hexdigest(), "size": len(raw), "pointerSize": 134}
    return entry


def _is_large(path: str) -> bool:
    return path.endswith((".parquet", ".zst", ".gz", ".jsonl"))


def _file(files: Files, path: str, commit: str, asked_range: str | None) -> Answer:
    if path not in files:
        return 404, {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": commit}, b""
    raw = files[path]
    etag = hashlib.sha256(raw).hexdigest() if _is_large(path) else hashlib.sha1(raw).hexdigest()
    headers = {"X-Repo-Commit": commit, "ETag": f'"{etag}"', "Accept-Ranges": "bytes"}
    if _is_large(path):
        headers |= {"X-Linked-ETag": f'"{etag}"', "X-Linked-Size": str(len(raw))}
    if asked_range is None:
        return 200, headers, raw
    first, last = asked_range.removeprefix("bytes=").split("-")
    start, end = int(first), min(int(last or len(raw) - 1), len(raw) - 1)
    return 206, headers | {"Content-Range": f"bytes {start}-{end}/{len(raw)}"}, raw[start : end + 1]


@contextmanager
def serving(hub: DatasetHub) -> Iterator[DatasetHub]:
    """Serve on loopback while the block lasts."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            path = unquote(urlsplit(self.path).path)
            hub.asked.append(f"{self.command} {path}")
            answer: Answer | str | None = hub.answer(self.path, self.headers)
            assert isinstance(answer, tuple)
            length = len(answer[2])
            if hub.spoil is not None:
                answer = hub.spoil(path, answer) or answer
            if answer == "hang up":
                self.close_connection = True
                return
            status, headers, content = answer
            self.send_response(int(status))
            for key, value in ({"Content-Length": str(length if status < 300 else len(content))} | headers).items():
                self.send_header(key, value)
            self.end_headers()
            if self.command != "HEAD":
                hub.sent[path] = hub.sent.get(path, 0) + len(content)
                self.wfile.write(content)
                self.close_connection = self.close_connection or len(content) != length

        do_HEAD = do_POST = do_GET

        def log_message(self, *args: Any) -> None:
            pass

    with served(Handler) as hub.url:
        yield hub


def settings(url: str, home: Path) -> dict[str, str]:
    """The environment of a process that asks this hub, with caches of its own."""
    return {
        "HF_ENDPOINT": url,
        "HF_HOME": str(home),
        "HF_HUB_OFFLINE": "0",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_UPDATE_DOWNLOAD_COUNTS": "0",
        "NO_PROXY": "127.0.0.1",
        "HF_TOKEN": "",
        "HF_HUB_DISABLE_XET": "1",
    } | {name: "" for name in os.environ if name.lower() in ("http_proxy", "https_proxy", "all_proxy")}
