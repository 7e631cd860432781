"""A cell that was stopped goes on at its document: kill -9 after a sealed part, damaged parts, another model."""

import os
import re
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from rbpx.data.corpus import Document
from rbpx.data.harness_windows import cut_as_harness
from rbpx.data.items import Part
from rbpx.measure.distributed import ProcessGroup
from rbpx.measure.extract import ROW, measure_windows
from rbpx.measure.reading.parts import Parts
from rbpx.measure.reading.reading import Reading
from rbpx.models.load import load_model
from rbpx.store.store import Store
from tests.support.checkpoints import CONTEXT
from tests.support.commands import here
from tests.support.kills import assert_same_bytes, killed, parts_in
from tests.support.stores import Family, write_jsonl

NEVER = {"RBPX_PART_S": "1e9"}
KEY = "0123456789abcdef"


def test_a_text_that_is_killed_goes_on_and_ends_with_the_bytes_of_one_undisturbed(
    family: Family, tiny_text: list[str], cwd: Path, tmp_path: Path
) -> None:
    store, undisturbed = tmp_path / "killed", tmp_path / "undisturbed"
    text = write_jsonl(tmp_path / "text.jsonl", *(f"Letter {n}: {tiny_text[0]}" for n in range(250)))
    words = ["measure", *family.words("xs", text=text), "tokens_per_batch=100"]
    kept = killed(words, store, cwd, 3)
    assert "stopped" in here("status", *words[1:-1], "--store", store, cwd=cwd, check=0).stdout
    kept[0].write_bytes(kept[0].read_bytes()[:-5])  # torn
    changed = bytearray(kept[1].read_bytes())
    changed[-3] ^= 1
    kept[1].write_bytes(changed)
    stderr = here(*words, "--store", store, cwd=cwd, env=NEVER, check=0).stderr
    (told,) = re.findall(r"was stopped before: ([\d,]+) of ([\d,]+) tokens are kept", stderr)
    assert 0 < int(told[0].replace(",", "")) < int(told[1].replace(",", ""))
    assert parts_in(store) == [], "the run holds what they held"
    here(*words, "--store", undisturbed, cwd=cwd, env=NEVER, check=0)
    assert_same_bytes(store, undisturbed)


# ------------------------------------------------------------------------------------------------------------- parts


def rows_of(doc_id: int, n: int) -> np.ndarray:
    rows = np.zeros(n, ROW)
    rows["doc_id"], rows["position"], rows["token_id"] = doc_id, np.arange(1, n + 1), np.arange(n) + 7
    rows["logprob"] = -np.linspace(0.5, 2, n)
    return rows


def kept(tmp_path: Path) -> Path:
    """A part with the rows of two documents."""
    parts = Parts(Store(tmp_path), KEY, ROW)
    parts.add(rows_of(0, 5))
    parts.add(rows_of(3, 2))
    parts.seal()
    (path,) = parts_in(tmp_path)
    return path


def test_a_part_that_is_cut_off_or_has_a_bit_flipped_anywhere_leaves_nothing_of_it(tmp_path: Path) -> None:
    path = kept(tmp_path)
    content = path.read_bytes()
    assert Parts(Store(tmp_path), KEY, ROW).n_tokens == 7
    for at in range(len(content)):
        for harmed in (content[:at], content[:at] + bytes([content[at] ^ 16]) + content[at + 1 :]):
            path.write_bytes(harmed)
            assert Parts(Store(tmp_path), KEY, ROW).n_tokens == 0


def test_the_sealed_part_of_another_key_under_this_name_is_not_believed(tmp_path: Path) -> None:
    parts = Parts(Store(tmp_path), "f" * 16, ROW)
    parts.add(rows_of(0, 5))
    parts.seal()
    (path,) = parts_in(tmp_path)
    path.rename(path.with_name(path.name.replace("f" * 16, KEY)))
    assert Parts(Store(tmp_path), KEY, ROW).n_tokens == 0


def test_parts_of_a_month_ago_are_named_and_removed_and_newer_ones_are_kept(cwd: Path, tmp_path: Path) -> None:
    path = kept(tmp_path)
    here("store", "gc", "--store", tmp_path, cwd=cwd, check=0)
    assert parts_in(tmp_path) == [path]
    a_month_ago = time.time() - 31 * 24 * 3600
    os.utime(path, (a_month_ago, a_month_ago))
    assert "unfinished file" in here("store", "verify", "--store", tmp_path, cwd=cwd).stdout
    here("store", "gc", "--store", tmp_path, cwd=cwd, check=0)
    assert parts_in(tmp_path) == []


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
    whole = measure_windows(reading, Parts(Store(tmp_path), KEY, ROW))
    n_passes: list[int] = []
    loaded.model.get_input_embeddings().register_forward_hook(lambda *_: n_passes.append(1))
    plain = measure_windows(reading)
    n_whole = len(n_passes)
    last = parts_in(tmp_path)[-1]
    n_left = np.frombuffer(last.read_bytes()[40:], ROW)["doc_id"]
    last.unlink()
    n_passes.clear()
    advances.clear()
    again = measure_windows(reading, Parts(Store(tmp_path), KEY, ROW))
    for name in whole:
        np.testing.assert_array_equal(whole[name], plain[name])
        np.testing.assert_array_equal(whole[name], again[name])
    assert sum(advances) == len(whole["doc_id"])
    assert 0 < len(set(n_left.tolist())) < 16
    assert len(n_passes) < n_whole / 2
