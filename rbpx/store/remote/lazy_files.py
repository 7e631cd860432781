"""A file system for Arrow whose files are fetched from object storage when a question first opens them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyarrow import fs

from rbpx.errors import RbpxError

__all__ = ["fetched_when_opened", "take_problem"]

_problems: Final[list[RbpxError]] = []  # of files that could not be fetched, until someone takes them


def fetched_when_opened(fetch: Callable[[Path], None]) -> fs.PyFileSystem:
    """Local files, before each of which `fetch` is called with its path."""
    return fs.PyFileSystem(_Lazy(fetch))


def take_problem() -> RbpxError | None:
    """Why a file could not be fetched since this was last asked; what opened it says only that it is empty."""
    problem = _problems[0] if _problems else None
    _problems.clear()
    return problem


class _Lazy(fs.FileSystemHandler):  # type: ignore[misc]
    def __init__(self, fetch: Callable[[Path], None]) -> None:
        self._fetch, self._local = fetch, fs.LocalFileSystem()

    def open_input_file(self, path: str) -> pa.NativeFile:
        try:
            self._fetch(Path(path))
        except RbpxError as problem:  # an exception here would be raised in a thread of Arrow, and stop everything
            _problems.append(problem)
            return pa.BufferReader(b"")
        return self._local.open_input_file(path)

    open_input_stream = open_input_file

    def get_type_name(self) -> str:
        return "rbpx"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: list[str]) -> Any:
        return self._local.get_file_info(paths)

    def get_file_info_selector(self, selector: Any) -> Any:
        return self._local.get_file_info(selector)

    def _read_only(self, *args: object, **kwargs: object) -> None:
        raise NotImplementedError("only read")

    create_dir = delete_dir = delete_dir_contents = delete_root_dir_contents = delete_file = _read_only
    move = copy_file = open_output_stream = open_append_stream = _read_only

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    __hash__ = object.__hash__
