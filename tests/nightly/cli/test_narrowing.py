"""Each name that a store holds narrows each question as a whole command, one's own configuration first."""

import json
from pathlib import Path
from typing import Any

import pytest

import rbpx
from rbpx.store.store import now
from tests.support.commands import here
from tests.support.synthetic import Truth, write_store

ASKED = ("laws=[rbp]", "k=1", "ties=optimistic", "resamples=25", "--format", "json")
TABLE = "model,S,dataset,k,rbp,n_tokens\n" + "".join(
    f"{model},{S},mytext,1,{rbp},1000\n"
    for model, S, rbp in (("a", 1_000, 0.2), ("b", 10_000, 0.3), ("c", 100_000, 0.4))
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs on `drawn_text` at two revisions, and an imported text that nothing else knows."""
    root = tmp_path_factory.mktemp("narrowing")
    (root / "cwd").mkdir()
    filled = write_store(root / "store", Truth(), seed=1, n_documents=4, n_tokens=8, dataset="drawn_text")
    for cell in list(filled.records("cells")):
        for revision in ("step1", "step2"):
            key = f"{cell['cell_key']}-{revision}"
            filled.write_record("cells", key, {**cell, "cell_key": key, "revision": revision})
        filled.drop_record("cells", cell["cell_key"])
    (root / "mytext.csv").write_text(TABLE)
    words = ("import", root / "mytext.csv", "source=paper", "ties=optimistic", "family=theirs")
    here(*words, "--store", root / "store", cwd=root / "cwd", check=0)
    return root / "store"


def groups(store: Path, cwd: Path, *words: str) -> list[tuple[Any, ...]]:
    answer = here("fit", *words, *ASKED, "--store", store, cwd=cwd, check=0)
    assert answer.stderr == ""
    return sorted((row["dataset"], row["revision"] or "", row["n_points"]) for row in json.loads(answer.stdout))


def test_an_imported_text_is_named_as_any_other(store: Path, cwd: Path) -> None:
    assert groups(store, cwd, "dataset=mytext") == [("mytext", "", 3)]
    assert groups(store, cwd, "dataset=drawn_text", "model.revision=step1") == [("drawn_text", "step1", 5)]


def test_a_file_of_ones_own_configuration_goes_before_the_store(store: Path, cwd: Path, tmp_path: Path) -> None:
    (tmp_path / "own" / "dataset").mkdir(parents=True)
    (tmp_path / "own" / "dataset" / "mytext.yaml").write_text("name: drawn_text\nkind: file\n")
    words = ("--config-dir", str(tmp_path / "own"), "dataset=mytext", "model.revision=step2")
    assert groups(store, cwd, *words) == [("drawn_text", "step2", 5)]


def test_a_revision_narrows_without_a_model(store: Path, cwd: Path) -> None:
    assert groups(store, cwd, "model.revision=step2") == [("drawn_text", "step2", 5)]
    assert groups(store, cwd, "-m", "model.revision=step1,step2") == [("drawn_text", r, 5) for r in ("step1", "step2")]
    assert groups(store, cwd, "dataset.name=drawn_text", "model.revision=step1") == [("drawn_text", "step1", 5)]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("dataset=drawn_txt", "did you mean drawn_text?"),
        ("protocol.window=64", "protocol.window=64 is a key of protocol, and none is named; add protocol=NAME"),
    ],
)
def test_what_nothing_in_the_store_has_is_one_line(words: str, says: str, store: Path, cwd: Path) -> None:
    answer = here("fit", *words.split(), "--store", store, cwd=cwd, check=2)
    assert answer.stdout == ""
    assert answer.stderr.startswith("rbpx: ")
    assert says in answer.stderr
    assert answer.stderr.count("\n") == 1


# ------------------------------------------------------------------------------------------- names that status prints

STRANGE = ("my notes", "a/b", "a,b", "42", "it's", "x=1", "[x]", "null", "ü")


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of every kind of entry, with names that a shell or Hydra's grammar may read as something else."""
    root = tmp_path_factory.mktemp("named")
    (root / "cwd").mkdir()
    filled = write_store(root / "store", Truth(), seed=1, n_documents=4, n_tokens=8, dataset=STRANGE[0])
    rows = [f'"{name}","{name}",{S},1,0.4' for name in STRANGE for S in (100_000, 1_000_000)]
    (root / "table.csv").write_text("\n".join(["family,dataset,S,k,rbp", *rows]))
    words = ("import", root / "table.csv", 'source="1.0"', "ties=mid")
    here(*words, "--store", root / "store", cwd=root / "cwd", check=0)
    failure = {"cell_key": "e" * 16, "failure_key": "e" * 16, "family": "gtp2", "size": "7", "dataset": "mistyped"}
    failure |= {"protocol": "paper", "revision": None, "dtype": "float32", "error": "none", "at": now()}
    filled.write_record("failures", "e" * 16, failure)
    return root / "store"


def status(store: Path, cwd: Path, *words: str) -> list[dict[str, Any]]:
    answer = here("status", *words, "--format", "json", "--store", store, cwd=cwd, check=0)
    found: list[dict[str, Any]] = json.loads(answer.stdout)
    return found


def names_in(row: dict[str, Any], column: str) -> set[str]:
    value = row.get(column, "measured" if column == "source" else None)
    return set(value) if isinstance(value, list) else set() if value is None else {value}


@pytest.mark.parametrize("key", ["family", "size", "dataset", "source"])
def test_each_name_that_status_prints_narrows_it_to_that(key: str, named: Path, cwd: Path) -> None:
    rows = status(named, cwd)
    assert {row["state"] for row in rows} == {"done", "imported", "failed"}
    names = set().union(*(names_in(row, key) for row in rows))
    if key == "dataset":
        assert names == {*STRANGE, "mistyped"}
    for name in names:
        wanted = [row for row in rows if name in names_in(row, key)]
        assert status(named, cwd, f'{key}="{name}"') == wanted, name


def test_a_protocol_and_a_sweep_narrow_status_too(named: Path, cwd: Path) -> None:
    assert {row["state"] for row in status(named, cwd, "protocol=paper")} == {"done", "failed"}
    assert status(named, cwd, "protocol=rolling") == []
    found = status(named, cwd, "-m", 'dataset=mistyped,"ü"', 'source="1.0",measured')
    assert [row["state"] for row in found] == ["imported", "failed"]


def test_a_part_of_a_grid_without_cells_is_not_the_store(named: Path, cwd: Path) -> None:
    words = ("model=ladder", "dataset=pydoc", "size=3k", "shard=2/2")
    assert status(named, cwd, *words) == []
    assert here("status", *words, "--store", named, cwd=cwd, check=0).stdout.splitlines()[0] == "0 cells"


def test_a_family_with_signs_of_the_grammar_of_sides_is_a_side(tmp_path: Path) -> None:
    for family in ("drawn", "org/fam:v2@1"):
        write_store(tmp_path / "store", Truth(), seed=1, n_documents=4, n_tokens=8, family=family)
    opened = rbpx.open(tmp_path / "store")
    assert opened.compare(a="org/fam:v2@1/1000", b="drawn/1000").records
    assert opened.multiplier(base="drawn", variant="org/fam:v2@1", laws=["cross_entropy"], resamples=25).records
    with pytest.raises(rbpx.RbpxError, match=r"org/fam:v2@1/1000"):
        opened.compare(a="org/fam:v2@1/nosuch", b="drawn/1000")
    with pytest.raises(rbpx.RbpxError, match=r"families: drawn, org/fam:v2@1"):
        opened.multiplier(base="drawn", variant="org/fam:v3")
