"""What narrows a question: names that only the store knows, and keys of a group that is not named."""

import json
from pathlib import Path
from typing import Any

import pytest

import rbpx
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


def test_a_sweep_may_name_it_beside_others(store: Path, cwd: Path) -> None:
    assert groups(store, cwd, "-m", "dataset=mytext,drawn_text") == [
        ("drawn_text", "step1", 5),
        ("drawn_text", "step2", 5),
        ("mytext", "", 3),
    ]


def test_a_notebook_names_it_too(store: Path) -> None:
    fits = rbpx.open(store).fit(dataset="mytext", laws="rbp", k=1, ties="optimistic")
    assert [record["dataset"] for record in fits.records] == ["mytext"]


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
        ("dataset=mytxt", "did you mean mytext? the store holds drawn_text, mytext; known: arc_challenge"),
        ("dataset=drawn_txt", "did you mean drawn_text?"),
        ("dataset=pydco", "did you mean pydoc?"),
        ("dataset=pydoc", "dataset=pydoc is not in the store; it holds drawn_text, mytext"),
        ("model.revision=step3", "model.revision=step3 is not in the store; did you mean step2? it holds step1, step2"),
        ("model.bos=add", "model.bos=add is a key of a model, and none is named; add model=NAME"),
        ("protocol.window=64", "protocol.window=64 is a key of a protocol, and none is named; add protocol=NAME"),
        ("model=hub", "model=hub does not name a family"),
    ],
)
def test_what_nothing_in_the_store_has_is_one_line(words: str, says: str, store: Path, cwd: Path) -> None:
    answer = here("fit", *words.split(), "--store", store, cwd=cwd, check=2)
    assert answer.stdout == ""
    assert answer.stderr.startswith("rbpx: ")
    assert says in answer.stderr
    assert answer.stderr.count("\n") == 1
