"""What a command waits for before it does anything: a library that its verb does not need is not read.

What `--help` reads is held by tests/cli/test_cli.py.
"""

from pathlib import Path

import pytest

from tests.support.commands import here, start
from tests.support.synthetic import Truth, write_store

MODELS = {"torch", "transformers", "accelerate", "datasets", "tokenizers", "safetensors", "huggingface_hub", "numba"}
FITS = {"scipy", "lmfit"}
STORE = {"duckdb", "pyarrow", "pandas", "rich"}
PICTURES = {"altair", "vl_convert"}


def read_by(*args: object, cwd: Path) -> set[str]:
    """The modules that a command reads, as the interpreter itself lists them; the command must succeed."""
    process = start(*args, cwd=cwd, python=("-X", "importtime"))
    stdout, stderr = process.communicate(timeout=300)
    assert process.returncode == 0, stderr[-2000:]
    assert stdout.strip()
    names = {line.rpartition("|")[2].strip() for line in stderr.splitlines() if line.startswith("import time:")}
    assert {"json", "rbpx.cli.argv"} <= names
    return names


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("startup") / "store"
    write_store(folder, Truth(), seed=0, n_documents=20, n_tokens=20)
    return folder


@pytest.mark.parametrize("words", [["--cfg", "job"], ["fit", "--info", "defaults"]])
def test_a_configuration_is_shown_without_the_libraries_of_the_verbs(words: list[str], tmp_path: Path) -> None:
    names = read_by(*words, cwd=tmp_path)
    assert "hydra" in names
    assert names.isdisjoint(MODELS | FITS | STORE | PICTURES)


@pytest.mark.parametrize("words", [["sql", "FROM runs"], ["status"], ["export", "runs"]])
def test_what_reads_the_store_waits_for_no_model_and_no_fit(words: list[str], store: Path, tmp_path: Path) -> None:
    names = read_by(*words, "--store", store, cwd=tmp_path)
    assert "duckdb" in names
    assert names.isdisjoint(MODELS | FITS | PICTURES)


def test_what_fits_waits_for_no_model(store: Path, tmp_path: Path) -> None:
    names = read_by("fit", "k=1", "resamples=20", "--store", store, cwd=tmp_path)
    assert "scipy" in names
    assert names.isdisjoint(MODELS | PICTURES | {"lmfit", "scipy.stats", "scipy.optimize"})


def test_a_run_that_has_nothing_left_to_measure_waits_for_no_model(tmp_path: Path) -> None:
    words = ("run", "model=ladder", "size=3k", "dataset=pydoc", "limit=1", "resamples=20")
    store = tmp_path / "store"
    here(*words, "--store", store, cwd=_folder(tmp_path / "first"), check=0)
    names = read_by(*words, "--store", store, cwd=_folder(tmp_path / "second"))
    assert "duckdb" in names
    assert names.isdisjoint(MODELS | PICTURES)


def _folder(path: Path) -> Path:
    path.mkdir()
    return path
