"""What is no failure of a command: that its reader has enough."""

from pathlib import Path

from tests.support.commands import start
from tests.support.synthetic import Truth, write_store


def test_a_reader_that_has_enough_is_no_error(cwd: Path, tmp_path: Path) -> None:
    store = write_store(tmp_path / "store", Truth(S=(1_000,)), seed=1, n_documents=1, n_tokens=4).root
    process = start("export", "SELECT range AS n FROM range(1000000)", "--store", store, cwd=cwd)
    assert process.stdout is not None
    assert process.stdout.readline() == "n\n"
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == ""
    assert process.wait(60) == 0
