"""A file or a folder is written whole or not at all, in one way, and only there is anything renamed into place."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rbpx.files import entries
from rbpx.files.entries import atomic_remove, atomic_write, atomic_write_text, is_temporary

PACKAGE = Path(entries.__file__).parents[1]
HOME = PACKAGE / "files" / "entries.py"
# Folders of a process' own, which nobody else reads while they are written.
COPIES = {"store/merge.py", "store/transfer.py"}  # to a path that `place_run` or a temporary folder of the caller holds


class Stop(Exception):
    """What interrupts a writer."""


def leftovers(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if is_temporary(path.name)]


def test_a_file_appears_whole_with_the_folders_above_it(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "file.txt"
    atomic_write_text(path, "Grüße")
    assert path.read_bytes() == "Grüße".encode()
    assert [p.name for p in path.parent.iterdir()] == ["file.txt"]


@pytest.mark.parametrize("durable", [True, False])
def test_a_reader_sees_the_old_file_until_the_new_one_is_whole(durable: bool, tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("old")
    with atomic_write(path, durable=durable) as temporary:
        temporary.write_text("half")
        assert path.read_text() == "old"
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


MAY_WRITE = re.compile(
    r"\.(fsync|fdatasync|renames?|hardlink_to|symlink(_to)?|link|move)\(|\.replace\([^,()]*\)|os\.replace|\bopen\(|"
    r"\.(savez?|write_\w+|save_pretrained|copyfile|copytree)\("
)


@pytest.fixture(scope="module")
def writing_modules() -> dict[str, ast.Module]:
    """The modules of the package that may write, parsed; they all name what they call."""
    texts = {path: path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py") if path != HOME}
    return {
        path.relative_to(PACKAGE).as_posix(): ast.parse(text) for path, text in texts.items() if MAY_WRITE.search(text)
    }


def renames(tree: ast.AST) -> Iterator[int]:
    """Lines that rename, link or synchronise a file: os.replace, Path.replace (one argument), Path.rename ..."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        name, owner = node.func.attr, node.func.value
        of_module = isinstance(owner, ast.Name) and owner.id in ("os", "shutil")
        if name in ("fsync", "fdatasync", "rename", "renames", "hardlink_to", "symlink_to", "link", "symlink"):
            yield node.lineno
        elif name in ("replace", "move") and (of_module or (len(node.args) == 1 and not node.keywords)):
            yield node.lineno


def plain_writes(tree: ast.AST) -> Iterator[int]:
    """Lines that write a file of a user or of the store where no `atomic_write` or `output_file` holds it.

    What is handed to `place_run` or `place_file` of a store writes to the path that these hold.
    """
    handed = [each for call in ast.walk(tree) if isinstance(call, ast.Call) and _places(call) for each in call.args]
    writers = {each.id for each in handed if isinstance(each, ast.Name)}

    def walk(node: ast.AST, held: bool) -> Iterator[int]:
        held = held or node in handed or (isinstance(node, ast.FunctionDef) and node.name in writers)
        if isinstance(node, ast.With):
            calls = [item.context_expr for item in node.items if isinstance(item.context_expr, ast.Call)]
            names = {call.func.id for call in calls if isinstance(call.func, ast.Name)}
            held = held or bool(names & {"atomic_write", "output_file"})
        if isinstance(node, ast.Call) and not held and _writes(node):
            yield node.lineno
        for child in ast.iter_child_nodes(node):
            yield from walk(child, held)

    return walk(tree, False)


def _places(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in ("place_run", "place_file")


def _writes(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name == "open":
        modes = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        return any(set(mode) & set("wax") and set(mode) <= set("wabxt+") for mode in modes)
    owner = getattr(call.func, "value", None)
    saves = isinstance(owner, ast.Name) and owner.id in ("np", "torch") and name in ("save", "savez")
    return saves or name in ("write_text", "write_bytes", "write_table", "save_pretrained", "copyfile", "copytree")


def test_the_search_sees_what_it_looks_for() -> None:
    lines = (
        "os.replace(a, b)",
        "a.replace(b)",
        "text.replace(a, b)",
        "os.fsync(3)",
        "a.rename(b)",
        "shutil.move(a, b)",
    )
    assert list(renames(ast.parse("\n".join(lines)))) == [1, 2, 4, 5, 6]
    lines = ("a.write_text(b)", "with atomic_write(a) as b:", "  b.write_text(c)", "a.open('w')", "a.open('rb')")
    assert list(plain_writes(ast.parse("\n".join((*lines, "np.save(a, b)"))))) == [1, 4, 6]


@pytest.mark.parametrize("search", [renames, plain_writes])
def test_nothing_else_in_the_package_renames_synchronises_or_writes_in_place(
    search: Callable[[ast.AST], Iterator[int]], writing_modules: dict[str, ast.Module]
) -> None:
    places = [f"{name}:{line}" for name, tree in writing_modules.items() if name not in COPIES for line in search(tree)]
    assert places == []
