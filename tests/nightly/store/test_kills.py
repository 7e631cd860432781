"""Kills by the hundred, and disks without room: nothing is lost, doubled, torn or silently wrong."""

import random
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from rbpx.store.store import Store
from rbpx.store.verify import verify
from tests.support.composed import here
from tests.support.stores import assert_same_tokens
from tests.support.warm import Warm

LIMITS = (3, 5, 7, 9, 11)
N_CELLS = 2 * len(LIMITS)
ROUNDS = 70  # of two processes each
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
# What is being written when a kill would hurt; nothing: a kill at any moment.
WRITTEN = ("runs/.*.tmp", "runs/.*.tmp", "cells/.*.tmp", ".rbpx.duckdb.*.tmp", "running/.parts.*", None)


def sweep(limits: tuple[int, ...], store: Path) -> list[object]:
    """The words of a sweep of short cells."""
    asked = ["measure", "-m", "model=ladder", "size=[3k,7k]", "dataset=pydoc", "device=cpu"]
    return [*asked, f"limit={','.join(map(str, limits))}", "--store", store]


@pytest.fixture(scope="module")
def undisturbed(place: Path) -> Store:
    here(*sweep(LIMITS, place.parent / "store"), cwd=place, check=0)
    return Store(place.parent / "store")


def links(store: Store) -> set[tuple[str, str]]:
    """Which run answers which request."""
    return {(cell["cell_key"], cell["run_id"]) for cell in store.records("cells")}


def check(store: Store, undisturbed: Store, is_cut_off: bool = False) -> None:
    """Nothing is half there, and nothing that the undisturbed store does not have.

    A command that was cut off between a run and its cell leaves a run that the same line finds again.
    """
    unnamed = {fault.name for fault in verify(store).faults if is_cut_off and "no cell names it" in fault.fault}
    assert [fault for fault in verify(store).faults if fault.name not in unnamed] == []
    assert links(store) <= links(undisturbed)
    for run_id in store.run_ids():
        assert_same_tokens(store.run_folder(run_id), undisturbed.run_folder(run_id))


def killed_while(store: Path, processes: list[Warm], chance: random.Random) -> str | None:
    """Wait until something is being written, or for a moment, and kill whatever runs; when that was, if any did."""
    pattern = chance.choice(WRITTEN)
    until = time.monotonic() + (60 if pattern else chance.uniform(0.5, 5))
    seen = set(store.glob(pattern)) if pattern else set()
    target, found = len(seen) + chance.randint(1, 3), False
    while not found and time.monotonic() < until and any(each.poll() is None for each in processes):
        if pattern:
            seen |= set(store.glob(pattern))
        found = len(seen) >= target
        time.sleep(0.0003)
    time.sleep(chance.choice([0.0, 0.0, 0.001, 0.01]))
    n_killed = 0
    for process in processes:
        if process.poll() is None:
            process.kill()
            n_killed += 1
        assert "Traceback" not in process.communicate()[1]
    return (pattern if found else "any moment") if n_killed else None


def test_sweeps_that_are_killed_by_the_hundred_lose_nothing_and_end_as_if_undisturbed(
    undisturbed: Store, cwd: Path, tmp_path: Path
) -> None:
    chance, when, n_stores = random.Random(1), Counter[str | None](), 1
    store, known = Store(tmp_path / "0"), dict[str, bytes]()
    for _ in range(ROUNDS):
        orders = [tuple(chance.sample(LIMITS, len(LIMITS))) for _ in range(2)]
        processes = [Warm(*sweep(order, store.root), cwd=cwd, env=ONE_THREAD) for order in orders]
        when[killed_while(store.root, processes, chance)] += 1
        if store.root.is_dir():
            check(store, undisturbed, is_cut_off=True)
            now = {run_id: (store.run_folder(run_id) / "manifest.json").read_bytes() for run_id in store.run_ids()}
            assert known.items() <= now.items(), "a run that was there stays as it was"
            known = now
        if len(store.paths("cells")) == N_CELLS:
            assert links(store) == links(undisturbed)
            store, known, n_stores = Store(tmp_path / str(n_stores)), {}, n_stores + 1
    here(*sweep(LIMITS, store.root), cwd=cwd, check=0)
    check(store, undisturbed)
    assert links(store) == links(undisturbed)
    print(f"{ROUNDS} rounds over {n_stores} stores, killed while there was {dict(when)}")
    assert when[None] < ROUNDS / 3
    assert len(when) > 3


# ------------------------------------------------------------------------------------------------------------- no room


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk that can be filled."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", disk], capture_output=True).returncode:
        pytest.skip("no right to mount a disk that can be filled")
    yield disk
    subprocess.run(["umount", disk], check=True)


def resize(disk: Path, size: str) -> None:
    subprocess.run(["mount", "-o", f"remount,size={size}", disk], check=True)


@pytest.mark.parametrize("kib", [16, 64, 160, 340])
def test_a_sweep_for_which_there_is_no_room_leaves_nothing_half_and_goes_on_when_there_is(
    kib: int, disk: Path, undisturbed: Store, cwd: Path
) -> None:
    store = Store(disk / "store")
    resize(disk, f"{kib}k")
    answer = here(*sweep(LIMITS, store.root), cwd=cwd, check=1 if kib < 340 else None)
    assert "Traceback" not in answer.stderr
    assert "Traceback" not in here("sql", "SELECT count(*) FROM runs", "--store", store.root, cwd=cwd).stderr
    if store.root.is_dir():
        check(store, undisturbed, is_cut_off=True)
        assert store.leftovers() == []
    resize(disk, "64m")
    here(*sweep(LIMITS, store.root), cwd=cwd, check=0)
    check(store, undisturbed)
    assert links(store) == links(undisturbed)
