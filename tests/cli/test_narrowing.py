"""What narrows a question: names that only the store knows, and keys of a group that is not named."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import rbpx
from rbpx.store.store import now
from tests.support.composed import here
from tests.support.stores import run_folders
from tests.support.synthetic import Truth, write_store

ASKED = ("laws=[rbp]", "k=1", "ties=optimistic", "resamples=25", "--format", "json")
STRANGE = ("my notes", "a/b", "a,b", "42", "it's", "x=1", "[x]", "null", "ü")
TABLE = "family,model,S,dataset,k,rbp\n" + "".join(
    f'"{family}",m{S},{S},"{text}",1,{0.2 + S / 1e6}\n'
    for family, text in (("theirs", "mytext"), *((name, name) for name in STRANGE))
    for S in (1_000, 10_000, 100_000)
)


_, *LINES = Path(__file__).with_name("narrowing.txt").read_text(encoding="utf-8").splitlines()[1:]
NOWHERE = dict(line.split(" => ") for line in LINES)


@pytest.fixture(scope="module")
def store(place: Path) -> Path:
    """Runs on `drawn_text` at two revisions, imported texts that nothing else knows, a cell that failed."""
    root = place.parent
    filled = write_store(root / "store", Truth(), seed=1, n_documents=4, n_tokens=8, dataset="drawn_text")
    for cell in list(filled.records("cells")):
        for revision in ("step1", "step2"):
            key = f"{cell['cell_key']}-{revision}"
            filled.write_record("cells", key, {**cell, "cell_key": key, "revision": revision})
        filled.drop_record("cells", cell["cell_key"])
    (root / "mytext.csv").write_text(TABLE)
    words = ("import", root / "mytext.csv", "source=paper", "ties=optimistic")
    here(*words, "--store", root / "store", cwd=place, check=0)
    failure = {"cell_key": "e" * 16, "failure_key": "e" * 16, "family": "gtp2", "size": "7", "dataset": "mistyped"}
    failure |= {"protocol": "paper", "revision": None, "dtype": "float32", "error": "none", "at": now()}
    filled.write_record("failures", "e" * 16, failure)
    return root / "store"


def test_a_sweep_names_a_text_that_only_the_store_knows_beside_others(store: Path, cwd: Path) -> None:
    answer = here("fit", "-m", "dataset=mytext,drawn_text", *ASKED, "--store", store, cwd=cwd, check=0)
    assert answer.stderr == ""
    assert sorted((row["dataset"], row["revision"] or "", row["n_points"]) for row in json.loads(answer.stdout)) == [
        ("drawn_text", "step1", 5),
        ("drawn_text", "step2", 5),
        ("mytext", "", 3),
    ]


def test_a_notebook_names_it_too_and_a_revision_narrows_without_a_model(store: Path) -> None:
    opened, asked = rbpx.open(store), {"laws": "rbp", "k": 1, "ties": "optimistic", "resamples": 25}
    assert [row["dataset"] for row in opened.fit(dataset="mytext", **asked).records] == ["mytext"]
    found = opened.fit(**{"model.revision": "step2"}, **asked).records
    assert [(row["dataset"], row["revision"]) for row in found] == [("drawn_text", "step2")]


def test_a_file_of_ones_own_configuration_goes_before_the_store(store: Path, cwd: Path, tmp_path: Path) -> None:
    (tmp_path / "own" / "dataset").mkdir(parents=True)
    (tmp_path / "own" / "dataset" / "mytext.yaml").write_text("name: drawn_text\nkind: file\n")
    words = ("--config-dir", tmp_path / "own", "dataset=mytext", "model.revision=step2", *ASKED, "--store", store)
    (row,) = json.loads(here("fit", *words, cwd=cwd, check=0).stdout)
    assert (row["dataset"], row["revision"]) == ("drawn_text", "step2")


def test_a_family_that_only_the_store_knows_is_asked_with_all_of_its_revisions(store: Path, cwd: Path) -> None:
    asked = (*ASKED, "--store", store)
    rows = json.loads(here("fit", "model=drawn", "model.revision=all", *asked, cwd=cwd, check=0).stdout)
    assert sorted(row["revision"] for row in rows) == ["step1", "step2"]
    assert "family: drawn" in here("fit", "model=drawn", "--cfg", "job", *asked, cwd=cwd, check=0).stdout


def test_what_nothing_in_the_store_has_is_one_line(store: Path, cwd: Path) -> None:
    for words, says in NOWHERE.items():
        answer = here("fit", words, "--store", store, cwd=cwd, check=2)
        assert (answer.stdout, answer.stderr.count("\n")) == ("", 1), answer.stderr
        assert re.search(rf"^rbpx: .*{says}\n", answer.stderr), answer.stderr


# ------------------------------------------------------------------------------------------- names that status prints


def status(store: Path, cwd: Path, *words: str) -> list[dict[str, Any]]:
    answer = here("status", *words, "--format", "json", "--store", store, cwd=cwd, check=0)
    found: list[dict[str, Any]] = json.loads(answer.stdout)
    return found


def names_in(row: dict[str, Any], column: str) -> set[str]:
    value = row.get(column, "measured" if column == "source" else None)
    return set(value) if isinstance(value, list) else {value}


def test_names_that_status_prints_narrow_it_to_that_whatever_a_shell_or_a_grammar_makes_of_them(
    store: Path, cwd: Path
) -> None:
    rows = status(store, cwd)
    assert {row["state"] for row in rows} == {"done", "imported", "failed"}
    assert {*STRANGE, "mytext", "mistyped", "drawn_text"} == set().union(*(names_in(row, "dataset") for row in rows))
    listed = ",".join(f'"{name}"' for name in STRANGE)
    wanted = [row for row in rows if names_in(row, "dataset") & set(STRANGE)]
    assert status(store, cwd, "-m", f"dataset={listed}") == wanted
    for key, name in (("family", "a,b"), ("family", "null"), ("size", "7"), ("source", "paper")):
        wanted = [row for row in rows if name in names_in(row, key)]
        assert status(store, cwd, f'{key}="{name}"') == wanted, name
    assert {row["state"] for row in status(store, cwd, "protocol=paper")} == {"done", "failed"}
    assert status(store, cwd, "protocol=rolling") == []


def test_status_says_where_there_is_nothing_to_show(store: Path, cwd: Path, tmp_path: Path) -> None:
    for words, says in (
        (["dataset=pydoc", "--store", store], "holds nothing that matches dataset=pydoc"),
        (["--store", tmp_path / "nosuch"], "does not exist; name another with store=DIR"),
        (["--store", tmp_path], "holds nothing yet"),
    ):
        answer = here("status", *words, cwd=cwd, check=0)
        assert answer.stdout == ""
        assert says in answer.stderr


def test_a_grid_is_named_by_a_text_that_only_the_store_knows(store: Path, cwd: Path) -> None:
    model = ("model=hub", "model.id=[org/7,org/8]", "model.family=gtp2")
    rows = status(store, cwd, *model, "dataset=mistyped")
    assert [(row["size"], row["state"]) for row in rows] == [("7", "failed"), ("8", "missing")]
    assert status(store, cwd, *model, "dataset=mistyped", "size=7", "shard=2/2") == [], "a part without cells"


def test_what_failed_of_a_mistyped_name_is_forgotten_by_that_name(store: Path, cwd: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(store, tmp_path / "store"))
    for name in ("gtp2", "mistyped"):
        answer = here("store", "rm", name, "--store", copy, cwd=cwd, check=0 if name == "gtp2" else 2)
        assert ("forgot 1 failure of gtp2" if name == "gtp2" else "mistyped is neither") in answer.stderr
    assert list((copy / "failures").glob("*.json")) == []
    assert len(run_folders(copy)) == 5


def test_a_family_with_signs_of_the_grammar_of_sides_is_a_side(tmp_path: Path) -> None:
    for family in ("drawn", "org/fam:v2@1"):
        write_store(tmp_path / "store", Truth(), seed=1, n_documents=4, n_tokens=8, family=family)
    opened = rbpx.open(tmp_path / "store")
    assert opened.compare(a="org/fam:v2@1/1000", b="drawn/1000").records
    with pytest.raises(rbpx.RbpxError, match=r"org/fam:v2@1/1000"):
        opened.compare(a="org/fam:v2@1/nosuch", b="drawn/1000")
    with pytest.raises(rbpx.RbpxError, match=r"which holds drawn, org/fam:v2@1"):
        opened.multiplier(base="drawn", variant="org/fam:v3")
