"""The known datasets from files of one's own: their fields, their articles, what counts, end to end on the ladder."""

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rbpx.config.text.items import RowChoice
from rbpx.data.corpus import read_file, read_source
from rbpx.data.texts import split_articles
from rbpx.errors import RbpxError
from tests.support.commands import here
from tests.support.hub_datasets import wikitext_rows

FILES = {
    "humaneval": ("HumanEval.jsonl.gz", 164),
    "hotpotqa": ("hotpot_dev_v1_simplified.json", 7405),
    "gsm8k": ("gsm8k_test.jsonl", 1319),
    "wikitext": ("wikitext-2-raw-test.txt", 60),
    "auslegal": ("south_australian_legislation_sample.jsonl", 110),
}
JOINED: dict[str, Callable[[dict[str, Any]], str]] = {
    "humaneval": lambda row: row["prompt"] + "\n" + row["canonical_solution"],
    "hotpotqa": lambda row: row["question"] + "\n" + row["answer"],
    "gsm8k": lambda row: row["question"] + "\n" + row["answer"],
    "auslegal": lambda row: row["text"],
}


def published(name: str, path: Path) -> list[str]:
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8")
    if name == "wikitext":
        return re.findall(r"(?ms)^ = [^=\n]+ = \n \n.*?(?=\n \n = [^=\n]+ = \n \n|\n?\Z)", text)
    rows = json.loads(text) if path.suffix == ".json" else [json.loads(line) for line in text.split("\n") if line]
    return [JOINED[name](row) for row in rows]


@pytest.mark.parametrize("name", FILES)
def test_a_known_dataset_is_measured_from_its_published_file(name: str, shared_data: Path, tmp_path: Path) -> None:
    path, n = shared_data / "data" / FILES[name][0], FILES[name][1]
    texts = published(name, path)
    assert len(texts) == n
    (tmp_path / "work").mkdir()
    words = ("measure", f"dataset={name}", f"dataset.path={path}", "size=[3k,7k]", "limit=6")
    here(*words, "--store", tmp_path / "store", cwd=tmp_path / "work", check=0)
    asked = (
        "SELECT dataset, dataset_commit, size, doc_id, d.n_bytes FROM runs JOIN documents d USING (run_id) ORDER BY ALL"
    )
    told = here("sql", asked, "--store", tmp_path / "store", "--format", "json", cwd=tmp_path / "work", check=0)
    rows = json.loads(told.stdout)
    drawn = [texts[i] for i in np.random.default_rng(42).permutation(n)[:6]]
    assert [(r["dataset"], r["dataset_commit"], r["size"], r["doc_id"]) for r in rows] == [
        (name, None, size, doc_id) for size in ("3k", "7k") for doc_id in range(6)
    ]
    # n_bytes is of what fitted into 512 tokens: all of a short text, the beginning of a long one
    short = [i for i, text in enumerate(drawn) if len(text.encode()) < 500]
    assert [rows[i]["n_bytes"] for i in short] == [len(drawn[i].encode()) for i in short]
    assert name in ("wikitext", "auslegal") or short


# ---------------------------------------------------------------------------------------------------------- articles


def test_the_articles_of_wikitext_are_counted_by_their_titles(shared_data: Path) -> None:
    path = shared_data / "data" / "wikitext-2-raw-test.txt"
    lines = path.read_text("utf-8").split("\n")
    titles = [
        line[3:-3]
        for before, line, after in zip(lines, lines[1:], lines[2:], strict=False)
        if before == after == " " and line.startswith(" = ") and line.endswith(" = ") and line[3] != "="
    ]
    found = read_file(path, ["text"], RowChoice(articles=True))
    assert [name for name, _ in found] == titles
    assert len(titles) == 60
    assert (titles[0], titles[-1]) == ("Robert Boulter", found[-1][0])
    kept = [line for _, text in found for line in text.split("\n") if line]
    assert kept == [line for line in lines if line.strip()], "nothing but blank lines is left out"


def test_the_rows_of_the_hub_and_the_published_file_give_the_same_articles(shared_data: Path) -> None:
    path = shared_data / "data" / "wikitext-2-raw-test.txt"
    assert split_articles(row["text"] for row in wikitext_rows(path)) == read_file(path, [], RowChoice(articles=True))


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


def test_a_file_in_place_of_a_known_dataset_is_filtered_as_that_is(tmp_path: Path) -> None:
    path = write(tmp_path / "pile.jsonl", PILE)
    (tmp_path / "work").mkdir()
    words = ("measure", "dataset=github", f"dataset.path={path}", "size=3k", "--store", tmp_path / "store")
    here(*words, cwd=tmp_path / "work", check=0)
    asked = ("sql", "SELECT source_id FROM documents", "--store", tmp_path / "store", "--format", "csv")
    assert here(*asked, cwd=tmp_path / "work", check=0).stdout.split() == ["source_id", "2"]


def test_rules_are_overrides_like_any_other(tmp_path: Path) -> None:
    path = write(tmp_path / "own.jsonl", [{"text": "a b c d e f", "of": {"kind": k}} for k in ("law", "bill", "law")])
    (tmp_path / "work").mkdir()
    words = ("measure", "dataset=file", f"dataset.path={path}", "size=3k", "--store", tmp_path / "store")
    here(*words, "dataset.where={of.kind: law}", "dataset.longer_than=3", cwd=tmp_path / "work", check=0)
    asked = ("sql", "SELECT n_documents FROM runs", "--store", tmp_path / "store", "--format", "csv")
    assert here(*asked, cwd=tmp_path / "work", check=0).stdout.split() == ["n_documents", "2"]


def test_rules_hold_for_the_built_in_texts_too() -> None:
    every = read_source("pydoc", None, ["text"])
    long = read_source("pydoc", None, ["text"], RowChoice(longer_than=5000))
    assert long == [(topic, text) for topic, text in every if len(text) > 5000]
    assert 0 < len(long) < len(every)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("dataset=file", "dataset.where={meta.kind: law}"), ["'kind'", "meta.kind", "it has: pile_set_name"]),
        (("dataset=github", "dataset.where={meta.kind: law}"), ["dataset.where", "changed but not added to"]),
        (("dataset=github", "dataset.where={meta.pile_set_name: law}"), ["no text that meets dataset.where"]),
        (("dataset=file", "dataset.where=law"), ["dataset.where=law is not a mapping"]),
        (("dataset=file", "dataset.longer_than=-1"), ["dataset.longer_than=-1"]),
        (("dataset=file", "dataset.longer_than=9999"), ["no text that meets dataset.longer_than=9999"]),
        (("dataset=file", "dataset.articles=true"), ["no text that meets dataset.articles=true"]),
        (("dataset=file", "dataset.fields=[]"), ["dataset.fields=[]"]),
        (("dataset=file", "dataset.hub=org/name"), ["dataset.hub=org/name", "dataset=hub"]),
        (("dataset=gsm8k", "dataset.revision=1e5"), ["dataset.revision", "a file has no such parts"]),
        (("dataset=gsm8k", "dataset.draw=some"), ["draw", "some"]),
        (("dataset=nosuch",), ["dataset=nosuch is unknown", "gsm8k", "wikitext"]),
    ],
    ids=lambda value: " ".join(value),
)
def test_a_rule_that_cannot_be_meant_is_one_line(words: tuple[str, ...], says: list[str], tmp_path: Path) -> None:
    path = write(tmp_path / "pile.jsonl", PILE)
    (tmp_path / "work").mkdir()
    asked = ("measure", *words, f"dataset.path={path}", "size=3k", "--store", tmp_path / "store")
    line = here(*asked, cwd=tmp_path / "work", check=2).stderr
    assert line.count("\n") == 1, line
    assert all(part in line for part in says), line
    assert not (tmp_path / "store").exists()


def test_columns_are_no_matter_of_a_plain_text(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one text")
    with pytest.raises(RbpxError, match=r"plain text without the columns of dataset\.where"):
        read_file(tmp_path / "a.txt", ["text"], RowChoice(where={"kind": "law"}))


@pytest.mark.parametrize("words", [("dataset=hub",), ("dataset=hub", "dataset.hub=org/name")])
def test_a_hub_dataset_needs_an_id_and_a_split(words: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    line = here("measure", *words, "size=3k", "--store", tmp_path / "store", cwd=tmp_path / "work", check=2).stderr
    assert "dataset=hub needs dataset." in line
    assert line.count("rbpx: ") == 1
