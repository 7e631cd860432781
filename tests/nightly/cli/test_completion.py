"""Completion of `rbpx` where hundreds of names mean something to a shell, in our own folders too."""

import os
import re
from pathlib import Path

import numpy as np
import pytest

from tests.support.clone import Clone
from tests.support.commands import here
from tests.support.completion import BASH, RUNS, offered, terminal, typed_words

pytestmark = pytest.mark.skipif(BASH is None, reason="no bash here")


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cwd = tmp_path_factory.mktemp("cwd")
    place = tmp_path_factory.mktemp("completion") / "rbpx.bash"
    place.write_text(here("completion", "bash", cwd=cwd, check=0).stdout)
    return place


# ------------------------------------------------------------------------------------------------------ names of others

PLACES = ("conf/model", "conf/dataset", "conf/protocol", "conf/parallel", "experiments")


def drawn(n_names: int) -> set[str]:
    """Names of files made of what means something to a shell."""
    parts = [*RUNS, *"$`'\"\\;&|*?[]{}~!#<>()=%^@:,+ \t\n", "a", "B7", "-", "_", ".", "ü"]
    rng = np.random.default_rng(42)
    return {"".join(rng.choice(parts, rng.integers(1, 6))) + "x" for _ in range(n_names)}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The script of a clone whose folders hold names that run something where a shell expands them, and its folder."""
    clone = Clone(tmp_path_factory.mktemp("clone"))
    own = clone.root / "own"
    for place in (*PLACES, *(f"own/{Path(each).name}" for each in PLACES)):
        (clone.root / place).mkdir(parents=True, exist_ok=True)
        for name in ("kept-1.2_x", *RUNS, *drawn(300)):
            (clone.root / place / f"{name}.yaml").write_text("{}\n")
    (clone.root / "experiments" / "\x1b]2;title\x07.yaml").write_text("{}\n")
    cwd = clone.root / "cwd"
    cwd.mkdir()
    made = clone.rbpx(cwd, "completion", "bash", "--config-dir", own)
    assert "\x1b" not in clone.rbpx(cwd, "--help")
    clone.close()
    (clone.root / "rbpx.bash").write_text(made)
    return clone.root / "rbpx.bash", cwd


def test_a_name_that_would_run_something_is_left_out(hostile: tuple[Path, Path]) -> None:
    script, cwd = hostile
    for key in ("model", "dataset", "protocol", "parallel", "experiment"):
        for begun in ("", "k", "$", "`", '"', "x\\", "*"):
            found = offered(script, "fit", key, "=", begun, cwd=cwd)
            assert ("kept-1.2_x" in found) == ("kept-1.2_x".startswith(begun))
            assert [word for word in found if not re.fullmatch(r"[\w.-]+", word)] == []
    assert list(cwd.iterdir()) == []


@pytest.mark.parametrize("typed", RUNS)
def test_what_was_typed_is_not_expanded(typed: str, script: Path, tmp_path: Path) -> None:
    for words in (
        (typed,),
        ("fit", typed, "="),
        ("fit", "--store", typed),
        ("fit", f"{typed}=x"),
        ("fit", f"model={typed}"),
    ):
        words = tuple(word.replace("'", "'\\''") for word in words)  # for the line that `offered` writes
        offered(script, *words, cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("first", [":", "enable -n compopt"], ids=["bash", "bash 3"])
@pytest.mark.parametrize("before", ["--store ", "dataset.path="])
def test_a_path_of_any_name_is_one_word_and_runs_nothing(first: str, before: str, script: Path, tmp_path: Path) -> None:
    names = (*RUNS, "two words", "*", "~", "a&touch RUN&", "a;touch RUN", "#", "!!", "a|touch RUN")
    with terminal(script, tmp_path, first) as keyboard:
        for number, name in enumerate(names):
            cwd = tmp_path / str(number)
            cwd.mkdir()
            (cwd / f"ho{name}").touch()
            os.write(keyboard, f"cd {cwd}\nrbpx fit {before}ho\t\n".encode())
            assert typed_words(cwd) == ["fit", *f"{before}ho{name}".split(" ", maxsplit=before.count(" "))]
            assert sorted(path.name for path in cwd.iterdir()) == sorted([f"ho{name}", "words"])
