"""Mistakes that newcomers make: each gets one line, with what was probably meant."""

import errno
import os
import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import rbpx
from rbpx.__main__ import main
from rbpx.cli.argv import parse
from rbpx.cli.registry import asking
from rbpx.config.hydra.compose import Overrides, sweep
from rbpx.config.request import Request
from rbpx.errors import RbpxError
from tests.support.commands import here
from tests.support.synthetic import Truth, write_store

WORDS = {
    "fitt": "did you mean 'fit'",
    "mesure model=ladder": "did you mean 'measure'",
    "help": "did you mean --help",
    "version": "did you mean --version",
    "-v": "did you mean --version",
    "fit --config-path mine": "unknown flag --config-path; did you mean --config-dir DIR",
    "fit -cp mine": "unknown flag -cp; did you mean --config-dir DIR",
    "gpt2": "did you mean model=gpt2",
    "fit pydoc": "did you mean dataset=pydoc",
    "fit limit": "write limit=VALUE",
    "model gpt2": "write model=VALUE",
    "model = gpt2": "write model=VALUE",
    "--k 10": "a key has no dashes: k=10",
    "--model gpt2": "a key has no dashes: model=gpt2",
    "--tokens-per-batch=64": "a key has no dashes: tokens_per_batch=64",
    "-k 10": "a key has no dashes: k=10",
    "choices k=10": "choices is no verb any more; in its place: audit limit=0",
    "closure dataset=pydoc": "closure is no verb any more; in its place: ranks",
    "experts source=theirs": r"experts is no verb any more; in its place: fit size_by='\[active,total\]'",
    "pooled dataset=pydoc": "pooled is no verb any more; in its place: exponents",
    "tokenwise k=10": "tokenwise is no verb any more; in its place: outcomes",
    "train size=3k": "train is no verb any more; in its place: python experiments/ladder/train.py",
    "--fit": "a verb has no dashes: python -m rbpx fit",
    "--frmat json": "--frmat.*--help",
    "fit --json": "did you mean --format json",
    "fit --csv": "did you mean --format csv",
    "fit -o out.csv": "did you mean --output FILE",
    "fit --formt json": "did you mean --format",
    "fit --store": "--store needs a value, as in --store PATH",
    "fit --format": "--format needs a value, as in --format json",
    "fit --store= dataset=pydoc": "--store needs a value",
    "--output= fit": "--output needs a value",
    "--cfg bogus": "bogus.*job",
    "-m limit=3,5 --cfg job": "-m and --cfg ask for two ways of running",
}
OVERRIDES = {
    "model=[ladder,hub] dataset=pydoc": "-m model=ladder,hub",
    "fit dataset=[pydoc,stdlib]": "-m dataset=pydoc,stdlib",
    "fit ~laws": "~laws deletes a key that every request has; leave it out for its default, or set laws=",
    "fit ~laws=all": "set laws=",
    "measure ~store": "set store=",
    "measure ~model": "set model=",
    "fit -m ~experiment": "set experiment=",
    "import x.csv ~source": "set source=",
    "measure --config-dir /nosuch/folder": "/nosuch/folder is not a folder",
}
COMPOSED = {
    "fit --format xml": "did you mean csv|known: table, csv, json",
    "fit modle=gpt2": "fit has no key modle; did you mean model",
    "fit dataset=pydoc dataset.pth=x": r"dataset\.pth.*dataset\.path",
    "fit model=pythya": "model=pythya is unknown; did you mean pythia",
    "fit model=EleutherAI/pythia-70m": "model=hub model.id=EleutherAI/pythia-70m",
    "fit dataset=notes.txt": "dataset=file dataset.path=notes.txt",
    "fit dataset=my=notes.txt": "quote",
    "fit dataset=mine": "dataset=file dataset.name=mine",
    "fit dataset=42": "dataset=42 was read as a number; quote it",
    "fit model=gpt2,pythia": "sweep with -m model=gpt2,pythia",
    "fit k=1,10": r"write k='\[1,10\]', or sweep with -m k=1,10",
    "fit k=[1,10": r"no \] at its end; write k='\[1,10\]'",
    "measure limit=ten": "limit=ten is not a whole number",
    "measure ++limit=": "^limit= is not a whole number.*as in limit=100",
    "measure limit=null": "limit=null is no value",
    "fit size=1e3": "size=1000.0 was read as a number; quote it",
    "fit details=maybe": "neither true nor false",
    "fit ties=optimist": "did you mean optimistic",
    "measure device=gpu": "did you mean cuda",
    "measure parallel=null": "parallel=null is no value",
    "measure model.revision=1e5": r"model\.revision.*quote",
    "plan ~dataset.kind": "~dataset.kind deletes a key.*set dataset.kind=",
    "fit ~model.family": "~model.family deletes what is not there",
    "fit dataset=pydoc ~model.sizes.70m k=[1,10]": "^~model.sizes.70m cannot be read",
    "fit model.bos=add": "model.bos=add is a key of a model, and none is named; add model=NAME",
    "run experiment=rbp_figure3": "did you mean rbp_figure_3",
    "run experiment=ladder": "experiment=ladder is unknown; did you mean",
    "multiplier base=7 variant=x": "base=7 was read as a number; quote it",
    "fit -m dataset=pydoc,42": "dataset=42 was read as a number; quote it",
}
VALUES: dict[str, tuple[Mapping[str, Any], str]] = {
    "of a k": ({"k": "ten"}, "k=ten is not a valid rank"),
    "of a k beyond all": ({"k": 10**20}, "give whole numbers from 1 to 2,147,483,647, as in"),
    "of no k": ({"k": []}, r"k=\[\] is empty"),
    "of a law": ({"laws": "rpb"}, "did you mean rbp"),
    "of no law": ({"laws": None}, "laws=null is no value"),
    "of a method": ({"method": "olz"}, "did you mean ols"),
    "of a file": ({"output": ""}, "output= is empty"),
    "of a seed": ({"seed": -1}, "seed=-1 is not a whole number from 0"),
    "of resamples": ({"resamples": 10**9}, "resamples=1000000000 is not a whole number from 1 to 100,000"),
    "of a window": ({"n": 3 * 10**9}, "n=3000000000 is not a valid window length; .* 1 to 1,000,000"),
    "of a budget": ({"budgets": 1e300}, r"budgets=1e\+300 is not a positive number up to 1e\+60"),
    "of runs to come": ({"next": 10**6}, "next=1000000 is not a whole number from 1 to 1,000"),
    "of a shard": ({"shard": "1/1000000000"}, "shard=1/1000000000 is not a part of a grid of at most 100,000"),
}  # fmt: skip


def composed(line: str) -> None:
    """All that happens to a line before its verb begins."""
    typed = parse(shlex.split(line))
    _, jobs = sweep(Overrides(asking(typed.verb), list(typed.hydra)))
    for read_request in jobs or ():
        read_request()


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
    assert wrong(WORDS, lambda line: parse(line.split())) == {}


def test_what_hydra_would_pass_over_is_refused_before_it_reads_anything() -> None:
    assert wrong(OVERRIDES, composed) == {}


def test_an_error_of_hydra_or_omegaconf_is_one_line_with_what_was_meant() -> None:
    assert wrong(COMPOSED, composed) == {}


def test_a_value_that_a_key_does_not_take_is_said_with_those_that_it_takes() -> None:
    assert wrong(VALUES, lambda typed: Request(**typed)) == {}


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


QUERIES = {
    "misspelt": ("SELEC 1", "SQL.*SELEC"),
    "of an unknown relation": ("SELECT * FROM tokns", "tokns.*tokens"),
    "of an unknown tie rule": ("SELECT * FROM rbp_at(1, 'nosuch')", "nosuch.*pessimistic"),
    "that writes": ("DELETE FROM runs", "SELECT.*DELETE|DELETE.*SELECT"),
    "that writes a file": ("COPY runs TO 'runs.csv'", "SELECT.*COPY|COPY.*SELECT"),
    "made of two": ("SELECT 1; SELECT 2", "one SELECT"),
    "that reads a file": ("SELECT * FROM read_csv('/etc/passwd')", "read_csv|/etc/passwd|disabled"),
}


def test_a_wrong_query_is_one_line_that_says_what_to_do(store: Path) -> None:
    opened = rbpx.open(store)
    assert wrong(QUERIES, opened.sql) == {}


def told(*words: object, store: Path, cwd: Path) -> str:
    """The one line that a whole command says of a mistake, and nothing else anywhere."""
    answer = here(*words, cwd=cwd, env={"RBPX_STORE": str(store)}, check=2)
    assert answer.stdout == ""
    assert answer.stderr.startswith("rbpx: ")
    assert answer.stderr.count("\n") == 1, answer.stderr
    return answer.stderr


def test_a_mistake_of_each_stage_ends_a_command_with_that_line(store: Path, cwd: Path) -> None:
    """Words, Hydra, values, the shape of the answer, the store, its index."""
    for line, says in {
        "fitt": "did you mean 'fit'",
        "fit ties=nosuch": "nosuch.*pessimistic",
        "fit k=0": "k=0.*from 1",
        "fit --output out.csv": "add --format csv or json",
        "fit --store /nosuch": "/nosuch does not exist.*name another \\(store=DIR\\)",
        "fit --store ~nosuchuser/a": "store=~nosuchuser/a is not the path of a folder.*give another",
        "show nosuch": "nosuch is not a run_id",
        "show": "id",
        "sql": "one query",
        "store tidy": "tidy.*verify",
        "store rebuild": "store rebuild is gone.*views",
        "store publish hf://datasets/a/b": "store publish is gone.*store push",
    }.items():
        assert re.search(says, told(*line.split(), store=store, cwd=cwd)), line
    assert "no runs" in told("fit", store=cwd, cwd=cwd)


def test_a_folder_that_was_deleted_is_one_line(
    store: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def gone() -> str:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))

    monkeypatch.setattr(os, "getcwd", gone)
    assert main(["fit", "--store", str(store)]) == 2
    said = "rbpx: the working directory was deleted; cd to one that is there, and run the same line again\n"
    assert capsys.readouterr() == ("", said)


def test_a_question_that_memory_does_not_hold_is_one_line(
    store: Path, cwd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_large(*args: object, **keys: object) -> None:
        raise MemoryError

    monkeypatch.setattr("rbpx.questions.ask.answer_all", too_large)
    answer = here("fit", cwd=cwd, env={"RBPX_STORE": str(store)}, check=1)
    assert answer.stderr.startswith("rbpx: MemoryError: Out of memory; ask for less at once")
    assert answer.stderr.count("\n") == 1
    monkeypatch.undo()
    for mib in (2, 5):  # too little for the records of the runs, or for a question about them
        monkeypatch.setattr("rbpx.store.sql.machine_mib", lambda mib=mib: mib)
        answer = here("fit", cwd=cwd, env={"RBPX_STORE": str(store)}, check=1)
        assert re.search(
            "rbpx: this question needs more memory than it may hold.*used.*ask for less at once", answer.stderr
        )
        assert answer.stderr.count("\n") == 1
