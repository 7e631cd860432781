"""A store is copied to object storage and back, whole; all that a server can do to it is in tests/nightly."""

from pathlib import Path

import pytest

from tests.support.composed import here
from tests.support.object_storage import BUCKET, storage
from tests.support.synthetic import Truth, write_store


def test_a_store_is_pushed_to_a_bucket_and_pulled_from_it_whole(
    tmp_path: Path, cwd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = write_store(tmp_path / "ours", Truth(S=(1_000, 10_000)), seed=1, n_documents=6, n_tokens=20)
    with storage() as server:
        for name, value in server.environment(tmp_path / "cache").items():
            monkeypatch.setenv(name, value)
        url = f"s3://{BUCKET}/ours"
        push = ("store", "push", url, "--store", ours.root)
        assert "2 runs, 2 cells" in here(*push, cwd=cwd, check=0).stderr
        assert "nothing (here already: " in here(*push, cwd=cwd, check=0).stderr
        here("store", "pull", url, "--store", tmp_path / "theirs", cwd=cwd, check=0)
    folder = ours.root / "runs"
    whole = {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    pulled = tmp_path / "theirs" / "runs"
    assert {path.relative_to(pulled): path.read_bytes() for path in pulled.rglob("*") if path.is_file()} == whole
    assert len(whole) == 2 * 4
