"""A store in object storage, read over a real S3 protocol from a server on this machine."""

import contextlib
import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import Answer, here
from tests.support.stores import Family, Measured

BUCKET, PREFIX = "evidence", "teams/ours"
URL = f"s3://{BUCKET}/{PREFIX}"


@dataclass
class Bucket:
    """A bucket that holds a copy of the measured store, and how a command finds it."""

    client: Any
    environment: dict[str, str]

    def put(self, folder: Path) -> None:
        for path in folder.rglob("*"):
            if path.is_file():
                self.client.upload_file(str(path), BUCKET, f"{PREFIX}/{path.relative_to(folder).as_posix()}")

    def keys(self) -> list[str]:
        listed = self.client.list_objects_v2(Bucket=BUCKET).get("Contents", [])
        return [entry["Key"] for entry in listed]


@pytest.fixture
def bucket(measured: Measured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    import boto3
    from botocore.exceptions import EndpointConnectionError

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        environment = {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
            "XDG_CACHE_HOME": str(tmp_path / "cache"),
        }
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        client = boto3.client("s3")
        for _ in range(200):
            with contextlib.suppress(EndpointConnectionError):
                client.create_bucket(Bucket=BUCKET)
                break
            time.sleep(0.1)
        found = Bucket(client, environment)
        found.put(measured.store)
        yield found
    finally:
        server.kill()
        server.wait()


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
    assert f"of {URL}" in first.stderr
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


def test_a_store_in_a_bucket_is_not_written_to(bucket: Bucket, family: Family, cwd: Path) -> None:
    before = bucket.keys()
    answer = here("measure", *family.words("xs"), f"store={URL}", cwd=cwd, check=2)
    assert f"{URL} can be read but not written" in answer.stderr
    assert len(answer.stderr.strip().splitlines()) == 1
    assert "can be read but not written" in here("store", "gc", f"store={URL}", cwd=cwd, check=2).stderr
    assert bucket.keys() == before


@pytest.mark.parametrize("url", ["s3://nosuch/teams", f"s3://{BUCKET}/nosuch", "nosuch://a/b"])
def test_a_store_that_is_not_there_is_one_line(url: str, bucket: Bucket, cwd: Path) -> None:
    answer = here("status", f"store={url}", cwd=cwd)
    assert answer.returncode in (1, 2)
    (line,) = answer.stderr.strip().splitlines()
    assert re.search(f"store={re.escape(url)} (cannot be read|holds no runs|does not exist)", line)


def test_storage_that_does_not_answer_is_one_line_and_says_where_the_copy_is(bucket: Bucket, cwd: Path) -> None:
    ask(URL, cwd)
    began = time.monotonic()
    dead = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}
    answer = here("status", f"store={URL}", cwd=cwd, env=dead, check=1)
    assert time.monotonic() - began < 30
    assert len(answer.stderr.strip().splitlines()) == 1
    copy = answer.stderr.strip().rsplit(" ", 1)[1]
    assert json.loads(ask(copy, cwd).stdout) == json.loads(ask(URL, cwd).stdout)


def test_a_remote_store_is_open_to_python(bucket: Bucket, measured: Measured) -> None:
    import rbpx

    remote, local = (rbpx.open(store).observations(k=[2, 7]) for store in (URL, measured.store))
    assert remote.num_rows > 0
    assert remote.to_pylist() == local.to_pylist()
