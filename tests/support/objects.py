"""A bucket in memory, for what is sent to one: which objects it holds, and what was done to them, in order."""

from pathlib import Path
from typing import Any, cast

from rbpx.errors import MeasureError
from rbpx.store.bucket import Entry


class Objects:
    """A bucket in memory: what is in it, and what was done to it, in order."""

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

    def get(self, name: str) -> bytes:
        return self.held[name]

    def entry(self, name: str) -> Entry | None:
        return Entry(len(self.held[name]), "", cast(Any, None)) if name in self.held else None

    def remove(self, names: list[str]) -> None:
        for name in names:
            self._ask("remove", name)
            del self.held[name]
