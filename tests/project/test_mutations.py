"""What `make mutate` draws, and how it finds out which tests come by a mistake."""

import ast
from pathlib import Path

import pytest

from tests.support.mistakes import Mutant, marked, sampled
from tests.support.mutate import difference, order

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


MISTAKE = Mutant("laws", "laws/law", 0, 2, "LEAST = 3", "LEAST = 4", "")
TESTS = {
    "tests/a.py::dear": {"cpu_s": 5.0, "fixtures": []},
    "tests/a.py::other": {"cpu_s": 0.1, "fixtures": []},
    "tests/b.py::cheap": {"cpu_s": 0.2, "fixtures": []},
    "tests/c.py::by_its_store": {"cpu_s": 1.0, "fixtures": ["store"]},
    "tests/d.py::elsewhere": {"cpu_s": 0.1, "fixtures": []},
}


@pytest.mark.parametrize(
    ("limit_s", "expected"),
    [
        (9.0, ["b.py::cheap", "c.py::by_its_store", "a.py::dear", "a.py::other"]),
        (2.0, ["b.py::cheap", "c.py::by_its_store"]),
    ],
)
def test_tests_that_come_by_run_first_the_cheapest_before_others(limit_s: float, expected: list[str]) -> None:
    by = {str(MISTAKE): ["tests/a.py::dear", "session:store", "tests/b.py::cheap"]}
    assert order(MISTAKE, {"tests": TESTS, "by": by}, limit_s) == [f"tests/{name}" for name in expected]


def test_only_what_two_suites_say_differently_is_told() -> None:
    before = [{"mistake": "one", "verdict": "noticed"}, {"mistake": "other", "verdict": "survived"}]
    after = [{**one, "verdict": "survived"} for one in before]
    assert list(difference(before, after)) == ["noticed -> survived: one"]
