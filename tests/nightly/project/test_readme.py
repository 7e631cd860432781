"""Every command of README and documentation runs, and every piece of Python."""

import json
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from docs.retell import PAGES as RETOLD
from docs.retell import told
from tests.support.checkpoints import build_checkpoint
from tests.support.demo import in_python, run, run_demo
from tests.support.places import DOCS, PROJECT
from tests.support.shown import commands_of, with_few_resamples

README = (PROJECT / "README.md").read_text(encoding="utf-8")
PAGES = {path.relative_to(PROJECT): path.read_text(encoding="utf-8") for path in DOCS.rglob("*.md")}


# Those whose output is shown are run in their order, by tests of the demo and of the decision.
SHOWN_WITH_OUTPUT = {
    command
    for path in RETOLD
    if path.suffix == ".md"
    for commands, _ in told(path.read_text(encoding="utf-8"))
    for command in commands
}
TOLD = [page for path, page in sorted(PAGES.items()) if "_build" not in path.parts]
COMMANDS = [
    command
    for command in dict.fromkeys(command for page in (README, *TOLD) for command in commands_of(page))
    if command not in SHOWN_WITH_OUTPUT
    and command != "python -m rbpx -m model=gpt2,pythia dataset=wikipedia,humaneval"  # which wants a hub
]
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
    (folder / "notes").mkdir()
    for day in range(3):
        (folder / "notes" / f"{day}.txt").write_text(f"Day {day}: the sea reads nothing, and the harbour sleeps.\n")
    losses = "model,S,val_loss,c4_loss,hellaswag_bpb\n" + "".join(f"m{n},{n}e8,{3 - n / 9},3,1\n" for n in (1, 2, 4))
    (folder / "table.csv").write_text(losses)
    (folder / "notes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "lm_eval").mkdir()
    scores = {"arc_easy": {"alias": "arc_easy", "acc,none": 0.4, "acc_stderr,none": 0.01}}
    (folder / "lm_eval" / "results_2026-08-01.json").write_text(json.dumps({"results": scores, "model_name": "ORG/A"}))
    rows_of_them = (f"{S}x{D},{S},{D},{1.8 + 7 / S**0.34 + 1.1 / D**0.37}\n" for S in (20, 60, 180) for D in (1, 4, 16))
    (folder / "theirs.csv").write_text("run,params (M),tokens (B),val_loss\n" + "".join(rows_of_them))
    return folder


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


# Services are stood in for by what remembers what it was given.
STAND_INS = """
import sys
import accelerate  # asks which trackers are installed
from unittest.mock import MagicMock
sys.modules |= {name: MagicMock() for name in ("mlflow", "wandb")}
"""
GIVEN = {
    "other-tools": """
assert wandb.Table.call_args.kwargs["dataframe"] is mlflow.log_table.call_args.args[0] is laws
assert len(laws) == len(run.summary.__setitem__.call_args.args[1]) == 6  # three k, a loss, two of the lognormal
assert 0 < mlflow.log_metrics.call_args.args[0]["alpha_cross_entropy"] < 1
"""
}
WITH_PYTHON = {
    path.stem: "".join(blocks)
    for path, page in PAGES.items()
    if (blocks := re.findall(r"```python\n(.*?)```", page, re.S))
    and path.stem not in ("notebook", "key")  # which a test of the demo runs; a part of a class
}


def test_python_that_is_shown_runs(sample: Path, tmp_path: Path) -> None:
    """All of it in one process, each page with names of its own."""
    assert WITH_PYTHON.keys() >= {"other-tools", "report"}
    shutil.copytree(sample, tmp_path / "store")
    pages = [
        f"exec(compile({code + GIVEN.get(name, '')!r}, {name!r}, 'exec'), {{}})\n" for name, code in WITH_PYTHON.items()
    ]
    words = [sys.executable, "-c", STAND_INS + "".join(pages)]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "cross-entropy.pdf").read_bytes().startswith(b"%PDF")
    with closing(sqlite3.connect(tmp_path / "laws.sqlite")) as file:
        assert file.execute("SELECT count(*) FROM runs").fetchall() == [(14,)]
        assert file.execute("SELECT count(*) FROM fits WHERE law = 'cross_entropy'").fetchall()[0][0] > 0
    (queries,) = re.findall(r"```sql\n(.*?)```", PAGES[Path("docs/howto/other-tools.md")], re.DOTALL)
    with duckdb.connect(tmp_path / "store" / "rbpx.duckdb", read_only=True) as index:
        rows_of = [len(index.sql(query).fetchall()) for query in queries.strip().split("\n")]
    assert rows_of == [28, 28]  # of the demo on few documents, and on all, which the page on Python measures
