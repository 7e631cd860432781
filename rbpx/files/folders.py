"""Lists the files of a folder or a glob, by their names in it."""

import os
import re
from collections import defaultdict
from pathlib import Path
from typing import Final

from rbpx.errors import AbsentTextError, RbpxError, number_of
from rbpx.files.escapes import visible_line
from rbpx.spelling import typed

_WILD: Final = re.compile(r"[*?[]")
_ALL: Final = "**/*"
_TEXTS: Final = (".txt", ".text", ".md", ".markdown", ".rst")  # of one kind: each file is a text


def folder_and_pattern(path: Path) -> tuple[Path, str] | None:
    """The folder and file pattern of a path that stands for several files; None for one file.

    An existing path is taken literally, so that the name of a file may have brackets.
    """
    if path.is_dir():
        return path, _ALL
    wild = next((at for at, part in enumerate(path.parts) if _WILD.search(part)), None)
    if wild is None or path.exists():
        return None
    return Path(*path.parts[:wild]), os.sep.join(path.parts[wild:])


def files_of(path: Path) -> list[tuple[str, Path]] | None:
    """Name and path of each file, not hidden, in a folder (at any depth) or of a glob, in order; None for one file.

    A name is the path within the folder, or within that of the glob's first wildcard.

    Raises:
        AbsentTextError: there is no file.
        RbpxError: files are of several kinds (.gz apart), or the pattern is invalid.
    """
    several = folder_and_pattern(path)
    if several is None:
        return None
    folder, pattern = several
    try:
        within = sorted(each.relative_to(folder) for each in folder.glob(pattern) if each.is_file())
    except ValueError as problem:
        raise RbpxError(
            f"dataset.path={path} is no glob: {problem}; * and ? stand for characters, ** for folders"
        ) from None
    shown = [name for name in within if not any(part.startswith(".") for part in name.parts)]
    if not shown:
        what = "is a folder without files" if path == folder else "matches no file"
        hidden = f" but {number_of(len(within), 'hidden one')}" if within else ""
        raise AbsentTextError(
            f"dataset.path={path.absolute()} {what}{hidden}; give a folder or a glob of .txt, .jsonl or .parquet files"
        )
    by_kind = defaultdict(list)
    for name in shown:
        suffix = Path(name.name[:-3] if name.suffix.lower() == ".gz" else name.name).suffix.lower()
        by_kind[_TEXTS[0] if suffix in _TEXTS else suffix].append(name)
    if len(by_kind) > 1:
        kinds = sorted(by_kind.items(), key=lambda kind: -len(kind[1]))
        told = ", ".join(f"{len(of):,} {kind or 'without suffix'} ({of[0]})" for kind, of in kinds)
        glob = typed(keys={"dataset.path": str(folder / f"{_ALL}{kinds[0][0]}")})
        raise RbpxError(f"dataset.path={path} has files of several kinds: {visible_line(told)}; name one kind: {glob}")
    return [(name.as_posix(), folder / name) for name in shown]
