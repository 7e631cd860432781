"""Mistakes that newcomers make: each gets one line, with what was probably meant."""

import re
from pathlib import Path

import pytest

from tests.support.commands import here
from tests.support.synthetic import Truth, write_store

MISTAKES = {
    "fitt": "did you mean 'fit'",
    "mesure model=ladder": "did you mean 'measure'",
    "help": "did you mean --help",
    "version": "did you mean --version",
    "-v": "did you mean --version",
    "gpt2": "did you mean model=gpt2",
    "fit pydoc": "did you mean dataset=pydoc",
    "model gpt2": "write model=VALUE",
    "model = gpt2": "write model=VALUE",
    "--k 10": "a key has no dashes: k=10",
    "--model gpt2": "a key has no dashes: model=gpt2",
    "--tokens-per-batch=64": "a key has no dashes: tokens_per_batch=64",
    "-k 10": "a key has no dashes: k=10",
    "--fit": "a verb has no dashes: python -m rbpx fit",
    "fit --json": "did you mean --format json",
    "fit --csv": "did you mean --format csv",
    "fit -o out.csv": "did you mean --output FILE",
    "fit --formt json": "did you mean --format",
    "fit --store": "--store needs a value",
    "fit --store= dataset=pydoc": "--store needs a value",
    "fit --format xml": "did you mean csv|known: table, csv, json",
    "fit --output out.csv": "add --format csv or json",
    "fit --store /nosuch": "/nosuch does not exist.*name another with --store DIR",
    "modle=gpt2": "did you mean model",
    "Model=gpt2": "did you mean model",
    "model=pythya": "did you mean pythia",
    "model=EleutherAI/pythia-70m": "model=hub model.id=EleutherAI/pythia-70m",
    "dataset=wikitxt": "did you mean wikitext",
    "dataset=notes.txt": "dataset=file dataset.path=notes.txt",
    "dataset=my=notes.txt": "quote",
    "fit dataset=mine": "dataset=file dataset.name=mine",
    "model=gpt2,pythia": "sweep with -m model=gpt2,pythia",
    "fit k=1,10": r"write k='\[1,10\]', or sweep with -m k=1,10",
    "fit k=[1,10": r"no \] at its end; write k='\[1,10\]'",
    "fit k=ten": "k=ten is not a valid rank",
    "limit=ten": "limit=ten is not a whole number",
    "limit=1.5": "limit=1.5 is not a whole number",
    "device=gpu": "did you mean cuda",
    "dtype=bf16": "did you mean bfloat16",
    "fit ties=optimist": "did you mean optimistic",
    "fit method=olz": "did you mean ols",
    "fit laws=rpb": "did you mean rbp",
    "fit ~laws": "~laws deletes a key that every request has; leave it out for its default, or set laws=",
    "fit ~laws=all": "set laws=",
    "measure ~store": "set store=",
    "measure ~model": "set model=",
    "fit -m ~experiment": "set experiment=",
    "train ~seed": "set seed=",
    "import x.csv ~source": "set source=",
    "plan ~dataset.kind": "~dataset.kind deletes a key.*set dataset.kind=",
    "fit ~model.family": "~model.family deletes what is not there",
    "fit ~nosuch": "~nosuch deletes what is not there",
    "fit dataset=pydoc ~model.sizes.70m k=[1,10]": "^rbpx: ~model.sizes.70m cannot be read",
    "measure ++limit=": "^rbpx: limit= is not a whole number.*as in limit=100",
    "fit k=[]": r"k=\[\] is empty",
    "fit -m laws=[]": r"laws=\[\] is empty",
    "fit output=": "output= is empty",
    "fit seed=-1": "seed=-1 is not a whole number from 0",
    "fit resamples=1000000000": "resamples=1000000000 is not a whole number from 1 to 100,000",
    "fit k=99999999999999999999": "is not a valid rank; give whole numbers from 1 to 2,147,483,647, as in",
    "emergence n=3000000000": "n=3000000000 is not a valid window length; give whole numbers from 1 to 1,000,000",
    "surface budgets=1e300": "budgets=1e\\+300 is not a positive number up to 1e\\+60",
    "design next=1000000": "next=1000000 is not a whole number from 1 to 1,000",
    "measure shard=1/1000000000": "shard=1/1000000000 is not a part of a grid of at most 100,000",
    "measure limit=null": "limit=null is no value",
    "fit laws=null": "laws=null is no value",
    "measure parallel=null": "parallel=null is no value",
    "fit dataset=42": "dataset=42 was read as a number; quote it",
    "fit -m dataset=pydoc,42": "dataset=42 was read as a number; quote it",
    "multiplier base=7 variant=x @store": "base=7 was read as a number; quote it",
    "fit plot=maybe": "neither true nor false",
    "experiment=rbp_figure3": "did you mean rbp_figure_3",
    "fit size=100 @store": "did you mean 1000.*it holds 1000",
    "fit family=drwan @store": "did you mean drawn",
    "fit source=paper @store": "source=paper is not in the store; it holds measured",
    "fit dataset=file dataset.name=synthetc @store": "did you mean synthetic",
    "sql SELECT @store": "one query|wrong",
    "show nosuch @store": "nosuch is not a run_id",
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


@pytest.mark.parametrize("empty", ["--store=", "--output="])
def test_an_empty_flag_does_not_swallow_the_next_word(empty: str, cwd: Path) -> None:
    answer = here(empty, "fit", cwd=cwd, check=2)
    assert f"{empty.rstrip('=')} needs a value" in answer.stderr


@pytest.mark.parametrize("said", ["", "Unable to allocate 177. GiB for an array"])
def test_a_question_that_memory_does_not_hold_is_one_line(
    said: str, store: Path, cwd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_large(*args: object, **keys: object) -> None:
        raise MemoryError(said)

    monkeypatch.setattr("rbpx.analyses.answer.answer_all", too_large)
    answer = here("fit", "fresh=true", cwd=cwd, env={"RBPX_STORE": str(store)}, check=1)
    assert answer.stderr.startswith(f"rbpx: MemoryError: {said or 'Out of memory'}; ask for less at once")
    assert answer.stderr.count("\n") == 1
