"""Questions in SQL give what a loop over the tokens does; SQL of users reads the relations and nothing else."""

import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from itertools import chain, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rbpx.errors import RbpxError
from rbpx.questions.outcomes.counts import cut_sequences
from rbpx.runs.documents import text_ranks
from rbpx.store.sql import ask, ask_user, connect
from rbpx.store.store import Store
from rbpx.ties import Ties
from tests.support.composed import here
from tests.support.stores import manifests, rank_by_hand, run_folders, runs_by_size, snapshot

ALL_RUNS = dict.fromkeys(("family", "size", "dataset", "protocol", "revision", "cell_keys"))  # none narrows


@pytest.fixture(scope="module")
def connection(drawn: Path) -> Iterator[Any]:
    with connect(Store(drawn)) as opened:
        yield opened


@pytest.mark.parametrize(
    ("narrowed", "sizes"),
    [
        ({"size": ["m", "xs"]}, ["xs", "m"]),
        ({"family": ["mine"], "dataset": ["file"]}, ["xs", "s", "m", "l"]),
        ({"family": ["other"]}, []),
        ({"dataset": ["other"]}, []),
        ({"protocol": ["rolling"]}, []),
        ({"revision": ["step1"]}, []),
        ({"cell_keys": []}, []),
    ],
    ids=str,
)
def test_runs_is_narrowed_by_each_of_its_parameters(narrowed: Any, sizes: list[str], connection: Any) -> None:
    assert ask(connection, "runs", **(ALL_RUNS | narrowed))["size"].to_pylist() == sizes


def hits_by_hand(run: dict[str, Any], k: int, ties: str) -> dict[int, list[bool]]:
    """Hits of each document in the order of the positions, one token after the other."""
    found: dict[int, list[tuple[int, bool]]] = {}
    for doc_id, position, rank in zip(run["doc_id"], run["position"], rank_by_hand(run, ties), strict=True):
        found.setdefault(int(doc_id), []).append((int(position), bool(rank <= k)))
    return {doc_id: [hit for _, hit in sorted(tokens)] for doc_id, tokens in found.items()}


# ------------------------------------------------------------------------------------------------------ reading only

_, *PARTS = Path(__file__).with_name("refused.txt").read_text(encoding="utf-8").rstrip("\n").split("\n\n## ")
REFUSED = {
    title: [query.replace("\\n", "\n") for query in queries] for title, *queries in (part.split("\n") for part in PARTS)
}


@pytest.fixture
def places(own_store: Path, tmp_path: Path) -> dict[str, Path]:
    """Real files that a query must not read, and one that it must not write."""
    (tmp_path / "real.csv").write_text("a,b\n1,2\n")
    parquet, manifest = tmp_path / "tokens.parquet", tmp_path / "manifest.json"
    for path in (parquet, manifest):
        shutil.copy(next(iter(run_folders(own_store).values())) / path.name, path)
    named = {"new": tmp_path / "new", "csv": tmp_path / "real.csv", "folder": tmp_path, "parquet": parquet}
    return named | {"json": manifest, "index": own_store / "rbpx.duckdb"}


def test_what_is_no_plain_select_is_refused_and_changes_nothing(
    places: dict[str, Path], own_store: Path, tmp_path: Path
) -> None:
    before, around = snapshot(own_store), sorted(tmp_path.iterdir())
    hidden = pa.table({"a": [1]})
    passed, told = [], []
    with connect(Store(own_store)) as connection:
        rows = connection.execute("SELECT * FROM runs ORDER BY ALL").fetchall()
        for query in chain.from_iterable(REFUSED.values()):
            try:
                ask_user(connection, re.sub(r"@(\w+)", lambda name: str(places[name[1]]), query))
            except RbpxError as problem:
                told.append(str(problem))
            else:
                passed.append(query)
            assert ask_user(connection, "SELECT 1 AS one").to_pylist() == [{"one": 1}]
        assert passed == [], "\n".join(passed)
        assert [text for text in told if "\n" in text] == []
        assert connection.execute("SELECT * FROM runs ORDER BY ALL").fetchall() == rows
        assert connection.execute("SELECT count(*) FROM failures").fetchone() == (0,)
    assert hidden.num_rows == 1
    assert snapshot(own_store) == before
    assert sorted(tmp_path.iterdir()) == around


def test_the_files_that_were_refused_could_have_been_read(places: dict[str, Path]) -> None:
    """Else the refusals above would say nothing."""
    import duckdb

    for query in REFUSED["out of reach"][:-1]:
        asked = re.sub(r"@(\w+)", lambda name: str(places[name[1]]), query).replace(" FROM runs", "")
        assert duckdb.connect(":memory:").sql(asked).to_arrow_table().num_rows


def test_numbers_of_sql_are_numbers_in_json_and_what_python_has_no_number_for_is_shown(drawn: Path, cwd: Path) -> None:
    values = {"n": "sum(n_tokens)", "quarter": "0.25", "three": "3.0", "inner": "[1.5]"}
    values |= {"years": "INTERVAL '9 years'", "blob": "'\\x00'::BLOB", "nan": "'nan'::DOUBLE"}
    query = f"SELECT {', '.join(f'{value} AS {name}' for name, value in values.items())} FROM runs"
    asked = ("sql", query, "--store", drawn, "--format")
    (row,) = json.loads(here(*asked, "json", cwd=cwd, check=0).stdout)
    n_tokens = sum(manifest["n_tokens"] for manifest in manifests(drawn).values())
    assert row == row | {"n": n_tokens, "quarter": 0.25, "three": 3, "inner": [1.5], "years": "9 years", "nan": None}
    assert [here(*asked, form, cwd=cwd, check=0).stdout.count("9 years") for form in ("table", "csv")] == [1, 1]


ANSWERED = {
    "FROM runs SELECT count(*) AS n": 4,
    "WITH one AS (SELECT 1 AS n) SELECT n FROM one": 1,
    "VALUES (7)": 7,
    "(SELECT 1 AS n)": 1,
    "-- how many\nSELECT count(*) AS n FROM runs;": 4,
    "SELECT n_tokens = (SELECT count(*) FROM tokens t WHERE t.run_id = r.run_id) FROM runs r LIMIT 1": True,
    "SELECT now() > TIMESTAMPTZ '2026-01-01 00:00:00+00'": True,
    "SELECT count(DISTINCT v.text) > 10 FROM tokens t JOIN vocab v USING (token_id)": True,
    "PIVOT (SELECT size, dataset FROM runs WHERE size = 'm') ON dataset USING count(*) GROUP BY size": "m",
    "SELECT count(*) > 0 AS n FROM '@path'": True,
}


def test_every_form_of_a_select_is_answered_also_of_files_of_the_store(connection: Any, drawn: Path) -> None:
    path = next(iter(run_folders(drawn).values())) / "tokens.parquet"
    rows = {query: ask_user(connection, query.replace("@path", str(path))).to_pylist() for query in ANSWERED}
    assert {query: next(iter(row.values())) for query, (row,) in rows.items()} == ANSWERED


@pytest.mark.parametrize("ties", ["pessimistic", "optimistic", "mid"])
def test_sequences_are_cut_and_counted_as_a_loop_over_the_tokens_does(ties: str, connection: Any, drawn: Path) -> None:
    k_grid, lengths, n_passed = [1, 7, 100], [1, 2, 5], 0
    for run in runs_by_size(drawn).values():
        doc_T, rank_T = text_ranks(connection, run["run_id"], Ties(ties))
        n_documents = int(max(run["doc_id"])) + 1
        counted = np.zeros((4, len(k_grid), len(lengths), n_documents))
        for (at_k, k), (at_n, n) in product(enumerate(k_grid), enumerate(lengths)):
            for doc_id, hits in hits_by_hand(run, k, ties).items():
                cut = [hits[start : start + n] for start in range(0, len(hits) - n + 1, n)]
                pairs = sum(cut_[i] and cut_[j] for cut_ in cut for i in range(n) for j in range(n) if i != j)
                counted[:, at_k, at_n, doc_id] = len(cut), sum(map(all, cut)), sum(map(sum, cut)), pairs
        np.testing.assert_array_equal(cut_sequences(doc_T, rank_T, k_grid, lengths, n_documents), counted)
        n_passed += int(counted[1, :, 1:].sum())
    assert n_passed, "no sequence passed, so this says little"


@pytest.mark.parametrize("ties", ["pessimistic", "optimistic", "mid"])
def test_features_of_tokens_are_those_that_a_loop_finds(ties: str, connection: Any, drawn: Path) -> None:
    *_, small, large = runs_by_size(drawn).values()
    asked = {"run_id": large["run_id"], "smaller_run_id": small["run_id"], "ties": ties}
    answer = ask(connection, "token_features", **asked)
    often = Counter(small["token_id"].tolist())
    ranks, own = rank_by_hand(small, ties), rank_by_hand(large, ties)
    expected, before = [], None
    np.testing.assert_array_equal(small["position"], large["position"])
    for i, (doc_id, position) in enumerate(zip(small["doc_id"], small["position"], strict=True)):
        if before is not None and before[0] == doc_id:
            share = often[int(small["token_id"][i])] / len(small["doc_id"])
            features = [np.log(position), np.log(share), -small["logprob"][i], np.log(ranks[i]), before[1]]
            expected.append([int(doc_id), float(own[i]), *map(float, features)])
        before = (doc_id, -float(small["logprob"][i]))
    assert len(expected) > 100
    assert len(answer) == len(expected)
    for row, by_hand in zip(answer.to_pylist(), expected, strict=True):
        assert list(row.values()) == pytest.approx(by_hand, rel=1e-6)


def test_intervals_are_words_also_within_lists(connection: Any) -> None:
    query = """SELECT INTERVAL '1 month 2 days' AS "a b", [INTERVAL 1 DAY] AS c, 3 AS n"""
    assert ask_user(connection, query).to_pylist() == [{"a b": "1 month 2 days", "c": ["1 day"], "n": 3}]
