"""Sweeps: models loaded once."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import here
from tests.support.stores import Family, run_folders


def test_a_model_is_loaded_once_for_all_texts_of_a_sweep(
    family: Family, cwd: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rbpx.measure import cell as module

    loaded: list[str] = []
    plain = module.load_model

    def load(name: str, *more: Any) -> Any:
        loaded.append(Path(name).name)
        return plain(name, *more)

    monkeypatch.setattr(module, "load_model", load)
    words = [word for word in family.words("xs", "s") if not word.startswith("dataset")]
    store = ("--store", tmp_path / "store")
    here("measure", "-m", *words, "dataset=pydoc,stdlib", "limit=2", *store, cwd=cwd, check=0)
    assert loaded == ["xs", "s"]
    assert len(run_folders(tmp_path / "store")) == 4
