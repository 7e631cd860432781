"""Other people's results come in whole or not at all, stand beside the measured ones, and go out again."""

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.commands import Answer, here

pytest_plugins = ["tests.stores"]

GOOD: list[dict[str, Any]] = [
    {
        "model": f"ORG/m-{S}",
        "S": S,
        "dataset": "wiki",
        "k": k,
        "RBP": 1 - 0.5 / (k * S**0.1),
        "n_tokens": 5000,
        "CE": 3.5,
    }
    for S in (1000, 10_000, 100_000)
    for k in (1, 10)
]


def write_csv(path: Path, rows: list[dict[str, Any]]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.fixture
def good(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "good.csv", GOOD)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


def bring(path: Path, store: Path, cwd: Path, *words: str, check: int = 0) -> Answer:
    said = words or ("source=them", "ties=optimistic", "family=f")
    return here("import", path, *said, "--store", store, cwd=cwd, check=check)


def ask(store: Path, cwd: Path, query: str) -> list[dict[str, Any]]:
    return list(json.loads(here("sql", query, "--store", store, "--format", "json", cwd=cwd, check=0).stdout))


def observations(store: Path, cwd: Path, source: str = "them") -> list[dict[str, Any]]:
    query = f"SELECT * EXCLUDE (run_id, source) FROM observations WHERE source = '{source}' ORDER BY ALL"
    return ask(store, cwd, query)


def test_a_table_comes_in_under_its_own_names_and_aliases(good: Path, store: Path, cwd: Path) -> None:
    answer = bring(good, store, cwd)
    assert "6 observations of 3 model(s) on 1 text(s) at 2 k from source=them" in answer.stderr
    rows = observations(store, cwd)
    assert len(rows) == 6
    for row, given in zip(sorted(rows, key=lambda r: (r["non_embedding_params"], r["k"])), GOOD, strict=True):
        assert row["rbp"] == given["RBP"]
        assert (row["model"], row["size"]) == (given["model"], f"m-{given['S']}")
        assert (row["family"], row["ties"], row["n"], row["n_tokens"]) == ("f", "optimistic", 1, 5000)
        assert row["cross_entropy_nats"] == 3.5


@pytest.mark.parametrize("form", ["json", "jsonl", "parquet"])
def test_every_format_says_the_same(form: str, good: Path, store: Path, cwd: Path, tmp_path: Path) -> None:
    path = tmp_path / f"same.{form}"
    if form == "parquet":
        pq.write_table(pa.Table.from_pylist(GOOD), path)
    elif form == "json":
        path.write_text(json.dumps(GOOD))
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in GOOD))
    bring(good, store, cwd)
    bring(path, store, cwd, "source=other", "ties=optimistic", "family=f")
    assert observations(store, cwd, "other") == observations(store, cwd)


def test_wide_columns_and_windows_come_in_too(store: Path, cwd: Path, tmp_path: Path) -> None:
    wide = [{"size": "s", "non_embedding_params": 10, "rbp_1": 0.25, "rbp_10": 0.5, "rbp_100": ""}]
    bring(write_csv(tmp_path / "wide.csv", wide), store, cwd, "source=w", "ties=mid", "family=f", "dataset=d")
    assert [(r["k"], r["rbp"]) for r in observations(store, cwd, "w")] == [(1, 0.25), (10, 0.5)]
    windows = [{"size": "s", "S": 10, "k": 1, "n": n, "p_nk": 0.5**n} for n in (1, 5)]
    bring(write_csv(tmp_path / "n.csv", windows), store, cwd, "source=n", "ties=mid", "family=f", "dataset=d")
    assert [(r["n"], r["rbp"]) for r in observations(store, cwd, "n")] == [(1, 0.5), (5, 0.03125)]


def test_a_column_of_any_name_can_be_meant(store: Path, cwd: Path, tmp_path: Path) -> None:
    rows = [{"who": "s", "S": 10, "at": 1, "hit rate": 0.25, "mood": "fine"}]
    path = write_csv(tmp_path / "odd.csv", rows)
    said = ("source=o", "ties=mid", "family=f", "dataset=d", "columns={size: who, k: at, rbp: hit rate}")
    answer = bring(path, store, cwd, *said)
    assert "ignored: mood" in answer.stderr
    assert [(r["size"], r["k"], r["rbp"]) for r in observations(store, cwd, "o")] == [("s", 1, 0.25)]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"RBP": 41.6}, "RBP=41.6 is outside 0 to 1; give shares, not percent"),
        ({"RBP": -0.1}, "RBP=-0.1 is outside 0 to 1"),
        ({"RBP": "nan"}, "RBP=nan is not finite"),
        ({"RBP": ""}, "RBP is empty"),
        ({"RBP": "much"}, "RBP=much is no number"),
        ({"S": 85.056}, "non_embedding_params=85.056 is no count; give parameters, not millions"),
        ({"S": 0}, "non_embedding_params=0 is no count"),
        ({"S": 777}, "f m-10000 has non_embedding_params=777, and 10000 above; a model has one size"),
        ({"k": 0}, "k=0 is no count"),
        ({"k": 1.5}, "k=1.5 is no count"),
        ({"k": ""}, "k is empty"),
        ({"CE": -1}, "cross_entropy_nats=-1 is below 0"),
        ({"CE": "inf"}, "cross_entropy_nats=inf is not finite"),
        ({"n_tokens": 0.5}, "n_tokens=0.5 is no count"),
        ({"dataset": ""}, "dataset is not known"),
        ({"model": ""}, "the model has no name"),
        ({"k": 1, "RBP": 0.9}, "f m-10000 on wiki at k=1 ties=optimistic stands there twice with different values"),
    ],
    ids=lambda value: str(value)[:30] if isinstance(value, dict) else "",
)
def test_a_wrong_row_is_named_with_its_line_and_nothing_comes_in(
    change: dict[str, Any], told: str, good: Path, store: Path, cwd: Path, tmp_path: Path
) -> None:
    bring(good, store, cwd)
    before = observations(store, cwd)
    rows = [*GOOD[:3], GOOD[3] | change, *GOOD[4:]]
    path = write_csv(tmp_path / "wrong.csv", rows)
    answer = bring(path, store, cwd, "source=new", "ties=optimistic", "family=f", check=2)
    (line,) = answer.stderr.strip().splitlines()
    assert f"{path}, line 5: " in line
    assert told in line
    assert observations(store, cwd, "new") == []
    assert observations(store, cwd) == before


def test_a_line_number_counts_the_lines_of_the_file_not_its_rows(store: Path, cwd: Path, tmp_path: Path) -> None:
    path = tmp_path / "lines.csv"
    path.write_text('size,S,dataset,k,rbp\n"a\nb",10,d,1,0.5\nc,20,d,1,7\n')
    assert f"{path}, line 4: rbp=7" in bring(path, store, cwd, check=2).stderr


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("none.csv", None, "is no file"),
        ("empty.csv", "", "has no rows"),
        ("head.csv", "size,S,k,rbp\n", "has no rows"),
        ("odd.txt", "x", "known: .csv, .json, .jsonl, .parquet"),
        ("torn.json", "[{", "cannot be read"),
        ("object.json", '{"k": 1}', "is no list of objects"),
        ("torn.parquet", "PAR1", "cannot be read"),
        ("short.csv", "size,S,dataset,k,rbp\na,1,d\n", "line 2: not as many values as columns"),
        ("norbp.csv", "size,S,dataset,k\na,1,d,1\n", "has no column rbp"),
        ("nok.csv", "size,S,dataset,rbp\na,1,d,.5\n", "has no column k"),
        ("nos.csv", "size,dataset,k,rbp\na,d,1,.5\n", "has no column non_embedding_params"),
        ("nomodel.csv", "S,dataset,k,rbp\n5,d,1,.5\n", "has neither a column model nor size"),
        ("bits.csv", "size,S,dataset,k,rbp,ce_bits\na,5,d,1,.5,4\n", "ce_bits is in bits; convert to nats"),
    ],
)
def test_a_file_that_cannot_be_meant_is_one_line(
    name: str, text: str | None, told: str, store: Path, cwd: Path, tmp_path: Path
) -> None:
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    (line,) = bring(path, store, cwd, check=2).stderr.strip().splitlines()
    assert told in line
    assert name in line
    assert not list(store.glob("imports/*"))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("ties=mid", "family=f"), "source=NAME"),
        (("source=measured", "ties=mid", "family=f"), "source=measured cannot name"),
        (("source=a/b", "ties=mid", "family=f"), "source=a/b cannot name"),
        (("source=x", "family=f"), "say ties=RULE"),
        (("source=x", "ties=best", "family=f"), "best"),
        (("source=x", "ties=mid"), "say family=NAME"),
        (("source=x", "ties=mid", "family=f", "columns={colour: S}"), "columns=colour is no column"),
        (("source=x", "ties=mid", "family=f", "columns={k: rank}"), "has no column rank"),
    ],
)
def test_what_is_said_beside_the_file_is_checked(
    words: tuple[str, ...], told: str, good: Path, store: Path, cwd: Path
) -> None:
    (line,) = bring(good, store, cwd, *words, check=2).stderr.strip().splitlines()
    assert told in line
    assert not list(store.glob("imports/*"))


def test_the_same_file_again_changes_nothing_and_another_value_is_refused(
    good: Path, store: Path, cwd: Path, tmp_path: Path
) -> None:
    bring(good, store, cwd)
    files = {path: path.stat().st_mtime_ns for path in store.glob("imports/*")}
    assert "6 of them there already" in bring(good, store, cwd).stderr
    assert {path: path.stat().st_mtime_ns for path in store.glob("imports/*")} == files
    other = write_csv(tmp_path / "other.csv", [GOOD[0] | {"RBP": 0.1}])
    assert "with other values" in bring(other, store, cwd, check=2).stderr
    more = write_csv(tmp_path / "more.csv", [GOOD[0], GOOD[0] | {"k": 100, "RBP": 0.99}])
    bring(more, store, cwd)
    assert len(observations(store, cwd)) == 7


def test_imports_stand_beside_what_was_measured(good: Path, own_store: Path, cwd: Path) -> None:
    before = ask(own_store, cwd, "SELECT count(*) AS n FROM observations")[0]["n"]
    bring(good, own_store, cwd)
    assert ask(own_store, cwd, "SELECT count(*) AS n FROM observations")[0]["n"] == before + 6
    at = ask(own_store, cwd, "SELECT source, size, rbp FROM rbp_at(10, 'optimistic') ORDER BY source, size")
    assert [row["source"] for row in at] == ["measured"] * 4 + ["them"] * 3
    assert [row["rbp"] for row in at[4:]] == sorted(r["RBP"] for r in GOOD if r["k"] == 10)
    assert ask(own_store, cwd, "SELECT count(*) AS n FROM rbp_at(10, 'mid') WHERE source = 'them'") == [{"n": 0}]
    with duckdb.connect(str(own_store / "rbpx.duckdb"), read_only=True) as index:
        assert index.execute("SELECT count(*) FROM observations WHERE source = 'them'").fetchone() == (6,)
    moved = own_store.with_name("moved")
    shutil.move(own_store, moved)
    assert ask(moved, cwd, "SELECT count(*) AS n FROM observations WHERE source = 'them'") == [{"n": 6}]


def test_an_imported_run_is_shown_counted_kept_and_removed(good: Path, store: Path, cwd: Path) -> None:
    bring(good, store, cwd)
    here("fit", "source=them", "ties=optimistic", "--store", store, cwd=cwd, check=0)
    fits = ask(store, cwd, "SELECT fit_id, run_ids FROM fits")
    assert len(fits) == 3  # two k, and cross-entropy
    known = {row["run_id"] for row in ask(store, cwd, "SELECT DISTINCT run_id FROM observations")}
    assert set(fits[0]["run_ids"]) == known
    shown = json.loads(here("show", fits[0]["run_ids"][0], "--store", store, cwd=cwd, check=0).stdout)
    assert (shown["source"], shown["file"], len(shown["observations"])) == ("them", "good.csv", 2)
    assert len(shown["sha256"]) == 64
    assert "them" in here("status", "--store", store, cwd=cwd, check=0).stdout
    here("store", "gc", "--store", store, cwd=cwd, check=0)
    assert len(ask(store, cwd, "SELECT * FROM fits")) == 3
    here("store", "rm", "them", "--store", store, cwd=cwd, check=0)
    assert not list(store.glob("imports/*.parquet"))
    assert not list(store.glob("fits/*.json"))


def test_laws_of_imported_rows_say_what_is_not_known(store: Path, cwd: Path, tmp_path: Path) -> None:
    rows = [{key: value for key, value in row.items() if key != "CE"} for row in GOOD]
    bring(write_csv(tmp_path / "noce.csv", rows), store, cwd)
    words = ("source=them", "ties=optimistic", "--store", store, "--format", "json")
    fits = json.loads(here("fit", *words, cwd=cwd, check=0).stdout)
    assert [(f["law"], f["k"], f["status"]) for f in fits] == [
        ("rbp", 1, "ok"), ("rbp", 10, "ok"), ("cross_entropy", None, "not_known")
    ]  # fmt: skip
    assert {f["params"]["interval"] for f in fits} == {"models", None}
    asked = json.loads(here("fit", *words, "laws=[rbp,confidence]", "k=[1,7]", cwd=cwd, check=0).stdout)
    assert [(f["law"], f["k"], f["status"]) for f in asked] == [
        ("rbp", 1, "ok"), ("rbp", 7, "not_known"), ("confidence", None, "not_known")
    ]  # fmt: skip
    wrong = here("fit", "source=them", "--store", store, cwd=cwd, check=2).stderr
    assert "source them holds ties=optimistic: add ties=optimistic" in wrong
    for verb in ("klaw", "regimes", "predict", "emergence"):
        answer = here(verb, "source=them", "ties=optimistic", "--store", store, cwd=cwd, check=0)
        assert "nan" not in answer.stdout.lower()


# -------------------------------------------------------------------------------------------------------------- export


@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_observations_go_out_and_come_in_again(form: str, good: Path, store: Path, cwd: Path, tmp_path: Path) -> None:
    bring(good, store, cwd)
    path = tmp_path / f"out.{form}"
    answer = here("export", "observations", "--output", path, "--store", store, cwd=cwd, check=0)
    assert answer.stdout == ""
    bring(path, store, cwd, "source=again")
    assert observations(store, cwd, "again") == observations(store, cwd)


def test_any_query_goes_out(own_store: Path, cwd: Path, tmp_path: Path) -> None:
    path = tmp_path / "q.parquet"
    here("export", "SELECT size, n_tokens FROM runs", "--output", path, "--store", own_store, cwd=cwd, check=0)
    assert pq.read_table(path).num_rows == 4
    printed = here("export", "runs", "--store", own_store, cwd=cwd, check=0).stdout
    assert len(list(csv.DictReader(printed.splitlines()))) == 4


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("rnus",), "rnus is no relation; known: runs, tokens"),
        ((), "export takes one relation or query, got 0"),
        (("DROP TABLE runs",), "takes one SELECT"),
        (("runs", "output=x.xlsx"), "known: .csv, .json, .parquet"),
        (("runs", "output=no/such/folder.csv"), "cannot be written"),
    ],
)
def test_a_wrong_export_writes_nothing(words: tuple[str, ...], told: str, own_store: Path, cwd: Path) -> None:
    (line,) = here("export", *words, "--store", own_store, cwd=cwd, check=2).stderr.strip().splitlines()
    assert told in line
