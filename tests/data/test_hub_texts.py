"""Datasets of the hub: the documents that the paper's code takes, drawn once, and one line where a hub fails."""

import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.support.hub import Hub, serving_others
from tests.support.hub_asking import ROWS, Asker, Told, add_rows, drawn_by_hand, one_line, texts_of
from tests.support.hub_datasets import card, halves, jsonl, parquet


@pytest.fixture(scope="module")
def hub() -> Iterator[Hub]:
    with serving_others() as served:
        yield served


@pytest.fixture(scope="module")
def asker(hub: Hub, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asker]:
    process = Asker(hub.url, tmp_path_factory.mktemp("hub") / "home")
    yield process
    assert process.stop() == "", "no bar and no warning of the libraries"


@pytest.fixture
def name(hub: Hub, request: pytest.FixtureRequest) -> Iterator[str]:
    yield add_rows(hub, request.node.name)
    hub.mood = "well"


# ------------------------------------------------------------------------------------------------------- the draw


@pytest.mark.parametrize(("draw", "split"), [("whole", "test"), ("parts", "validation+test"), ("stream", "test")])
def test_three_ways_of_drawing_give_what_datasets_gives_shuffled(
    draw: str, split: str, name: str, hub: Hub, asker: Asker, tmp_path: Path
) -> None:
    told = asker.draw(tmp_path, limit=11, hub=name, split=split, draw=draw)
    rows = ROWS if "+" in split else ROWS[20:]
    assert texts_of(told) == asker.load(hub=name, split=split, limit=11)
    assert texts_of(told) == drawn_by_hand([row["text"] for row in rows], 11)
    for _, source_id, text in told["documents"]:
        of, number = source_id.split("/")
        assert {"validation": ROWS, "test": ROWS[20:]}[of][int(number)]["text"] == text
    assert told["commit"] == hub.repos[name]["main"][0]


def test_a_seed_and_a_limit_beyond_the_rows_are_those_of_datasets(name: str, asker: Asker, tmp_path: Path) -> None:
    told = asker.draw(tmp_path, limit=1000, seed=7, hub=name, split="test", draw="parts")
    assert texts_of(told) == asker.load(hub=name, split="test", limit=1000, seed=7)
    assert len(told["documents"]) == 25


def test_the_first_are_streamed_and_then_shuffled(name: str, asker: Asker, tmp_path: Path) -> None:
    told = asker.draw(tmp_path, limit=13, hub=name, split="test", draw="first")
    assert texts_of(told) == asker.load(hub=name, split="test", limit=13, streaming=True)
    assert texts_of(told) == drawn_by_hand([row["text"] for row in ROWS[20:33]])


def test_parts_read_the_row_groups_that_hold_the_drawn_rows_and_of_these_the_fields_alone(
    hub: Hub, name: str, asker: Asker, tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    rows = [{"text": rng.bytes(2000).hex(), "heavy": rng.bytes(5000).hex()} for _ in range(200)]
    file = parquet(rows, 10)
    hub.add(name, {"README.md": card({"default": {"train": "data/train-*"}}), "data/train-0.parquet": file})
    hub.sent.clear()
    told = asker.draw(tmp_path, limit=3, hub=name, split="train", draw="parts")
    assert texts_of(told) == drawn_by_hand([row["text"] for row in rows], 3)
    assert told["told"] == [[3, 3, "documents"]]
    head = pq.read_metadata(io.BytesIO(file))
    drawn_groups = {int(i) // 10 for i in np.random.default_rng(42).permutation(200)[:3]}
    texts = sum(head.row_group(group).column(0).total_compressed_size for group in drawn_groups)
    sent = sum(n for path, n in hub.sent.items() if path.endswith("train-0.parquet"))
    assert sent <= texts + head.serialized_size + 2**16, "their texts and one footer, whose length is guessed at first"
    assert sent < len(file) / 5


def test_what_does_not_count_is_left_out_before_the_draw(hub: Hub, name: str, asker: Asker, tmp_path: Path) -> None:
    rules = {"where": {"kind": "odd"}, "longer_than": 60}
    wanted = [r["text"] for r in ROWS[20:] if r["kind"] == "odd" and len(r["text"]) > 60]
    assert 3 < len(wanted) < 12
    for draw in ("whole", "stream"):
        told = asker.draw(tmp_path / draw, limit=3, hub=name, split="test", draw=draw, **rules)
        assert texts_of(told) == drawn_by_hand(wanted, 3)
    told = asker.draw(tmp_path / "first", limit=3, hub=name, split="test", draw="first", **rules)
    assert texts_of(told) == drawn_by_hand(wanted[:3])
    told = asker.draw(tmp_path, hub=name, split="test", draw="parts", **rules)
    assert "dataset.draw=parts" in one_line(told, "RbpxError")


# --------------------------------------------------------------------------------------------------- kept in the store


def test_what_was_drawn_is_kept_and_the_hub_is_not_asked_again(
    hub: Hub, name: str, asker: Asker, tmp_path: Path
) -> None:
    first = asker.draw(tmp_path, limit=9, hub=name, split="test", draw="whole")
    asked = len(hub.asked)
    for draw in ("whole", "parts", "stream"):  # the same documents, so the same sample
        again = asker.draw(tmp_path, limit=9, hub=name, split="test", draw=draw)
        assert (again["documents"], again["commit"]) == (first["documents"], first["commit"])
    assert len(hub.asked) == asked
    (kept,) = tmp_path.glob("samples/*.parquet")
    hub.add(name, {"README.md": card({"default": {"test": "data/*"}})} | halves("data", "test", ROWS[:30]))
    kept.unlink()
    assert texts_of(asker.draw(tmp_path, limit=9, hub=name, split="test")) != texts_of(first), "deleted, drawn anew"


@pytest.mark.parametrize(
    "change",
    [{"limit": 8}, {"seed": 1}, {"draw": "first"}],
    ids=str,
)
def test_another_request_has_another_sample(change: Told, name: str, asker: Asker, tmp_path: Path) -> None:
    base = {"limit": 9, "hub": name, "split": "test"}
    asker.draw(tmp_path, **base)
    asker.draw(tmp_path, **base | change)
    assert len(list(tmp_path.glob("samples/*.parquet"))) == 2


def test_a_revision_is_what_it_says(hub: Hub, name: str, asker: Asker, tmp_path: Path) -> None:
    commit = hub.add(name, {"test.jsonl": jsonl(ROWS[:5])}, revision="v1")
    told = asker.draw(tmp_path, hub=name, split="test", revision="v1")
    assert sorted(texts_of(told)) == sorted(row["text"] for row in ROWS[:5])
    assert told["commit"] == commit != hub.repos[name]["main"][0]
    by_commit = asker.draw(tmp_path, hub=name, split="test", revision=commit)
    assert by_commit["documents"] == told["documents"]


def test_a_sample_that_was_cut_short_is_named(name: str, asker: Asker, tmp_path: Path) -> None:
    asker.draw(tmp_path, hub=name, split="test")
    (kept,) = tmp_path.glob("samples/*.parquet")
    kept.write_bytes(kept.read_bytes()[:100])
    line = one_line(asker.draw(tmp_path, hub=name, split="test"), "RbpxError")
    assert str(kept) in line
    assert "delete" in line


# ------------------------------------------------------------------------------------------------------ what is wrong


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"hub": "org/nosuch", "split": "test"}, ["dataset.hub=org/nosuch does not exist"]),
        ({"hub": "not a name", "split": "test"}, ["dataset.hub=not a name does not exist"]),
        ({}, ["dataset.split"]),
        ({"split": "train"}, ["dataset.split=train", "it has: validation, test"]),
        ({"split": "test+train"}, ["no split train"]),
        ({"split": "test", "subset": "en"}, ["dataset.subset=en", "it has: default"]),
        ({"split": "test", "revision": "v9"}, ["dataset.revision=v9"]),
        ({"split": "test", "fields": ["texte"]}, ["'texte'", "it has: text, kind, n", "dataset.fields"]),
        ({"split": "test", "fields": ["texte"], "draw": "parts"}, ["'texte'", "it has: text, kind, n"]),
        ({"split": "test", "fields": ["n"], "draw": "stream"}, ["in field 'n', not a text"]),
        ({"split": "test", "where": {"sort": "odd"}}, ["'sort'", "it has: text, kind, n", "dataset.where"]),
        ({"split": "test", "where": {"kind": "neither"}}, ["no text that meets", "neither"]),
        ({"split": "test", "longer_than": 10**6, "draw": "stream"}, ["no text that meets", "1000000"]),
    ],
    ids=str,
)
def test_a_wrong_request_is_one_line(asked: Told, says: list[str], name: str, asker: Asker, tmp_path: Path) -> None:
    line = one_line(asker.draw(tmp_path, **{"hub": name} | asked), "RbpxError")
    assert all(part in line for part in says), line
    assert not list(tmp_path.glob("samples/[!.]*")), "nothing is kept"


def test_what_cannot_be_read_is_one_line(hub: Hub, name: str, asker: Asker, tmp_path: Path) -> None:
    hub.add(f"{name}-gated", halves("data", "test", ROWS))
    hub.gated[f"{name}-gated"] = 403
    hub.add(f"{name}-script", {f"{name[4:]}-script.py": b"raise SystemExit(1)"})
    hub.add(f"{name}-bare", {"README.md": b"# nothing here", "weights.bin": b"0"})
    hub.add(f"{name}-lines", {"test.jsonl": jsonl(ROWS)})
    hub.add(f"{name}-broken", {"test.jsonl": jsonl(ROWS)[:-9]})
    assert "gated" in one_line(asker.draw(tmp_path, hub=f"{name}-gated", split="test"), "RbpxError")
    line = one_line(asker.draw(tmp_path, hub=f"{name}-script", split="test"), "MeasureError")
    assert "Dataset scripts are no longer supported" in line
    assert "No (supported) data files" in one_line(
        asker.draw(tmp_path, hub=f"{name}-bare", split="test"), "MeasureError"
    )
    line = one_line(asker.draw(tmp_path, hub=f"{name}-lines", split="test", draw="parts"), "RbpxError")
    assert "drawn rows of Parquet alone" in line
    assert "did not deliver" in one_line(asker.draw(tmp_path, hub=f"{name}-broken", split="test"), "MeasureError")


# ----------------------------------------------------------------------------------------------------- hubs that fail


@pytest.mark.parametrize("how", ["503", "hangs up", "log in first"])
def test_a_dead_hub_is_one_line_within_ten_seconds(how: str, hub: Hub, name: str, asker: Asker, tmp_path: Path) -> None:
    hub.mood = how
    told = asker.draw(tmp_path, hub=name, split="test")
    assert name in one_line(told, "MeasureError")
    assert told["seconds"] < 10
    assert not list(tmp_path.glob("samples/[!.]*"))


@pytest.mark.parametrize("draw", ["whole", "parts", "stream"])
def test_a_file_that_ends_too_soon_is_no_sample(draw: str, hub: Hub, name: str, asker: Asker, tmp_path: Path) -> None:
    _, folder = hub.repos[name]["main"]
    path = folder / "data" / "test-00001-of-00002.parquet"
    whole = path.read_bytes()
    path.write_bytes(whole[:-300])
    one_line(asker.draw(tmp_path, hub=name, split="test", draw=draw), "MeasureError")
    assert not list(tmp_path.glob("samples/[!.]*"))
    path.write_bytes(whole)
    hub.add(name, folder, revision="mended")
    told = asker.draw(tmp_path, hub=name, split="test", draw=draw, revision="mended")
    assert texts_of(told) == drawn_by_hand([row["text"] for row in ROWS[20:]])


@pytest.mark.parametrize("draw", ["whole", "stream"])
def test_a_hub_that_hangs_up_halfway_is_asked_again_and_no_document_is_lost_or_doubled(
    draw: str, hub: Hub, name: str, asker: Asker, tmp_path: Path
) -> None:
    hub.faults.update(dict.fromkeys((f"test-0000{n}-of-00002.parquet" for n in (0, 1)), "breaks once"))
    told = asker.draw(tmp_path, hub=name, split="test", draw=draw)
    assert hub.faults == {}, "each broke once"
    assert texts_of(told) == drawn_by_hand([row["text"] for row in ROWS[20:]])


# --------------------------------------------------------------------------------------------------------- end to end


@pytest.mark.parametrize("draw", ["whole", "parts", "stream"])
def test_items_of_the_hub_are_drawn_each_way_with_examples_of_another_split(
    draw: str, name: str, hub: Hub, asker: Asker, tmp_path: Path
) -> None:
    rows = [
        {"q": f"question {n}?", "c": {"text": ["yes", "no"], "label": ["A", "B"]}, "r": "AB"[n % 2], "s": f"s{n % 3}"}
        for n in range(20)
    ]
    places = {"default": {"dev": "data/dev-*", "test": "data/test-*"}}
    found = f"{name}-items-{draw}"
    hub.add(found, {"README.md": card(places)} | halves("data", "dev", rows[:8]) | halves("data", "test", rows[8:]))
    task = {
        "choices": "c.text",
        "right": "r",
        "labels": "c.label",
        "template": "{q}",
        "delimiter": " ",
        "category": "s",
    }
    told = asker.draw(
        tmp_path, limit=5, hub=found, split="test", draw=draw, fewshot=2, fewshot_split="dev", fewshot_seed=None, **task
    )
    drawn = [rows[8 + i] for i in np.random.default_rng(42).permutation(12)[:5]]
    expected = []
    for is_true in (True, False):
        for row in drawn:
            examples = [each for each in rows[:8] if each["s"] == row["s"]][:2]
            answer = row["r"] if is_true else "AB".replace(row["r"], "")
            shown = [f"{each['q']} {['yes', 'no']['AB'.index(each['r'])]}" for each in examples]
            expected.append("\n\n".join([*shown, f"{row['q']} {['yes', 'no']['AB'.index(answer)]}"]))
    assert texts_of(told) == expected
    again = asker.draw(
        tmp_path, limit=5, hub=found, split="test", draw=draw, fewshot=2, fewshot_split="dev", fewshot_seed=None, **task
    )
    assert again["documents"] == told["documents"]  # from the samples that the store keeps
