"""A text, token by token: marks, pages and rows hold the ranks that lie in the store."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.asking import ask
from tests.support.composed import here
from tests.support.stores import Measured, columns_of, runs_by_size


def tokens_of(store: Path, size: str, doc_id: int) -> dict[str, Any]:
    run = columns_of(store / "runs" / runs_by_size(store)[size]["run_id"], "tokens")
    return {name: column[run["doc_id"] == doc_id] for name, column in run.items()}


def doc_of(store: Path, line: int) -> str:
    """The key for the document that is this line of the text."""
    run_id = runs_by_size(store)["l"]["run_id"]
    documents = columns_of(store / "runs" / run_id, "documents")
    (doc_id,) = documents["doc_id"][documents["source_id"] == str(line)]
    return f"doc={doc_id}"


def test_rows_are_the_tokens_of_the_document_under_every_model(measured: Measured) -> None:
    rows = ask(measured.store, "view", doc=3, ties="mid").rows
    assert list(dict.fromkeys(row["model"] for row in rows)) == ["mine/xs", "mine/s", "mine/m", "mine/l"]
    for size in ("xs", "l"):
        own, expected = [row for row in rows if row["model"] == f"mine/{size}"], tokens_of(measured.store, size, 3)
        assert [row["position"] for row in own] == expected["position"].tolist()
        assert [row["rank"] for row in own] == (expected["greater"] + expected["ties"] / 2 + 1).tolist()
        assert [row["nats"] for row in own] == pytest.approx(-expected["logprob"])


def test_marks_say_the_rank_where_there_are_no_colours(measured: Measured) -> None:
    doc = doc_of(measured.store, 4)
    shown = ask(measured.store, "view", doc=int(doc[4:]), size="l").table()
    answer, _, heading, body = shown.split("\n", 3)
    tokens = tokens_of(measured.store, "l", int(doc[4:]))
    rank = tokens["greater"] + tokens["ties"] + 1
    assert f"the likeliest token of mine/l is right for {(rank == 1).mean():.0%} of {len(rank)} tokens" in answer
    assert f"{len(rank)} scored tokens" in heading
    assert f"{-tokens['logprob'].mean():.3f} nats" in heading
    text = body.rpartition("Ranks:")[0]
    assert text.count("«") == (rank > 100).sum() > 0
    assert text.count("‹") == ((rank > 10) & (rank <= 100)).sum() > 0
    assert "add(a, b):" in re.sub("[«»‹›]", "", text), "the text reads as the document does"


def test_the_document_is_the_one_that_gains_most(measured: Measured) -> None:
    heading = ask(measured.store, "view").table().split("\n")[2]
    small, large = (
        columns_of(measured.store / "runs" / runs_by_size(measured.store)[size]["run_id"], "tokens")
        for size in ("xs", "l")
    )
    gains = {}
    for doc_id in range(8):
        mine = small["doc_id"] == doc_id
        if mine.sum() >= 32:
            gains[doc_id] = (large["logprob"][mine].astype(float) - small["logprob"][mine]).mean()
    assert len(gains) > 1
    assert f"document {max(gains, key=gains.__getitem__)} (" in heading
    assert "gains most nats per token from mine/xs to mine/l" in heading


def test_the_page_has_every_token_of_the_smallest_and_the_largest_model_in_its_colour(
    measured: Measured, cwd: Path, tmp_path: Path
) -> None:
    path = tmp_path / "text.html"
    doc = doc_of(measured.store, 7)
    here("view", doc, "--store", measured.store, "--format", "html", "--output", path, cwd=cwd, check=0)
    readings = re.findall(r'under (mine/\w+)">(.*?)</div>', path.read_text(), re.DOTALL)
    assert [name for name, _ in readings] == ["mine/xs", "mine/l"]
    for name, tokens in readings:
        expected = tokens_of(measured.store, name.removeprefix("mine/"), int(doc[4:]))
        shown = re.findall(r'<span( class="g\d")? title="rank ([\d,]+), probability', tokens)
        ranks = (expected["greater"] + expected["ties"] + 1).tolist()
        assert [int(rank.replace(",", "")) for _, rank in shown] == ranks
        grades = [(rank > 1) + (rank > 10) + (rank > 100) for rank in ranks]
        assert [look for look, _ in shown] == [f' class="g{grade}"' if grade else "" for grade in grades]


def test_two_named_models_stand_beside_each_other(measured: Measured) -> None:
    shown = ask(measured.store, "view", a="mine/l", b="mine/xs", doc=3).table()
    assert re.findall(r"mine/\w+(?=:)", shown) == ["mine/l", "mine/xs"]
