"""The known datasets from files of one's own: their fields, their articles, what counts, end to end on the ladder."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from rbpx.config.options import Chunk, Draw
from rbpx.config.text.dataset import DatasetConfig
from rbpx.data.corpus import Document, read_file, read_source
from rbpx.data.samples import sample_here
from rbpx.data.texts import split_articles
from rbpx.errors import RbpxError
from rbpx.store.store import Store
from tests.support.composed import here
from tests.support.hub_datasets import wikitext_rows
from tests.support.places import CONF
from tests.support.published_texts import FILES, published

# ---------------------------------------------------------------------------------------------------------- articles


def test_the_rows_of_the_hub_and_the_published_file_give_the_same_articles(shared_data: Path) -> None:
    path = shared_data / "data" / "wikitext-2-raw-test.txt"
    assert split_articles(row["text"] for row in wikitext_rows(path)) == read_file(path, DatasetConfig(articles=True))


def test_an_article_begins_at_a_title_between_blank_lines_and_at_nothing_else() -> None:
    lines = [
        " before the first title",
        " ",
        " = First = ",
        "",
        " its text\n",
        " = 1 henry and capacitance = ",  # a formula in a paragraph
        " more",
        " ",
        " = = A section = = ",
        " ",
        " = = = Below it = = = ",
        "",
        "",
        " = Sed & Son = \n",
        "\n",
        " end ",
        " ",
    ]
    first = (
        " = First = \n\n its text\n = 1 henry and capacitance = \n more\n\n"
        " = = A section = = \n\n = = = Below it = = = "
    )
    assert split_articles(lines) == [("First", first), ("Sed & Son", " = Sed & Son = \n\n end ")]
    assert split_articles([]) == split_articles(["no title", ""]) == []


# ------------------------------------------------------------------------------------------------- what of a row counts


PILE = [
    {"text": "x" * n, "meta": {"pile_set_name": of}} for n, of in [(512, "Github"), (513, "Github"), (900, "ArXiv")]
]


def write(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def documents_of(path: Path, name: str, **keys: Any) -> list[Document]:
    """What is drawn of a file in place of a known dataset, as its own file of conf/dataset says."""
    known = yaml.safe_load((CONF / "dataset" / f"{name}.yaml").read_text()) | keys | {"path": str(path)}
    known |= {key: of(known[key]) for key, of in (("draw", Draw), ("chunk", Chunk)) if key in known}
    found = sample_here(DatasetConfig(**known), 6, 42, Store(path.parent / "store"))
    return found.documents


@pytest.mark.parametrize("name", FILES)
def test_a_known_dataset_is_drawn_from_its_published_file(name: str, shared_data: Path, tmp_path: Path) -> None:
    file, n = FILES[name]
    (tmp_path / file).symlink_to(shared_data / "data" / file)
    texts = published(name, tmp_path / file)
    assert len(texts) == n
    drawn = [texts[i] for i in np.random.default_rng(42).permutation(n)[:6]]
    assert [document.text for document in documents_of(tmp_path / file, name)] == drawn


def test_a_file_in_place_of_a_known_dataset_is_filtered_as_that_is(tmp_path: Path) -> None:
    documents = documents_of(write(tmp_path / "pile.jsonl", PILE), "github")
    assert [document.source_id for document in documents] == ["2"]


def test_rules_are_overrides_like_any_other(tmp_path: Path) -> None:
    path = write(tmp_path / "own.jsonl", [{"text": "a b c d e f", "of": {"kind": k}} for k in ("law", "bill", "law")])
    documents = documents_of(path, "file", where={"of.kind": "law"}, longer_than=3)
    assert sorted(document.source_id for document in documents) == ["1", "3"]


def test_rules_hold_for_the_built_in_texts_too() -> None:
    every = read_source("pydoc", None)
    long = read_source("pydoc", None, DatasetConfig(longer_than=5000))
    assert long == [(topic, text) for topic, text in every if len(text) > 5000]
    assert 0 < len(long) < len(every)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("dataset=file dataset.where={meta.kind:law}", ["'meta.kind'", "it has: pile_set_name"]),
        ("dataset=github dataset.where={meta.kind:law}", ["dataset.where.meta.kind", "did you mean dataset.where"]),
        ("dataset=gsm8k dataset.draw=some", ["draw", "some"]),
        ("dataset=gsm8k dataset.revision=1e5", ["dataset.revision", "a file has no such parts"]),
        ("dataset=file dataset.split=test", ["dataset.split=test is for datasets of the hub"]),
        ("dataset=humaneval dataset.chunk=line", ["dataset.chunk=line is for texts on this machine"]),
        ("dataset=pydoc dataset.split=test", ["is for datasets of the hub, and pydoc"]),
        ("dataset=file dataset.chunk=sentence", ["dataset.chunk=sentence is unknown", "none, paragraph, line"]),
        ("dataset=file dataset.hub=org/name", ["dataset.hub=org/name", "dataset=hub"]),
        ("dataset=nosuch", ["dataset=nosuch is unknown", "gsm8k", "wikitext"]),
        ("dataset=file dataset.longer_than=9999", ["no text that meets dataset.longer_than=9999"]),
        ("dataset=file dataset.articles=true", ["no text that meets dataset.articles=true"]),
        ("dataset=file dataset.where={meta.pile_set_name:law}", ["no text that meets dataset.where"]),
        ("dataset=file dataset.where=law", ["dataset.where=law is not a mapping"]),
        ("dataset=file dataset.fields=[]", ["dataset.fields=[]"]),
    ],
)
def test_a_rule_that_cannot_be_meant_or_that_no_text_meets_is_one_line(
    words: str, says: list[str], cwd: Path, tmp_path: Path
) -> None:
    path = write(tmp_path / "pile.jsonl", PILE)
    of_hub = words.startswith(("dataset=humaneval", "dataset=pydoc"))
    asked = ("measure", *words.split(), *([] if of_hub else [f"dataset.path={path}"]), "size=3k")
    line = here(*asked, "--store", tmp_path / "store", cwd=cwd, check=2).stderr
    assert line.count("rbpx: ") == 1, line
    assert all(part in line for part in says), line
    assert not [*tmp_path.glob("store/runs/*")]


def test_a_plain_text_has_no_columns(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one text")
    with pytest.raises(RbpxError, match=r"has no column 'kind' for dataset\.where \(it has: text\)"):
        read_file(tmp_path / "a.txt", DatasetConfig(where={"kind": "law"}))
