"""The checkpoints of a family: as its file lists them, and those that a request names."""

import re
from itertools import pairwise

import pytest

from rbpx.config.grid import cells
from rbpx.config.model.family import chosen_revisions, listed_steps, log_spaced
from rbpx.errors import RbpxError
from tests.support.composing import request_of

PYTHIA = [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, {"from": 1000, "to": 143000, "by": 1000}]


def test_ranges_are_written_out() -> None:
    steps = listed_steps(PYTHIA, "pythia")
    assert steps == [0, *(2**n for n in range(10)), *(1000 * n for n in range(1, 144))]
    assert len(steps) == 154


def test_log_spaced_ones_are_about_twice_as_far_each() -> None:
    steps = log_spaced(listed_steps(PYTHIA, "pythia"))
    assert steps[:14] == [0, *(2**n for n in range(10)), 1000, 2000, 4000]
    assert steps[-1] == 143000
    assert all(later >= 1.9 * before for before, later in pairwise(steps[1:-1]))


@pytest.mark.parametrize(
    ("revision", "checkpoints", "says"),
    [
        ("all", [], "family mine lists no checkpoints"),
        (1000, PYTHIA, "was read as a number"),
        ("all", [{"from": 1, "to": 5}], "are not all steps or ranges"),
        ("all", [1.5], "[1.5] are not all steps or ranges"),
    ],
)
def test_what_names_no_checkpoints_is_one_line(revision: object, checkpoints: list[object], says: str) -> None:
    with pytest.raises(RbpxError, match=re.escape(says)):
        chosen_revisions(revision, checkpoints, "mine")


def test_a_revision_that_is_named_twice_counts_once() -> None:
    assert chosen_revisions(["step1", "main", "step1"], PYTHIA, "mine") == ["step1", "main"]


def test_a_sweep_of_checkpoints_has_a_cell_for_each_with_its_tokens() -> None:
    listed = {f"EleutherAI/pythia-{size}": None for size in ("14m", "70m")}
    words = ["model=pythia", "size=[14m,70m]", "dataset=pydoc", "model.revision=[step512,step1000]"]
    assert [(cell.size, cell.revision) for cell in cells(request_of("measure", words), None, listed)] == [
        (size, step) for size in ("14m", "70m") for step in ("step512", "step1000")
    ]
    request = request_of("measure", ["model=pythia", "size=14m", "dataset=pydoc", "model.revision=log"])
    grid = cells(request, None, listed)
    assert len(grid) == 20
    assert [cell.training.training_tokens for cell in grid][:3] == [0, 2_097_152, 2 * 2_097_152]
    assert grid[-1].training.training_step == 143_000
