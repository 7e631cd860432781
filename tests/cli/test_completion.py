"""Completion of `rbpx`, in a real bash: words typed so far in, what Tab offers out."""

import os
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from rbpx.cli.registry import names
from rbpx.config.request import KEYS
from tests.support.commands import here
from tests.support.completion import BASH, RUNS, offered, terminal, typed_words
from tests.support.places import CONF

pytestmark = pytest.mark.skipif(BASH is None, reason="no bash here")


def drawn(n_names: int) -> set[str]:
    """Names of files made of what means something to a shell."""
    parts = [*RUNS, *"$`'\"\\;&|*?[]{}~!#<>()=%^@:,+ \t\n", "a", "B7", "-", "_", ".", "ü"]
    rng = np.random.default_rng(42)
    return {"".join(rng.choice(parts, rng.integers(1, 6))) + "x" for _ in range(n_names)}


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of configuration with names that run something where a shell expands them."""
    folder = tmp_path_factory.mktemp("own")
    for group in ("model", "dataset", "protocol", "parallel", "experiment"):
        (folder / group).mkdir()
        for name in ("kept-1.2_x", *RUNS, *drawn(60)):
            (folder / group / f"{name}.yaml").write_text("{}\n")
    (folder / "experiment" / "\x1b]2;title\x07.yaml").write_text("{}\n")
    return folder


@pytest.fixture(scope="module")
def script(own: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    cwd = tmp_path_factory.mktemp("cwd")
    place = tmp_path_factory.mktemp("completion") / "rbpx.bash"
    place.write_text(here("completion", "bash", "--config-dir", own, cwd=cwd, check=0).stdout)
    assert "\x1b" not in here("--help", "--config-dir", own, cwd=cwd, check=0).stdout
    return place


def test_bash_knows_the_function_for_rbpx(script: Path) -> None:
    told = subprocess.run([BASH, "--norc", "-c", f"source {script}; complete -p rbpx"], capture_output=True, text=True)
    assert told.stdout == "complete -F _rbpx rbpx\n"


def test_verbs_keys_and_flags_are_offered(script: Path) -> None:
    found = offered(script, "")
    assert set(names()) <= set(found)
    keys = set(KEYS) - {"study", "imports"}
    assert {f"{key}=" for key in keys} <= set(found)
    assert offered(script, "me") == ["measure", "memory=", "method="]
    assert offered(script, "fit", "--fo") == ["--format"]
    assert offered(script, "fit", "--de") == ["--details"]


def test_names_are_offered_after_their_key(script: Path) -> None:
    models = sorted([*(path.stem for path in (CONF / "model").glob("*.yaml")), "kept-1.2_x"])
    assert offered(script, "model", "=") == models
    assert offered(script, "fit", "model", "=", "pyt") == ["pythia", "pythia-deduped"]
    assert offered(script, "fit", "ties", "=", "o") == ["optimistic"]
    assert offered(script, "--format", "") == ["table", "csv", "json", "jobs", "html", "md", "tex", "svg", "pdf", "png"]
    assert offered(script, "model=pyt") == ["model=pythia", "model=pythia-deduped"]  # a shell that does not split at =


def test_files_are_offered_where_a_path_belongs(script: Path, tmp_path: Path) -> None:
    (tmp_path / "notes one.jsonl").touch()
    (tmp_path / "notes-two.jsonl").touch()
    assert offered(script, "dataset.path", "=", "notes-", cwd=tmp_path) == ["notes-two.jsonl"]
    assert sorted(offered(script, "fit", "--store", "notes", cwd=tmp_path)) == ["notes one.jsonl", "notes-two.jsonl"]


def test_a_name_that_would_run_something_is_left_out(script: Path, tmp_path: Path) -> None:
    for key in ("model", "dataset", "protocol", "parallel", "experiment"):
        for begun in ("", "k", "$", "`"):
            found = offered(script, "fit", key, "=", begun, cwd=tmp_path)
            assert ("kept-1.2_x" in found) == ("kept-1.2_x".startswith(begun))
            assert [word for word in found if not re.fullmatch(r"[\w.-]+", word)] == []
    assert list(tmp_path.iterdir()) == []


def test_what_was_typed_is_not_expanded(script: Path, tmp_path: Path) -> None:
    for typed in RUNS:
        for words in ((typed,), ("fit", typed, "="), ("fit", "--store", typed), ("fit", f"model={typed}")):
            words = tuple(word.replace("'", "'\\''") for word in words)  # for the line that `offered` writes
            offered(script, *words, cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("first", "before"), [(":", "--store "), ("enable -n compopt", "dataset.path=")], ids=["bash", "bash 3"]
)
def test_a_path_of_any_name_is_one_word_and_runs_nothing(first: str, before: str, script: Path, tmp_path: Path) -> None:
    with terminal(script, tmp_path, first) as keyboard:
        for number, name in enumerate((RUNS[0], RUNS[2], "two words", "*", "!!", "a;touch RUN")):
            cwd = tmp_path / str(number)
            cwd.mkdir()
            (cwd / f"ho{name}").touch()
            os.write(keyboard, f"cd {cwd}\nrbpx fit {before}ho\t\n".encode())
            assert typed_words(cwd) == ["fit", *f"{before}ho{name}".split(" ", maxsplit=before.count(" "))]
            assert sorted(path.name for path in cwd.iterdir()) == sorted([f"ho{name}", "words"])


def test_a_shell_that_is_not_known_is_told_those_that_are(cwd: Path) -> None:
    for words, reason in ((["fish"], "fish"), (["bash", "zsh"], "one shell, got 2")):
        answer = here("completion", *words, cwd=cwd, check=2)
        assert answer.stdout == ""
        assert reason in answer.stderr
        assert "rbpx completion bash" in answer.stderr
    assert here("completion", "zsh", cwd=cwd, check=0).stdout.startswith("autoload -U +X bashcompinit")
