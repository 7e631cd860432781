"""What `make mutate` draws, and where it notes which tests come by a mistake."""

import ast
from pathlib import Path

import pytest

from tests.support.mistakes import marked, sampled

LAW = '''
LEAST = 3

def enough(n):
    """Whether these are enough."""
    return n >= LEAST

def told(n):
    if enough(n) and n < 9:
        raise ValueError(n)
    return n
'''
OTHER = """
from rbpx.laws.law import LEAST

def missing(n):
    return max(LEAST, n)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, source in {"laws/law": LAW, "questions/other": OTHER}.items():
        path = tmp_path / "rbpx" / f"{name}.py"
        path.parent.mkdir(parents=True)
        path.write_text(source, encoding="utf-8")
    return tmp_path


def test_each_mistake_changes_one_line(project: Path) -> None:
    made = {(one.line, one.after) for one in sampled(project, ["laws"], 99, 0)}
    assert made == {
        (2, "LEAST = 4"),
        (6, "return n > LEAST"),
        (9, "if enough(n) or n < 9:"),
        (9, "if enough(n) and n <= 9:"),
        (9, "if enough(n) and n < 10:"),
        (10, "pass"),
    }


def noted(project: Path, line: int) -> dict[str, list[str]]:
    """Module -> the functions that note who comes by a mistake in this line of the law."""
    mutants = [one for one in sampled(project, ["laws"], 99, 0) if one.line == line][:1]
    return {
        path.stem: [part.name for part in ast.parse(source).body if "note(0)" in ast.unparse(part)]
        for path, source in marked(project, mutants).items()
    }


def test_a_mistake_in_a_function_is_noted_in_its_place(project: Path) -> None:
    assert noted(project, 10) == {"law": ["told"]}
    (source,) = marked(project, [one for one in sampled(project, ["laws"], 99, 0) if one.line == 10]).values()
    assert source.index("if enough(n)") < source.index("note(0)") < source.index("raise ValueError")


def test_a_mistake_at_import_is_noted_by_the_functions_that_use_it(project: Path) -> None:
    assert noted(project, 2) == {"law": ["enough"], "other": ["missing"]}


def test_what_a_compiler_reads_is_noted_by_its_users(project: Path) -> None:
    path = project / "rbpx" / "laws" / "law.py"
    path.write_text(f"from numba import njit\n{LAW.replace('def enough', '@njit' + chr(10) + 'def enough')}")
    assert noted(project, 8) == {"law": ["told"]}
