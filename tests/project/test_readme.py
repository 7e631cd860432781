"""What README and documentation promise: every command in them runs."""

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from rbpx.analyses.registry import names as questions
from rbpx.cli.registry import names
from tests.support.checkpoints import build_checkpoint
from tests.support.demo import in_python, run, run_demo
from tests.support.places import DOCS, PROJECT

README = (PROJECT / "README.md").read_text(encoding="utf-8")
PAGES = {path.relative_to(PROJECT): path.read_text(encoding="utf-8") for path in DOCS.rglob("*.md")}


def commands_of(page: str) -> list[str]:
    return [line for block in re.findall(r"```bash\n(.*?)```", page, re.S) for line in block.strip().split("\n")]


# Those of the tutorial are run in their order, by a test of the demo.
TOLD = [page for path, page in sorted(PAGES.items()) if path.name != "tutorial.md" and "_build" not in path.parts]
COMMANDS = list(dict.fromkeys(command for page in (README, *TOLD) for command in commands_of(page)))
FEW = {"pydoc": 24, "stdlib": 6}


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo on a few documents; only for copies."""
    return run_demo(tmp_path_factory.mktemp("sample"), FEW)[0]


@pytest.fixture(scope="module")
def scratch(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of that store for the commands that are shown, which add runs and fits of their own."""
    return Path(shutil.copytree(sample, tmp_path_factory.mktemp("scratch") / "store"))


@pytest.fixture(scope="module")
def of_pages(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy for reports, whose pages would be long with all that the other commands add."""
    return Path(shutil.copytree(sample, tmp_path_factory.mktemp("pages") / "store"))


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the README's commands name: three models A, B, C, one FOLDER, a text, a table."""
    folder = tmp_path_factory.mktemp("readme")
    for seed, name in enumerate(("FOLDER", "A", "B", "C")):
        build_checkpoint("gpt_neox", folder / name, seed=seed, hidden_size=16 + 8 * seed)
    rows = ({"text": f"Letter {i} left the harbour at dawn; the sea reads nothing."} for i in range(9))
    (folder / "notes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    rows_of_them = (f"{size},{size}000000,{k},{1 - 0.5 / k / size**0.1}\n" for size in (1, 10, 100) for k in (1, 10))
    (folder / "theirs.csv").write_text("size,S,k,rbp\n" + "".join(rows_of_them))
    return folder


def test_the_readme_has_commands_and_the_documentation_more() -> None:
    assert 10 < len(commands_of(README)) < len(COMMANDS) - 10


@pytest.mark.parametrize("verb", names())
def test_a_verb_is_told_in_the_readme(verb: str) -> None:
    assert f"`{verb}`" in README


def with_few_resamples(words: list[str]) -> list[str]:
    """The words of a command, with few resamples where it fits: its rows do not depend on how many, its time does."""
    fits = bool({"report", *questions()} & set(words)) or not set(names()) & set(words)
    settled = {"--cfg", "--help"} & set(words) or any(word.startswith("resamples=") for word in words)
    return [*words, "resamples=25"] if fits and not settled else words


SILENT = {"measure", "import", "report", "audit"}  # what they do is told beside the results
SHOWN = [command for command in COMMANDS if command.startswith("python")]


@pytest.mark.parametrize("command", SHOWN)
def test_a_command_that_is_shown_runs(command: str, scratch: Path, of_pages: Path, workplace: Path) -> None:
    before = sorted(workplace.iterdir())
    store = of_pages if "report" in command.split() else scratch
    done = run(with_few_resamples(in_python(command)), workplace, store, FEW)
    assert done.returncode == 0, done.stderr
    writes = "report" in command.split() or "--output" in command
    assert bool(done.stdout.strip()) != bool(SILENT & set(command.split()) or writes)
    made = sorted(set(workplace.iterdir()) - set(before))
    assert len(made) == writes
    for path in made:
        shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.mark.parametrize("command", [c for c in COMMANDS if c.startswith("make")])
def test_a_make_target_that_is_shown_exists(command: str) -> None:
    subprocess.run([*shlex.split(command), "-n"], cwd=PROJECT, check=True, capture_output=True)


def test_no_command_that_is_shown_is_left_untried() -> None:
    assert {c.split()[0] for c in COMMANDS} == {"make", "python", "source"}
