"""Datasets of the hub: every known one measured by one line, and what caches serve where there is no hub."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.commands import here, rbpx
from tests.support.hub import NOBODY, Hub, environment, serving_others
from tests.support.hub_asking import Asker, add_rows, drawn_by_hand, one_line
from tests.support.hub_datasets import ACTS, C4, PILE, WIKIPEDIA, add_known
from tests.support.places import CONF
from tests.support.published_texts import FILES, published


@pytest.fixture(scope="module")
def hub() -> Iterator[Hub]:
    with serving_others() as served:
        yield served


@pytest.fixture
def name(hub: Hub, request: pytest.FixtureRequest) -> str:
    return add_rows(hub, request.node.name)


def test_without_a_hub_the_caches_serve_and_what_they_lack_is_one_line(hub: Hub, name: str, tmp_path: Path) -> None:
    home, asked = tmp_path / "home", {"limit": 9, "hub": name, "split": "test"}
    online = Asker(hub.url, home)
    told = online.draw(tmp_path / "online", **asked)
    online.stop()
    commit = hub.repos[name]["main"][0]
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
            assert (".download(" in line) == bool(more)
            assert failed["seconds"] < 10
        offline.stop()
        assert len(hub.asked) == before


def framed_hash(texts: list[str]) -> str:
    raw = b"".join(len(t.encode()).to_bytes(8, "big") + t.encode() for t in texts)
    return hashlib.sha256(raw).hexdigest()[:16]


def published_texts(data: Path) -> dict[str, list[str]]:
    """The texts of every known dataset, put together by hand."""
    of_files = {name: published(name, data / FILES[name][0]) for name in ("humaneval", "gsm8k", "hotpotqa", "wikitext")}
    code = [row["text"] for row in PILE if row["meta"]["pile_set_name"] == "Github" and len(row["text"]) > 512]
    assert 5 < len(code) < 40
    return of_files | {
        "hotpotqa": of_files["hotpotqa"][:300],
        "wikipedia": [row["text"] for row in WIKIPEDIA],
        "github": code,
        "auslegal": [row["text"] for row in ACTS],
    }


def test_every_known_dataset_is_measured_from_the_hub_with_one_line_and_again_without_it(
    hub: Hub, shared_data: Path, tmp_path: Path
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
    done = rbpx(*line, cwd=tmp_path / "work", env=environment(hub.url, tmp_path / "home"), check=0)
    assert done.stdout == ""
    cells = [json.loads(path.read_text()) for path in (tmp_path / "store").glob("cells/*.json")]
    assert {cell["dataset"] for cell in cells} == set(expected)
    for cell in cells:
        run = json.loads((tmp_path / "store" / "runs" / cell["run_id"] / "manifest.json").read_text())
        assert run["text_hash"] == framed_hash(expected[cell["dataset"]]), cell["dataset"]
        assert cell["dataset_commit"] == hub.repos[cell["config"]["dataset"]["hub"]]["main"][0]
    others = ("/distractor/train", "/en/c4-train", "/train/", "/20231101.de")
    assert [line for line in hub.asked if "GET /datasets/" in line and any(each in line for each in others)] == []
    again = here(*line, cwd=tmp_path / "work", check=0)  # this process is offline, with other caches
    assert "loading" not in again.stderr
    cached = {path.stem: path for path in (tmp_path / "store").glob("samples/*.parquet")}
    assert len(cached) == len(expected)
