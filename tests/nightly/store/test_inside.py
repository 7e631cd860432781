"""A store with links in it, and with files of somebody else: nothing outside changes, nothing strange is removed."""

import ast
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from rbpx.store.files.inside import FOLDERS, KINDS, RUNNING, TABLES, UNSENT, WRITTEN, inside
from rbpx.store.merge import merge
from rbpx.store.store import Store
from tests.support import fuzz_store
from tests.support.composed import here
from tests.support.places import PACKAGE
from tests.support.stores import Family, Measured

PLACES = [*FOLDERS, RUNNING, WRITTEN, f"{WRITTEN}/cells", UNSENT, f"{UNSENT}/runs"]
KEY = "0123456789abcdef"


@pytest.fixture(scope="module")
def everything(measured: Measured) -> Path:
    """A measured store with something of each kind in it; only for copies."""
    merge(Store(measured.store), fuzz_store.sound()[0])
    shutil.copytree(fuzz_store.sound()[0].root / RUNNING, measured.store / RUNNING, dirs_exist_ok=True)
    return measured.store


@pytest.fixture
def store(everything: Path, tmp_path: Path) -> Path:
    """A copy for one test."""
    return Path(shutil.copytree(everything, tmp_path / "data" / "store"))


def seen(folder: Path) -> dict[str, tuple[float, bytes]]:
    """All that lies in a folder: when it was written, and what it holds."""
    paths = [path for path in folder.rglob("*") if path.is_file() or path.is_symlink()]
    return {str(path.relative_to(folder)): (path.lstat().st_mtime, path.read_bytes()[:1000]) for path in paths}


def commands(store: Path, family: Family, tmp_path: Path) -> list[list[object]]:
    """A line for each way in which a store is read, written, added to or cleared."""
    rows = tmp_path / "more.csv"
    rows.write_text("family,size,S,dataset,k,rbp\nother,2b,2000000000,wiki,1,0.41\n")
    fresh = tmp_path / "fresh"
    lines: list[list[object]] = [
        ["status"],
        ["sql", "SELECT count(*) FROM tokens"],
        ["fit", "resamples=20"],
        ["units", "resamples=20"],
        ["measure", *family.words("xs"), "best=5"],
        ["import", rows, "source=others", "ties=mid"],
        ["store", "gc"],
        ["store", "rm", "them"],
        ["store", "rebuild"],
        ["store", "verify"],
        ["store", "merge", fuzz_store.sound()[0].root],
        ["store", "push", fresh],
    ]
    return [[*line, "--store", store] for line in lines] + [["store", "pull", store, "--store", fresh]]


@pytest.mark.parametrize("place", PLACES)
def test_a_link_in_the_place_of_a_folder_is_left_alone_with_what_it_leads_to(
    place: str, store: Path, family: Family, cwd: Path, tmp_path: Path
) -> None:
    theirs = tmp_path / "theirs"
    folder = store / place
    if folder.is_dir():
        folder.rename(theirs)  # so that every file in it has a name of ours
    else:
        theirs.mkdir(parents=True)
        folder.parent.mkdir(exist_ok=True)
    for name in ("diary.txt", f"{KEY}.json", f"{KEY}.parquet", f".{KEY}.json.{KEY[:8]}.tmp"):
        (theirs / name).write_text("dear diary")
        os.utime(theirs / name, (0, 0))
    folder.symlink_to(theirs)
    before = seen(theirs)
    for words in commands(store, family, tmp_path):
        answer = here(*words, cwd=cwd, check=2)
        (line,) = answer.stderr.splitlines()
        told = f"{folder} is a link to {theirs}, which is left alone"
        assert line == f"rbpx: {told}; put the folder in its place, or delete the link"
    assert seen(theirs) == before


def files_of_each_kind(store: Path) -> list[Path]:
    """One file of each kind in each folder of a store, locks among them."""
    places = ["*", ".*", "runs/*/*", *(f"{kind}/*" for kind in (*KINDS, *TABLES, RUNNING)), "written/*/*"]
    found = {place: [path for path in sorted(store.glob(place)) if path.is_file()] for place in places}
    own = [path for place in ("*", ".*", "runs/*/*") for path in found.pop(place)][:-4]
    return own + [paths[0] for paths in found.values()]


def test_a_link_in_the_place_of_any_file_changes_nothing_where_it_leads(
    store: Path, family: Family, cwd: Path, tmp_path: Path
) -> None:
    for words in commands(store, family, tmp_path):
        here(*words, cwd=cwd)
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    links = files_of_each_kind(store)
    assert {path.relative_to(store).parts[0] for path in links} >= {*FOLDERS, WRITTEN, "rbpx.duckdb"}
    for n, path in enumerate(links):
        path.rename(theirs / str(n))
        path.symlink_to(theirs / str(n))
    before = seen(theirs)
    said = ""
    for words in commands(store, family, tmp_path):
        answer = here(*words, cwd=cwd)
        assert "Traceback" not in answer.stderr
        said += answer.stderr
    assert seen(theirs) == before
    assert all(path.is_symlink() for path in links)
    assert f"{store / '.rbpx.duckdb.lock'} is a link to " in said


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (".rbpx.duckdb.lock", ["status"]),
        (".imports.lock", ["store", "rm", "them"]),
        ("hashes.json", ["measure"]),
        ("rbpx.duckdb", ["store", "rebuild"]),
    ],
)
def test_a_link_at_the_top_of_a_store_is_one_line(
    name: str, words: list[str], store: Path, family: Family, cwd: Path, tmp_path: Path
) -> None:
    thesis = tmp_path / "thesis.tex"
    thesis.write_text("years of work")
    (store / name).unlink(missing_ok=True)
    (store / name).symlink_to(thesis)
    if words == ["measure"]:
        words = [*words, *family.words("xs"), "dtype=bfloat16"]
    answer = here(*words, "--store", store, cwd=cwd, check=2)
    (line,) = answer.stderr.splitlines()
    assert line.endswith(f"{store / name} is a link to {thesis}, which is left alone; delete the link itself")
    assert thesis.read_text() == "years of work"


def test_a_store_that_a_link_leads_to_is_one_as_any_other(
    store: Path, family: Family, cwd: Path, tmp_path: Path
) -> None:
    link = tmp_path / "link"
    link.symlink_to(store)
    here("store", "push", tmp_path / "fresh", "--store", store, cwd=cwd, check=0)
    for words in commands(link, family, tmp_path):
        here(*words, cwd=cwd, check=0)
    assert link.is_symlink()


# ------------------------------------------------------------------------------------------- somebody else's own files


REMOVES = {"unlink", "rmtree", "atomic_remove", "atomic_write", "atomic_write_text", "write_sealed", "write_cache"}
REMOVES |= {"FileLock", "touch", "utime"}
NOT_IN_A_STORE = {"inside.py", "bounded.py", "publish.py"}  # the rule itself; temporary files of SQL and of a hub


def unchecked(tree: ast.AST) -> Iterator[int]:
    """Lines that write or remove at a path that does not come from `inside` or what calls it."""
    checked = {"inside", "whole_run", "_own_entry"}
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        names = {
            target.id
            for node in ast.walk(function)
            if isinstance(node, ast.Assign) and _calls(node.value) & checked
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and _calls(node, deep=False) & REMOVES:
                of = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
                if not (of & checked or of & names):
                    yield node.lineno


def _calls(node: ast.AST, deep: bool = True) -> set[str]:
    calls = [each for each in ast.walk(node) if isinstance(each, ast.Call)] if deep else [node]
    functions = [each.func for each in calls if isinstance(each, ast.Call)]
    return {f.id if isinstance(f, ast.Name) else getattr(f, "attr", "") for f in functions}


def test_the_search_sees_what_it_looks_for() -> None:
    lines = ("def f(a):", "  a.unlink()", "  inside(r, a).unlink()", "  b = inside(r, a)", "  atomic_remove(b)",
             "  with atomic_write(a) as c:", "    pass")  # fmt: skip
    assert list(unchecked(ast.parse("\n".join(lines)))) == [2, 6]


def test_nothing_in_a_store_is_written_or_removed_without_that_check() -> None:
    modules = [path for path in (PACKAGE / "store").rglob("*.py") if path.name not in NOT_IN_A_STORE]
    modules.append(PACKAGE / "data" / "samples.py")
    found = {path: path.read_text("utf-8") for path in modules}
    lines = [text.splitlines()[n - 1].strip() for text in found.values() for n in unchecked(ast.parse(text))]
    of_a_run = 'write_sealed(folder / MANIFEST, facts | {"format": FORMAT, "files": files}, in_lines=True)'
    assert set(lines) <= {of_a_run}, "in the temporary folder that `place_run` gives"


def test_a_store_as_it_is_measured_has_only_names_of_ours(store: Path, family: Family, cwd: Path) -> None:
    here("measure", *family.words("xs"), "best=5", "--store", store, cwd=cwd, check=0)
    here("fit", "resamples=20", "--store", store, cwd=cwd, check=0)
    for path in store.rglob("*"):
        if path.is_file():
            assert inside(Store(store).root, path) == path
