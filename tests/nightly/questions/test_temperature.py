"""The temperature that a text prefers: what is kept, refused and printed."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from rbpx.config.request import Request
from rbpx.questions.ask import answer
from tests.support.commands import here
from tests.support.stores import Measured, run_folders, runs_by_size

QUICK = "resamples=50"
Rows = list[dict[str, Any]]


def rows(store: Path, cwd: Path, *words: object, check: int = 0) -> Rows:
    answer = here("temperature", QUICK, *words, "--store", store, "--format", "json", cwd=cwd, check=check)
    return list(json.loads(answer.stdout))


def of_runs(found: Rows) -> dict[str, dict[str, Any]]:
    return {row["size"]: row for row in found if row["kind"] == "run"}


def test_results_do_not_depend_on_the_batch_and_nothing_is_measured_twice(
    untouched: Measured, tmp_path: Path, cwd: Path
) -> None:
    stores = [Path(shutil.copytree(untouched.store, tmp_path / name)) for name in ("one", "other")]
    found = [rows(store, cwd, f"tokens_per_batch={n}") for store, n in zip(stores, (64, 4096), strict=True)]
    for one, other in zip(*(of_runs(each).values() for each in found), strict=True):
        for name in ("temperature", "cross_entropy_at_temperature_nats", "temperature_lo"):
            assert one[name] == pytest.approx(other[name], abs=1e-6)
    tables = [{path.name: path.read_bytes() for path in (stores[0] / "temperatures").glob("[!_]*")}]
    again = here("temperature", "resamples=60", "--store", stores[0], cwd=cwd, check=0)
    assert "tokens/s" not in again.stderr
    assert {path.name: path.read_bytes() for path in (stores[0] / "temperatures").glob("[!_]*")} == tables[0]
    verified = here("store", "verify", "--store", stores[0], cwd=cwd, check=0)
    assert "0 fault" not in verified.stderr
    total = "SELECT sum(n_tokens) AS n FROM temperatures WHERE beta = 1"
    (row,) = json.loads(here("sql", total, "--store", stores[0], "--format", "json", cwd=cwd, check=0).stdout)
    assert int(row["n"]) == sum(len(run["doc_id"]) for run in runs_by_size(stores[0]).values())


def test_a_run_that_fails_loses_no_other_and_the_next_call_measures_it_alone(
    own_store: Path, cwd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rbpx.errors import MeasureError
    from rbpx.measure.reopen import Reopener

    reopen = Reopener.reopen

    def failing(self: Reopener, run: Any, *more: Any) -> Any:
        if run.size == "s":
            raise MeasureError("the disk of s is gone")
        return reopen(self, run, *more)

    monkeypatch.setattr(Reopener, "reopen", failing)
    answer = here("temperature", QUICK, "--store", own_store, cwd=cwd, check=1)
    assert "mine s on file" in answer.stderr
    assert "the disk of s is gone" in answer.stderr
    assert {"xs", "m", "l"} < {line.split()[0] for line in answer.stdout.splitlines() if line.strip()}
    monkeypatch.undo()
    answer = here("temperature", QUICK, "--store", own_store, cwd=cwd, check=0)
    (done,) = [line for line in answer.stderr.splitlines() if "tokens/s" in line]
    assert "mine s on file" in done


@pytest.mark.parametrize(
    ("verb", "breaks"),
    [
        ("temperature", "rbpx.measure.temperatures.measure_temperatures"),
        ("audit", "rbpx.questions.audit.remeasure.measure_windows"),
    ],
)
def test_the_traceback_of_a_model_that_fails_again_is_kept_until_it_succeeds(
    verb: str, breaks: str, own_store: Path, cwd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any) -> None:
        raise KeyError("no such layer")

    own = ("limit=2", "dtype=float32") if verb == "audit" else ()
    words = (verb, QUICK, "size=s", *own, "--store", own_store)
    monkeypatch.setattr(breaks, failing)
    (line,) = [line for line in here(*words, cwd=cwd, check=1).stderr.splitlines() if "no such layer" in line]
    assert "mine s on file (float32)" in line
    assert line.endswith("its traceback is in the store's relation failures")
    query = ("sql", "SELECT size, error, traceback FROM failures", "--format", "json", "--store", own_store)
    (kept,) = json.loads(here(*query, cwd=cwd, check=0).stdout)
    assert (kept["size"], kept["error"]) == ("s", f"{verb} failed: KeyError: 'no such layer'")
    assert "in failing" in kept["traceback"]
    monkeypatch.undo()
    here(*words, cwd=cwd, check=0)
    assert json.loads(here(*query, cwd=cwd, check=0).stdout) == []


def test_a_report_measures_nothing_and_says_what_to_type(own_store: Path, cwd: Path, tmp_path: Path) -> None:
    here("report", QUICK, "k=[2,10]", "--store", own_store, "--output", tmp_path / "r.html", cwd=cwd, check=0)
    assert not (own_store / "temperatures").exists()
    assert "python -m rbpx temperature family=mine dataset=file" in (tmp_path / "r.html").read_text(encoding="utf-8")
    here("temperature", QUICK, "--store", own_store, cwd=cwd, check=0)
    (result,) = answer("temperature", [(Request(store=str(own_store), resamples=50, model=None), None)])
    assert "with each size at its T the exponent of cross-entropy is" in result.sentences[0]
    assert [figure.name for figure in result.figures()] == ["temperature", "laws"]


def test_what_is_printed_fits_and_a_run_that_is_removed_takes_its_losses_along(own_store: Path, cwd: Path) -> None:
    answer = here("temperature", QUICK, "--store", own_store, cwd=cwd, check=0)
    lines = answer.stdout.splitlines()
    assert [line for line in lines if len(line) > 80 and line.startswith(" ")] == []  # sentences wrap, tables do not
    assert "mine on file, window 64: The temperature T* with the least cross-entropy, nats" in lines
    run_id = runs_by_size(own_store)["s"]["run_id"]
    here("store", "rm", run_id, "--store", own_store, cwd=cwd, check=0)
    assert {path.stem for path in (own_store / "temperatures").glob("[!_]*")} == set(run_folders(own_store))


def test_losses_travel_with_their_runs_and_a_changed_one_is_found(own_store: Path, cwd: Path, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    here("temperature", QUICK, "--store", own_store, cwd=cwd, check=0)
    other = tmp_path / "other"
    here("store", "merge", own_store, "--store", other, cwd=cwd, check=0)
    contents = [
        {path.name: path.read_bytes() for path in (s / "temperatures").glob("[!_]*")} for s in (other, own_store)
    ]
    assert contents[0] == contents[1]
    answer = here("temperature", QUICK, "--store", other, cwd=cwd, check=0)
    assert "tokens/s" not in answer.stderr
    path = other / "temperatures" / f"{runs_by_size(other)['m']['run_id']}.parquet"
    pq.write_table(pq.read_table(path).slice(16), path)  # without its first document
    answer = here("store", "verify", "--store", other, cwd=cwd, check=1)
    assert "expected" in answer.stdout
    assert "ask temperature again" in answer.stdout


def test_from_python_the_same_rows(own_store: Path, cwd: Path) -> None:
    from rbpx.api.measurements import open_measurements

    answer = open_measurements(own_store).temperature(resamples=50)
    assert [row["kind"] for row in answer.records] == ["run"] * 4 + ["law"] * 2
    assert [row["temperature"] for row in answer.records[:4]] == [
        row["temperature"] for row in rows(own_store, cwd)[:4]
    ]
