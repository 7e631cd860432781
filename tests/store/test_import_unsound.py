"""Runs that broke off or diverged are named when their table comes in, with the line that leaves them out."""

from pathlib import Path

import pytest

from rbpx.files.rows import read_table
from rbpx.store.imports.chosen_rows import finished
from tests.support import imports
from tests.support.commands import Answer
from tests.support.imports import found
from tests.support.tables import write_table


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A place for a store that is not there yet."""
    return tmp_path / "store"


def bring(lines: str, store: Path, cwd: Path, *words: str, check: int | None = 0) -> Answer:
    path = store.parent / "a.csv"
    path.write_text(lines)
    return imports.bring(path, store, cwd, "source=me", "family=lab", "dataset=c4", *words, check=check)


def named(said: str) -> list[str]:
    return [line.partition(" on c4 has ")[0] for line in said.splitlines() if "it may have diverged" in line]


LADDER = "run,params,tokens,val_loss\na,20M,1B,4.0\nb,60M,2B,3.4\nc,200M,4B,9.87\nd,600M,8B,2.6\n"
RUN = "columns={model: run}"


def test_a_run_that_diverged_is_named_with_the_line_that_leaves_it_out(store: Path, cwd: Path) -> None:
    said = bring(LADDER, store, cwd, RUN).stderr
    told = "c at 4,000,000,000 tokens on c4 has val_loss 9.87, where b at 2,000,000,000 tokens with no more parameters"
    assert f"{told} and tokens has 3.4: it may have diverged; leave it out with where=\"NOT (run = 'c')\"\n" in said
    again = bring(LADDER, store, cwd, RUN, "source=other", "where=NOT (run = 'c')").stderr
    assert named(again) == []
    assert "left out 1 row" in again


def test_a_run_without_a_name_is_told_by_its_size_and_tokens_and_what_it_varies(store: Path, cwd: Path) -> None:
    table = LADDER.replace("run,", "peak lr,").replace("\nc,", "\n.01,").replace("\na,", "\n1e-3,")
    said = bring(
        table.replace("\nb,", "\n1e-3,").replace("\nd,", "\n1e-3,"), store, cwd, 'columns={vary_lr: "peak lr"}'
    ).stderr
    assert named(said) == ["200000000 at 4,000,000,000 tokens, vary_lr 0.01"]
    assert """NOT (params = '200M' AND tokens = '4B' AND "peak lr" = '.01')""" in said.replace("'\"'\"'", "'")


def test_a_condition_that_was_given_stays(store: Path, cwd: Path) -> None:
    said = bring(LADDER, store, cwd, RUN, "where=run > 'a'").stderr
    assert "where=\"(run > 'a') AND NOT (run = 'c')\"" in said


CURVE = "model,S,step,loss_nats\n" + "".join(f"r,60M,{at},{loss}\n" for at, loss in enumerate([11, 5, 4, 3.5, 7], 1))


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param(CURVE, ["r at step 5"], id="a run is above its own lowest loss"),
        pytest.param(CURVE.replace("5,7", "5,3.6"), [], id="a spike that passes"),
        pytest.param(CURVE.replace("5,7", "5,5.2"), [], id="half as much again is too little"),
        pytest.param("S,D,loss_nats\n1M,9B,9\n9M,1B,3\n", [], id="fewer parameters may be worse whatever the tokens"),
        pytest.param("S,D,loss_nats\n9M,1B,9\n1M,9B,3\n", [], id="fewer tokens too"),
        pytest.param("S,C,loss_nats\n9M,5.4e15,9\n1M,5.4e15,3\n", [], id="tokens are C / 6 S where D is unknown"),
        pytest.param("S,unique_tokens,D,loss_nats\n9M,1M,9B,9\n1M,9B,9B,3\n", [], id="repeated text may overfit"),
        pytest.param("S,variant,loss_nats\n9M,x,9\n1M,y,3\n", [], id="another variant may be worse"),
        pytest.param("S,loss_nats\n9M,.3\n1M,.1\n", [], id="losses near 0"),
        pytest.param("S,accuracy\n9M,.1\n1M,.9\n", [], id="shares are no losses"),
        pytest.param("S,bits_per_byte\n9M,3\n1M,.9\n", ["9000000"], id="bits per byte"),
    ],
)
def test_only_a_loss_far_above_one_of_no_more_is_named(lines: str, expected: list[str], store: Path, cwd: Path) -> None:
    assert named(bring(lines, store, cwd).stderr) == expected


def test_a_column_of_a_run_that_diverged_is_left_out_of_runs(store: Path, cwd: Path) -> None:
    said = bring("step,x,y\n1,6,5\n2,5,9\n", store, cwd, "runs={loss_nats: {x: 60M, y: 1B}}").stderr
    assert "y at step 2 on c4 has y 9" in said
    assert said.count("leave it out of runs=\n") == 1


def test_many_runs_that_diverged_are_counted(store: Path, cwd: Path) -> None:
    rows = "".join(f"{at + 2}M,9\n" for at in range(9))
    said = bring(f"S,loss_nats\n1M,3\n{rows}", store, cwd).stderr
    assert len(named(said)) == 4
    assert "and 5 more runs that may have diverged\n" in said


STATES = "Name,State,params,val_loss\na,finished,20M,4\nb,crashed,60M,3.9\nc,running,200M,3.8\nd,finished,600M,2.6\n"


def test_runs_that_are_not_finished_are_left_out_and_named(store: Path, cwd: Path) -> None:
    said = bring(STATES, store, cwd).stderr
    told = f"left out 2 runs of {store.parent / 'a.csv'} of which State is not finished: b (crashed), c (running); "
    assert told + "where='State IS NOT NULL' takes them too\n" in said
    assert "where= does not choose" not in said
    assert found(store, "cross_entropy_nats") == [(2.6,), (4,)]


@pytest.mark.parametrize("where", ["State IS NOT NULL", "state != 'failed'"])
def test_a_condition_on_the_state_chooses_alone(where: str, store: Path, cwd: Path) -> None:
    assert "not finished" not in bring(STATES, store, cwd, f"where={where}").stderr
    assert len(found(store, "cross_entropy_nats")) == 4


def test_where_no_run_is_finished_nothing_comes_in(store: Path, cwd: Path) -> None:
    (line,) = bring(STATES.replace("finished", "failed"), store, cwd, "where=params > ''", check=2).stderr.splitlines()
    assert "no run is finished: a (failed), b (crashed), c (running), d (failed); where=" in line
    assert "(params > '') AND State IS NOT NULL" in line
    assert not store.exists()


def test_a_state_that_is_none_of_a_run_is_a_column_like_any_other(tmp_path: Path) -> None:
    table = read_table(write_table(tmp_path / "a.csv", [{"state": "Ohio", "S": 1}, {"state": "running", "S": 2}]))
    assert finished(table, None) == (table, None)
