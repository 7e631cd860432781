"""A store in object storage that is written to: by many machines, over a server that fails in every way that it can."""

import hashlib
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rbpx.errors import MeasureError, RbpxError
from rbpx.files.digest import digest
from rbpx.store import schema
from rbpx.store.checks.values import SAMPLE_FACTS
from rbpx.store.checks.verify import verify
from rbpx.store.forecasts import register
from rbpx.store.merge import merge
from rbpx.store.named import open_store, own_store
from rbpx.store.sql.queries import connect
from rbpx.store.store import Store
from tests.support.composed import here
from tests.support.object_storage import BUCKET, Fault, Storage, storage
from tests.support.stores import Family, Measured, assert_same_tokens, cell_records, run_folders
from tests.support.synthetic import Truth, write_store
from tests.support.warm import Warm

Machine = Callable[[str], None]
SMALL = Truth(S=(1_000, 10_000))


@pytest.fixture(scope="module")
def server() -> Iterator[Storage]:
    with storage() as running:
        yield running


@pytest.fixture
def at(server: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    """Work on the machine of that name: each has a cache of its own. Retries are quick."""
    monkeypatch.setattr(
        "rbpx.store.remote.bucket._RETRIES",
        {
            "max_retries": 3,
            "retry_timeout": timedelta(seconds=5),
            "backoff": {"init_backoff": timedelta(milliseconds=2), "max_backoff": timedelta(milliseconds=9), "base": 2},
        },
    )

    def go(name: str) -> None:
        for key, value in server.environment(tmp_path / name).items():
            monkeypatch.setenv(key, value)

    go("here")
    server.asked.clear()
    yield go
    server.faults.clear()


@pytest.fixture
def url(request: pytest.FixtureRequest) -> str:
    """A place in the bucket that no other test uses."""
    return f"s3://{BUCKET}/{hashlib.sha256(request.node.name.encode()).hexdigest()[:12]}/store"


def prefix(url: str) -> str:
    return url.removeprefix(f"s3://{BUCKET}/")


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return write_store(tmp_path_factory.mktemp("drawn") / "store", SMALL, seed=1, n_documents=6, n_tokens=20)


def assert_holds(url: str, drawn: Store, server: Storage) -> None:
    """All runs of a store are in the bucket, whole, once, and nothing else."""
    store = open_store(url)
    assert store.run_ids() == drawn.run_ids()
    found = verify(store)
    assert (found.faults, found.leftovers, found.n_cells) == ([], [], len(drawn.record_files("cells")))
    for run_id in drawn.run_ids():
        store.part(run_id, "tokens")
        assert_same_tokens(store.run_folder(run_id), drawn.run_folder(run_id))
    runs = [key for key in server.keys(prefix(url)) if key.startswith("runs/")]
    assert len(runs) == 4 * len(drawn.run_ids())


# ------------------------------------------------------------------------------------------------------------ as typed


def test_a_grid_is_measured_into_a_bucket_and_known_on_every_machine(
    server: Storage, at: Machine, url: str, family: Family, measured: Measured, cwd: Path
) -> None:
    words = family.words("xs", "s")
    here("measure", *words, f"store={url}", cwd=cwd, check=0)
    keys = server.keys(prefix(url))
    assert not [key for key in keys if key.startswith("running/")]
    server.asked.clear()
    here("measure", *words, f"store={url}", cwd=cwd, check=0)
    assert not [path for method, path in server.asked if method == "PUT" and "/runs/" in path], "measured again"
    at("elsewhere")
    states = json.loads(here("status", *words, f"store={url}", "--format", "json", cwd=cwd, check=0).stdout)
    assert [state["state"] for state in states] == ["done", "done"]
    held = json.loads(here("status", f"store={url}", "--format", "json", cwd=cwd, check=0).stdout)
    assert {row["size"] for row in held} == {"xs", "s"}
    planned = json.loads(here("plan", *words, f"store={url}", "--format", "json", cwd=cwd, check=0).stdout)
    assert all(row["state"] == "done" and row["disk_mib"] > 0 for row in planned)
    sizes = {cell["size"]: measured.store / "runs" / cell["run_id"] for cell in cell_records(measured.store)}
    store = open_store(url)
    for cell in store.records("cells"):
        store.part(cell["run_id"], "tokens")
        assert_same_tokens(store.run_folder(cell["run_id"]), sizes[cell["size"]])
    assert here("store", "verify", f"store={url}", cwd=cwd, check=0).stdout.startswith(f"store {url}: 2 runs")


def test_a_question_fetches_only_what_it_reads(
    server: Storage, at: Machine, url: str, measured: Measured, cwd: Path
) -> None:
    here("store", "push", url, f"store={measured.store}", cwd=cwd, check=0)
    at("elsewhere")
    server.asked.clear()
    fit = ("fit", "laws=[rbp,cross_entropy]", "resamples=20", "--format", "json")
    there, local = (json.loads(here(*fit, f"store={s}", cwd=cwd, check=0).stdout) for s in (url, measured.store))
    assert [(row["law"], row["k"], row["alpha"]) for row in there] == [(r["law"], r["k"], r["alpha"]) for r in local]
    run_id = min(run_folders(measured.store))
    query = f"SELECT count(*) AS n, sum(greater) AS g FROM tokens WHERE run_id = '{run_id}'"
    before = server.asked_for("GET", "/tokens-")
    answers = [here("sql", query, f"store={s}", "--format", "json", cwd=cwd, check=0) for s in (url, measured.store)]
    assert answers[0].stdout == answers[1].stdout
    assert server.asked_for("GET", "/tokens-") - before <= 1
    before = server.asked_for("GET", "/runs/")
    here("sql", query, f"store={url}", cwd=cwd, check=0)
    assert server.asked_for("GET", "/runs/") == before, "fetched again"


def test_tables_beside_runs_are_fetched_when_they_are_read(
    server: Storage, at: Machine, url: str, tmp_path: Path
) -> None:
    own = write_store(tmp_path / "own", SMALL, seed=1, n_documents=6, n_tokens=20)
    for run_id in own.run_ids():
        _write_beside(own, run_id, loss=1.0)
    drawn = digest({"hub": "ORG/drawn"})
    facts = {SAMPLE_FACTS: json.dumps({"request": {"hub": "ORG/drawn"}})}
    own.write_sample(drawn, pa.table({"text": ["a", "b"]}).replace_schema_metadata(facts))
    _copy(own_store(url), own)

    def asked(kind: str) -> int:
        return server.asked_for("GET", f"/{prefix(url)}/{kind}/")

    at("elsewhere")
    server.asked.clear()
    store, (one, other) = open_store(url), own.run_ids()
    assert [asked(kind) for kind in ("temperatures", "best", "samples")] == [0, 0, 0]
    assert store.has_file(store.beside_file("best", one))
    assert not store.has_file(store.beside_file("best", "another"))
    loss = "SELECT sum(sum_loss_nats) FROM temperatures"
    assert _first(store, f"{loss} WHERE run_id = '{one}'") == 1.0
    assert [asked(kind) for kind in ("temperatures", "best", "samples")] == [1, 0, 0]
    assert pq.read_table(store.fetch(store.sample_file(drawn))).to_pylist() == [{"text": "a"}, {"text": "b"}]
    best = "SELECT count(*), count(DISTINCT run_id) FROM best"
    assert _first(store, best) == _first(own, best) == 2 * 6 * 20
    server.asked.clear()
    assert _first(open_store(url), f"{loss} WHERE run_id = '{one}'") == 1.0
    assert asked("temperatures") == 0, "fetched again"

    at("third")
    third = own_store(url)
    third.remove(third.beside_file("temperatures", one))
    _write_beside(third, one, loss=3.0)
    at("elsewhere")
    assert _first(open_store(url), loss) == 4.0
    assert verify(open_store(url)).faults == []
    pulled = Store(tmp_path / "pulled")
    merge(pulled, open_store(url))
    assert (_first(pulled, loss), _first(pulled, best)) == (4.0, 240)
    assert pulled.sample_file(drawn).is_file()

    at("third")
    third.remove(third.beside_file("temperatures", other))
    at("elsewhere")
    assert _first(open_store(url), loss) == 3.0


def test_a_table_beside_a_run_that_is_damaged_is_named_and_left_out(
    server: Storage, at: Machine, url: str, tmp_path: Path, cwd: Path
) -> None:
    own = write_store(tmp_path / "own", SMALL, seed=1, n_documents=6, n_tokens=20)
    one, other = own.run_ids()
    _write_beside(own, one, loss=1.0)
    _write_beside(own, other, loss=2.0)
    _copy(own_store(url), own)
    whole = own.beside_file("temperatures", one).read_bytes()
    server.client.put_object(Bucket=BUCKET, Key=f"{prefix(url)}/temperatures/{one}.parquet", Body=whole[:-9])
    at("elsewhere")
    query = ("sql", "SELECT sum(sum_loss_nats) AS loss FROM temperatures", "--format", "json")
    answer = here(*query, f"store={url}", cwd=cwd, check=0)
    assert json.loads(answer.stdout) == [{"loss": 2.0}]
    assert f"temperatures/{one}.parquet" in answer.stderr
    (fault,) = verify(open_store(url)).faults
    assert (fault.kind, fault.name) == ("temperatures", one)


def _write_beside(store: Store, run_id: str, loss: float) -> None:
    """Temperatures of one document, and the best token of each place."""
    tokens = pq.read_table(store.part(run_id, "tokens"))
    n = len(tokens)
    row = {"run_id": run_id, "doc_id": 0, "beta": 1.0, "n_tokens": n, "sum_loss_nats": loss}
    row |= {"sum_slope_nats": 0.0, "sum_curvature_nats": 1.0}
    store.write_beside("temperatures", run_id, pa.Table.from_pylist([row], schema=schema.TEMPERATURES))
    places = {name: tokens[name] for name in ("run_id", "doc_id", "position")}
    best = pa.table({**places, "token_ids": [[1]] * n, "logprobs": [[-0.5]] * n}, schema=schema.BEST)
    store.write_beside("best", run_id, best)


def _first(store: Store, query: str) -> Any:
    with connect(store) as connection:
        return connection.sql(query).fetchall()[0][0]


def test_push_and_pull_between_folders_and_buckets(
    server: Storage, at: Machine, url: str, measured: Measured, tmp_path: Path, cwd: Path
) -> None:
    pushed = here("store", "push", url, f"store={measured.store}", cwd=cwd, check=0)
    assert "4 runs, 4 cells" in pushed.stderr
    assert (
        "nothing (here already: 1 vocab, 4 runs"
        in here("store", "push", url, f"store={measured.store}", cwd=cwd).stderr
    )
    at("elsewhere")
    there = tmp_path / "pulled"
    assert "4 runs, 4 cells" in here("store", "pull", url, f"store={there}", cwd=cwd, check=0).stderr
    assert {name: path.read_bytes() for name, path in _files(there)} == {
        name: path.read_bytes() for name, path in _files(measured.store)
    }
    other = f"{url}-2"
    assert "4 runs" in here("store", "merge", url, f"store={other}", cwd=cwd, check=0).stderr
    assert verify(open_store(other)).faults == []
    run_id = min(run_folders(measured.store))
    here("store", "rm", run_id, f"store={other}", cwd=cwd, check=0)
    here("store", "gc", f"store={other}", cwd=cwd, check=0)
    assert not [key for key in server.keys(prefix(other)) if run_id in key]
    at("here")
    assert run_id not in open_store(other).run_ids()


def _files(store: Path) -> list[tuple[str, Path]]:
    return [(str(path.relative_to(store)), path) for path in sorted(store.glob("runs/[!.]*/*"))]


# -------------------------------------------------------------------------------------------------------- many writers


def test_eight_machines_that_measure_the_same_runs_leave_each_of_them_once(
    server: Storage, at: Machine, url: str, drawn: Store, tmp_path: Path
) -> None:
    """Their tables differ by rounding, as those of different devices do, so that none may be mixed with another's."""
    stores = []
    for number in range(8):
        at(f"machine-{number}")
        own = write_store(tmp_path / f"own-{number}", SMALL, seed=1, n_documents=6, n_tokens=20)
        for run_id in own.run_ids():
            _nudge(own.run_folder(run_id), number)
        stores.append((own_store(url), own))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda pair: _copy(*pair), stores))
    at("reader")
    assert_holds(url, drawn, server)


def _copy(store: Store, other: Store) -> None:
    merge(store, other)
    store.finish()


def _nudge(run: Path, number: int) -> None:
    """Other bytes in two of the tables, and in the manifest: the last digits of log-probabilities, or none."""
    import pyarrow.parquet as pq

    from tests.support.stores import reseal

    for table in ("tokens", "documents"):
        path = run / f"{table}.parquet"
        pq.write_table(pq.read_table(path).replace_schema_metadata({"n": str(number)}), path, write_page_checksum=True)
    reseal(run)


@pytest.mark.parametrize(
    "about",
    [
        "/rank_counts-",
        "/manifest.json",
        "/cells/",
    ],
)
def test_a_machine_that_dies_while_it_sends_leaves_nothing_half_and_sends_the_rest_later(
    about: str, server: Storage, at: Machine, url: str, drawn: Store, cwd: Path
) -> None:
    server.faults.append(Fault("slow", "PUT", about, times=1, seconds=2.0))
    words = ("store", "push", url, f"store={drawn.root}")
    sending = Warm(*words, cwd=cwd, env=server.environment(cwd.parent / "here"))
    try:
        while not server.faults[0].seen:
            time.sleep(0.01)
            assert sending.poll() is None, "it ended before it was killed"
        sending.send_signal(signal.SIGKILL)
    finally:
        with suppress(ProcessLookupError):
            sending.kill()
    sending.communicate()
    at("elsewhere")
    found = verify(open_store(url))
    assert found.faults == [], "half a run is seen"
    time.sleep(2.0)  # what was on its way arrives
    assert verify(open_store(url)).faults == []
    at("here")
    here(*words, cwd=cwd, check=0)
    at("elsewhere")
    assert_holds(url, drawn, server)


# ------------------------------------------------------------------------------------------------------------- faults

FAULTS = [
    Fault("refuse", "PUT", times=2),
    Fault("lose", "PUT", "/manifest.json", times=1),
    Fault("hang up", "GET", "/tokens-", times=2),
    Fault("lie", "GET", "list-type=2"),
    Fault("refuse", "GET", times=3),
    Fault("lose", "PUT", "/tokens-", times=1),
    Fault("lose", "PUT", "/cells/", times=1),
    Fault("hang up", "GET", "/manifest.json", times=2),
    Fault("hang up", "GET", "list-type=2", times=1),
    Fault("slow", times=4, seconds=0.1),
    Fault("lie", "HEAD", "/runs/"),
]


def _named(fault: Fault) -> str:
    return f"{fault.kind} {fault.method} {fault.about}".strip()


@pytest.mark.parametrize("fault", FAULTS, ids=_named)
def test_what_goes_wrong_for_a_while_costs_nothing(
    fault: Fault, server: Storage, at: Machine, url: str, drawn: Store
) -> None:
    fault.seen = 0
    server.faults.append(fault)
    _copy(own_store(url), drawn)
    at("elsewhere")
    store = open_store(url)
    for run_id in drawn.run_ids():
        assert store.part(run_id, "tokens").read_bytes() == drawn.part(run_id, "tokens").read_bytes()
    assert fault.seen or fault.kind == "lie"
    server.faults.clear()
    assert_holds(url, drawn, server)


def test_a_table_that_is_not_what_its_manifest_says_is_named_and_left_out(
    server: Storage, at: Machine, url: str, drawn: Store, cwd: Path
) -> None:
    _copy(own_store(url), drawn)
    at("elsewhere")
    run_id = drawn.run_ids()[0]
    server.faults.append(Fault("truncate", "GET", f"{run_id}/tokens-"))
    query = "SELECT run_id, count(*) AS n FROM tokens GROUP BY ALL ORDER BY ALL"
    answer = here("sql", query, f"store={url}", "--format", "json", cwd=cwd, check=0)
    whole = {row["run_id"]: row["n"] for row in json.loads(answer.stdout)}
    assert whole == dict.fromkeys(drawn.run_ids()[1:], 6 * 20)
    assert f"run {run_id}" in answer.stderr
    assert "not those of its manifest" in answer.stderr
    verified = here("store", "verify", f"store={url}", cwd=cwd, check=1)
    assert f"run {run_id}: " in verified.stdout
    server.faults.clear()
    assert_holds(url, drawn, server)


def test_what_could_not_be_sent_is_kept_and_sent_by_the_same_line(
    server: Storage, at: Machine, url: str, family: Family, cwd: Path
) -> None:
    words = ("measure", *family.words("xs"), f"store={url}")
    server.faults.append(Fault("refuse", "PUT", "/runs/"))
    answer = here(*words, cwd=cwd, check=1)
    assert "503" in answer.stderr
    assert "is kept in" in answer.stderr
    assert not [key for key in server.keys(prefix(url)) if key.startswith(("runs/", "cells/"))]
    server.faults.clear()
    again = here(*words, cwd=cwd, check=0)
    assert "tokens/s" not in again.stderr, "it is measured again"
    at("elsewhere")
    assert (verify(open_store(url)).faults, len(open_store(url).run_ids())) == ([], 1)


def test_tables_of_an_upload_that_was_given_up_are_removed_after_a_day(
    server: Storage, at: Machine, url: str, drawn: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    _copy(own_store(url), drawn)
    name = f"{prefix(url)}/runs/0123456789abcdef/tokens-0123456789abcdef.parquet"
    server.client.put_object(Bucket=BUCKET, Key=name, Body=b"half")
    store = own_store(url)
    assert verify(store).leftovers == ["runs/0123456789abcdef/tokens-0123456789abcdef.parquet"]
    store.prepare()
    assert server.keys(prefix(url)).count("runs/0123456789abcdef/tokens-0123456789abcdef.parquet") == 1
    monkeypatch.setattr("rbpx.store.remote.mirror._ORPHANED_S", -1.0)
    own_store(url).prepare()
    assert_holds(url, drawn, server)


def test_what_somebody_else_keeps_in_a_bucket_or_its_mirror_is_left_there(
    server: Storage, at: Machine, url: str, drawn: Store, monkeypatch: pytest.MonkeyPatch, cwd: Path
) -> None:
    _copy(own_store(url), drawn)
    run_id, other = sorted(drawn.run_ids())
    theirs = [f"runs/{run_id}/notes.txt", f"runs/{other}/tokens-mine.parquet", "cells/notes.txt", "runs/x/y/z"]
    for name in theirs:
        server.client.put_object(Bucket=BUCKET, Key=f"{prefix(url)}/{name}", Body=b"mine")
    mirror = own_store(url).root
    strangers = [mirror / "cells" / "notes.txt", mirror / "vocab" / "words.csv", mirror / "unsent" / "cells" / "a.txt"]
    for path in strangers:
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text("mine")
    monkeypatch.setattr("rbpx.store.remote.mirror._ORPHANED_S", -1.0)
    here("store", "rm", run_id, f"store={url}", cwd=cwd, check=0)
    here("store", "gc", f"store={url}", cwd=cwd, check=0)
    assert set(theirs) <= set(server.keys(prefix(url)))
    assert [path.read_text() for path in strangers] == ["mine"] * 3
    assert open_store(url).run_ids() == [other]
    assert verify(open_store(url)).faults == []


def test_a_mirror_with_a_link_in_it_is_left_alone(
    at: Machine, url: str, drawn: Store, tmp_path: Path, cwd: Path
) -> None:
    _copy(own_store(url), drawn)
    mirror, theirs = open_store(url).root, tmp_path / "theirs"
    (mirror / "cells").rename(theirs)
    (mirror / "cells").symlink_to(theirs)
    before = {path.name: path.read_bytes() for path in theirs.iterdir()}
    for words in (["status"], ["store", "gc"], ["store", "rm", min(drawn.run_ids())]):
        answer = here(*words, f"store={url}", cwd=cwd, check=2)
        assert f"{mirror / 'cells'} is a link to {theirs}, which is left alone" in answer.stderr
    assert {path.name: path.read_bytes() for path in theirs.iterdir()} == before


def test_an_object_that_is_far_too_long_is_left_out_and_named(
    server: Storage, at: Machine, url: str, drawn: Store, cwd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _copy(own_store(url), drawn)
    for kind in ("cells", "running"):
        name = f"{prefix(url)}/{kind}/0123456789abcdef.json"
        server.client.put_object(Bucket=BUCKET, Key=name, Body=b" " * (17 * 2**20))
    server.asked.clear()
    answer = here("sql", "SELECT count(*) FROM runs", "--format", "csv", f"store={url}", cwd=cwd, check=0)
    assert answer.stdout.splitlines()[-1] == "2"
    told = f"0123456789abcdef.json in store={url} is 17 MiB long, more than the 16 MiB allowed, and is left out"
    assert all(f"{kind}/{told}" in answer.stderr for kind in ("cells", "running"))
    assert not server.asked_for("GET", "/0123456789abcdef.json")


@pytest.mark.parametrize("about", ["/manifest.json", "/cells/", "/vocab/"])
def test_half_an_object_is_asked_for_again_and_never_kept(
    about: str, server: Storage, at: Machine, url: str, drawn: Store, cwd: Path
) -> None:
    _copy(own_store(url), drawn)
    once, always = Fault("truncate", "GET", about, times=1), Fault("truncate", "GET", about)
    at("for a moment")
    server.faults.append(once)
    assert_holds(url, drawn, server)
    assert once.seen == 1
    at("for long")
    server.faults.append(always)
    shown = here("status", f"store={url}", cwd=cwd, check=0).stderr
    assert "bytes); run the same line again when it answers; " in shown
    assert "corrupt" not in shown
    server.faults.clear()
    assert_holds(url, drawn, server)


@pytest.mark.parametrize("about", ["/manifest.json", "/cells/", "/vocab/", "/tokens-"])
def test_what_storage_took_and_did_not_keep_is_sent_again(
    about: str, server: Storage, at: Machine, url: str, family: Family, cwd: Path
) -> None:
    words = ("measure", *family.words("xs"), f"store={url}")
    server.faults.append(Fault("forget", "PUT", about))
    answer = here(*words, cwd=cwd, check=1)
    assert f" and has none); run the same line again; it is kept in {open_store(url).root}" in answer.stderr
    here("status", f"store={url}", cwd=cwd, check=0)
    server.faults.clear()
    again = here(*words, cwd=cwd, check=0)
    assert "tokens/s" not in again.stderr, "it is measured again"
    at("elsewhere")
    assert (verify(open_store(url)).faults, len(open_store(url).run_ids())) == ([], 1)


def test_a_run_that_is_sound_in_the_bucket_is_not_removed_for_its_copy(
    server: Storage, at: Machine, url: str, drawn: Store, cwd: Path
) -> None:
    _copy(own_store(url), drawn)
    store, run_id = own_store(url), drawn.run_ids()[0]
    manifest = store.run_folder(run_id) / "manifest.json"
    manifest.write_bytes(manifest.read_bytes()[:100])
    refused = here("store", "rm", run_id, f"store={url}", cwd=cwd, check=2)
    assert refused.stderr.splitlines()[-1].endswith("; to remove the run all the same, run the same line again")
    assert_holds(url, drawn, server)
    here("store", "rm", run_id, f"store={url}", cwd=cwd, check=0)
    assert not [key for key in server.keys(prefix(url)) if run_id in key]


@pytest.mark.parametrize("damage", [b"", b"short", None], ids=["none", "short", "as long"])
def test_push_mends_a_table_that_is_damaged_there(
    damage: bytes | None, server: Storage, at: Machine, url: str, drawn: Store, cwd: Path
) -> None:
    _copy(own_store(url), drawn)
    run_id = drawn.run_ids()[0]
    (name,) = (key for key in server.keys(prefix(url)) if f"{run_id}/tokens-" in key)
    if damage == b"":
        server.client.delete_object(Bucket=BUCKET, Key=f"{prefix(url)}/{name}")
    else:
        damage = damage or b"x" * drawn.part(run_id, "tokens").stat().st_size
        server.client.put_object(Bucket=BUCKET, Key=f"{prefix(url)}/{name}", Body=damage)
    at("elsewhere")
    pushed = here("store", "push", url, "--store", drawn.root, cwd=cwd, check=0).stderr
    assert "1 mended run (here already: " in pushed
    assert_holds(url, drawn, server)
    assert "nothing (here already: " in here("store", "push", url, "--store", drawn.root, cwd=cwd, check=0).stderr


@pytest.mark.parametrize("name", [f"cells/{'x' * 250}.json", "cells/a\\b.json", "../x", "x//y", "notes/a\x07.json"])
def test_a_name_that_no_store_has_is_passed_over_and_named(
    name: str, server: Storage, at: Machine, url: str, drawn: Store, cwd: Path
) -> None:
    _copy(own_store(url), drawn)
    server.client.put_object(Bucket=BUCKET, Key=f"{prefix(url)}/{name}", Body=b"mine")
    answer = here("sql", "SELECT count(*) FROM runs", "--format", "csv", f"store={url}", cwd=cwd, check=0)
    assert answer.stdout.splitlines()[-1] == "2"
    (line,) = answer.stderr.splitlines()
    assert "ignored" in line
    assert "a name that no store has" in line


@pytest.mark.parametrize("name", ["cells//y.json", "runs/../x", "cells/a\x07.json"])
def test_a_name_among_a_stores_own_that_the_library_refuses_is_one_line(
    name: str, server: Storage, at: Machine, url: str, drawn: Store, cwd: Path
) -> None:
    _copy(own_store(url), drawn)
    server.client.put_object(Bucket=BUCKET, Key=f"{prefix(url)}/{name}", Body=b"mine")
    answer = here("sql", "SELECT count(*) FROM runs", f"store={url}", cwd=cwd, check=2)
    (line,) = answer.stderr.splitlines()
    assert f"store={url} holds an object with a name that no store has, " in line
    assert line.endswith("; remove it")


# ------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("store", "fault", "says", "status"),
    [
        ("s3://nosuch/x", None, "there is no bucket nosuch; make it first", 2),
        (None, Fault("deny"), "refuses access (403 Forbidden, InvalidAccessKeyId); check the credentials", 2),
        (None, Fault("refuse"), "cannot be read (503", 1),
        (None, Fault("deny", "PUT"), "refuses access", 2),
        ("nosuch://a/b", None, "known: s3://, gs://, az://", 2),
        ("s3://", None, "known: s3://, gs://, az://", 2),
        ("S3://nosuch/x", None, "known: s3://, gs://, az://", 2),
        ("file:///tmp", None, "known: s3://, gs://, az://", 2),
        ("memory:///", None, "known: s3://, gs://, az://", 2),
    ],
)
def test_what_is_wrong_with_a_bucket_is_one_line_before_anything_is_measured(
    store: str | None, fault: Fault | None, says: str, status: int, server: Storage, at: Machine, url: str, cwd: Path,
    family: Family,
) -> None:  # fmt: skip
    server.faults += [] if fault is None else [fault]
    answer = here("measure", *family.words("xs"), f"store={store or url}", cwd=cwd, check=status)
    assert says in answer.stderr
    assert len(answer.stderr.strip().splitlines()) == 1, answer.stderr


@pytest.mark.parametrize(("kind", "reason"), [("replace", "it replaces what is there"), ("unknown", "it answers ")])
def test_a_server_that_ignores_conditions_is_refused_before_anything_is_written_and_still_read(
    kind: str, reason: str, server: Storage, at: Machine, url: str, drawn: Store, cwd: Path
) -> None:
    server.put(drawn.root, prefix(url))
    before = server.keys(prefix(url))
    server.faults.append(Fault(kind, "PUT"))
    for words in (["store", "push", url, f"store={drawn.root}"], ["store", "gc", f"store={url}"]):
        *copied, line = here(*words, cwd=cwd, check=2).stderr.splitlines()
        assert all(": copied " in each for each in copied)
        assert f"store={url} cannot be written: its server does not keep to If-None-Match ({reason}" in line
    assert set(server.keys(prefix(url))) - set(before) <= {".rbpx"}
    at("elsewhere")
    assert open_store(url).run_ids() == drawn.run_ids()


def test_a_server_is_asked_twice_once_for_a_bucket_whether_it_keeps_to_conditions(
    server: Storage, at: Machine, url: str, drawn: Store
) -> None:
    _copy(own_store(url), drawn)
    assert server.asked_for("PUT", "/.rbpx") == 2
    at("elsewhere")
    own_store(url).prepare()
    assert server.asked_for("PUT", "/.rbpx") == 3
    assert_holds(url, drawn, server)


def test_no_credentials_are_said_so(
    at: Machine, url: str, cwd: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1:9/none")
    monkeypatch.setenv("HOME", str(tmp_path))
    answer = here("status", f"store={url}", cwd=cwd)
    assert answer.returncode in (1, 2)
    assert len(answer.stderr.strip().splitlines()) == 1


def test_a_profile_of_aws_is_read(
    server: Storage, at: Machine, url: str, drawn: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _copy(own_store(url), drawn)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    profile = tmp_path / "credentials"
    profile.write_text("[default]\naws_access_key_id = testing\naws_secret_access_key = testing\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(profile))
    assert open_store(url).run_ids() == drawn.run_ids()


def test_without_the_library_it_is_said_how_to_install_it(
    at: Machine, url: str, cwd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    for name in [name for name in sys.modules if name.split(".")[0] == "obstore"] or ["obstore"]:
        monkeypatch.setitem(sys.modules, name, None)
    answer = here("status", f"store={url}", cwd=cwd, check=2)
    assert answer.stderr.strip().endswith("pip install 'rbpx[bucket]'")


def test_a_network_that_fails_while_a_question_reads_is_an_error_and_not_less_rows(
    server: Storage, at: Machine, url: str, drawn: Store, cwd: Path
) -> None:
    _copy(own_store(url), drawn)
    at("elsewhere")
    server.faults.append(Fault("refuse", "GET", "/tokens-"))
    answer = here("sql", "SELECT count(*) FROM tokens", f"store={url}", cwd=cwd, check=1)
    assert "cannot be read (503" in answer.stderr
    assert answer.stdout == ""
    with pytest.raises(MeasureError):
        open_store(url).part(drawn.run_ids()[0], "tokens")


def test_a_forecast_is_registered_in_a_bucket(at: Machine, url: str, measured: Measured, cwd: Path) -> None:
    here("store", "push", url, f"store={measured.store}", cwd=cwd, check=0)
    asked = ("predict", "laws=[cross_entropy]", "resamples=20", "S=1e6", "register=soon", f"store={url}")
    here(*asked, cwd=cwd, check=0)
    at("elsewhere")
    assert [record["name"] for record in open_store(url).records("forecasts")] == ["soon"]
    with pytest.raises(RbpxError, match="names a forecast of"):
        register(own_store(url), "soon", {}, [])


def test_results_of_others_are_imported_into_a_bucket(
    server: Storage, at: Machine, url: str, tmp_path: Path, cwd: Path
) -> None:
    file = tmp_path / "theirs.csv"
    file.write_text("family,size,S,dataset,loss_nats\nours,a,1e6,web,4.0\nours,b,1e7,web,3.5\n")
    here("import", file, "source=them", f"store={url}", cwd=cwd, check=0)
    at("elsewhere")
    query = "SELECT size, cross_entropy_nats AS ce FROM observations ORDER BY size"
    rows: Any = json.loads(here("sql", query, f"store={url}", "--format", "json", cwd=cwd, check=0).stdout)
    assert rows == [{"size": "a", "ce": 4.0}, {"size": "b", "ce": 3.5}]
    here("store", "rm", "them", f"store={url}", cwd=cwd, check=0)
    assert not [key for key in server.keys(prefix(url)) if key.startswith("imports/")]
    assert os.environ["AWS_ENDPOINT_URL"].endswith(str(server.port))
