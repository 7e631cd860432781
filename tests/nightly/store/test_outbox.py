"""What is sent to a bucket, in which order, and what stays where two machines sent the same; the bucket is a dict."""

import json
from pathlib import Path
from typing import cast

import pytest

from rbpx.errors import MeasureError
from rbpx.store.files.inside import KINDS
from rbpx.store.remote.bucket import Bucket
from rbpx.store.remote.object_names import name_of_table
from rbpx.store.remote.outbox import Outbox
from tests.support.objects import Objects


@pytest.fixture
def bucket() -> Objects:
    return Objects()


@pytest.fixture
def outbox(bucket: Objects, tmp_path: Path) -> Outbox:
    return Outbox(tmp_path, cast(Bucket, bucket))


def write(path: Path, content: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path


def write_run(root: Path, name: str = "r1", **sha256: str) -> Path:
    """A run whose tables are said to have these digests."""
    files = {f"{table}.parquet": digest * 16 for table, digest in sha256.items()}
    for table in sha256:
        write(root / "runs" / name / f"{table}.parquet", f"rows of {table}")
    return write(root / "runs" / name / "manifest.json", json.dumps({"files": files})).parent


def named(kind: str) -> str:
    """What a file of a kind is called in a bucket."""
    return f"{kind}/a.{'json' if kind in KINDS else 'parquet'}"


def notes(root: Path) -> list[str]:
    return sorted(f"{path.parent.name}/{path.name}" for path in root.glob("unsent/*/*"))


def test_a_run_is_sent_tables_first_and_manifest_after_them(outbox: Outbox, bucket: Objects, tmp_path: Path) -> None:
    folder = write_run(tmp_path, tokens="abcd", documents="1234")
    outbox.note(folder)
    assert notes(tmp_path) == ["runs/r1"]
    assert outbox.names() == {"runs/r1", "runs/r1/manifest.json"}
    outbox.send(folder)
    tables = ["runs/r1/tokens-abcdabcdabcdabcd.parquet", "runs/r1/documents-1234123412341234.parquet"]
    assert [name for _, name in bucket.done] == [*tables, "runs/r1/manifest.json"]
    assert bucket.held[tables[0]] == b"rows of tokens"
    assert notes(tmp_path) == []
    assert outbox.names() == set()


def test_what_is_there_is_not_sent_again_unless_its_size_is_another(
    outbox: Outbox, bucket: Objects, tmp_path: Path
) -> None:
    folder = write_run(tmp_path, tokens="abcd", documents="1234")
    whole, half = "runs/r1/tokens-abcdabcdabcdabcd.parquet", "runs/r1/documents-1234123412341234.parquet"
    bucket.held |= {whole: b"Rows of tokens", half: b"rows"}
    outbox.send(folder)
    assert bucket.done == [("put", half), ("put_new", "runs/r1/manifest.json")]
    assert bucket.held[half] == b"rows of documents"


def test_a_table_that_was_removed_there_before_the_manifest_came_is_sent_again(
    outbox: Outbox, bucket: Objects, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, put_new = "runs/r1/tokens-abcdabcdabcdabcd.parquet", bucket.put_new

    def after_a_removal(name: str, content: bytes | Path) -> bool:
        if name.endswith("manifest.json"):  # `store rm` on another machine, just before
            del bucket.held[table]
        return put_new(name, content)

    monkeypatch.setattr(bucket, "put_new", after_a_removal)
    outbox.send(write_run(tmp_path, tokens="abcd"))
    assert sorted(bucket.held) == ["runs/r1/manifest.json", table]


def test_tables_that_are_not_here_any_more_are_not_missed(outbox: Outbox, bucket: Objects, tmp_path: Path) -> None:
    folder = write_run(tmp_path, tokens="abcd", documents="1234")
    (folder / "tokens.parquet").unlink()
    outbox.send(folder)
    assert "runs/r1/documents-1234123412341234.parquet" in bucket.held
    assert "runs/r1/manifest.json" in bucket.held


def test_a_run_that_another_machine_sent_first_stays_and_ours_goes(
    outbox: Outbox, bucket: Objects, tmp_path: Path
) -> None:
    theirs = write_run(tmp_path / "other", tokens="ffff", documents="1234")
    Outbox(tmp_path / "other", cast(Bucket, bucket)).send(theirs)
    ours = write_run(tmp_path, tokens="abcd", documents="1234")
    outbox.send(ours)
    assert sorted(bucket.held) == [
        "runs/r1/documents-1234123412341234.parquet",
        "runs/r1/manifest.json",
        "runs/r1/tokens-ffffffffffffffff.parquet",
    ]
    assert bucket.held["runs/r1/manifest.json"] == (theirs / "manifest.json").read_bytes()
    assert [path.name for path in ours.iterdir()] == ["manifest.json"], "our tables are not those of the manifest"
    assert (ours / "manifest.json").read_bytes() == (theirs / "manifest.json").read_bytes()


@pytest.mark.parametrize("theirs", [b"{", b"[]", b"{}", b'{"files": 3}'])
def test_a_manifest_there_that_is_none_takes_nothing_away(
    theirs: bytes, outbox: Outbox, bucket: Objects, tmp_path: Path
) -> None:
    folder = write_run(tmp_path, tokens="abcd")
    bucket.held["runs/r1/manifest.json"] = theirs
    outbox.send(folder)
    assert "remove" not in {what for what, _ in bucket.done}
    assert (folder / "manifest.json").read_bytes() == theirs


def test_a_request_that_another_run_answered_meanwhile_keeps_that_answer(
    outbox: Outbox, bucket: Objects, tmp_path: Path
) -> None:
    ours = write(tmp_path / "cells" / "a.json", '{"run_id": "ours"}')
    bucket.held["cells/a.json"] = b'{"run_id": "theirs"}'
    outbox.send(ours)
    assert ours.read_bytes() == bucket.held["cells/a.json"] == b'{"run_id": "theirs"}'


@pytest.mark.parametrize("theirs", [b'{"run_id": "ours"}', b"{", b"{}", b"[]", b"5", b"[" * 100_000])
def test_a_request_of_the_same_run_or_none_is_replaced(
    theirs: bytes, outbox: Outbox, bucket: Objects, tmp_path: Path
) -> None:
    ours = write(tmp_path / "cells" / "a.json", '{"run_id": "ours", "asked": 2}')
    bucket.held["cells/a.json"] = theirs
    outbox.send(ours)
    assert bucket.held["cells/a.json"] == ours.read_bytes() == b'{"run_id": "ours", "asked": 2}'
    n_done = len(bucket.done)
    outbox.send(ours)
    assert bucket.done[n_done:] == [("put_new", "cells/a.json")], "the same bytes are not written again"


@pytest.mark.parametrize("kind", ["vocab", "imports", "samples", "temperatures", "best", "forecasts"])
def test_what_its_name_tells_is_written_once(kind: str, outbox: Outbox, bucket: Objects, tmp_path: Path) -> None:
    name = named(kind)
    bucket.held[name] = b"theirs"
    outbox.send(write(tmp_path / name, "ours"))
    assert bucket.held == {name: b"theirs"}


@pytest.mark.parametrize("kind", ["fits", "rank_fits", "failures"])
def test_what_is_computed_again_is_replaced(kind: str, outbox: Outbox, bucket: Objects, tmp_path: Path) -> None:
    name = named(kind)
    bucket.held[name] = b"theirs"
    outbox.send(write(tmp_path / name, "ours"))
    assert bucket.held == {name: b"ours"}


def test_what_others_refer_to_is_sent_first_and_what_is_left_is_told(
    outbox: Outbox, bucket: Objects, tmp_path: Path
) -> None:
    kinds = ("cells", "fits", "imports", "best", "temperatures", "samples", "vocab")
    for kind in kinds:
        outbox.note(write(tmp_path / named(kind), "{}"))
    outbox.note(write_run(tmp_path))
    outbox.note(tmp_path / "vocab" / "never-written.parquet")
    write(tmp_path / "unsent" / "vocab" / ".hidden", "")
    bucket.answers_left = 6
    with pytest.raises(MeasureError, match="it does not answer; 2 files and runs are still to be sent from"):
        outbox.send_all()
    bucket.answers_left = 1
    with pytest.raises(MeasureError, match="it does not answer; 1 file or run is still to be sent from"):
        outbox.send_all()
    bucket.answers_left = 10
    outbox.send_all()
    order = [name for _, name in bucket.done]
    tables = [
        *map(named, ("vocab", "samples")),
        "runs/r1/manifest.json",
        *map(named, ("temperatures", "best", "imports")),
    ]
    assert order == [*tables, "cells/a.json", "fits/a.json"]
    assert notes(tmp_path) == ["vocab/.hidden"]


def test_what_is_forgotten_is_not_sent(outbox: Outbox, bucket: Objects, tmp_path: Path) -> None:
    path = write(tmp_path / named("fits"), "{}")
    outbox.note(path)
    outbox.forget(path)
    outbox.forget(path)
    outbox.send_all()
    assert bucket.held == {}


def test_a_table_is_named_by_its_run_and_what_it_holds() -> None:
    assert name_of_table(Path("x/runs/r1/tokens.parquet"), "0123456789abcdef" * 4) == (
        "runs/r1/tokens-0123456789abcdef.parquet"
    )
