"""Mistakes that newcomers make: each gets one line, with what was probably meant."""

import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import rbpx
from rbpx.cli.argv import parse
from rbpx.cli.registry import asking
from rbpx.config.compose import compose
from rbpx.config.request import KEYS
from rbpx.errors import RbpxError
from rbpx.spelling import speaking_shell
from tests.support.commands import rbpx as alone
from tests.support.composed import here
from tests.support.synthetic import Truth, write_store

WORDS = {
    "fitt": "did you mean 'fit'",
    "mesure model=ladder": "did you mean 'measure'",
    "fit --config-path mine": "unknown flag --config-path; did you mean --config-dir",
    "gpt2": "did you mean model=gpt2",
    "fit pydoc": "did you mean dataset=pydoc",
    "fit limit": "write limit=VALUE",
    "model = gpt2": "write model=VALUE",
    "--k 10": "a key has no dashes: k=VALUE",
    "--tokens-per-batch=64": "a key has no dashes: tokens_per_batch=VALUE",
    "choices k=10": "choices is not asked any more; in its place: fit, which has a law for each",
    "closure dataset=pydoc": "closure is not asked any more; in its place: ranks",
    "experts source=theirs": r"experts is not asked any more; in its place: fit size_by=active, and fit size_by=total",
    "pooled dataset=pydoc": "pooled is not asked any more; in its place: exponents, for each family by itself",
    "outcomes passed.csv": "outcomes FILE is not asked any more; in its place: outcomes of stored runs; import FILE",
    "exponents slopes.csv": "exponents FILE is not asked any more; in its place: import FILE, with columns",
    "temperature dataset=pydoc": "temperature is not asked any more; in its place: entropy",
    "tokenwise k=10": "tokenwise is not asked any more; in its place: outcomes",
    "train size=3k": "train is not asked any more; in its place: python experiments/ladder/train.py",
    "--frmat json": "--frmat; did you mean --format.*--help",
    "fit --store": "--store: expected one argument",
    "--cfg bogus": "bogus.*job",
    "measure --config-dir /nosuch/folder": "/nosuch/folder is not a folder",
}
COMPOSED = {
    "model=[ladder,hub] dataset=pydoc": "-m model=ladder,hub",
    "fit dataset=[pydoc,stdlib]": "-m dataset=pydoc,stdlib",
    "fit --format xml": "xml.*table.*csv.*json",
    "fit modle=gpt2": "fit has no key modle; did you mean model",
    "fit over=10": "fit has no key over any more; in its place: frontier=true",
    "run study.file=x.csv": "run has no key study.file any more; in its place: an import of that file",
    "fit fresh=true": "fit has no key fresh any more; in its place: nothing, as every answer is computed",
    "attempts T=0.8": "attempts has no key T any more; in its place: imported counts of samples",
    "fit dataset=pydoc dataset.pth=x": r"dataset\.pth.*dataset\.path",
    "plan ++limt=1 model=ladder": "limt; did you mean limit",
    "plan +model.foo=1 model=ladder": r"model\.foo",
    "measure model=pythya": "model=pythya is unknown; did you mean pythia",
    "measure model=EleutherAI/pythia-70m": "model=hub model.id=EleutherAI/pythia-70m",
    "measure dataset=notes.txt": "dataset=file dataset.path=notes.txt",
    "fit dataset=pydoc output=a=b(": "output=a=b. cannot be read",
    "fit model=gpt2,pythia": "a sweep -m model=gpt2,pythia",
    "fit k=1,10": r"a list is k='\[1,10\]', a sweep -m k=1,10",
    "fit k=[1,10": "k=.1,10 cannot be read: close each bracket and quote",
    "fit dataset=a\udcedb": r"dataset=a.udcedb is not UTF-8 text",
    "measure limit=ten": "limit.*ten.*Integer",
    "measure limit=null": "limit.*not Optional",
    "fit details=maybe": "details.*maybe.*bool",
    "fit ties=optimist": "optimist.*pessimistic, optimistic, mid",
    "measure parallel=null": "must be a string",
    "run experiment=rbp_figure3": "did you mean rbp_figure_3",
    "plan Model=gpt2": "did you mean model",
    "plan dataset=file dataset.path=/x/a,b.jsonl": r"a sweep -m dataset\.path=/x/a,b\.jsonl",
    "fit ~nosuch": "'nosuch' does not exist",
    "plan model.bos=add ~model": "model.bos=add is a key of model, and none is named; add model=NAME",
}
VALUES: dict[str, tuple[Mapping[str, Any], str]] = {
    "of a k": ({"k": "ten"}, "k=ten is not a valid rank"),
    "of a k beyond all": ({"k": 10**20}, "whole numbers from 1 to 2,147,483,647, as in"),
    "of no k": ({"k": []}, r"k=\[\] is empty"),
    "of a law": ({"laws": "rpb"}, "did you mean rbp"),
    "of a method": ({"method": "olz"}, "did you mean ols"),
    "of a file": ({"output": ""}, "output= is empty"),
    "of a seed": ({"seed": -1}, "seed=-1 is not a whole number from 0"),
    "of resamples": ({"resamples": 10**9}, "resamples=1000000000 is not a whole number from 1 to 100,000"),
    "of a window": ({"n": 3 * 10**9}, "n=3000000000 is not a valid window length; .* 1 to 1,000,000"),
    "of a budget": ({"flops": 1e300}, r"flops=1e\+300 is not a positive number up to 1e\+60"),
    "of runs to come": ({"next": 10**6}, "next=1000000 is not a whole number from 1 to 1,000"),
    "of a shard": ({"shard": "1/1000000000"}, "shard=1/1000000000 is not a part of a grid of at most 100,000"),
}  # fmt: skip


def composed(line: str) -> None:
    """All that happens to a line before its verb begins."""
    typed = parse(shlex.split(line))
    with speaking_shell():
        compose(asking(typed.verb), typed.overrides, typed.own, typed.sweeps)


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


def test_an_error_of_hydra_or_omegaconf_is_one_line_with_what_was_meant() -> None:
    assert wrong(COMPOSED, composed) == {}


def test_a_value_that_a_key_does_not_take_is_said_with_those_that_it_takes() -> None:
    assert wrong(VALUES, lambda typed: [KEYS[name].meaning(value) for name, value in typed.items()]) == {}


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
    "of a column of runs": ("SELECT size, greater FROM tokens", "size.*it is in runs.*JOIN runs USING"),
    "of hits": ("SELECT avg(t.hit) FROM tokens AS t", "hit is rank <= k"),
    "of a column that is a word of SQL": ("SELECT window FROM runs", 'write the column as "window"'),
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


def test_a_mistake_of_each_stage_ends_a_command_with_that_line(store: Path, cwd: Path, tmp_path: Path) -> None:
    """Words, Hydra, values, the shape of the answer, the store, its index, the model, its text."""
    (empty := tmp_path / "empty.jsonl").touch()
    tiny = "model=hub model.id=rbpx:ladder/3k/8m dataset=file"
    for line, says in {
        "fitt": "did you mean 'fit'",
        "fit ties=nosuch": "nosuch.*pessimistic",
        "fit k=0": "k=0.*from 1",
        "fit --store /nosuch": "/nosuch does not exist.*name another \\(store=DIR\\)",
        "show nosuch": "nosuch is not a run_id",
        "show": "id",
        "sql": "one query",
        "store tidy": "tidy.*verify",
        "store rebuild": "store 'rebuild' is unknown; known: verify",
        "export": "takes one relation.*observations",
        "export runs tokens": "takes one relation.*got 2",
        f"dataset=pydoc --store {empty}": "is a file.*folder",
        "dataset=pydoc size=13z": "size=13z.*3k",
        "model=hub dataset=pydoc": r"model\.id",
        "model=hub model.id=12 dataset=pydoc": r"model\.id=12.*hub id",
        f"model=hub model.id={empty} dataset=pydoc": r"empty\.jsonl.*folder",
        "model=hub model.id=[a/b,a/c] dataset=pydoc": r"model\.family",
        tiny: r"dataset\.path",
        f"{tiny} dataset.path={empty}": r"empty\.jsonl.*no text",
    }.items():
        assert re.search(says, told(*line.split(), store=store, cwd=cwd)), line
    assert "no runs" in told("fit", store=cwd, cwd=cwd)
    assert f"name another (store={store})" in told("fit", "--store", store.parent, store=store, cwd=cwd)
    assert "import first: python -m rbpx import FILE source=x" in told("decide", "source=x", store=cwd, cwd=cwd)
    assert "no runs" in told("show", "x", store=cwd, cwd=cwd)
    answer = alone("model=nosuch", cwd=cwd, env={"RBPX_STORE": str(store)}, check=2)
    assert (answer.stdout, answer.stderr.count("\n")) == ("", 1), "in a process of its own"


def test_a_question_that_memory_does_not_hold_is_one_line(
    store: Path, cwd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_large(*args: object, **keys: object) -> None:
        raise MemoryError

    monkeypatch.setattr("rbpx.questions.ask.answer_all", too_large)
    answer = here("fit", cwd=cwd, env={"RBPX_STORE": str(store)}, check=1)
    assert answer.stderr.startswith("rbpx: MemoryError: Out of memory; ask for less at once")
    assert answer.stderr.count("\n") == 1
