"""Completion of `rbpx`, in a real bash: words typed so far in, what Tab offers out."""

import os
import pty
import re
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from rbpx.cli.registry import names
from rbpx.config.request import KEYS
from tests.support.clone import Clone
from tests.support.commands import here
from tests.support.places import CONF

BASH = shutil.which("bash")
pytestmark = pytest.mark.skipif(BASH is None, reason="no bash here")


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cwd = tmp_path_factory.mktemp("cwd")
    place = tmp_path_factory.mktemp("completion") / "rbpx.bash"
    place.write_text(here("completion", "bash", cwd=cwd, check=0).stdout)
    return place


def offered(script: Path, *words: str, cwd: Path | None = None) -> list[str]:
    """What Tab offers at the end of these words, as bash makes words of a line: `=` is one of its own."""
    typed = " ".join(f"'{word}'" for word in ("rbpx", *words))
    asked = (
        f"source {script}; COMP_WORDS=({typed}); COMP_CWORD={len(words)}; _rbpx; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    )
    assert BASH is not None
    done = subprocess.run([BASH, "--norc", "-c", asked], capture_output=True, text=True, check=True, cwd=cwd)
    assert done.stderr == ""
    return [line for line in done.stdout.splitlines() if line]


def test_bash_knows_the_function_for_rbpx(script: Path) -> None:
    assert BASH is not None
    told = subprocess.run([BASH, "--norc", "-c", f"source {script}; complete -p rbpx"], capture_output=True, text=True)
    assert told.stdout == "complete -F _rbpx rbpx\n"


def test_verbs_keys_and_flags_are_offered(script: Path) -> None:
    found = offered(script, "")
    assert set(names()) <= set(found)
    keys = set(KEYS) - {"study", "imports"}
    assert {f"{key}=" for key in keys} <= set(found)
    assert offered(script, "me") == ["measure", "memory=", "method="]
    assert offered(script, "fit", "--fo") == ["--format"]
    assert offered(script, "fit", "--pl") == ["--plot"]


def test_names_are_offered_after_their_key(script: Path) -> None:
    models = sorted(path.stem for path in (CONF / "model").glob("*.yaml"))
    assert offered(script, "model", "=") == models
    assert offered(script, "fit", "model", "=", "pyt") == ["pythia", "pythia-deduped"]
    assert offered(script, "fit", "ties", "=", "o") == ["optimistic"]
    assert offered(script, "--format", "") == ["table", "csv", "json", "jobs", "html", "md", "tex", "svg", "pdf"]
    assert offered(script, "model=pyt") == ["model=pythia", "model=pythia-deduped"]  # a shell that does not split at =


def test_files_are_offered_where_a_path_belongs(script: Path, tmp_path: Path) -> None:
    (tmp_path / "notes one.jsonl").touch()
    (tmp_path / "notes-two.jsonl").touch()
    assert offered(script, "dataset.path", "=", "notes-", cwd=tmp_path) == ["notes-two.jsonl"]
    assert sorted(offered(script, "fit", "--store", "notes", cwd=tmp_path)) == ["notes one.jsonl", "notes-two.jsonl"]


# ------------------------------------------------------------------------------------------------------ names of others

RUNS = (
    "$(touch RUN)",
    "`touch RUN`",
    '"; touch RUN; "',
    "'; touch RUN; '",
    "x\\$(touch RUN)",
    "$(touch${IFS}RUN)",
    ");touch RUN;(",
)
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


@contextmanager
def terminal(script: Path, cwd: Path, first: str) -> Iterator[int]:
    """The keyboard of an interactive bash that writes the words given to `rbpx` into the file `words`."""
    assert BASH is not None
    keyboard, end = pty.openpty()
    environment = {**os.environ, "HOME": str(cwd), "TERM": "dumb", "PS1": "READY"}
    process = subprocess.Popen(
        [BASH, "--norc", "--noprofile", "-i"],
        stdin=end,
        stdout=end,
        stderr=end,
        cwd=cwd,
        env=environment,
        start_new_session=True,
    )
    try:
        said = ""
        os.write(keyboard, f"{first}; . {script}; rbpx() {{ printf '%s\\0' \"$@\" > words; }}; PS1=GO\n".encode())
        deadline = time.monotonic() + 30
        while not said.endswith("GO"):
            assert time.monotonic() < deadline, said
            if select.select([keyboard], [], [], 1)[0]:
                said += os.read(keyboard, 4096).decode(errors="replace")
        yield keyboard
    finally:
        process.kill()
        process.wait()
        os.close(keyboard)
        os.close(end)


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
            deadline = time.monotonic() + 30
            while not (cwd / "words").exists() or not (cwd / "words").read_bytes().endswith(b"\0"):
                assert time.monotonic() < deadline, name
                time.sleep(0.01)
            words = (cwd / "words").read_text().split("\0")[:-1]
            assert words == ["fit", *f"{before}ho{name}".split(" ", maxsplit=before.count(" "))]
            assert sorted(path.name for path in cwd.iterdir()) == sorted([f"ho{name}", "words"])


def test_a_shell_that_is_not_known_is_told_those_that_are(cwd: Path) -> None:
    for words, reason in ((["fish"], "fish"), ([], "one shell, got 0"), (["bash", "zsh"], "one shell, got 2")):
        answer = here("completion", *words, cwd=cwd, check=2)
        assert answer.stdout == ""
        assert reason in answer.stderr
        assert "rbpx completion bash" in answer.stderr
    assert here("completion", "zsh", cwd=cwd, check=0).stdout.startswith("autoload -U +X bashcompinit")
