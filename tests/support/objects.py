"""A bucket in memory, for what is sent to one: which objects it holds, and what was done to them, in order."""

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from rbpx.errors import MeasureError
from rbpx.store.remote.bucket import Entry, GoneError


class Objects:
    """A bucket in memory: what is in it, and what was done to it, in order."""

    url = "s3://memory/store"

    def __init__(self) -> None:
        self.held: dict[str, bytes] = {}
        self.done: list[tuple[str, str]] = []
        self.answers_left = 10**6

    def _ask(self, what: str, name: str) -> None:
        self.answers_left -= 1
        if self.answers_left < 0:
            raise MeasureError("it does not answer")
        self.done.append((what, name))

    def put_new(self, name: str, content: bytes | Path) -> bool:
        self._ask("put_new", name)
        is_new = name not in self.held
        self.held.setdefault(name, content if isinstance(content, bytes) else content.read_bytes())
        return is_new

    def put(self, name: str, content: Path) -> None:
        self._ask("put", name)
        self.held[name] = content.read_bytes()

    def get(self, name: str, n_bytes: int | None = None) -> bytes:
        if name not in self.held:
            raise GoneError(f"{name} is gone")
        return self.held[name]

    def parts(self, name: str, n_bytes: int) -> Iterator[bytes]:
        yield self.get(name)[:n_bytes]

    def entry(self, name: str) -> Entry | None:
        if name not in self.held:
            return None
        content = self.held[name]
        return Entry(len(content), hashlib.md5(content).hexdigest(), datetime.now(UTC))

    def below(self, folder: str | None) -> dict[str, Entry]:
        names = [name for name in self.held if folder is None or name.startswith(f"{folder}/")]
        return {name: entry for name in names if (entry := self.entry(name)) is not None}

    def remove(self, names: list[str]) -> None:
        for name in names:
            self._ask("remove", name)
            del self.held[name]
