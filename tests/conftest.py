"""Fixtures of all rooms: tiny models and texts, a family of them measured into a store, an empty working directory."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.register_assert_rewrite("tests.support")

# Before transformers is imported, here or by a command that a test starts.
os.environ["TRANSFORMERS_VERBOSITY"] = "error"
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
if "PYTEST_XDIST_WORKER" in os.environ:  # threads of workers that share cores would wait for each other
    os.environ["OMP_NUM_THREADS"] = "1"

from rbpx.cores import share_cores  # noqa: E402

share_cores()

from tests.support import cpu_seconds  # noqa: E402, after the environment is set
from tests.support.browser import CHROMIUM  # noqa: E402
from tests.support.checkpoints import TINY_TEXT, build_checkpoint  # noqa: E402
from tests.support.commands import Answer, rbpx  # noqa: E402
from tests.support.hub import Hub, serving  # noqa: E402
from tests.support.once import answered_once, once_a_session  # noqa: E402
from tests.support.places import SHARED  # noqa: E402
from tests.support.stores import RESAMPLES, SHAPES, Family, Measured, build_member, write_jsonl  # noqa: E402


def pytest_configure(config: pytest.Config) -> None:
    """A table of the CPU seconds ends each run."""
    config.pluginmanager.register(cpu_seconds)


@pytest.fixture(scope="session", autouse=True)
def _no_fsync() -> Iterator[None]:
    """Stores of tests need not survive a power cut, so nothing waits for the disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda file: None)
        yield


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A Chromium that pages are looked at in."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright, which drives a browser, is not installed")
    if CHROMIUM is None:
        pytest.skip("no Chromium is here: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    """An empty working directory, that every command must leave empty."""
    path = tmp_path / "cwd"
    path.mkdir()
    return path


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty working directory beside what the tests of a module share."""
    path = tmp_path_factory.mktemp("module") / "cwd"
    path.mkdir()
    return path


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder `shared` beside the checkout: published tables, real texts and tokenizers."""
    if not SHARED.is_dir():
        pytest.skip(f"the shared reference data is not here: {SHARED}")
    return SHARED


# --------------------------------------------------------------------------------------------------- texts and models


@pytest.fixture(scope="session")
def tiny_text() -> list[str]:
    """Eight texts: one of a single token, one with special tokens inside, one more than ten contexts long."""
    return list(TINY_TEXT)


@pytest.fixture(scope="session")
def tiny_jsonl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`tiny_text` as a JSONL file with the field `text`, in the same order."""
    return once_a_session(tmp_path_factory, "text", lambda folder: write_jsonl(folder / "file.jsonl", *TINY_TEXT))


@pytest.fixture(scope="session")
def long_jsonl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six hundred different documents of more than a context each: with tokens_per_batch=1, about a second a model."""
    texts = [f"Letter {n}: {TINY_TEXT[0]}" for n in range(600)]
    return write_jsonl(tmp_path_factory.mktemp("long") / "long.jsonl", *texts)


@pytest.fixture(scope="session")
def tiny_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """`tiny_checkpoint(arch, folder=None, seed=0, **shape)`: the folder of what `build_checkpoint` makes.

    Without a folder of its own a checkpoint is made once a session and shared: do not write into it.
    """
    made: dict[tuple[Any, ...], Path] = {}

    def build(arch: str, folder: Path | None = None, seed: int = 0, **shape: Any) -> Path:
        if folder is not None:
            return build_checkpoint(arch, folder, seed, **shape)
        key = (arch, seed, *sorted(shape.items()))
        if key not in made:
            made[key] = build_checkpoint(arch, tmp_path_factory.mktemp("models") / f"{arch}-{seed}", seed, **shape)
        return made[key]

    return build


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    """An empty hub of models, asked by this process too; its cache is `tmp_path / "home" / "hub"`."""
    with serving(monkeypatch, tmp_path / "home" / "hub") as served:
        yield served


# ------------------------------------------------------------------------------------------------------------ a family


@pytest.fixture(scope="session")
def family(tmp_path_factory: pytest.TempPathFactory, tiny_jsonl: Path) -> Family:
    """Four tiny GPT-2 models on `tiny_text`; do not write into their folders."""

    def build(folder: Path) -> Path:
        for seed, size in enumerate(SHAPES):
            build_member(folder / size, size, seed)
        return folder

    folder = once_a_session(tmp_path_factory, "family", build)
    return Family({size: folder / size for size in SHAPES}, tiny_jsonl)


@pytest.fixture(scope="session")
def untouched(family: Family, tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """The family measured by `python -m rbpx` itself; only for copies."""

    def measure(folder: Path) -> Path:
        (folder / "cwd").mkdir()
        answer = rbpx(*family.words(), RESAMPLES, "--store", folder / "store", cwd=folder / "cwd", check=0)
        kept = [answer.args, answer.returncode, answer.stdout, answer.stderr]
        (folder / "answer.json").write_text(json.dumps(kept))
        return folder

    folder = once_a_session(tmp_path_factory, "measured", measure)
    return Measured(folder / "store", family, Answer(*json.loads((folder / "answer.json").read_text())))


@pytest.fixture(scope="module")
def measured(untouched: Measured, tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """The measured family for one module, whose commands may add fits to its store and change nothing else in it."""
    store = shutil.copytree(untouched.store, tmp_path_factory.mktemp("measured") / "store")
    return replace(untouched, store=Path(store))


@pytest.fixture
def own_store(untouched: Measured, tmp_path: Path) -> Path:
    """A copy of the measured store for one test."""
    return Path(shutil.copytree(untouched.store, tmp_path / "store"))


# ----------------------------------------------------------------------------------------------------------- questions


@pytest.fixture(scope="session")
def frozen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the frozen stores of tests/same_answers."""
    stores = Path(__file__).parent / "same_answers" / "stores"
    return once_a_session(tmp_path_factory, "frozen", lambda to: Path(shutil.copytree(stores, to / "stores")))


@pytest.fixture
def computed_once() -> Iterator[None]:
    """A question that a test asks in several widths or formats is computed for the first, and shown in all."""
    with answered_once():
        yield
