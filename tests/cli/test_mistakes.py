"""Mistakes that newcomers make: each gets one line, with what was probably meant."""

import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import rbpx
from rbpx.cli.argv import parse
from rbpx.cli.registry import asking
from rbpx.config.compose import compose
from rbpx.errors import RbpxError
from rbpx.spelling import speaking_shell
from tests.support.commands import rbpx as alone
from tests.support.composed import here
from tests.support.synthetic import Truth, write_store

_, *PARTS = Path(__file__).with_name("mistakes.txt").read_text(encoding="utf-8").rstrip("\n").split("\n\n## ")
MISTAKES = {title: dict(line.split(" => ") for line in lines) for title, *lines in (part.split("\n") for part in PARTS)}


def composed(line: str) -> None:
    """All that happens to a line before its verb begins."""
    typed = parse(shlex.split(line))
    with speaking_shell():
        compose(asking(typed.verb), typed.overrides, typed.own, typed.sweeps)


def wrong(cases: Mapping[str, Any], do: Callable[[Any], object]) -> dict[str, str]:
    """The cases that are not refused in one line with the words that are wanted, and what is said of them."""
    found = {}
    for name, case in cases.items():
        asked, says = (name, case) if isinstance(case, str) else case
        try:
            do(asked)
            said = "nothing"
        except RbpxError as problem:
            said = str(problem)
        if "\n" in said or not re.search(says, said):
            found[name] = said
    return found


def test_a_mistaken_word_or_flag_is_said_with_what_was_meant() -> None:
    assert wrong(MISTAKES["words"], lambda line: parse(line.split())) == {}


def test_an_error_of_hydra_or_omegaconf_is_one_line_with_what_was_meant() -> None:
    assert wrong(MISTAKES["composed"] | {"fit dataset=a\udcedb": "dataset=a.udcedb is not UTF-8 text"}, composed) == {}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("mistakes") / "store"
    write_store(root, Truth(), seed=1, n_documents=4, n_tokens=8)
    return root


def test_a_name_that_the_store_does_not_hold_is_said_with_those_that_it_holds(store: Path) -> None:
    cases: dict[str, tuple[dict[str, Any], str]] = {
        "size": ({"size": "100"}, "did you mean 1000.*it holds 1000"),
        "family": ({"family": "drwan"}, "did you mean drawn"),
        "source": ({"source": "paper"}, "source=paper is not in the store; it holds measured"),
        "dataset": ({"dataset": "synthetc"}, "did you mean synthetic"),
        "k": ({"k": [200_000]}, "200.?000.*smaller"),
    }
    opened = rbpx.open(store)
    assert wrong(cases, lambda keys: opened.fit(**keys)) == {}


def test_a_wrong_query_is_one_line_that_says_what_to_do(store: Path) -> None:
    assert wrong(MISTAKES["queries"], rbpx.open(store).sql) == {}


def told(*words: object, store: Path, cwd: Path) -> str:
    """The one line that a whole command says of a mistake, and nothing else anywhere."""
    answer = here(*words, cwd=cwd, env={"RBPX_STORE": str(store)}, check=2)
    assert answer.stdout == ""
    assert answer.stderr.startswith("rbpx: ")
    assert answer.stderr.count("\n") == 1, answer.stderr
    return answer.stderr


def test_a_mistake_of_each_stage_ends_a_command_with_that_line(store: Path, cwd: Path, tmp_path: Path) -> None:
    """Words, Hydra, values, the shape of the answer, the store, its index, the model, its text."""
    (empty := tmp_path / "empty.jsonl").touch()
    (tmp_path / "empty.jsonl.txt").touch()
    for line, says in MISTAKES["commands"].items():
        assert re.search(says, told(*line.replace("EMPTY", str(empty)).split(), store=store, cwd=cwd)), line
    assert "no runs" in told("fit", store=cwd, cwd=cwd)
    assert f"name another (store={store})" in told("fit", "--store", store.parent, store=store, cwd=cwd)
    assert "import first: python -m rbpx import FILE source=x" in told("decide", "source=x", store=cwd, cwd=cwd)
    assert "no runs" in told("show", "x", store=cwd, cwd=cwd)
    answer = alone("model=nosuch", cwd=cwd, env={"RBPX_STORE": str(store)}, check=2)
    assert (answer.stdout, answer.stderr.count("\n")) == ("", 1), "in a process of its own"


def test_a_question_that_memory_does_not_hold_is_one_line(
    store: Path, cwd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_large(*args: object, **keys: object) -> None:
        raise MemoryError

    monkeypatch.setattr("rbpx.questions.ask.answer_all", too_large)
    answer = here("fit", cwd=cwd, env={"RBPX_STORE": str(store)}, check=1)
    assert answer.stderr.startswith("rbpx: MemoryError: Out of memory; ask for less at once")
    assert answer.stderr.count("\n") == 1
