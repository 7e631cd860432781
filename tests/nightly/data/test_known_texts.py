"""The known datasets from files of one's own: their fields, their articles, what counts, end to end on the ladder."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.commands import here
from tests.support.published_texts import FILES, published


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


PILE = [
    {"text": "x" * n, "meta": {"pile_set_name": of}} for n, of in [(512, "Github"), (513, "Github"), (900, "ArXiv")]
]


def write(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("dataset=github", "dataset.where={meta.pile_set_name: law}"), ["no text that meets dataset.where"]),
        (("dataset=file", "dataset.where=law"), ["dataset.where=law is not a mapping"]),
        (("dataset=file", "dataset.longer_than=-1"), ["dataset.longer_than=-1"]),
        (("dataset=file", "dataset.longer_than=9999"), ["no text that meets dataset.longer_than=9999"]),
        (("dataset=file", "dataset.articles=true"), ["no text that meets dataset.articles=true"]),
        (("dataset=file", "dataset.fields=[]"), ["dataset.fields=[]"]),
        (("dataset=file", "dataset.hub=org/name"), ["dataset.hub=org/name", "dataset=hub"]),
        (("dataset=gsm8k", "dataset.revision=1e5"), ["dataset.revision", "a file has no such parts"]),
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
