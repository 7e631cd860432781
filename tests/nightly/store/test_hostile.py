"""Texts and names that mean harm: paths that lead out of the store, markup, escapes of terminals, NULs, very long."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

from rbpx.store.store import Store
from tests.support.composed import here
from tests.support.stores import Family, cell_records, run_folders, write_jsonl

NASTY = [
    "[bold red]x[/bold red]", "[/]", "[link=http://evil]x[/link]", "[[x]]", "\\[b]", "x\\", ":smile: :warning:",
    "\x1b[2J\x1b[31mred", "\x1b]8;;http://evil\x07x\x1b]8;;\x07", "\x9b31m", "a\rb", "a\nb\tc", "\x00", "\x07\x08\x7f",
    "\u202egnp.exe", "\u200bzero", "\ue000\ue001", "\ue000\uf8ff", "<script>alert(1)</script>", "&amp;",
    "'; DROP TABLE runs", '"', "=cmd()", "{x}", "%s%n", "東京", "x" * 5000, "",
]  # fmt: skip
OBEYED = [chr(n) for n in (*range(0x20), *range(0x7F, 0xA0), 0x202E, 0x200B)]


def harmless(text: str) -> bool:
    return not any(c in text for c in OBEYED if c not in "\n")


def test_nasty_names_and_texts_are_measured_and_shown(family: Family, cwd: Path, tmp_path: Path) -> None:
    names = ["[/x]\x1b[31m", "../../../up", "a/b\\c", ":smile:[bold]"]
    text = write_jsonl(tmp_path / "nasty.jsonl", *[f"{nasty[:200]} A ship that leaves the harbour" for nasty in NASTY])
    store = tmp_path / "store"
    around = sorted(tmp_path.iterdir())
    for name in names:
        words = ["model=hub", f"model.id={family.folders['xs']}", "dataset=file", f"dataset.path={text}"]
        quoted = f'"{name}"'
        here("measure", *words, f"model.family={quoted}", f"dataset.name={quoted}", "--store", store, cwd=cwd, check=0)
    assert sorted(tmp_path.iterdir()) == sorted([*around, store])
    assert sorted({record["family"] for record in cell_records(store)}) == sorted(names)
    for words in (
        ["status"],
        ["sql", "SELECT family, dataset FROM runs"],
        ["units", "resamples=50"],
        ["store", "verify"],
    ):
        answer = here(*words, "--store", store, cwd=cwd, check=0)
        assert harmless(answer.stdout + answer.stderr)
        assert "Traceback" not in answer.stderr
    rows = json.loads(here("sql", "SELECT family FROM runs", "--format", "json", "--store", store, cwd=cwd).stdout)
    assert sorted(row["family"] for row in rows) == sorted(names)


# ------------------------------------------------------------------------------------------------------------- no room


def limited(words: list[object], n_bytes: int, cwd: Path) -> subprocess.CompletedProcess[str]:
    """A command whose files may be no longer: the system refuses as it does on a full disk, with another number."""
    return subprocess.run(
        [sys.executable, "-m", "rbpx", *map(str, words)],
        cwd=cwd,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, resource.RLIM_INFINITY)),
    )


def test_a_run_for_which_there_is_no_room_fails_in_one_line_and_goes_on_when_there_is(
    family: Family, cwd: Path, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    words = ["measure", *family.words("xs", "s"), "device=cpu", "--store", store]
    answer = limited(words, 3000, cwd)
    assert answer.returncode == 1, answer.stderr
    assert "Traceback" not in answer.stderr
    said = [line for line in answer.stderr.splitlines() if " failed: " in line]
    assert len(said) == 2
    assert all("cannot be written" in line and "File too large" in line for line in said)
    assert not run_folders(store)
    assert not Store(store).leftovers()
    here("store", "verify", "--store", store, cwd=cwd, check=0)
    here(*words, cwd=cwd, check=0)
    assert len(run_folders(store)) == 2
    here("store", "verify", "--store", store, cwd=cwd, check=0)


def test_views_that_cannot_be_written_keep_nobody_from_an_answer(own_store: Path, cwd: Path) -> None:
    """A store that was moved has views of another place, and the file of new ones is longer than a file may be."""
    answer = limited(["sql", "SELECT count(*) AS n FROM runs", "--format", "csv", "--store", own_store], 20_000, cwd)
    assert answer.stdout == "n\n4\n", answer.stderr
    assert "Traceback" not in answer.stderr
    assert not Store(own_store).leftovers()
