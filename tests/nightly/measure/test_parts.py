"""A cell that was stopped goes on at its document: kill -9 after a sealed part, damaged parts, another model."""

import json
import os
import time
from pathlib import Path

from tests.support.commands import here
from tests.support.kills import assert_same_bytes, killed, parts_in
from tests.support.stores import Family
from tests.support.warm import Warm

NEVER = {"RBPX_PART_S": "1e9"}


def finished(words: list[str], store: Path, cwd: Path, env: dict[str, str]) -> str:
    process = Warm(*words, "--store", store, cwd=cwd, env=env)
    stderr = process.communicate()[1]
    assert process.returncode == 0, stderr
    return stderr


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
    assert "was stopped before: " in finished(words, store, cwd, NEVER)
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
