"""Fixtures of the store's room: a drawn store in the place of a measured one, made once a session."""

import shutil
from pathlib import Path

import pytest

from tests.support.composed import here
from tests.support.filled import filled
from tests.support.once import once_a_session
from tests.support.stores import RESAMPLES


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four drawn runs and their laws; only for copies."""

    def fill(folder: Path) -> Path:
        (folder / "cwd").mkdir()
        store = filled(folder / "store").root
        here("fit", RESAMPLES, "k=[1,10]", "laws=[rbp,cross_entropy]", "--store", store, cwd=folder / "cwd", check=0)
        return store

    return once_a_session(tmp_path_factory, "filled", fill)


@pytest.fixture(scope="module")
def drawn(whole: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The drawn store for one module, whose commands may add to it and change nothing else."""
    return Path(shutil.copytree(whole, tmp_path_factory.mktemp("drawn") / "store"))


@pytest.fixture
def own_store(whole: Path, tmp_path: Path) -> Path:
    """A copy of the drawn store for one test."""
    return Path(shutil.copytree(whole, tmp_path / "store"))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A place for a store that is not there yet."""
    return tmp_path / "store"
