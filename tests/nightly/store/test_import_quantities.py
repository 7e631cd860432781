"""The largest published table comes in by one line, with the losses and accuracies of eight texts."""

import csv
from pathlib import Path

import pytest

from tests.support import imports
from tests.support.imports import imported
from tests.support.places import SHARED

_TASKS = ("hellaswag", "arc_challenge", "arc_easy", "piqa", "csqa", "socialiqa", "openbookqa")
_OF_TASKS = ", ".join(f"{task}: {{bits_per_byte: {task}_bpb, accuracy: {task}_accuracy}}" for task in _TASKS)
_OLMO = ["family=olmo", "columns={S: params, D: tokens, size: run}"]


def test_published_points_of_eight_texts_come_in_by_one_line(cwd: Path, tmp_path: Path) -> None:
    path, store = SHARED / "reference" / "olmo_ladder.csv", tmp_path / "store"
    if not path.is_file():
        pytest.skip(f"{path.name} is not beside the project")
    texts = f"texts={{c4: {{loss_nats: c4_loss_nats}}, {_OF_TASKS}}}"
    imports.bring(path, store, cwd, "source=them", *_OLMO, texts)
    with path.open(newline="") as lines:
        theirs = sorted(float(row["c4_loss_nats"]) for row in csv.DictReader(lines))
    ours = [row["cross_entropy_nats"] for row in imported(store, "cross_entropy_nats")]
    assert len(ours) == 12_632
    assert [loss for loss in ours if loss is not None] == theirs
