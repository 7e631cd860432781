"""Names that would control a terminal, typed to every verb on one: none of its lines obeys them."""

from pathlib import Path

import pytest

from rbpx.cli.registry import names
from rbpx.questions.registry import analyses
from tests.support.asking import imported
from tests.support.commands import here
from tests.support.synthetic import Truth, write_store
from tests.support.tables import write_table
from tests.support.terminals import terminal

# A title and a bell, blinking, a screen cleared by one byte, writing from the right, a line that rbpx did not say.
HOSTILE = "x\x1b]0;taken\x07\x1b[5m\x9b2J\u202ey\nforged"
CONTROLS = ("\x1b]", "\x07", "\x1b[5m", "\x9b", "\u202e", "\nforged")
SHOWN = r"\x1b]0;taken\x07\x1b[5m\x9b2J\u202ey\nforged"
NAMED = '"' + HOSTILE + '"'  # as Hydra quotes
TABLE = f"{HOSTILE.strip()},S,loss_nats,{HOSTILE}2\n{HOSTILE},3M,4,a\n{HOSTILE},9M,3.5,b\n"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of a family, on a text, in a folder of that name."""
    root = tmp_path_factory.mktemp("names") / HOSTILE
    truth = Truth(S=(1_000, 30_000, 1_000_000))
    return write_store(root, truth, seed=1, n_documents=4, n_tokens=10, family=HOSTILE, dataset=HOSTILE).root


def typed(verb: str, folder: Path, store: Path) -> list[list[object]]:
    """What is typed of a verb, a line each."""
    if verb in analyses():
        more = {"compare": [f"a={{family: {NAMED}}}", "b={family: z}"], "multiplier": [f"base={NAMED}", "variant=z"]}
        few = [] if verb in ("compare", "view", "audit", "forecasts", "trajectory") else ["resamples=20"]
        if verb == "trajectory":  # measured runs have no learning rates
            row = dict.fromkeys(("model", "family", "dataset"), HOSTILE) | {"S": 1e6, "step": 100, "loss_nats": 3.0}
            row |= {"schedule": "wsd", "schedule_tokens": 10**9, "tokens_per_step": 1000}
            store = imported(folder / "store", write_table(folder / "plan.csv", [row]))
        return [[*more.get(verb, []), *few, "--store", store]]
    file, notes = folder / f"{HOSTILE}.csv", folder / f"{HOSTILE}.txt"
    file.write_text(TABLE.replace("\nforged", "_forged"), encoding="utf-8")
    notes.write_text("The sea reads nothing and gives nothing back. " * 9)
    measured = ["model=ladder", "size=3k", "dataset=file", f'dataset.path="{notes}"', f"dataset.name={NAMED}"]
    of_file = [file, f"family={NAMED}", f"dataset={NAMED}", f"source={NAMED}"]
    words: dict[str, list[list[object]]] = {
        "completion": [[HOSTILE]],
        "download": [["model=hub", f"model.id={NAMED}"]],
        "export": [["runs", f'output="{folder / HOSTILE}/x.parquet"']],
        "import": [of_file, [*of_file, "--dry-run"], [f"{file}x", "source=s"], [*of_file[:3], "source=s"]],
        "measure": [measured, [f"experiment={NAMED}"]],
        "plan": [measured, [*measured[:3], f'dataset.path="{notes}x"'], [*measured, "--format", "jobs"]],
        "record": [[f"experiment={NAMED}"]],
        "report": [[f'output="{folder / HOSTILE}.html"']],
        "run": [[*measured, "laws=[rbp]"]],
        "show": [[HOSTILE]],
        "sql": [[f"SELECT family, dataset FROM runs{more}"] for more in ("", " LIMIT 1", "x")],
        "status": [[]],
        "store": [["verify"], ["rm", HOSTILE], ["merge", folder / HOSTILE], ["verify", "--format", "json"]],
    }
    return [[*each, *([] if verb in ("completion", "download") else ["--store", store])] for each in words[verb]]


@pytest.mark.parametrize("verb", names())
def test_no_name_controls_the_terminal_of_a_verb(verb: str, store: Path, cwd: Path, tmp_path: Path) -> None:
    shown = ""
    for words in typed(verb, tmp_path, store):
        with terminal() as (stream, told):
            here(verb, *words, cwd=cwd, env={"TERM": "xterm-256color"}, terminal=stream)
        shown += told[0]
    assert not [control for control in CONTROLS if control in shown], shown
    assert SHOWN in shown.replace("\n", ""), f"{verb} shows the name: {shown}"
