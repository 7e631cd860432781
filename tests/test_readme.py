"""The README's promises: every command in it runs, and what it shows is what the demo prints."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import build_checkpoint

PROJECT = Path(__file__).parents[1]
README = (PROJECT / "README.md").read_text(encoding="utf-8")
COMMANDS = [line for block in re.findall(r"```bash\n(.*?)```", README, re.S) for line in block.strip().split("\n")]
SHOWN = README.split("<!-- demo -->")[1].split("<!-- /demo -->")[0]


# The README's own commands add fits of three sizes and of other tie rules to the same store.
OF_THE_DEMO = "family = 'ladder' AND n_points = 7 AND ties = 'pessimistic'"
ON_STDLIB = f"dataset = 'stdlib' AND {OF_THE_DEMO}"


def in_python(command: str) -> list[str]:
    """The words of a command line, run by the interpreter of the tests."""
    words = shlex.split(command)
    return [sys.executable, *words[1:]] if Path(words[0]).name == "python" else words


def run(words: list[str], cwd: Path, store: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "RBPX_STORE": str(store), "COLUMNS": "80", "HF_HUB_OFFLINE": "1"}
    return subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True, timeout=900)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The store that `make demo` fills, and what it printed."""
    recipe = subprocess.run(["make", "-n", "demo"], cwd=PROJECT, capture_output=True, text=True, check=True).stdout
    folder = tmp_path_factory.mktemp("demo")
    done = run(in_python(recipe.strip().split("\n")[-1]), folder, folder / "store")
    assert done.returncode == 0, done.stderr
    return folder / "store", done.stdout


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the README's commands name: models A, B, C and one FOLDER, a text, two files of results."""
    folder = tmp_path_factory.mktemp("readme")
    for seed, name in enumerate(("FOLDER", "A", "B", "C")):
        build_checkpoint("gpt_neox", folder / name, seed=seed, hidden_size=16 + 8 * seed)
    rows = ({"text": f"Letter {i} left the harbour at dawn; the sea reads nothing."} for i in range(9))
    (folder / "notes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "results.csv").write_text(
        "model,S,k,rbp,ce\nORG/a-1b,1000000000,1,0.5,2.5\nORG/a-2b,2000000000,1,0.6,2.2\n"
    )
    (folder / "wide.csv").write_text("family,checkpoint,S,rbp_1,rbp_10\nb,b-1b,1000000000,0.5,0.7\n")
    return folder


def rows_of(demo_store: Path, query: str) -> list[dict[str, float]]:
    done = run([sys.executable, "-m", "rbpx", "sql", query, "--format", "json"], demo_store.parent, demo_store)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, float]] = json.loads(done.stdout)
    return found


def test_the_readme_has_commands() -> None:
    assert len(COMMANDS) > 10


@pytest.mark.parametrize("command", [c for c in COMMANDS if c.startswith("python")])
def test_a_command_of_the_readme_runs(command: str, demo: tuple[Path, str], workplace: Path) -> None:
    before = sorted(workplace.iterdir())
    done = run(in_python(command), workplace, demo[0])
    assert done.returncode == 0, done.stderr
    quiet = (" measure ", " import ", "experiment=published")  # what they bring is in the store
    assert bool(done.stdout.strip()) != any(words in command for words in quiet)
    assert sorted(workplace.iterdir()) == before


@pytest.mark.parametrize("command", [c for c in COMMANDS if c.startswith("make")])
def test_a_make_target_of_the_readme_exists(command: str) -> None:
    subprocess.run([*shlex.split(command), "-n"], cwd=PROJECT, check=True, capture_output=True)


def test_no_command_of_the_readme_is_left_untried() -> None:
    assert {c.split()[0] for c in COMMANDS} == {"make", "python", "source"}


def test_a_second_demo_measures_nothing_and_prints_the_same(demo: tuple[Path, str]) -> None:
    store, printed = demo
    files = {path: path.stat().st_mtime_ns for path in (store / "runs").rglob("*")}
    again = run([sys.executable, "-m", "rbpx", "-m", "model=ladder", "dataset=pydoc,stdlib"], store.parent, store)
    assert again.returncode == 0
    assert again.stdout == printed
    assert again.stderr == ""
    assert {path: path.stat().st_mtime_ns for path in (store / "runs").rglob("*")} == files


def test_the_demo_that_the_readme_shows_has_the_rows_that_the_demo_prints(demo: tuple[Path, str]) -> None:
    def names(text: str) -> list[str]:
        """The first words of each line: labels, not digits, which depend on the Python version."""
        return [
            re.split(r"\s{2,}|:", line.strip())[0] for line in text.strip().strip("`").removeprefix("text").split("\n")
        ]

    shown = names(SHOWN)
    assert len(shown) > 20
    assert [name for name in shown if name not in names(demo[1])] == []


@pytest.mark.parametrize("k", [1, 10, 100])
def test_the_ladder_follows_the_rbp_law_on_the_standard_library(k: int, demo: tuple[Path, str]) -> None:
    query = f"SELECT r2, alpha, alpha_lo, alpha_hi, n_points FROM fits WHERE law = 'rbp' AND k = {k} AND {ON_STDLIB}"
    (fit,) = rows_of(demo[0], query)
    counted = f"""
        SELECT r.non_embedding_params AS s, avg((t.greater + t.ties + 1 <= {k})::DOUBLE) AS rbp
        FROM tokens t JOIN runs r USING (run_id) WHERE r.dataset = 'stdlib' GROUP BY s"""
    points = np.array([(row["s"], row["rbp"]) for row in rows_of(demo[0], counted)])
    ln_s, ln_y = np.log(points[:, 0]), np.log(-np.log(points[:, 1]))
    assert fit["n_points"] == len(points) == 7
    assert fit["alpha"] == pytest.approx(-np.polyfit(ln_s, ln_y, 1)[0], rel=1e-9)
    assert fit["r2"] == pytest.approx(np.corrcoef(ln_s, ln_y)[0, 1] ** 2, rel=1e-9)
    assert fit["r2"] >= 0.97
    assert fit["alpha_lo"] < fit["alpha"] < fit["alpha_hi"]


def test_the_error_entropy_identity_holds_on_every_run(demo: tuple[Path, str]) -> None:
    names = "'cross_entropy', 'error_entropy', 'self_alignment', 'confidence'"
    query = f"SELECT law, dataset, params FROM fits WHERE law IN ({names}) AND {OF_THE_DEMO}"
    values: dict[tuple[str, str], np.ndarray] = {}
    for row in rows_of(demo[0], query):
        values[str(row["dataset"]), str(row["law"])] = np.array(json.loads(str(row["params"]))["y"])
    for dataset in ("pydoc", "stdlib"):
        parts = sum(values[dataset, law] for law in ("error_entropy", "self_alignment", "confidence"))
        np.testing.assert_allclose(parts, values[dataset, "cross_entropy"], atol=1e-6)
