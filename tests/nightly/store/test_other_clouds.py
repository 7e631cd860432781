"""Stores in the object storage of Google and of Azure, by servers on loopback that speak as theirs do.

No emulator of Google's storage that can be had speaks its XML interface, which our library uses; that is the one of S3
but for the header by which an object is written only where there is none. So moto answers for it, with that header read
as the one of S3. Azure's is Microsoft's own emulator, and those tests are skipped where it is not installed.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rbpx.errors import RbpxError
from rbpx.store.checks.verify import verify
from rbpx.store.merge import merge
from rbpx.store.named import open_store, own_store
from tests.support import azure
from tests.support.composed import here
from tests.support.object_storage import BUCKET, storage
from tests.support.stores import Family, Measured, assert_same_tokens, cell_records, run_folders

Environment = Callable[[Path], dict[str, str]]
NO_AZURE = "azurite is not installed: npm install azurite, with its programs on the PATH"


@pytest.fixture(scope="module", params=["gs", "az"])
def cloud(request: pytest.FixtureRequest) -> Iterator[tuple[str, Environment]]:
    """A bucket, and how a machine with a cache finds it."""
    if request.param == "gs":
        with storage() as server:
            yield f"gs://{BUCKET}", server.google_environment
    elif not azure.is_installed():
        pytest.skip(NO_AZURE)
    else:
        with azure.azure() as port:
            yield f"az://{azure.CONTAINER}", lambda cache: azure.environment(port, cache)


@pytest.fixture
def at(cloud: tuple[str, Environment], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Work on the machine of that name: each has a cache of its own."""

    def go(name: str) -> None:
        for key, value in cloud[1](tmp_path / name).items():
            monkeypatch.setenv(key, value)

    go("here")
    return go


def test_a_store_is_measured_into_a_bucket_pushed_and_pulled(
    cloud: tuple[str, Environment],
    at: Callable[[str], None],
    family: Family,
    measured: Measured,
    cwd: Path,
    tmp_path: Path,
) -> None:
    url = f"{cloud[0]}/measured"
    here("measure", *family.words("xs"), f"store={url}", cwd=cwd, check=0)
    assert "3 runs, 3 cells" in here("store", "push", url, f"store={measured.store}", cwd=cwd, check=0).stderr
    at("elsewhere")
    assert "4 runs, 4 cells" in here("store", "pull", url, f"store={tmp_path / 'p'}", cwd=cwd, check=0).stderr
    folders = run_folders(measured.store)
    for run_id, folder in run_folders(tmp_path / "p").items():
        assert_same_tokens(folder, folders[run_id])
    assert len(cell_records(tmp_path / "p")) == len(folders) == 4
    assert here("store", "verify", f"store={url}", cwd=cwd, check=0).stdout.startswith(f"store {url}: 4 runs")
    gone = min(folders)
    here("store", "rm", gone, f"store={url}", cwd=cwd, check=0)
    at("here")
    assert open_store(url).run_ids() == sorted(folders.keys() - {gone})


def test_machines_that_write_the_same_runs_leave_each_of_them_once(
    cloud: tuple[str, Environment], at: Callable[[str], None], measured: Measured
) -> None:
    from rbpx.store.store import Store

    url, stores = f"{cloud[0]}/crowd", []
    for number in range(4):
        at(f"machine-{number}")
        stores.append(own_store(url))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda store: (merge(store, Store(measured.store)), store.finish()), stores))
    at("reader")
    store = open_store(url)
    found = verify(store)
    assert (found.faults, found.leftovers, store.run_ids()) == ([], [], sorted(run_folders(measured.store)))


def test_a_bucket_that_does_not_exist_is_said_so(cloud: tuple[str, Environment], at: Callable[[str], None]) -> None:
    scheme = cloud[0].split(":")[0]
    with pytest.raises(RbpxError, match="there is no bucket nosuch"):
        open_store(f"{scheme}://nosuch/x")


@pytest.mark.parametrize("names", [("NAME",), ("NAME", "KEY")])
def test_an_account_of_azure_that_is_not_given_is_asked_for(
    names: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in names:
        monkeypatch.delenv(f"AZURE_STORAGE_ACCOUNT_{name}", raising=False)
    with pytest.raises(RbpxError, match="no credentials; set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY"):
        open_store("az://evidence/x")
