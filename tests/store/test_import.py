"""Other people's results come into a store whole, checked and traceable, or not at all."""

import csv
import hashlib
import io
import json
import shlex
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

import rbpx
from rbpx.config.imports import ImportConfig
from rbpx.errors import RbpxError
from rbpx.store.imports import table
from rbpx.store.schema import TRAINING
from rbpx.store.sql import ask_user, connect
from rbpx.store.store import Store
from rbpx.ties import Ties
from tests.support import imports
from tests.support.commands import Answer
from tests.support.composed import here
from tests.support.imports import imported
from tests.support.stores import snapshot

HEADER = "family,size,model,S,dataset,k,rbp,n_tokens,ce"
ROWS = [
    "toy,1b,ORG/toy-1b,1000000000,wiki,1,0.41,5000,3.1",
    "toy,1b,ORG/toy-1b,1000000000,wiki,10,0.7,5000,3.1",
    "toy,2b,ORG/toy-2b,2e9,wiki,1,0.43,5000,2.9",
    "toy,2b,ORG/toy-2b,2000000000.0,wiki,10,0.72,5000,2.9",
]
IMPORT = ("source=them", "ties=mid")
EXPERIMENTS = Path(rbpx.__file__).parents[1] / "experiments"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A place for a store that is not there yet."""
    return tmp_path / "store"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Two models on one text at two k, as CSV."""
    return write(tmp_path / "results.csv", HEADER, *ROWS)


def write(path: Path, *lines: str) -> Path:
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def bring(file: Path, store: Path, cwd: Path, *words: str, check: int | None = 0) -> Answer:
    answer = imports.bring(file, store, cwd, *(words or IMPORT), check=check)
    assert answer.stdout == ""
    return answer


def refused(answer: Answer, *says: str) -> None:
    """Exit status 2, no result, and one line that says all of `says`."""
    assert answer.returncode == 2, answer.stderr
    (line,) = answer.stderr.splitlines()
    assert line.startswith("rbpx: ")
    assert [words for words in says if words not in line] == [], line


# ------------------------------------------------------------------------------------------------------ what comes in


def test_every_row_becomes_an_observation_with_its_values(results: Path, store: Path, cwd: Path) -> None:
    answer = bring(results, store, cwd)
    assert answer.stderr == (
        f"imported 4 observations of 2 models on 1 dataset at 2 k from {results} into {store} as them\n"
        "toy on wiki: rbp of 2 models, S 1B to 2B\n"
        "toy on wiki: cross_entropy_nats of 2 models, S 1B to 2B\n"
        "next: python -m rbpx fit source=them ties=mid\n"
    )
    common = {"source": "them", "family": "toy", "revision": None, "dataset": "wiki", "text_hash": None}
    common |= {"protocol": None, "dtype": None, "n": 1, "ties": "mid", "n_tokens": 5000}
    common |= dict.fromkeys((*TRAINING.names, "weight", "active_params", "total_params", "accuracy", "bits_per_byte"))
    common |= dict.fromkeys(("schedule", "schedule_tokens", "lr", "n_samples", "n_correct", "item"))
    common |= dict.fromkeys(("warmup_tokens", "decay_tokens", "lr_decay", "final_lr"))
    common |= dict.fromkeys(f"{name}_stderr" for name in ("cross_entropy_nats", "bits_per_byte", "accuracy"))
    by_hand = [("1b", 10**9, 1, 0.41, 3.1), ("1b", 10**9, 10, 0.7, 3.1)]
    by_hand += [("2b", 2 * 10**9, 1, 0.43, 2.9), ("2b", 2 * 10**9, 10, 0.72, 2.9)]
    assert imported(store) == [
        common
        | {"size": size, "model": f"ORG/toy-{size}", "non_embedding_params": s, "k": k, "rbp": rbp}
        | {"cross_entropy_nats": ce}
        for size, s, k, rbp, ce in by_hand
    ]


def test_what_a_file_leaves_out_is_told_by_the_request(store: Path, cwd: Path, tmp_path: Path) -> None:
    file = write(tmp_path / "bare.csv", "hub_id,S,k,p", "ORG/toy-1b,1e9,1,0.5")
    words = ("family=toy", "dataset=wiki", "revision=main", "protocol=official", "dtype=float32")
    bring(file, store, cwd, *IMPORT, *words)
    (row,) = imported(store)
    told = {word.split("=")[0]: word.split("=")[1] for word in words}
    assert row == row | told | {
        "size": "1000000000",
        "model": "ORG/toy-1b",
        "n_tokens": None,
        "cross_entropy_nats": None,
    }


def test_a_column_for_each_k_makes_one_observation_a_k(store: Path, cwd: Path, tmp_path: Path) -> None:
    lines = ("family,model,S,dataset,RBP_1,rbp_10", "toy,1b,1000000000,wiki,0.41,0.7", "toy,2b,2000000000,wiki,0.43,")
    bring(write(tmp_path / "wide.csv", *lines), store, cwd)
    assert [(row["size"], row["k"], row["rbp"]) for row in imported(store)] == [
        ("1000000000", 1, 0.41), ("1000000000", 10, 0.7), ("2000000000", 1, 0.43)
    ]  # fmt: skip


def as_json(rows: list[dict[str, Any]], path: Path) -> Path:
    path.write_text(json.dumps(rows))
    return path


def as_jsonl(rows: list[dict[str, Any]], path: Path) -> Path:
    return write(path, *(json.dumps(row) for row in rows))


def as_parquet(rows: list[dict[str, Any]], path: Path) -> Path:
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


WRITERS = {".json": as_json, ".jsonl": as_jsonl, ".parquet": as_parquet}


@pytest.mark.parametrize("suffix", WRITERS)
def test_other_formats_say_the_same_as_csv(suffix: str, results: Path, store: Path, cwd: Path, tmp_path: Path) -> None:
    numbers = {"S": lambda text: int(float(text)), "k": int, "n_tokens": int, "rbp": float, "ce": float}
    rows = [
        {name: numbers.get(name, str)(value) for name, value in row.items()}
        for row in csv.DictReader(io.StringIO(results.read_text()))
    ]
    file = WRITERS[suffix](rows, tmp_path / f"results{suffix}")
    bring(results, store, cwd)
    bring(file, tmp_path / "other", cwd)
    assert imported(tmp_path / "other") == imported(store)
    assert "nothing new" in bring(file, store, cwd).stderr


def test_columns_can_be_named_whatever_they_are_called(store: Path, cwd: Path, tmp_path: Path) -> None:
    file = write(tmp_path / "odd.csv", "family,model,S,dataset,top,hit rate,rbp", "toy,1b,1e9,wiki,5,0.4,0.9")
    answer = bring(file, store, cwd, *IMPORT, 'columns={k: TOP, rbp: "hit rate"}')
    assert [(row["k"], row["rbp"]) for row in imported(store)] == [(5, 0.4)]
    assert answer.stderr.splitlines()[1] == f"ignored columns of {file}: rbp"


def test_the_column_rbp_goes_before_others_that_are_listed_as_ignored(store: Path, cwd: Path, tmp_path: Path) -> None:
    header = "family,model,s,dataset,K,rbp_full_precision,p,RBP,mean_run_length"
    file = write(tmp_path / "many.csv", header, "toy,1b,1e9,wiki,5,0.412345,0.3,0.4123,2")
    answer = bring(file, store, cwd)
    assert [row["rbp"] for row in imported(store)] == [0.4123]
    assert answer.stderr.splitlines()[1] == f"ignored columns of {file}: rbp_full_precision, p, mean_run_length"


def test_ties_may_stand_in_the_rows(store: Path, cwd: Path, tmp_path: Path) -> None:
    lines = ("family,model,S,dataset,k,rbp,ties", "toy,1b,1e9,wiki,5,0.4,mid", "toy,1b,1e9,wiki,5,0.5,optimistic")
    bring(write(tmp_path / "ruled.csv", *lines), store, cwd, "source=them")
    assert [(row["ties"], row["rbp"]) for row in imported(store)] == [("mid", 0.4), ("optimistic", 0.5)]


# ------------------------------------------------------------------------------------------------------ what does not

ROW = dict(zip(HEADER.split(","), ROWS[0].split(","), strict=True))
VALUES = {  # what one cell says, and what the line must say of it
    "S with a letter": ({"S": "85X"}, ["S is 85X", "not millions"]),
    "S with an underscore": ({"S": "85_000"}, ["85_000", "positive number"]),
    "no S": ({"S": ""}, ["S is empty"]),
    "S of zero": ({"S": "0"}, ["S is 0", "positive"]),
    "S below zero": ({"S": "-1"}, ["S is -1", "positive number"]),
    "S beyond any float": ({"S": "1e400"}, ["1e400", "positive number"]),
    "percent": ({"rbp": "41.6"}, ["rbp is 41.6", "shares in [0, 1], not percent"]),
    "percent sign": ({"rbp": "41%"}, ["rbp is 41%", "shares"]),
    "negative share": ({"rbp": "-0.1"}, ["rbp is -0.1", "shares"]),
    "share that is no number": ({"rbp": "nan"}, ["rbp is nan", "shares"]),
    "no share": ({"rbp": ""}, ["rbp is empty"]),
    "k of zero": ({"k": "0"}, ["k is 0", "from 1"]),
    "k of a half": ({"k": "1.5"}, ["k is 1.5", "whole number from 1"]),
    "no k": ({"k": ""}, ["k is empty"]),
    "n of zero": ({"n": "0"}, ["n is 0", "whole number from 1"]),
    "no tokens": ({"n_tokens": "0"}, ["n_tokens is 0", "from 1"]),
    "infinite entropy": ({"ce": "inf"}, ["ce is inf", "nats"]),
    "negative entropy": ({"ce": "-2"}, ["ce is -2", "nats"]),
    "unknown tie rule": ({"ties": "random"}, ["ties is 'random'", "pessimistic, optimistic, mid"]),
    "another tie rule": ({"ties": "optimistic"}, ["ties is 'optimistic'", "ties=mid was given"]),
    "no family": ({"family": ""}, ["the family", "family=NAME"]),
    "no dataset": ({"dataset": ""}, ["the dataset", "dataset=NAME"]),
    "another S for a size": ({"S": "7", "k": "3"}, ["toy 1b is 7", "1,000,000,000", "line 2"]),
    "another value": ({"rbp": "0.42"}, ["rbp of toy 1b on wiki, k=1, n=1 is 0.42", "0.41", "line 2"]),
}


@pytest.mark.parametrize(("cell", "says"), VALUES.values(), ids=VALUES)
def test_a_wrong_row_is_named_by_its_line_and_nothing_comes_in(
    cell: dict[str, str], says: list[str], store: Path, cwd: Path, tmp_path: Path
) -> None:
    wrong = {**ROW, **cell}
    header = ",".join([HEADER, *(name for name in cell if name not in ROW)])
    spare = "," * (len(wrong) - len(ROW))
    file = write(tmp_path / "wrong.csv", header, ROWS[0] + spare, "", ROWS[1] + spare, ",".join(wrong.values()))
    refused(bring(file, store, cwd, check=None), f"{file}, line 5: ", *says)
    assert not store.exists()


HEADERS = {
    "no rbp": ("family,model,S,dataset,k,percent", "toy,a,10,wiki,1,41", ["no column rbp", "percent", "columns="]),
    "no k": ("family,model,S,dataset,rbp", "toy,a,10,wiki,0.4", ["no column k", "columns="]),
    "both shapes": ("family,model,S,dataset,k,rbp,rbp_1", "toy,a,10,wiki,1,0.4,0.4", ["both 'rbp_1'", "'rbp'"]),
    "windows of no length": ("family,model,S,dataset,k,p_nk", "toy,a,10,wiki,1,0.4", ["p_nk", "no column n"]),
    "a name twice": ("family,model,S,s,dataset,k,rbp", "toy,a,10,10,wiki,1,0.4", ["two columns named 'S'"]),
    "a cell too many": (
        "family,model,S,dataset,k,rbp",
        "toy,a,10,wiki,1,0.4,7",
        ["row 1 of", "(line 2)", "7 cells", "has 6"],
    ),
    "no rows": ("family,model,S,dataset,k,rbp", "", ["has no rows"]),
    "an open quote": ("family,model,S,dataset,k,rbp", 'toy,"a,10,wiki,1,0.4', ["cannot be read"]),
}


@pytest.mark.parametrize(("header", "row", "says"), HEADERS.values(), ids=HEADERS)
def test_a_wrong_file_is_one_line_that_says_what_to_do(
    header: str, row: str, says: list[str], store: Path, cwd: Path, tmp_path: Path
) -> None:
    file = write(tmp_path / "wrong.csv", header, row)
    refused(bring(file, store, cwd, check=None), str(file), *says)
    assert not store.exists()


REQUESTS = {
    "no source": ("ties=mid", ["needs source=NAME"]),
    "our own source": ("source=measured ties=mid", ["source=measured"]),
    "source that is a path": ("source=a/b ties=mid", ["source=a/b", "letters, digits"]),
    "no tie rule": ("source=them", ["no column ties", "ties=optimistic"]),
    "unknown tie rule": ("source=them ties=nosuch", ["nosuch", "pessimistic"]),
    "unknown key": ("source=them ties=mid famly=x", ["famly", "did you mean family"]),
    "a model": ("source=them ties=mid model=gpt2", ["import has no key model"]),
    "a column that is not there": ("source=them ties=mid columns={rbp: nosuch}", ["no column 'nosuch'", "n_tokens"]),
    "a field that is none": ("source=them ties=mid columns={rpb: ce}", ["rpb is not a field", "rbp_K"]),
    "columns that are no mapping": ("source=them ties=mid columns=[ce]", ["not a mapping", "columns='{rbp: NAME"]),
    "a second file": ("source=them ties=mid more.csv", ["takes one file, got 2"]),
}


@pytest.mark.parametrize(("line", "says"), REQUESTS.values(), ids=REQUESTS)
def test_a_wrong_request_is_one_line(line: str, says: list[str], results: Path, store: Path, cwd: Path) -> None:
    words = line.replace(": ", ":").split()
    refused(here("import", results, *words, "--store", store, cwd=cwd), *says)
    assert not store.exists()


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("missing.csv", None, ["missing.csv is not a file"]),
        ("notes.txt", b"rbp", ["notes.txt", ".csv, .tsv, .json, .jsonl, .parquet, .xlsx"]),
        ("a.parquet", b"rbp", ["a.parquet cannot be read", "suffix"]),
        ("a.json", b"[1]", ["row 1 of", "a.json: ", "not an object"]),
        ("a.json", b'[{"k": 1, "k": 2}]', ["a.json cannot be read", "key twice"]),
        ("a.jsonl", b'{"rbp": 1}\n{"rbp"\n', ["row 2 of", "a.jsonl (line 2)", "not JSON"]),
        ("a.csv", b"\xff", ["a.csv cannot be read", "UTF-8"]),
        ("a.json", b'[{"family":"f","model":"m","S":85000000,"dataset":"d","k":true,"rbp":0.1}]', ["row 1: k is True"]),
        ("a.json", b'[{"family":"f","size":1.5,"S":85000000,"dataset":"d","k":1,"rbp":0.1}]', ["row 1: size is 1.5"]),
    ],
)
def test_a_file_that_is_not_what_it_says_is_refused(
    name: str, content: bytes | None, says: list[str], store: Path, cwd: Path, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    refused(bring(tmp_path / name, store, cwd, check=None), *says)
    assert not store.exists()


def test_a_line_is_counted_as_an_editor_counts_it(store: Path, cwd: Path, tmp_path: Path) -> None:
    lines = ("family,model,S,dataset,k,rbp,note", 'toy,a,10M,wiki,1,0.5,"two', 'lines"', "toy,a,10M,wiki,2,50,")
    refused(bring(write(tmp_path / "wrong.csv", *lines), store, cwd, check=None), "line 4: rbp is 50")


# ------------------------------------------------------------------------------------------------ what is there already


def test_importing_again_changes_nothing(results: Path, store: Path, cwd: Path) -> None:
    bring(results, store, cwd)
    before = snapshot(store)
    assert "nothing new" in bring(results, store, cwd).stderr
    assert snapshot(store) == before


IMPOSSIBLE = {
    "RBP that falls in k": (
        ["toy,1b,ORG/toy-1b,1e9,wiki,100,0.69,5000,3.1"],
        ["line 6: rbp of toy 1b on wiki, k=100, n=1 is 0.69, but 0.7 at k=10", "line 3", "never falls as k rises"],
    ),
    "RBP that falls below a k before": (
        ["toy,1b,ORG/toy-1b,1e9,wiki,5,0.4,5000,3.1"],
        ["line 6: rbp of toy 1b on wiki, k=5, n=1 is 0.4, but 0.41 at k=1", "line 2"],
    ),
}


@pytest.mark.parametrize(("rows", "says"), IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_results_that_cannot_be_are_refused_with_their_lines(
    rows: list[str], says: list[str], store: Path, cwd: Path, tmp_path: Path
) -> None:
    file = write(tmp_path / "impossible.csv", HEADER, *ROWS, *rows)
    refused(bring(file, store, cwd, check=None), *says)
    assert not store.exists()


def test_a_curve_that_falls_against_the_store_is_refused(results: Path, store: Path, cwd: Path, tmp_path: Path) -> None:
    bring(results, store, cwd)
    more = write(tmp_path / "more.csv", HEADER, "toy,1b,ORG/toy-1b,1e9,wiki,5,0.75,5000,3.1")
    refused(bring(more, store, cwd, check=None), "line 2: rbp of toy 1b on wiki, k=5", "0.7 at k=10 in the store")


def test_a_longer_file_adds_only_what_is_new(results: Path, store: Path, cwd: Path, tmp_path: Path) -> None:
    bring(write(tmp_path / "short.csv", HEADER, *ROWS[:1]), store, cwd)
    assert "(1 of them were there already)" in bring(results, store, cwd).stderr
    assert len(imported(store)) == len(ROWS)


@pytest.mark.parametrize(("old", "new"), [(",0.41,", ",0.42,"), ("1000000000", "1000000001")])
def test_a_file_that_contradicts_the_store_is_refused(
    old: str, new: str, results: Path, store: Path, cwd: Path, tmp_path: Path
) -> None:
    bring(results, store, cwd)
    before = snapshot(store)
    other = write(tmp_path / "other.csv", HEADER, "toy,9b,,9000000000,wiki,1,0.6,,", ROWS[0].replace(old, new))
    refused(bring(other, store, cwd, check=None), f"{other}, line 3: ", "in the store", "another source than them")
    assert snapshot(store) == before
    bring(other, store, cwd, "source=others", "ties=mid")
    assert len(imported(store)) == len(ROWS) + 2


# --------------------------------------------------------------------------------------------------- life in the store


def test_the_file_carries_where_it_is_from(results: Path, store: Path, cwd: Path) -> None:
    bring(results, store, cwd)
    (file,) = (store / "imports").iterdir()
    assert file.name.startswith("them-")
    provenance = json.loads(pq.read_schema(file).metadata[b"rbpx.import"])
    assert provenance["source"] == "them"
    assert provenance["file"] == "results.csv"
    assert provenance["sha256"] == hashlib.sha256(results.read_bytes()).hexdigest()
    assert provenance["columns"]["cross_entropy_nats"] == "ce"
    assert provenance["imported_at"] > "2026"


def test_the_relation_has_imported_results_at_their_own_k_and_rule(
    results: Path, store: Path, cwd: Path, tmp_path: Path
) -> None:
    bring(results, store, cwd)
    windows = write(tmp_path / "windows.csv", "family,size,S,dataset,k,n,p_nk", "toy,1b,1000000000,wiki,1,5,0.03")
    bring(windows, store, cwd)
    with connect(Store(store)) as connection:
        rows = ask_user(connection, "SELECT * EXCLUDE (run_id) FROM observations").to_pylist()
        for (k, ties), found in {(1, "mid"): [0.41, 0.43], (2, "mid"): [], (1, "optimistic"): []}.items():
            at_k = ask_user(connection, f"SELECT rbp FROM rbp_at({k}, '{ties}') ORDER BY rbp")
            assert at_k["rbp"].to_pylist() == found
        with pytest.raises(RbpxError, match=r"nosuch.*pessimistic"):
            ask_user(connection, "FROM rbp_at(1, 'nosuch')")
    assert sorted(rows, key=str) == sorted(imported(store), key=str)
    assert len(rows) == 5


def test_of_two_contradicting_files_that_come_at_once_one_is_refused(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = table.observations_of

    def slowly(*words: Any) -> pa.Table:
        stored = read(*words)
        time.sleep(0.1)  # so that both have read the store before one of them writes, if nothing holds it back
        return stored

    monkeypatch.setattr(table, "observations_of", slowly)
    files = [write(tmp_path / f"{rbp}.csv", HEADER, ROWS[0].replace("0.41", rbp)) for rbp in ("0.41", "0.42")]
    config = ImportConfig(source="them", ties=Ties.mid, family=None)
    with ThreadPoolExecutor(2) as pool:
        tasks = [pool.submit(table.import_file, Store(store), file, config) for file in files]
        problems = [task.exception() for task in tasks]
    (problem,) = [each for each in problems if each is not None]
    assert isinstance(problem, RbpxError)
    assert "in the store" in str(problem)
    assert len(imported(store)) == 1


def test_status_lists_imports_beside_runs(results: Path, own_store: Path, cwd: Path) -> None:
    bring(results, own_store, cwd)
    shown = here("status", "--store", own_store, cwd=cwd, check=0).stdout
    (line,) = [line.split() for line in shown.splitlines() if "them" in line]
    assert line == ["them", "toy", "wiki", "results.csv", "2", "2", "4"]
    rows = json.loads(here("status", "--format", "json", "--store", own_store, cwd=cwd, check=0).stdout)
    assert [(row["state"], row.get("source")) for row in rows] == [("done", None)] * 4 + [("imported", "them")]
    assert rows[-1]["n_observations"] == 4


def run_ids(store: Path) -> list[str]:
    return sorted({row["run_id"] for row in imported(store, "run_id")})


def test_an_imported_run_has_one_id_that_show_explains(results: Path, store: Path, cwd: Path, tmp_path: Path) -> None:
    bring(results, store, cwd)
    ids = run_ids(store)
    assert len(ids) == 2
    shown = [json.loads(here("show", one, "--store", store, cwd=cwd, check=0).stdout) for one in ids]
    assert {one["file"] for one in shown} == {"results.csv"}
    assert {one["sha256"] for one in shown} == {hashlib.sha256(results.read_bytes()).hexdigest()}
    assert sorted(row["rbp"] for one in shown for row in one["rows"]) == [0.41, 0.43, 0.7, 0.72]
    assert all({row["size"] for row in one["rows"]} in ({"1b"}, {"2b"}) for one in shown)
    turned = write(tmp_path / "turned.csv", HEADER, *reversed(ROWS))
    bring(turned, tmp_path / "other", cwd)
    assert run_ids(tmp_path / "other") == ids


def test_gc_keeps_fits_of_imported_runs_until_their_source_is_removed(results: Path, store: Path, cwd: Path) -> None:
    bring(results, store, cwd)
    kept = Store(store)
    for name, ids in {"whole": run_ids(store), "gone": ["nosuch"]}.items():
        kept.write_record("fits", name, {"fit_id": name, "run_ids": ids, "params": {}})
    assert "dropped 1 fit whose" in here("store", "gc", "--store", store, cwd=cwd, check=0).stderr
    assert [fit["fit_id"] for fit in kept.records("fits")] == ["whole"]
    here("store", "rm", "them", "--store", store, cwd=cwd, check=0)
    assert list(kept.records("fits")) == []
    assert imported(store) == []


def test_removing_a_source_leaves_the_others_and_the_runs(results: Path, own_store: Path, cwd: Path) -> None:
    bring(results, own_store, cwd)
    bring(results, own_store, cwd, "source=them-too", "ties=mid")
    runs = snapshot(own_store / "runs")
    here("store", "rm", "them", "--store", own_store, cwd=cwd, check=0)
    assert {row["source"] for row in imported(own_store)} == {"them-too"}
    assert snapshot(own_store / "runs") == runs
    refused(
        here("store", "rm", "them", "--store", own_store, cwd=cwd), "them is neither a run_id nor an imported source"
    )


def test_what_was_measured_can_be_imported_elsewhere(drawn: Path, store: Path, cwd: Path, tmp_path: Path) -> None:
    file = tmp_path / "observations.csv"
    here("export", "observations", "--store", drawn, "--output", file, cwd=cwd, check=0)
    _, ignored, *_ = bring(file, store, cwd, "source=elsewhere").stderr.splitlines()
    assert ignored == f"ignored columns of {file}: source, run_id"
    with connect(Store(drawn)) as connection:
        ours = ask_user(connection, "SELECT * EXCLUDE (run_id) FROM observations").to_pylist()
    assert sorted(imported(store), key=str) == sorted((row | {"source": "elsewhere"} for row in ours), key=str)
    assert len(ours) == 4 * 3 * 3


def test_a_file_that_rbpx_did_not_import_is_named(results: Path, store: Path, cwd: Path) -> None:
    bring(results, store, cwd)
    for content in (b"rbp", None):
        foreign = store / "imports" / "foreign.parquet"
        if content is None:
            pq.write_table(pa.table({"rbp": [0.5]}), foreign)
        else:
            foreign.write_bytes(content)
        refused(bring(results, store, cwd, check=None), f"{foreign} ", "move it out of the store")


def test_beside_a_corrupt_import_of_its_source_nothing_comes_in_and_beside_a_copy_it_does(
    results: Path, store: Path, cwd: Path, tmp_path: Path
) -> None:
    bring(results, store, cwd)
    (kept,) = (store / "imports").iterdir()
    shutil.copy(kept, kept.with_name(f"{kept.stem} (1).parquet"))
    more = write(tmp_path / "more.csv", HEADER, "toy,3b,,3e9,wiki,1,0.5,,")
    assert "1 observation" in bring(more, store, cwd).stderr
    assert "nothing new" in bring(results, store, cwd).stderr
    kept.with_name(f"{kept.stem} (1).parquet").unlink()
    content = bytearray(kept.read_bytes())
    content[len(content) // 3] ^= 8
    kept.write_bytes(content)
    again = write(tmp_path / "again.csv", HEADER, "toy,4b,,4e9,wiki,1,0.5,,")
    refused(bring(again, store, cwd, check=None), f"{kept} is not as rbpx imported it", "move it out of the store")


# ------------------------------------------------------------------------------------------------------ named studies


def brought_by(name: str, store: Path) -> list[dict[str, Any]]:
    """The observations of the files that a study brings in."""
    path = EXPERIMENTS / f"{name}.yaml"
    for told in yaml.safe_load(path.read_text(encoding="utf-8"))["imports"]:
        config = ImportConfig(**told | {"ties": Ties(told["ties"])})
        table.import_file(Store(store), path.parent / told["file"], config)
    return imported(store)


def test_the_published_figures_of_gpt2_give_the_published_slopes(store: Path) -> None:
    rows = brought_by("published_gpt2_wikipedia", store)
    assert len(rows) == 20
    assert {(row["source"], row["ties"], row["n"], row["n_tokens"]) for row in rows} == {
        ("rbp_paper", "optimistic", 1, 317414)
    }
    for k, published in {1: 0.056, 10: 0.093, 100: 0.126}.items():
        points = np.array([(row["non_embedding_params"], row["rbp"]) for row in rows if row["k"] == k])
        slope = np.polyfit(np.log(points[:, 0]), np.log(-np.log(points[:, 1])), 1)[0]
        assert -slope == pytest.approx(published, abs=5e-4)


def test_the_published_figures_of_pythia_give_the_published_slopes(store: Path) -> None:
    rows = brought_by("published_pythia_wikipedia", store)
    points = np.array([(r["non_embedding_params"], -np.log(r["rbp"]), r["cross_entropy_nats"]) for r in rows])
    assert len(points) == 10
    for column, published in {1: 0.079, 2: 0.087}.items():
        slope = np.polyfit(np.log(points[:, 0]), np.log(points[:, column]), 1)[0]
        assert -slope == pytest.approx(published, abs=5e-4)


def test_the_published_windows_are_whole_numbers_of_windows(store: Path) -> None:
    """The share of n_tokens windows that are hits is a count again; so the two columns belong together."""
    rows = brought_by("published_gpt2_emergence", store)
    assert sorted({row["n"] for row in rows}) == [1, 5, 10, 50, 100]
    assert len(rows) == 4 * 5 * 5
    counts = np.array([row["rbp"] * row["n_tokens"] for row in rows if row["n"] > 1])
    np.testing.assert_allclose(counts, np.round(counts), atol=1e-5)


@pytest.mark.parametrize(
    ("imports", "says"),
    [
        ("[{source: them, ties: mid}]", ["import 1", "names no file"]),
        ("[{file: nosuch.csv}]", ["needs source=NAME"]),
        ("[{file: nosuch.csv, sauce: them}]", ["sauce"]),
    ],
)
def test_a_wrong_import_of_a_study_is_one_line(imports: str, says: list[str], store: Path, cwd: Path) -> None:
    refused(here("experiment=published_gpt2_wikipedia", f"imports={imports}", "--store", store, cwd=cwd), *says)
    assert not store.exists()


def test_a_name_with_a_space_or_a_comma_can_be_typed(store: Path, cwd: Path, tmp_path: Path) -> None:
    file = write(tmp_path / "my results, new.csv", HEADER.replace("dataset,", ""), ROWS[0].replace("wiki,", ""))
    words = shlex.split("""source=them ties=mid 'dataset="wiki, english"'""")
    bring(file, store, cwd, *words)
    assert imported(store)[0]["dataset"] == "wiki, english"
