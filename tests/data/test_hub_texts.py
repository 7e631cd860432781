"""Datasets of the hub: the documents that the paper's code takes, drawn once, and one line where a hub fails."""

import hashlib
import io
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.support.commands import here, rbpx
from tests.support.dataset_hub import NOBODY, Answer, DatasetHub, serving, settings
from tests.support.hub_datasets import ACTS, C4, PILE, WIKIPEDIA, add_known, card, halves, jsonl, parquet, sentence
from tests.support.places import CONF, PROJECT

ROWS = [{"text": sentence("row", n), "kind": ("even", "odd")[n % 2], "n": n} for n in range(45)]
Told = dict[str, Any]


class Asker:
    """A process that draws samples from one hub, with caches of its own."""

    def __init__(self, url: str, home: Path, offline: bool = False, **more: str) -> None:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "HUGGING"))}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.hub_asker"],
            env=kept | settings(url, home, offline) | more,
            cwd=PROJECT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def send(self, **asked: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()

    def receive(self) -> Told:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, self.stop()
        told: Told = json.loads(line)
        return told

    def draw(self, store: Path, limit: int = 1000, seed: int = 42, **dataset: Any) -> Told:
        self.send(dataset=dataset, store=str(store), limit=limit, seed=seed)
        return self.receive()

    def load(self, **asked: Any) -> list[str]:
        """As the paper's code."""
        self.send(load={"subset": None, "fields": ["text"], "seed": 42, "streaming": False} | asked)
        texts: list[str] = self.receive()["texts"]
        return texts

    def stop(self) -> str:
        """End the process; returns what it wrote on stderr."""
        return self._process.communicate(timeout=60)[1]


@pytest.fixture(scope="module")
def hub() -> Iterator[DatasetHub]:
    with serving(DatasetHub()) as served:
        yield served


@pytest.fixture(scope="module")
def asker(hub: DatasetHub, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asker]:
    asking = Asker(hub.url, tmp_path_factory.mktemp("hub") / "home")
    yield asking
    assert asking.stop() == "", "nothing of the libraries' own is written, no bar and no warning"


@pytest.fixture
def name(hub: DatasetHub, request: pytest.FixtureRequest) -> Iterator[str]:
    """An id of its own for each test, so that no cache knows it: two splits in two Parquet files each."""
    found = "org/" + hashlib.sha1(request.node.name.encode()).hexdigest()[:12]
    places = {"default": {"validation": "data/validation-*", "test": "data/test-*"}}
    hub.add(
        found, {"README.md": card(places)} | halves("data", "validation", ROWS[:20]) | halves("data", "test", ROWS[20:])
    )
    yield found
    hub.spoil = None


def drawn_by_hand(texts: list[str], limit: int = 1000, seed: int = 42) -> list[str]:
    return [texts[i] for i in np.random.default_rng(seed).permutation(len(texts))[:limit]]


def texts_of(told: Told) -> list[str]:
    assert "documents" in told, told
    assert [doc_id for doc_id, _, _ in told["documents"]] == list(range(len(told["documents"])))
    return [text for _, _, text in told["documents"]]


# ------------------------------------------------------------------------------------------------------- the draw


@pytest.mark.parametrize("draw", ["whole", "parts", "stream"])
@pytest.mark.parametrize("split", ["test", "validation+test"])
def test_three_ways_of_drawing_give_what_datasets_gives_shuffled(
    draw: str, split: str, name: str, hub: DatasetHub, asker: Asker, tmp_path: Path
) -> None:
    told = asker.draw(tmp_path, limit=11, hub=name, split=split, draw=draw)
    rows = ROWS if "+" in split else ROWS[20:]
    assert texts_of(told) == asker.load(hub=name, split=split, limit=11)
    assert texts_of(told) == drawn_by_hand([row["text"] for row in rows], 11)
    for _, source_id, text in told["documents"]:
        of, number = source_id.split("/")
        assert {"validation": ROWS, "test": ROWS[20:]}[of][int(number)]["text"] == text
    assert told["commit"] == hub.repos[name].commit("main")


def test_a_seed_and_a_limit_beyond_the_rows_are_those_of_datasets(name: str, asker: Asker, tmp_path: Path) -> None:
    told = asker.draw(tmp_path, limit=1000, seed=7, hub=name, split="test", draw="parts")
    assert texts_of(told) == asker.load(hub=name, split="test", limit=1000, seed=7)
    assert len(told["documents"]) == 25


def test_the_first_are_streamed_and_then_shuffled(name: str, asker: Asker, tmp_path: Path) -> None:
    told = asker.draw(tmp_path, limit=13, hub=name, split="test", draw="first")
    assert texts_of(told) == asker.load(hub=name, split="test", limit=13, streaming=True)
    assert texts_of(told) == drawn_by_hand([row["text"] for row in ROWS[20:33]])


def test_parts_read_the_row_groups_that_hold_the_drawn_rows_and_of_these_the_fields_alone(
    hub: DatasetHub, name: str, asker: Asker, tmp_path: Path
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


def test_what_does_not_count_is_left_out_before_the_draw(
    hub: DatasetHub, name: str, asker: Asker, tmp_path: Path
) -> None:
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
    hub: DatasetHub, name: str, asker: Asker, tmp_path: Path
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
    [{"limit": 8}, {"seed": 1}, {"draw": "first"}, {"longer_than": 1}, {"split": "validation"}, {"fields": ["kind"]}],
    ids=str,
)
def test_another_request_has_another_sample(change: Told, name: str, asker: Asker, tmp_path: Path) -> None:
    base = {"limit": 9, "hub": name, "split": "test"}
    asker.draw(tmp_path, **base)
    asker.draw(tmp_path, **base | change)
    assert len(list(tmp_path.glob("samples/*.parquet"))) == 2


def test_a_revision_is_what_it_says(hub: DatasetHub, name: str, asker: Asker, tmp_path: Path) -> None:
    repo = hub.add(name, {"test.jsonl": jsonl(ROWS[:5])}, revision="v1")
    told = asker.draw(tmp_path, hub=name, split="test", revision="v1")
    assert sorted(texts_of(told)) == sorted(row["text"] for row in ROWS[:5])
    assert told["commit"] == repo.commit("v1") != repo.commit("main")
    by_commit = asker.draw(tmp_path, hub=name, split="test", revision=repo.commit("v1"))
    assert by_commit["documents"] == told["documents"]


def test_a_sample_that_was_cut_short_is_named(name: str, asker: Asker, tmp_path: Path) -> None:
    asker.draw(tmp_path, hub=name, split="test")
    (kept,) = tmp_path.glob("samples/*.parquet")
    kept.write_bytes(kept.read_bytes()[:100])
    line = one_line(asker.draw(tmp_path, hub=name, split="test"), "RbpxError")
    assert str(kept) in line
    assert "delete" in line


def test_processes_that_want_the_same_wait_for_the_first(hub: DatasetHub, name: str, tmp_path: Path) -> None:
    askers = [Asker(hub.url, tmp_path / f"home{i}") for i in range(2)]
    hub.spoil = lambda path, answer: time.sleep(0.15)  # long enough for both to want it
    for asking in askers:
        asking.send(dataset={"hub": name, "split": "test"}, store=str(tmp_path / "store"), limit=5, seed=42)
    one, other = (asking.receive() for asking in askers)
    assert one["documents"] == other["documents"]
    files = [line for line in hub.asked if name in line and "GET" in line and line.endswith("00001-of-00002.parquet")]
    assert len(files) == 2, "validation and test once, not twice"
    assert len(list((tmp_path / "store").glob("samples/*.parquet"))) == 1
    for asking in askers:
        asking.stop()


# ------------------------------------------------------------------------------------------------------ what is wrong


def one_line(told: Told, error: str) -> str:
    assert told.get("error") == error, told
    line: str = told["says"]
    assert "\n" not in line
    assert len(line) < 500
    return line


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"hub": "org/nosuch", "split": "test"}, ["dataset.hub=org/nosuch is unknown"]),
        ({"hub": "not a name", "split": "test"}, ["dataset.hub=not a name is unknown"]),
        ({"hub": None, "split": "test"}, ["dataset.hub=ORG/NAME"]),
        ({}, ["dataset.split"]),
        ({"split": "train"}, ["dataset.split=train", "it has: validation, test"]),
        ({"split": "test+train"}, ["no split train"]),
        ({"split": "test[:5]"}, ["no split test[:5]"]),
        ({"split": "test", "subset": "en"}, ["dataset.subset=en", "it has: default"]),
        ({"split": "test", "revision": "v9"}, ["dataset.revision=v9"]),
        ({"split": "test", "fields": ["texte"]}, ["'texte'", "it has: text, kind, n", "dataset.fields"]),
        ({"split": "test", "fields": ["texte"], "draw": "parts"}, ["'texte'", "it has: text, kind, n"]),
        ({"split": "test", "fields": ["n"], "draw": "stream"}, ["in field 'n', a number, not a text"]),
        ({"split": "test", "where": {"sort": "odd"}}, ["'sort'", "it has: text, kind, n", "dataset.where"]),
        ({"split": "test", "where": {"kind.name": "odd"}}, ["'name'", "kind.name"]),
        ({"split": "test", "where": {"kind": "neither"}}, ["no text that meets", "neither"]),
        ({"split": "test", "longer_than": 10**6, "draw": "stream"}, ["no text that meets", "1000000"]),
        ({"split": "test", "articles": True}, ["no text that meets dataset.articles"]),
    ],
    ids=str,
)
def test_a_wrong_request_is_one_line(asked: Told, says: list[str], name: str, asker: Asker, tmp_path: Path) -> None:
    line = one_line(asker.draw(tmp_path, **{"hub": name} | asked), "RbpxError")
    assert all(part in line for part in says), line
    assert not list(tmp_path.glob("samples/[!.]*")), "nothing is kept"


def test_what_cannot_be_read_is_one_line(hub: DatasetHub, name: str, asker: Asker, tmp_path: Path) -> None:
    hub.add(f"{name}-gated", halves("data", "test", ROWS), gated=True)
    hub.add(f"{name}-script", {f"{name[4:]}-script.py": b"raise SystemExit(1)"})
    hub.add(f"{name}-bare", {"README.md": b"# nothing here", "weights.bin": b"0"})
    hub.add(f"{name}-lines", {"test.jsonl": jsonl(ROWS)})
    hub.add(f"{name}-broken", {"test.jsonl": jsonl(ROWS)[:-9]})
    assert "gated" in one_line(asker.draw(tmp_path, hub=f"{name}-gated", split="test"), "RbpxError")
    assert "is never run" in one_line(asker.draw(tmp_path, hub=f"{name}-script", split="test"), "RbpxError")
    assert "no files of rows" in one_line(asker.draw(tmp_path, hub=f"{name}-bare", split="test"), "RbpxError")
    line = one_line(asker.draw(tmp_path, hub=f"{name}-lines", split="test", draw="parts"), "RbpxError")
    assert "needs Parquet" in line
    assert "did not deliver" in one_line(asker.draw(tmp_path, hub=f"{name}-broken", split="test"), "MeasureError")


# ----------------------------------------------------------------------------------------------------- hubs that fail


def spoiling(how: str) -> Callable[[str, Answer], Answer | str]:
    page = b"<html>Please log in to this network</html>"
    return lambda path, answer: {
        "503": (503, {}, b""),
        "500": (500, {}, b""),
        "hangs up": "hang up",
        "silent": "stay silent",
        "log in first": (200, {"Content-Type": "text/html", "Content-Length": str(len(page))}, page),
    }[how]


@pytest.mark.parametrize("how", ["503", "500", "hangs up", "silent", "log in first"])
def test_a_dead_hub_is_one_line_within_ten_seconds(
    how: str, hub: DatasetHub, name: str, asker: Asker, tmp_path: Path
) -> None:
    hub.spoil = spoiling(how)
    told = asker.draw(tmp_path, hub=name, split="test")
    assert name in one_line(told, "MeasureError")
    assert told["seconds"] < 10
    assert not list(tmp_path.glob("samples/[!.]*"))


@pytest.mark.parametrize("draw", ["whole", "parts", "stream"])
def test_a_file_that_ends_too_soon_is_no_sample(
    draw: str, hub: DatasetHub, name: str, asker: Asker, tmp_path: Path
) -> None:
    files = dict(hub.repos[name].revisions["main"])
    path = "data/test-00001-of-00002.parquet"
    hub.repos[name].revisions["main"][path] = files[path][:-300]
    one_line(asker.draw(tmp_path, hub=name, split="test", draw=draw), "MeasureError")
    assert not list(tmp_path.glob("samples/[!.]*"))
    hub.add(name, files, revision="mended")
    told = asker.draw(tmp_path, hub=name, split="test", draw=draw, revision="mended")
    assert texts_of(told) == drawn_by_hand([row["text"] for row in ROWS[20:]])


@pytest.mark.parametrize("draw", ["whole", "stream"])
def test_a_hub_that_hangs_up_halfway_is_asked_again_and_no_document_is_lost_or_doubled(
    draw: str, hub: DatasetHub, name: str, asker: Asker, tmp_path: Path
) -> None:
    failed: list[str] = []

    def spoil(path: str, answer: Answer) -> Answer | None:
        status, headers, body = answer
        if len(body) < 900 or not path.endswith(".parquet") or path in failed:
            return None
        failed.append(path)
        return status, headers, body[: len(body) // 2]  # and the connection is closed

    hub.spoil = spoil
    told = asker.draw(tmp_path, hub=name, split="test", draw=draw)
    assert failed
    assert texts_of(told) == drawn_by_hand([row["text"] for row in ROWS[20:]])


def test_the_libraries_of_the_hub_are_not_loaded_for_texts_of_this_machine() -> None:
    code = (
        "import sys\n"
        "from rbpx.measure.runner import measure_grids\n"
        "from rbpx.cli.help import help_text\n"
        "sys.exit('datasets' in sys.modules or 'huggingface_hub' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_a_hub_the_caches_serve_and_what_they_lack_is_one_line(
    hub: DatasetHub, name: str, tmp_path: Path
) -> None:
    home, asked = tmp_path / "home", {"limit": 9, "hub": name, "split": "test"}
    online = Asker(hub.url, home)
    told = online.draw(tmp_path / "online", **asked)
    online.stop()
    commit = hub.repos[name].commit("main")
    for url, more in ((NOBODY, {}), (hub.url, {"HF_HUB_OFFLINE": "1"}), (hub.url, {"HF_DATASETS_OFFLINE": "1"})):
        before, store = len(hub.asked), tmp_path / f"store {url[-4:]} {' '.join(more)}"
        offline = Asker(url, home, **more)
        for draw in ("whole", "parts", "stream"):  # the cache of `datasets` holds the whole set
            found = offline.draw(store / draw, **asked, draw=draw)
            assert (found["documents"], found["commit"]) == (told["documents"], commit), found
        assert offline.draw(store / "commit", **asked, revision=commit)["commit"] == commit
        lacks = [asked | {"hub": "org/never"}, asked | {"revision": "v1"}, asked | {"subset": "other"}]
        for wrong in lacks:
            failed = offline.draw(store / "lacks", **wrong)
            line = one_line(failed, "NotHereError" if more else "MeasureError")
            assert wrong["hub"] in line
            assert ("python -m rbpx download" in line) == bool(more)
            assert failed["seconds"] < 10
        offline.stop()
        assert len(hub.asked) == before


# --------------------------------------------------------------------------------------------------------- end to end


def framed_hash(texts: list[str]) -> str:
    raw = b"".join(len(t.encode()).to_bytes(8, "big") + t.encode() for t in texts)
    return hashlib.sha256(raw).hexdigest()[:16]


def published_texts(data: Path) -> dict[str, list[str]]:
    """The texts of every known dataset, put together by hand."""
    import gzip

    with gzip.open(data / "HumanEval.jsonl.gz", "rt", encoding="utf-8") as lines:
        humaneval = [json.loads(line) for line in lines]
    gsm8k = [json.loads(line) for line in (data / "gsm8k_test.jsonl").read_text("utf-8").splitlines()]
    hotpot = json.loads((data / "hotpot_dev_v1_simplified.json").read_text("utf-8"))[:300]
    wikitext = (data / "wikitext-2-raw-test.txt").read_text("utf-8")
    articles = re.split(r"\n (?=\n = [^=\n]+ = \n \n)", "\n" + wikitext.removesuffix("\n"))[1:]
    code = [row["text"] for row in PILE if row["meta"]["pile_set_name"] == "Github" and len(row["text"]) > 512]
    assert 5 < len(code) < 40
    return {
        "humaneval": [f"{row['prompt']}\n{row['canonical_solution']}" for row in humaneval],
        "gsm8k": [f"{row['question']}\n{row['answer']}" for row in gsm8k],
        "hotpotqa": [f"{row['question']}\n{row['answer']}" for row in hotpot],
        "wikitext": [re.sub(r"(?m)^ $", "", article[1:]).rstrip("\n") for article in articles],
        "wikipedia": [row["text"] for row in WIKIPEDIA],
        "github": code,
        "auslegal": [row["text"] for row in ACTS],
    }


@pytest.mark.parametrize("draw", ["whole", "parts", "stream"])
def test_items_of_the_hub_are_drawn_each_way_with_examples_of_another_split(
    draw: str, name: str, hub: DatasetHub, asker: Asker, tmp_path: Path
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


def test_every_known_dataset_is_measured_from_the_hub_with_one_line_and_again_without_it(
    hub: DatasetHub, shared_data: Path, tmp_path: Path
) -> None:
    data = shared_data / "data"
    add_known(hub, data)
    expected = {name: drawn_by_hand(texts, 12) for name, texts in published_texts(data).items()}
    expected["c4"] = drawn_by_hand([row["text"] for row in C4[:12]])
    conf = CONF / "dataset"
    of_hub = {path.stem: path.read_text() for path in conf.glob("*.yaml") if "\nhub: " in path.read_text()}
    tasks = {name for name, keys in of_hub.items() if "\ntarget: " in keys or "\nchoices: " in keys}
    assert set(of_hub) - tasks == set(expected)  # the rows of each task are in test_task_rows
    line = ("measure", "-m", f"dataset={','.join(expected)}", "size=3k", "limit=12", "--store", tmp_path / "store")
    (tmp_path / "work").mkdir()
    done = rbpx(*line, cwd=tmp_path / "work", env=settings(hub.url, tmp_path / "home"), check=0)
    assert done.stdout == ""
    cells = [json.loads(path.read_text()) for path in (tmp_path / "store").glob("cells/*.json")]
    assert {cell["dataset"] for cell in cells} == set(expected)
    for cell in cells:
        repo = hub.repos[cell["config"]["dataset"]["hub"]]
        run = json.loads((tmp_path / "store" / "runs" / cell["run_id"] / "manifest.json").read_text())
        assert run["text_hash"] == framed_hash(expected[cell["dataset"]]), cell["dataset"]
        assert cell["dataset_commit"] == repo.commit("main")
    asked = hub.paths()
    assert not any(path.startswith(("distractor/train", "en/c4-train", "train/", "20231101.de")) for path in asked)
    again = here(*line, cwd=tmp_path / "work", check=0)  # this process is offline, with other caches
    assert "loading" not in again.stderr
    cached = {path.stem: path for path in (tmp_path / "store").glob("samples/*.parquet")}
    assert len(cached) == len(expected)
