"""A store is copied to object storage and back: whole, what is missing alone, and each byte checked."""

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from rbpx.store.merge import merge
from rbpx.store.store import Store
from rbpx.store.transfer import Bucket, push
from tests.support.composed import here
from tests.support.object_storage import BUCKET, Fault, Storage, storage
from tests.support.stores import snapshot
from tests.support.synthetic import Truth, write_store

URL = f"s3://{BUCKET}/ours"


@pytest.fixture(scope="module")
def drawn_two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs; only for copies."""
    return write_store(tmp_path_factory.mktemp("two") / "s", Truth(S=(10, 20)), seed=1, n_documents=3, n_tokens=5).root


@pytest.fixture
def ours(drawn_two: Path, tmp_path: Path) -> Store:
    return Store(shutil.copytree(drawn_two, tmp_path / "ours"))


@pytest.fixture(scope="module")
def running() -> Iterator[Storage]:
    with storage() as server:
        yield server


@pytest.fixture
def server(running: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Storage:
    """The server, with an empty bucket."""
    for key in running.keys("ours"):
        running.client.delete_object(Bucket=BUCKET, Key=f"ours/{key}")
    running.faults.clear()
    running.asked.clear()
    for name, value in running.environment(tmp_path / "cache").items():
        monkeypatch.setenv(name, value)
    return running


def bytes_of(root: Path) -> dict[str, bytes]:
    """What lies in a store; its views are made at each place."""
    return {name: content for name, (_, content) in snapshot(root).items() if name != "rbpx.duckdb"}


def test_what_is_pushed_is_pulled_to_the_last_byte_and_sent_once(server: Storage, ours: Store, cwd: Path) -> None:
    to = ("store", "push", URL, "--store", ours.root)
    assert here(*to, cwd=cwd, check=0).stderr == f"copied from {ours.root}: 1 vocab, 2 runs, 2 cells\n"
    n_sent = server.asked_for("PUT", "")
    assert n_sent == len(server.keys("ours")) == 2 * 4 + 1 + 2
    assert "nothing (there already: 1 vocab, 2 runs" in here(*to, cwd=cwd, check=0).stderr
    assert server.asked_for("PUT", "") == n_sent
    theirs = cwd.parent / "theirs"
    back = ("store", "pull", URL, "--store", theirs)
    assert here(*back, cwd=cwd, check=0).stderr == f"copied from {URL}: 1 vocab, 2 runs, 2 cells\n"
    assert bytes_of(theirs) == bytes_of(ours.root)
    n_read = server.asked_for("GET", "parquet")
    assert "nothing (there already: 1 vocab, 2 runs" in here(*back, cwd=cwd, check=0).stderr
    assert server.asked_for("GET", "parquet") == n_read, "a table that is here is not read again"


@pytest.mark.parametrize("action", ["push", "pull"])
def test_what_was_stopped_goes_on(action: str, server: Storage, ours: Store, cwd: Path) -> None:
    method = "PUT" if action == "push" else "GET"
    theirs = cwd.parent / "theirs"
    if action == "pull":
        push(ours, Bucket(URL))
    words = ("store", action, URL, "--store", ours.root if action == "push" else theirs)
    first, second = ours.run_ids()
    server.faults.append(Fault("deny", method, f"{second}/tokens"))
    (line,) = here(*words, cwd=cwd, check=1).stderr.splitlines()
    assert line.startswith(f"rbpx: {URL} cannot be used (")
    server.faults.clear()
    server.asked.clear()
    if action == "push":
        assert Bucket(URL).names("runs") == [first], "a run is there with its manifest, which goes last"
    else:
        assert Store(theirs).run_ids() == [first]
    assert "1 run, " in here(*words, cwd=cwd, check=0).stderr
    assert server.asked_for(method, f"{first}/tokens") == 0
    assert server.asked_for(method, f"{second}/tokens") == 1
    if action == "pull":
        assert bytes_of(theirs) == bytes_of(ours.root)


def test_a_run_that_is_corrupt_here_is_not_sent(server: Storage, ours: Store, cwd: Path) -> None:
    first, second = ours.run_ids()
    path = ours.part(first, "documents")
    path.write_bytes(path.read_bytes()[:-1] + b"\x00")
    answer = here("store", "push", URL, "--store", ours.root, cwd=cwd, check=1)
    assert f"kept out: run {first}: it is corrupt: documents.parquet" in answer.stderr
    assert Bucket(URL).names("runs") == [second]


def test_names_in_a_bucket_lead_out_of_no_store(server: Storage, ours: Store, cwd: Path) -> None:
    push(ours, Bucket(URL))
    first, _ = ours.run_ids()
    put = server.client.put_object
    for key in ("runs/..%2Fevil/manifest.json", f"runs/{first}x/manifest.json"):
        put(Bucket=BUCKET, Key=f"ours/{key}", Body=b'{"run_id": "../../evil", "files": {"/etc/passwd": "0"}}')
    put(Bucket=BUCKET, Key="ours/cells/evil.json", Body=b'{"run_id": "../../evil", "cell_key": "evil", "family": "a", '
        b'"size": "b", "dataset": "c"}')  # fmt: skip
    theirs = cwd.parent / "theirs"
    answer = here("store", "pull", URL, "--store", theirs, cwd=cwd, check=1)
    assert "kept out: cells/evil.json: it names what is no name" in answer.stderr
    assert bytes_of(theirs) == bytes_of(ours.root)
    assert sorted(path.name for path in cwd.parent.iterdir()) == ["cwd", "ours", "theirs"]
    put(Bucket=BUCKET, Key="ours/cells/../evil.json", Body=b"{}")
    (line,) = here("store", "pull", URL, "--store", theirs, cwd=cwd, check=1).stderr.splitlines()
    assert line.startswith(f"rbpx: {URL} cannot be used (")


def test_the_tables_of_two_machines_that_push_the_same_run_are_never_mixed(
    server: Storage, ours: Store, tmp_path: Path
) -> None:
    """The second one has other bytes, and listed the bucket before the first had sent its manifests."""
    other = write_store(tmp_path / "other", Truth(S=(10, 20)), seed=2, n_documents=3, n_tokens=5)
    assert other.run_ids() == ours.run_ids()
    bucket = Bucket(URL)
    push(ours, Bucket(URL))
    sent = push(other, bucket)
    assert (sent.copied["runs"], sent.already_here["runs"]) == (0, 2)
    theirs = Store(tmp_path / "theirs")
    assert merge(theirs, Bucket(URL)).skipped == []
    assert bytes_of(theirs.root / "runs") == bytes_of(ours.root / "runs")


@pytest.mark.parametrize("kind", ["refuse", "lose"])
def test_what_goes_wrong_for_a_while_costs_nothing(
    kind: str, server: Storage, ours: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backoff = {"init_backoff": timedelta(milliseconds=2), "max_backoff": timedelta(milliseconds=9), "base": 2}
    retries = {"max_retries": 3, "retry_timeout": timedelta(seconds=5), "backoff": backoff}
    monkeypatch.setattr("rbpx.store.transfer._RETRIES", retries)
    for method, about in (("PUT", "/tokens-"), ("PUT", "manifest.json"), ("PUT", "/cells/"), ("GET", "")):
        server.faults.append(Fault(kind, method, about, times=2))
    push(ours, Bucket(URL))
    theirs = Store(tmp_path / "theirs")
    assert merge(theirs, Bucket(URL)).skipped == []
    assert bytes_of(theirs.root) == bytes_of(ours.root)
    assert sum(fault.seen for fault in server.faults) == 8, "all faults were met, and after them it was whole"


def test_several_push_to_google_at_once_and_each_run_is_sent_by_one(
    server: Storage, ours: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Google's XML interface is that of S3, but for the header by which an object is written where there is none."""
    for name, value in server.google_environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    url = URL.replace("s3:", "gs:")
    with ThreadPoolExecutor(4) as pool:
        merged = list(pool.map(lambda _: push(ours, Bucket(url)), range(4)))
    assert sum(each.copied["runs"] for each in merged) == 2
    theirs = Store(tmp_path / "theirs")
    assert merge(theirs, Bucket(url)).skipped == []
    assert bytes_of(theirs.root) == bytes_of(ours.root)


def test_credentials_that_are_refused_or_lacking_and_a_bucket_without_a_store_are_one_line(
    server: Storage, ours: Store, cwd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.faults.append(Fault("deny"))
    (line,) = here("store", "push", URL, "--store", ours.root, cwd=cwd, check=1).stderr.splitlines()
    assert line.startswith(f"rbpx: {URL} cannot be used (")
    assert "InvalidAccessKeyId" in line
    assert "the credentials (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY)" in line
    server.faults.clear()
    (line,) = here("store", "push", "s3://nowhere/x", "--store", ours.root, cwd=cwd, check=1).stderr.splitlines()
    assert line.startswith("rbpx: s3://nowhere/x cannot be used (404 Not Found, NoSuchBucket); check its name")
    other = f"s3://{BUCKET}/other"
    (line,) = here("store", "pull", other, "--store", ours.root, cwd=cwd, check=2).stderr.splitlines()
    assert line.startswith(f"rbpx: {other} is not a store: it has no runs")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    (line,) = here("store", "push", "az://box/x", "--store", ours.root, cwd=cwd, check=1).stderr.splitlines()
    assert "the credentials (AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY)" in line
