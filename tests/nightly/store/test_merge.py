"""`store merge`: two stores become one, whole and verified; nothing is doubled, replaced or half there."""

import json
import shutil
from pathlib import Path

import pytest

from tests.support.commands import Answer
from tests.support.composed import here
from tests.support.damage import faults, run_of
from tests.support.stores import Measured, run_folders, snapshot

EVIDENCE = ("runs/", "cells/", "vocab/", "imports/", "samples/", "fits/", "rank_fits/", "failures/", "forecasts/")


def merge(store: Path, other: Path, cwd: Path, check: int = 0) -> Answer:
    answer = here("store", "merge", other, "--store", store, cwd=cwd, check=check)
    assert "Traceback" not in answer.stderr
    return answer


def evidence(store: Path) -> dict[str, bytes]:
    return {name: content for name, (_, content) in snapshot(store).items() if name.startswith(EVIDENCE)}


def without(store: Path, cwd: Path, *sizes: str) -> Path:
    for size in sizes:
        here("store", "rm", run_of(store, size), "--store", store, cwd=cwd, check=0)
    return store


@pytest.fixture
def halves(measured: Measured, cwd: Path, tmp_path: Path) -> tuple[Path, Path]:
    """The measured store as two that overlap in one size."""
    one, two = (Path(shutil.copytree(measured.store, tmp_path / name)) for name in ("one", "two"))
    return without(one, cwd, "m", "l"), without(two, cwd, "xs")


def test_two_halves_of_a_measured_store_become_the_whole_with_its_laws(
    halves: tuple[Path, Path], measured: Measured, cwd: Path
) -> None:
    one, two = halves
    before = snapshot(two)
    answer = merge(one, two, cwd)
    assert "2 runs" in answer.stderr
    assert "2 cells" in answer.stderr
    assert snapshot(two) == before
    whole = {
        name: content for name, content in evidence(measured.store).items() if not name.startswith(("fits", "rank"))
    }
    assert {name: content for name, content in evidence(one).items() if name in whole} == whole
    assert set(run_folders(one)) == set(run_folders(measured.store))
    assert faults(one) == []
    laws = [
        json.loads(here("fit", "resamples=50", "--format", "json", "--store", store, cwd=cwd, check=0).stdout)
        for store in (one, shutil.copytree(measured.store, one.parent / "whole"))
    ]
    assert [(row["law"], row["k"], row["C"], row["alpha"]) for row in laws[0]] == [
        (row["law"], row["k"], row["C"], row["alpha"]) for row in laws[1]
    ]
