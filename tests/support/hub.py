"""A hub on this machine: models and datasets, as huggingface_hub and `datasets` ask for them, and misbehaving.

Large files are named by SHA-256, small ones by git's hash of a blob; those of models are redirected to another host.
Ranges are served, so a download that broke off can go on. Trees are listed in pages of two entries.
"""

import hashlib
import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import SplitResult, parse_qs, quote, unquote, urlsplit

import pytest

from tests.support.loopback import Handler, served

LARGE = (".safetensors", ".bin", ".parquet", ".zst", ".gz", ".jsonl")  # kept in LFS
LOGIN = b"<html>Please log in to this network</html>"
NOBODY = "http://127.0.0.1:9"  # where nobody listens
LISTED_AT_ONCE = 2
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
    """Repositories of models and datasets.

    Attributes:
        place: where the files lie that `add` is given as bytes.
        repos: ORG/NAME -> revision -> (commit, folder).
        gated: ORG/NAME -> status with which its files are refused.
        faults: file name -> what happens to its bytes: `breaks once` (half of them come, then the line is cut),
            `breaks` (and whatever is asked after the half, too), `stalls` (half of them come, then nothing for long),
            `wrong bytes`.
        mood: of the whole hub: `well`, `silent`, `hangs up`, `503`, `log in first` (a page), `login elsewhere`.
        asked: method, path and range of each request.
        sent: path -> bytes of its content that were sent.
        url: where it listens.
    """

    place: Path
    repos: dict[str, dict[str, tuple[str, Path]]] = field(default_factory=dict)
    gated: dict[str, int] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)
    mood: str = "well"
    asked: list[str] = field(default_factory=list)
    sent: dict[str, int] = field(default_factory=dict)
    url: str = ""

    def add(self, name: str, content: Path | Mapping[str, bytes], revision: str = "main") -> str:
        """Serve a folder, or files by their path, as a revision of a repository; returns its commit."""
        files = {} if isinstance(content, Path) else content
        commit = hashlib.sha1(repr((name, revision, sorted(files.items()))).encode()).hexdigest()
        folder = content if isinstance(content, Path) else self.place / commit
        for path, raw in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(raw)
        self.repos.setdefault(name, {})[revision] = (commit, folder)
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

    def answer(self, target: str) -> Answer:
        """What a request is answered, before any fault of its bytes."""
        url = urlsplit(target)
        parts = [unquote(part) for part in url.path.strip("/").split("/")]
        if parts[0] == "cdn":
            return 200, {"ETag": f'"{parts[1]}"'}, self._large(parts[1])
        of_datasets = "datasets" in parts[:2]
        named = parts[2:] if parts[0] == "api" else parts[of_datasets:]
        org, name, what, label = [*named, "revision", "main"][:4]
        repo, path = self.repos.get(f"{org}/{name}"), "/".join(named[4:])
        if repo is None:
            return 401, {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"}, b""
        found = [(commit, folder) for known, (commit, folder) in repo.items() if label in (known, commit)]
        if not found:
            return 404, {"X-Error-Code": "RevisionNotFound", "X-Error-Message": "Invalid rev id"}, b""
        commit, folder = found[0]
        files = {p.relative_to(folder).as_posix(): p for p in sorted(folder.rglob("*")) if p.is_file()}
        status = self.gated.get(f"{org}/{name}")
        if what == "revision":
            siblings = [_file(at, p.read_bytes(), "rfilename", "blobId", "sha256") for at, p in files.items()]
            gated = "manual" if status else False
            return _json({"id": f"{org}/{name}", "sha": commit, "siblings": siblings, "gated": gated, "private": False})
        if what == "tree":
            return self._tree(files, path, url)
        assert what == "resolve", target
        if status:
            return status, {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access is restricted"}, b""
        if path not in files:
            return 404, {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": commit}, b""
        raw, headers = files[path].read_bytes(), {"X-Repo-Commit": commit, "Accept-Ranges": "bytes"}
        if not path.endswith(LARGE):
            return 200, headers | {"ETag": f'"{git_hash(raw)}"'}, raw
        content = hashlib.sha256(raw).hexdigest()
        headers |= {"X-Linked-Etag": f'"{content}"', "X-Linked-Size": str(len(raw))}
        if of_datasets:
            return 200, headers | {"ETag": f'"{content}"'}, raw
        elsewhere = self.url.replace("127.0.0.1", "localhost")  # another host
        return 302, headers | {"Location": f"{elsewhere}/cdn/{content}/{quote(path)}"}, b""

    def _tree(self, files: Mapping[str, Path], folder: str, url: SplitResult) -> Answer:
        query, prefix = parse_qs(url.query), f"{folder}/" if folder else ""
        recursive = query.get("recursive", ["false"])[0].lower() == "true"
        folders = {each.as_posix() for path in files for each in PurePosixPath(path).parents} - {"."}
        entries: list[dict[str, Any]] = [
            {"type": "directory", "path": path, "oid": git_hash(path.encode()), "size": 0} for path in sorted(folders)
        ]
        entries += [{"type": "file", **_file(at, p.read_bytes(), "path", "oid", "oid")} for at, p in files.items()]
        entries = [each for each in entries if each["path"].startswith(prefix)]
        listed = [each for each in entries if recursive or "/" not in each["path"].removeprefix(prefix)]
        if folder and not listed:
            return 404, {"X-Error-Code": "EntryNotFound"}, b""
        start = int(query.get("cursor", ["0"])[0])
        end = start + LISTED_AT_ONCE
        after = f'<{self.url}{url.path}?recursive={recursive}&cursor={end}>; rel="next"'
        return _json(listed[start:end], {"Link": after} if end < len(listed) else {})

    def _large(self, content: str) -> bytes:
        for repo in self.repos.values():
            for _, folder in repo.values():
                for path in folder.rglob("*"):
                    if path.name.endswith(LARGE) and hashlib.sha256(path.read_bytes()).hexdigest() == content:
                        return path.read_bytes()
        raise AssertionError(f"nothing hashes to {content}")


def _json(value: Any, headers: Mapping[str, str] | None = None) -> Answer:
    return 200, {"Content-Type": "application/json", **(headers or {})}, json.dumps(value).encode()


def _file(path: str, raw: bytes, name: str, of_git: str, of_content: str) -> dict[str, Any]:
    """What a hub says of a file, under the names that an answer has for it and its hashes."""
    plain = {name: path, "size": len(raw), of_git: git_hash(raw)}
    if not path.endswith(LARGE):
        return plain
    return plain | {"lfs": {of_content: hashlib.sha256(raw).hexdigest(), "size": len(raw), "pointerSize": 134}}


@contextmanager
def serving_others() -> Iterator[Hub]:
    """An empty hub on loopback while the block lasts, for other processes, which `environment` leads to it."""
    with TemporaryDirectory(prefix="hub-") as place:
        this = Hub(Path(place))

        class OfThis(_Handler):
            hub = this

        with served(OfThis) as this.url:
            yield this


@contextmanager
def serving(monkeypatch: pytest.MonkeyPatch, cache: Path) -> Iterator[Hub]:
    """An empty hub that huggingface_hub of this process asks, and whose files it keeps there."""
    from huggingface_hub import constants

    with serving_others() as this:
        monkeypatch.setattr(constants, "ENDPOINT", this.url)
        template = constants.HUGGINGFACE_CO_URL_TEMPLATE.split("/{repo_id}")[1]
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", f"{this.url}/{{repo_id}}{template}")
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", CHUNK)  # what comes in less is lost when the line is cut
        yield this


def environment(url: str, home: Path) -> dict[str, str]:
    """Settings with which another process asks this hub; huggingface_hub reads them once, when it is imported."""
    quiet = ("HF_HUB_DISABLE_TELEMETRY", "HF_HUB_DISABLE_PROGRESS_BARS", "HF_HUB_DISABLE_XET")
    found = {"HF_ENDPOINT": url, "HF_HOME": str(home), "HF_HUB_OFFLINE": "0", "HF_UPDATE_DOWNLOAD_COUNTS": "0"}
    found |= {"NO_PROXY": "127.0.0.1,localhost", "HF_TOKEN": "", **dict.fromkeys(quiet, "1")}
    return found | {name: "" for name in os.environ if name.lower() in ("http_proxy", "https_proxy", "all_proxy")}


class _Handler(Handler):
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
        elif self.hub.mood == "well":
            self._send(*self.hub.answer(self.path))

    do_HEAD = do_POST = do_GET

    def _send(self, status: int, headers: dict[str, str], body: bytes) -> None:
        name = unquote(urlsplit(self.path).path.rsplit("/", 1)[1])
        fault = self.hub.faults.get(name, "") if self.command == "GET" else ""
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if fault == "wrong bytes":
            body = other_bytes(body)
        whole = len(body)
        if status == 200 and asked is not None:
            first, last = int(asked[1]), min(int(asked[2] or whole), whole - 1)
            status, body = 206, body[first : last + 1]
            headers = headers | {"Content-Range": f"bytes {first}-{last}/{whole}"}
        headers = {"Content-Length": str(len(body))} | headers
        if fault in ("breaks", "breaks once", "stalls") and status in (200, 206):
            body = b"" if asked is not None and fault == "breaks" else body[: whole // 2]
            if fault == "breaks once":
                self.hub.faults.pop(name)
        if self.command == "HEAD":
            body = b""
        path = unquote(urlsplit(self.path).path)
        self.hub.sent[path] = self.hub.sent.get(path, 0) + len(body)
        self.say(status, headers, body)
        if fault == "stalls" and status in (200, 206):
            self.wfile.flush()
            time.sleep(SILENT_S)
