"""A store in object storage, read over a real S3 protocol from a server on this machine."""

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import Answer, here
from tests.support.object_storage import BUCKET, Fault, Storage, storage
from tests.support.stores import Measured

PREFIX = "teams/ours"
URL = f"s3://{BUCKET}/{PREFIX}"


@dataclass
class Bucket:
    """A bucket that holds a copy of the measured store as `aws s3 sync` makes it."""

    server: Storage

    @property
    def client(self) -> Any:
        return self.server.client

    def keys(self) -> list[str]:
        return [f"{PREFIX}/{key}" for key in self.server.keys(PREFIX)]


@pytest.fixture(scope="module")
def server() -> Iterator[Storage]:
    with storage() as running:
        yield running


@pytest.fixture
def bucket(server: Storage, measured: Measured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    for name, value in server.environment(tmp_path / "cache").items():
        monkeypatch.setenv(name, value)
    backoff = {"init_backoff": timedelta(milliseconds=2), "max_backoff": timedelta(milliseconds=9), "base": 2}
    retries = {"max_retries": 2, "retry_timeout": timedelta(seconds=5), "backoff": backoff}
    monkeypatch.setattr("rbpx.store.remote.bucket._RETRIES", retries)
    found = Bucket(server)
    for key in found.keys():
        server.client.delete_object(Bucket=BUCKET, Key=key)
    server.put(measured.store, PREFIX)
    yield found
    server.faults.clear()


def ask(store: str, cwd: Path, *words: str, check: int = 0) -> Answer:
    return here(
        *(words or ("sql", "FROM runs ORDER BY run_id")), f"store={store}", "--format", "json", cwd=cwd, check=check
    )


def test_a_store_in_a_bucket_answers_as_the_folder_does(bucket: Bucket, measured: Measured, cwd: Path) -> None:
    before = bucket.keys()
    for words in (
        (),
        (
            "sql",
            "SELECT run_id, greater + ties AS r, count(*) AS n FROM tokens GROUP BY ALL ORDER BY ALL",
        ),
        ("sql", "SELECT * FROM rbp_at(3, 'mid') ORDER BY size"),
    ):
        assert json.loads(ask(URL, cwd, *words).stdout) == json.loads(ask(str(measured.store), cwd, *words).stdout)
    words = ("fit", "laws=[rbp,cross_entropy]", "resamples=20")
    there, here_ = (json.loads(ask(store, cwd, *words).stdout) for store in (f"{URL}/", str(measured.store)))
    assert [(row["law"], row["k"], row["alpha"]) for row in there] == [
        (row["law"], row["k"], row["alpha"]) for row in here_
    ]
    assert bucket.keys() == before, "nothing is written there"


def test_what_was_copied_is_not_copied_again_and_what_is_gone_goes(bucket: Bucket, cwd: Path) -> None:
    first = ask(URL, cwd)
    runs = json.loads(first.stdout)
    assert f"from {URL}" in first.stderr
    assert "copied" not in ask(URL, cwd).stderr
    for key in bucket.keys():
        if runs[0]["run_id"] in key or runs[0]["cell_key"] in key:
            bucket.client.delete_object(Bucket=BUCKET, Key=key)
    assert [row["run_id"] for row in json.loads(ask(URL, cwd).stdout)] == [row["run_id"] for row in runs[1:]]


def test_a_record_that_changes_there_changes_here(bucket: Bucket, cwd: Path) -> None:
    ask(URL, cwd)
    key = next(key for key in bucket.keys() if "/cells/" in key)
    cell = json.loads(bucket.client.get_object(Bucket=BUCKET, Key=key)["Body"].read())
    del cell["seal"]
    time.sleep(1.1)  # S3 tells seconds
    bucket.client.put_object(Bucket=BUCKET, Key=key, Body=json.dumps(cell | {"size": "zz"}))
    assert "zz" in {row["size"] for row in json.loads(ask(URL, cwd).stdout)}


@pytest.mark.parametrize("url", ["s3://nosuch/teams", f"s3://{BUCKET}/nosuch", "nosuch://a/b"])
def test_a_store_that_is_not_there_is_one_line(url: str, bucket: Bucket, cwd: Path) -> None:
    answer = here("fit", f"store={url}", cwd=cwd, check=2)
    (line,) = answer.stderr.strip().splitlines()
    assert re.search(
        f"store={re.escape(url)}(: there is no bucket| holds no runs| does not exist| is not on a storage)", line
    )


def test_storage_that_does_not_answer_is_one_line_and_says_where_the_copy_is(bucket: Bucket, cwd: Path) -> None:
    ask(URL, cwd)
    bucket.server.faults.append(Fault("refuse"))
    answer = here("status", f"store={URL}", cwd=cwd, check=1)
    assert len(answer.stderr.strip().splitlines()) == 1
    copy = answer.stderr.strip().rsplit(" ", 1)[1]
    bucket.server.faults.clear()
    names = ("sql", "SELECT run_id, size FROM runs ORDER BY run_id")
    assert json.loads(ask(copy, cwd, *names).stdout) == json.loads(ask(URL, cwd, *names).stdout)


def test_a_remote_store_is_open_to_python(bucket: Bucket, measured: Measured) -> None:
    import rbpx

    remote, local = (rbpx.open(store).observations(k=[2, 7]) for store in (URL, measured.store))
    assert remote.num_rows > 0
    assert remote.to_pylist() == local.to_pylist()
