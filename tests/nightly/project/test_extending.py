"""A law, a family, a dataset are one new file each: the steps of the documentation, in a copy of the project."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.checkpoints import build_checkpoint
from tests.support.clone import Clone
from tests.support.places import DOCS
from tests.support.stores import cell_records, manifests

EXAMPLES = DOCS / "examples"
STEPS = {
    "reciprocal_rank.py": "rbpx/laws/quantities/",
    "schooner.yaml": "conf/model/",
    "letters.yaml": "conf/dataset/",
}


def files(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if "__pycache__" not in path.parts}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clone]:
    """The project with the file of each step, where its page says: one process runs all commands."""
    clone = Clone(tmp_path_factory.mktemp("clone"))
    for example, place in STEPS.items():
        before = files(clone.root)
        shutil.copy(EXAMPLES / example, clone.root / place)
        assert files(clone.root) - before == {f"{place}{example}"}
    yield clone
    clone.close()


@pytest.fixture(scope="module")
def workplace(copy: Clone, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder to work in; models A, B, C and a text lie beside the files that name them."""
    for seed, name in enumerate("ABC"):
        build_checkpoint("gpt_neox", copy.root / "conf" / "model" / name, seed=seed, hidden_size=16 + 8 * seed)
    rows = ({"text": f"Letter {i} left the harbour at dawn; the sea reads nothing."} for i in range(9))
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (copy.root / "conf" / "dataset" / "notes.jsonl").write_text(text)
    return tmp_path_factory.mktemp("work")


def test_a_family_is_one_new_file(copy: Clone, workplace: Path, tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    printed = copy.rbpx(workplace, "model=schooner", "dataset=pydoc", "limit=2", "resamples=20", "--store", store)
    assert "schooner on pydoc" in printed
    assert "-ln RBP_1 " in printed


def test_a_dataset_is_one_new_file(copy: Clone, workplace: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    copy.rbpx(workplace, "measure", "model=ladder", "size=3k", "dataset=letters", "--store", str(store))
    (manifest,), (cell,) = manifests(store).values(), cell_records(store)
    assert (cell["dataset"], manifest["n_documents"]) == ("letters", 9)
