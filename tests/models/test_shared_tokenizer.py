"""Bundled models share a tokenizer that lies above them; elsewhere a model needs its own."""

import shutil
from pathlib import Path

import pytest

from rbpx.errors import RbpxError
from rbpx.models.tokenizer import hash_tokenizer, load_tokenizer
from tests.support.places import LADDER


def test_the_nearest_tokenizer_above_a_bundled_model_is_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = next(LADDER.rglob("tokenizer.json")).parent
    ladder, model = tmp_path / "package" / "ladder", tmp_path / "package" / "ladder" / "3k" / "8m"
    model.mkdir(parents=True)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(source / name, ladder / name)
    shutil.copy(next(LADDER.rglob("config.json")), model / "config.json")
    with pytest.raises(RbpxError, match="m has"):
        load_tokenizer(model, "m")
    monkeypatch.setattr("rbpx.models.tokenizer.PACKAGE", tmp_path / "package")
    assert hash_tokenizer(load_tokenizer(model, "m")) == hash_tokenizer(load_tokenizer(source, "m"))
