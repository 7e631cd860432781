"""Copies of a store in object storage that fails in every way that it can, is pushed to by many, or of other clouds.

No emulator of Google's storage that can be had speaks its XML interface, which our library uses; that is the one of S3
but for the header by which an object is written only where there is none. So moto answers for it, with that header read
as the one of S3. Azure's is Microsoft's own emulator, and its test is skipped where it is not installed.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from rbpx.errors import MeasureError, RbpxError
from rbpx.store.merge import merge
from rbpx.store.store import Store
from rbpx.store.transfer import Bucket, push
from rbpx.store.verify import verify
from tests.support import azure
from tests.support.composed import here
from tests.support.object_storage import BUCKET, Fault, Storage, storage
from tests.support.stores import assert_same_tokens, run_folders
from tests.support.synthetic import Truth, write_store

Environment = Callable[[Path], dict[str, str]]


@pytest.fixture(scope="module")
def server() -> Iterator[Storage]:
    with storage() as running:
        yield running


@pytest.fixture
def s3(server: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Storage]:
    """The server, found by the environment; what fails is asked for again at once."""
    for key, value in server.environment(tmp_path).items():
        monkeypatch.setenv(key, value)
    backoff = {"init_backoff": timedelta(milliseconds=2), "max_backoff": timedelta(milliseconds=9), "base": 2}
    retries = {"max_retries": 3, "retry_timeout": timedelta(seconds=5), "backoff": backoff}
    monkeypatch.setattr("rbpx.store.transfer._RETRIES", retries)
    server.asked.clear()
    yield server
    server.faults.clear()


def drawn(root: Path) -> Store:
    return write_store(root, Truth(S=(1_000, 10_000)), seed=1, n_documents=6, n_tokens=20)


def assert_is_whole(url: str, to: Path, runs: dict[str, Path]) -> None:
    """What is pulled from there has these runs, and no fault."""
    pulled = Store(to)
    merged = merge(pulled, Bucket(url))
    assert (merged.skipped, verify(pulled).faults) == ([], [])
    assert run_folders(to).keys() == runs.keys()
    for run_id, folder in run_folders(to).items():
        assert_same_tokens(folder, runs[run_id])


@pytest.mark.parametrize("kind", ["refuse", "lose", "hang up", "slow"])
def test_what_goes_wrong_for_a_while_costs_nothing(kind: str, s3: Storage, tmp_path: Path) -> None:
    store, url = drawn(tmp_path / "own"), f"s3://{BUCKET}/{kind.replace(' ', '-')}"
    for method, about in (("PUT", "/tokens-"), ("PUT", "manifest.json"), ("PUT", "/cells/"), ("GET", "")):
        s3.faults.append(Fault(kind, method, about, times=2, seconds=0.2))
    for _ in range(9):  # the library asks again for all but half an answer, after which the same line goes on
        try:
            push(store, Bucket(url))
            assert_is_whole(url, tmp_path / "pulled", run_folders(store.root))
            break
        except MeasureError:
            if kind != "hang up":
                raise
    assert sum(fault.seen for fault in s3.faults) == 8, "all faults were met, and after them it was whole"


@pytest.mark.parametrize("about", ["/rank_counts-", "manifest.json", "/cells/"])
def test_a_push_that_ends_anywhere_leaves_nothing_half_and_the_same_line_goes_on(
    about: str, s3: Storage, tmp_path: Path, cwd: Path
) -> None:
    store, url = drawn(tmp_path / "own").root, f"s3://{BUCKET}/ended{about.strip('/-.').replace('.', '-')}"
    s3.faults.append(Fault("refuse", "PUT", about))
    answer = here("store", "push", url, "--store", store, cwd=cwd, check=1)
    (line,) = answer.stderr.splitlines()
    assert "cannot be used (503" in line
    s3.faults.clear()
    n_runs = len(run_folders(store)) if about == "/cells/" else 0
    assert len(Bucket(url).names("runs")) == n_runs, "a run whose manifest is not there is not there"
    assert Bucket(url).names("vocab"), "what runs refer to is there before them"
    there = {f"/{BUCKET}/{url.split('/')[-1]}/{key}?" for key in s3.keys(url.split("/")[-1])}
    s3.asked.clear()
    here("store", "push", url, "--store", store, cwd=cwd, check=0)
    assert there
    assert there.isdisjoint(path for method, path in s3.asked if method == "PUT"), "sent again"
    assert_is_whole(url, tmp_path / "pulled", run_folders(store))


# -------------------------------------------------------------------------------------------------------- other clouds


@pytest.fixture(scope="module", params=["gs", "az"])
def cloud(request: pytest.FixtureRequest) -> Iterator[tuple[str, Environment]]:
    """A bucket, and how a machine finds it."""
    if request.param == "gs":
        with storage() as running:
            yield f"gs://{BUCKET}", running.google_environment
    elif not azure.is_installed():
        pytest.skip("azurite is not installed: npm install azurite, with its programs on the PATH")
    else:
        with azure.azure() as port:
            yield f"az://{azure.CONTAINER}", lambda cache: azure.environment(port, cache)


def test_a_store_is_pushed_to_another_cloud_by_several_and_pulled(
    cloud: tuple[str, Environment], tmp_path: Path, cwd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key, value in cloud[1](tmp_path).items():
        monkeypatch.setenv(key, value)
    url, store = f"{cloud[0]}/store", drawn(tmp_path / "own")
    with ThreadPoolExecutor(4) as pool:
        merged = list(pool.map(lambda _: push(store, Bucket(url)), range(4)))
    assert sum(each.copied["runs"] for each in merged) == 2
    assert (
        "nothing (there already: 1 vocab, 2 runs" in here("store", "push", url, "--store", store.root, cwd=cwd).stderr
    )
    assert "2 runs" in here("store", "pull", url, "--store", tmp_path / "pulled", cwd=cwd, check=0).stderr
    assert_is_whole(url, tmp_path / "again", run_folders(store.root))
    with pytest.raises(MeasureError, match="nosuch/x cannot be used"):
        Bucket(f"{cloud[0].split(':')[0]}://nosuch/x")


def test_an_account_of_azure_that_is_not_given_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NAME", "KEY"):
        monkeypatch.delenv(f"AZURE_STORAGE_ACCOUNT_{name}", raising=False)
    with pytest.raises(RbpxError, match=r"the credentials .AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY"):
        Bucket("az://evidence/x")
