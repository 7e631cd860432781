"""Fixtures of the reports."""

from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty working directory beside the stores and pages of a module."""
    cwd = tmp_path_factory.mktemp("report") / "cwd"
    cwd.mkdir()
    return cwd
