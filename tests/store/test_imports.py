"""Tables as files: what each brings into a store, all that is said of it, and what the store then holds.

A case of `imports/*.txt` begins with its sentence, behind `##`. Its steps are `file NAME` with what is in it, `import
WORDS` with what is said on standard error, and `holds COLUMNS` with the imported observations in the order of their
values, `holds only` where they say nothing else; lines behind `|` belong to the step before them. What is refused
begins with `rbpx: `, exits 2 and leaves the store as it was. FOLDER is where the files lie.
"""

import shlex
from ast import literal_eval
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.imports import bring_words, imported
from tests.support.stores import snapshot

Step = tuple[str, list[str]]


def cases() -> Iterator[tuple[str, list[Step]]]:
    for path in sorted(Path(__file__).with_name("imports").glob("*.txt")):
        _, *parts = f"\n{path.read_text(encoding='utf-8')}".split("\n## ")
        for part in parts:
            sentence, *lines = part.rstrip("\n").split("\n")
            steps: list[Step] = []
            for line in lines:
                if line.startswith("|"):
                    steps[-1][1].append(line[2:])
                else:
                    steps.append((line, []))
            yield f"{path.stem}: {sentence}", steps


CASES = dict(cases())


@pytest.mark.parametrize("steps", CASES.values(), ids=CASES)
def test_a_table_comes_in_as_its_case_says(steps: list[Step], cwd: Path, tmp_path: Path) -> None:
    for step, lines in steps:
        what, _, words = step.partition(" ")
        if what == "file":
            (tmp_path / words).parent.mkdir(exist_ok=True)
            (tmp_path / words).write_text("\n".join(lines) + "\n", encoding="utf-8")
        elif what == "import":
            is_refused = any(line.startswith("rbpx: ") for line in lines)
            assert said(words, tmp_path, cwd, check=2 if is_refused else 0).splitlines() == lines
        else:
            assert what == "holds"
            columns, _, store = words.removeprefix("only ").partition(" in ")
            held, names = tmp_path / (store or "store"), columns.split(", ")
            expected = [tuple(map(literal_eval, line.split(" | "))) for line in lines]
            assert [tuple(row.values()) for row in imported(held, *names)] == expected
            if words.startswith("only "):
                others = [name for row in imported(held) for name, value in row.items() if value is not None]
                assert set(others) - {"source", "n"} == set(names)


def said(line: str, folder: Path, cwd: Path, check: int) -> str:
    """What `rbpx import LINE` says, with paths as they are from the folder; a refused one changes nothing."""
    words = shlex.split(line.replace("FOLDER", str(folder)))
    store = folder / (words[words.index("--store") + 1] if "--store" in words else "store")
    words = [str(folder / word) if (folder / word).is_file() else word for word in words if word != "--store"]
    before = snapshot(store) if store.exists() else None
    answer = bring_words(*(word for word in words if word != store.name), "--store", store, cwd=cwd, check=check)
    assert answer.stdout == "" or "--dry-run" in words
    if check or "(nothing new)" in answer.stderr or "nothing was written" in answer.stderr:
        assert (snapshot(store) if store.exists() else None) == before
    return answer.stderr.replace(f"{folder}/", "")


def test_no_sentence_is_told_twice() -> None:
    assert len(CASES) == sum(1 for _ in cases())
