"""Completion of `rbpx`, in a real bash: words typed so far in, what Tab offers out."""

import shutil
import subprocess
from pathlib import Path

import pytest

from rbpx.cli.registry import names
from rbpx.config.request import Request
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
    keys = set(Request.__dataclass_fields__) - {"study", "imports"}
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


def test_a_shell_that_is_not_known_is_told_those_that_are(cwd: Path) -> None:
    for words, reason in ((["fish"], "fish"), ([], "one shell, got 0"), (["bash", "zsh"], "one shell, got 2")):
        answer = here("completion", *words, cwd=cwd, check=2)
        assert answer.stdout == ""
        assert reason in answer.stderr
        assert "rbpx completion bash" in answer.stderr
    assert here("completion", "zsh", cwd=cwd, check=0).stdout.startswith("autoload -U +X bashcompinit")
