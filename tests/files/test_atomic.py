"""A file or a folder is written whole or not at all, in one way, and only there is anything renamed into place."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from rbpx.files import entries
from rbpx.files.entries import atomic_remove, atomic_write, atomic_write_text, is_temporary

PACKAGE = Path(entries.__file__).parents[1]


class Stop(Exception):
    """What interrupts a writer."""


def leftovers(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if is_temporary(path.name)]


@pytest.mark.parametrize("durable", [True, False])
def test_a_reader_sees_the_old_file_until_the_new_one_is_whole(durable: bool, tmp_path: Path) -> None:
    path = tmp_path / "above" / "file.txt"
    atomic_write_text(path, "Grüße", durable=durable)
    assert path.read_bytes() == "Grüße".encode()
    with atomic_write(path, durable=durable) as temporary:
        temporary.write_text("half")
        assert path.read_text() == "Grüße"
        assert leftovers(path.parent) == [temporary]
        temporary.write_text("new")
    assert path.read_text() == "new"
    assert leftovers(path.parent) == []


@pytest.mark.parametrize("error", [Stop, KeyboardInterrupt, OSError])
def test_a_writer_that_fails_leaves_what_was_there_and_nothing_else(error: type[BaseException], tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("old")

    def write(target: Path) -> None:
        with atomic_write(target) as temporary:
            temporary.mkdir()
            (temporary / "part").write_text("half")
            raise error

    for target in (path, tmp_path / "folder"):
        with pytest.raises(error):
            write(target)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_another_process_wrote_first_stays(tmp_path: Path) -> None:
    run = tmp_path / "run"

    def write() -> None:
        with atomic_write(run) as temporary:
            temporary.mkdir()
            (temporary / "part").write_text("mine")
            run.mkdir()
            (run / "part").write_text("theirs")

    with pytest.raises(OSError, match="not empty"):
        write()
    assert (tmp_path / "run" / "part").read_text() == "theirs"
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


def test_a_folder_is_removed_whole(tmp_path: Path) -> None:
    (tmp_path / "run" / "deep").mkdir(parents=True)
    atomic_remove(tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_a_killed_writer_leaves_the_old_file_and_a_leftover_that_is_found(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("old")
    code = (
        "import os, sys; from pathlib import Path; from rbpx.files.entries import atomic_write\n"
        "with atomic_write(Path(sys.argv[1])) as temporary:\n"
        "    temporary.write_text('half'); os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", code, path], check=False).returncode == 9
    assert path.read_text() == "old"
    (leftover,) = leftovers(path.parent)
    assert leftover.read_text() == "half"


def test_bytes_are_synchronised_before_the_rename_and_the_folder_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    fsync, replace = os.fsync, os.replace

    def note_fsync(descriptor: int) -> None:
        steps.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).suffix or "folder")
        fsync(descriptor)

    def note_replace(source: Path, target: Path) -> None:
        steps.append("rename")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", note_fsync)
    monkeypatch.setattr(os, "replace", note_replace)
    atomic_write_text(tmp_path / "file.txt", "text")
    assert steps == [".tmp", "rename", "folder"]
    steps.clear()
    with atomic_write(tmp_path / "run") as temporary:
        temporary.mkdir()
        (temporary / "a.parquet").write_bytes(b"rows")
    assert steps == [".parquet", ".tmp", "rename", "folder"]
    steps.clear()
    atomic_write_text(tmp_path / "cache.json", "{}", durable=False)
    assert steps == ["rename"]


# ------------------------------------------------------------------------------------------------- there is one writer

RENAMES = re.compile(
    r"\b(os|shutil)\.(replace|renames?|link|symlink|move|fsync|fdatasync)\(|\.(rename|hardlink_to|symlink_to)\("
    r"|\.replace\([^,()=]*\)"
)
WRITES = re.compile(
    r"\.(write_text|write_bytes|write_table|copyfile|copytree|save_pretrained|savez?)\(|open\([^)]*[\"'][wax]b?[\"']"
)
WRITERS = {  # each within `atomic_write`, `output_file`, or what `place_run` and `place_file` of a store are given
    *("cli/findings.py", "files/output.py", "measure/reading/parts.py", "report/pictures.py"),
    *("store/merge.py", "store/relations.py", "store/store.py", "store/transfer.py"),
}


def test_nothing_else_in_the_package_renames_synchronises_or_writes_in_place() -> None:
    texts = {path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    home = texts.pop("files/entries.py")
    assert RENAMES.search(home)
    assert [name for name, text in texts.items() if RENAMES.search(text)] == []
    assert {name for name, text in texts.items() if WRITES.search(text)} == WRITERS
