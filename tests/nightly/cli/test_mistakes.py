"""More mistakes of newcomers, in whole commands: each gets one line, with what was probably meant."""

import re
from pathlib import Path

import pytest

from tests.support.commands import here
from tests.support.synthetic import Truth, write_store

MISTAKES = {
    "Model=gpt2": "did you mean model",
    "dataset=wikitxt": "did you mean wikitext",
    "limit=1.5": "limit=1.5.*Integer",
    "dtype=bf16": "expected one of .*bfloat16",
    "fit ~nosuch": "'nosuch' does not exist",
    "fit -m laws=[]": r"laws=\[\] is empty",
}  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("mistakes") / "store"
    write_store(root, Truth(), seed=1, n_documents=4, n_tokens=8)
    return root


@pytest.mark.parametrize(("line", "says"), MISTAKES.items(), ids=MISTAKES)
def test_a_mistake_is_one_line_that_says_what_was_meant(line: str, says: str, store: Path, cwd: Path) -> None:
    words = [word for word in line.split() if word != "@store"]
    words = [re.sub(r"^size=(\d+)$", r"size='\1'", word) for word in words]
    env = {"RBPX_STORE": str(store if "@store" in line else cwd / "none")}
    answer = here(*words, cwd=cwd, env=env, check=2)
    assert answer.stdout == ""
    assert answer.stderr.startswith("rbpx: ")
    assert answer.stderr.count("\n") == 1
    assert re.search(says, answer.stderr), answer.stderr
