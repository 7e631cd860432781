"""A cell that was stopped goes on at its document: kill -9 after a sealed part, damaged parts, another model."""

import hashlib
import json
import os
import re
import signal
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from rbpx.data.corpus import Document
from rbpx.data.harness_windows import cut_as_harness
from rbpx.data.items import Part
from rbpx.errors import RbpxError
from rbpx.measure.distributed import ProcessGroup
from rbpx.measure.extract import ROW, measure_windows
from rbpx.measure.reading.parts import Parts
from rbpx.measure.reading.reading import Reading
from rbpx.models.load import load_model
from rbpx.store.store import Store
from tests.support.checkpoints import CONTEXT
from tests.support.commands import here
from tests.support.stores import Family, run_folders
from tests.support.warm import Warm

AT_ONCE = {"RBPX_PART_S": "0"}  # a part for each batch
NEVER = {"RBPX_PART_S": "1e9"}
KEY = "0123456789abcdef"
TABLES = ("tokens", "rank_counts", "documents")


def parts_in(store: Path) -> list[Path]:
    return sorted(path for path in store.glob("running/.parts.*.tmp") if path.suffixes[-2:] != [".tmp", ".tmp"])


def finished(words: list[str], store: Path, cwd: Path, env: dict[str, str]) -> str:
    process = Warm(*words, "--store", store, cwd=cwd, env=env)
    stderr = process.communicate()[1]
    assert process.returncode == 0, stderr
    return stderr


def killed(words: list[str], store: Path, cwd: Path, n_parts: int) -> list[Path]:
    """The parts of a measurement that was killed with -9 once it had sealed so many."""
    process = Warm(*words, "--store", store, cwd=cwd, env=AT_ONCE)
    until = time.monotonic() + 120
    while len(parts_in(store)) < n_parts:
        assert process.poll() is None, f"it ended before it was killed: {process.communicate()[1]}"
        assert time.monotonic() < until
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert run_folders(store) == {}
    return parts_in(store)


def assert_same_bytes(store: Path, other: Path) -> None:
    ((run_id, folder),), ((other_id, undisturbed),) = run_folders(store).items(), run_folders(other).items()
    assert run_id == other_id
    for table in TABLES:
        assert (folder / f"{table}.parquet").read_bytes() == (undisturbed / f"{table}.parquet").read_bytes(), table


def test_a_text_that_is_killed_goes_on_and_ends_with_the_bytes_of_one_undisturbed(
    family: Family, long_jsonl: Path, cwd: Path, tmp_path: Path
) -> None:
    store, undisturbed = tmp_path / "killed", tmp_path / "undisturbed"
    words = ["measure", *family.words("xs", text=long_jsonl), "tokens_per_batch=300"]
    kept = killed(words, store, cwd, 3)
    assert "stopped" in here("status", *words[1:-1], "--store", store, cwd=cwd, check=0).stdout
    kept[0].write_bytes(kept[0].read_bytes()[:-5])  # torn
    changed = bytearray(kept[1].read_bytes())
    changed[-3] ^= 1
    kept[1].write_bytes(changed)
    stderr = finished(words, store, cwd, NEVER)
    assert stderr.count("is damaged; what it held is measured again") == 2
    (told,) = re.findall(
        r"was stopped before: it goes on at document (\d+), as (\d+) of 600 documents are kept", stderr
    )
    assert 0 < int(told[1]) < 600
    assert parts_in(store) == [], "the run holds what they held"
    finished(words, undisturbed, cwd, NEVER)
    assert_same_bytes(store, undisturbed)


def test_items_with_shared_beginnings_that_are_killed_twice_end_with_the_bytes_of_ones_undisturbed(
    family: Family, cwd: Path, tmp_path: Path
) -> None:
    store, undisturbed = tmp_path / "killed", tmp_path / "undisturbed"
    rows = [{"q": f"{n} times {n}?", "c": [f"{n * n}", f"{n + 1} or so", "none of these"], "r": 0} for n in range(90)]
    path = tmp_path / "items.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ["measure", *family.words("xs", text=path), "tokens_per_batch=40", "dataset.context=[q]"]
    words += ["dataset.choices=c", "dataset.right=r", "dataset.delimiter=' '", "dataset.fewshot=1"]
    first = killed(words, store, cwd, 2)
    second = killed(words, store, cwd, len(first) + 2)
    assert set(first) <= set(second)
    assert "was stopped before: it goes on at document" in finished(words, store, cwd, NEVER)
    finished(words, undisturbed, cwd, NEVER)
    assert_same_bytes(store, undisturbed)


def test_another_model_of_the_same_name_goes_on_with_nothing(
    family: Family, long_jsonl: Path, cwd: Path, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    kept = killed(["measure", *family.words("xs", text=long_jsonl), "tokens_per_batch=300"], store, cwd, 2)
    other = ["measure", *family.words("s", text=long_jsonl), "tokens_per_batch=300"]
    assert "was stopped before" not in finished(other, store, cwd, NEVER)
    assert parts_in(store) == kept
    a_month_ago = time.time() - 31 * 24 * 3600
    for path in kept[1:]:
        os.utime(path, (a_month_ago, a_month_ago))
    assert "unfinished file" in here("store", "verify", "--store", store, cwd=cwd).stdout
    here("store", "gc", "--store", store, cwd=cwd, check=0)
    assert parts_in(store) == kept[:1], "those of a month ago are removed"


# ------------------------------------------------------------------------------------------------------------- parts


def rows_of(doc_id: int, n: int) -> np.ndarray:
    rows = np.zeros(n, ROW)
    rows["doc_id"], rows["position"], rows["token_id"] = doc_id, np.arange(1, n + 1), np.arange(n) + 7
    rows["logprob"] = -np.linspace(0.5, 2, n)
    return rows


@pytest.mark.parametrize("at", range(0, 32 + 16 + 8 + 5 * 24, 13))
def test_a_bit_that_flips_anywhere_in_a_part_leaves_nothing_of_it(at: int, tmp_path: Path) -> None:
    store = Store(tmp_path)
    parts = Parts(store, KEY, ROW)
    parts.add(rows_of(0, 5))
    parts.seal()
    (path,) = parts_in(tmp_path)
    assert Parts(store, KEY, ROW).n_tokens == 5
    content = bytearray(path.read_bytes())
    content[at] ^= 16
    path.write_bytes(content)
    assert Parts(store, KEY, ROW).n_tokens == 0


@pytest.mark.parametrize("length", [0, 1, 31, 32, 48, 55, 56, 57, 80])
def test_a_part_that_is_cut_off_leaves_nothing_of_it(length: int, tmp_path: Path) -> None:
    parts = Parts(Store(tmp_path), KEY, ROW)
    parts.add(rows_of(0, 5))
    parts.seal()
    (path,) = parts_in(tmp_path)
    path.write_bytes(path.read_bytes()[:length])
    assert Parts(Store(tmp_path), KEY, ROW).n_tokens == 0


def test_the_sealed_part_of_another_key_under_this_name_is_not_believed(tmp_path: Path) -> None:
    parts = Parts(Store(tmp_path), "f" * 16, ROW)
    parts.add(rows_of(0, 5))
    parts.seal()
    (path,) = parts_in(tmp_path)
    path.rename(path.with_name(path.name.replace("f" * 16, KEY)))
    assert Parts(Store(tmp_path), KEY, ROW).n_tokens == 0


def test_a_part_holds_a_digest_the_key_seconds_and_rows(tmp_path: Path) -> None:
    parts = Parts(Store(tmp_path), KEY, ROW)
    parts.add(rows_of(0, 5))
    parts.add(rows_of(3, 2))
    parts.seal()
    (path,) = parts_in(tmp_path)
    content = path.read_bytes()
    assert content[:32] == hashlib.sha256(content[32:]).digest()
    assert content[32:48] == KEY.encode()
    assert 0 <= np.frombuffer(content[48:56], "<f8")[0] < 60
    np.testing.assert_array_equal(np.frombuffer(content[56:], ROW), np.concatenate([rows_of(0, 5), rows_of(3, 2)]))
    parts.remove()
    assert parts_in(tmp_path) == []


def test_nothing_is_sealed_before_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RBPX_PART_S", "3600")
    parts = Parts(Store(tmp_path), KEY, ROW)
    parts.add(rows_of(0, 5))
    assert parts_in(tmp_path) == []
    monkeypatch.setenv("RBPX_PART_S", "soon")
    with pytest.raises(RbpxError, match="RBPX_PART_S=soon in the environment is not a number of seconds"):
        Parts(Store(tmp_path), KEY, ROW)


def test_what_is_known_is_neither_read_nor_ranked_again(
    tiny_checkpoint: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RBPX_PART_S", "0")
    assert callable(tiny_checkpoint)
    loaded = load_model(str(tiny_checkpoint("gpt2")), None, "float32", torch.device("cpu"))
    texts = [(f"{n} of the letters", choice) for n in range(8) for choice in (" are read twice", " reads nothing")]
    documents = [
        Document(at, str(at // 2), c + t, Part(at // 2, at % 2, at % 2 == 0, len(c), len(t), len(t)))
        for at, (c, t) in enumerate(texts)
    ]
    windows = cut_as_harness(documents, loaded.tokenizer, CONTEXT)
    alone, advances = ProcessGroup(0, 1, torch.device("cpu")), list[int]()
    reading = Reading(loaded, windows, alone, 60, advances.append)
    whole = measure_windows(reading, Parts(Store(tmp_path), KEY, ROW)).columns
    n_passes: list[int] = []
    loaded.model.get_input_embeddings().register_forward_hook(lambda *_: n_passes.append(1))
    plain = measure_windows(reading).columns
    n_whole = len(n_passes)
    last = parts_in(tmp_path)[-1]
    n_left = np.frombuffer(last.read_bytes()[56:], ROW)["doc_id"]
    last.unlink()
    n_passes.clear()
    advances.clear()
    again = measure_windows(reading, Parts(Store(tmp_path), KEY, ROW)).columns
    for name in whole:
        np.testing.assert_array_equal(whole[name], plain[name])
        np.testing.assert_array_equal(whole[name], again[name])
    assert sum(advances) == len(whole["doc_id"])
    assert 0 < len(set(n_left.tolist())) < 16
    assert len(n_passes) < n_whole / 2
