"""Cells measured by another engine: the rows of rbpx's own run, but ties; a server that fails loses nothing.

The server answers by vLLM's documented schema (`tests.support.engine_server`), from checkpoints of the family; a few
answers that were recorded from vLLM 0.32.0 lie in vllm_answers.json.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.support.commands import Answer, here
from tests.support.engine_server import Engine, serving
from tests.support.stores import Family, cell_records, manifests, run_folders, snapshot

FLOAT32_NATS = 1e-4  # what two ways of computing in float32 may differ by


def engine_of(family: Family, size: str, **options: Any) -> Engine:
    return Engine(family.folders[size], str(family.folders[size]), **options)


def by_engine(
    engine: Engine, family: Family, store: Path, cwd: Path, *words: object, sizes: tuple[str, ...] = ("m",),
    check: int = 0, env: dict[str, str] | None = None,
) -> Answer:  # fmt: skip
    asked = ["engine=vllm", f"engine.url={engine.url}/v1", "dtype=float32", *words]
    return here("measure", *family.words(*sizes), *asked, "--store", store, cwd=cwd, check=check, env=env)


def tokens_of(store: Path) -> Any:
    (run,) = run_folders(store).values()
    return pq.read_table(run / "tokens.parquet")


def test_an_engine_gives_the_rows_of_our_own_run_of_whole_documents(family: Family, cwd: Path, tmp_path: Path) -> None:
    words = ("protocol=rolling", "protocol.window=32", "protocol.stride=16")
    here("measure", *family.words("m"), *words, "--store", tmp_path / "ours", cwd=cwd, check=0)
    with serving(engine_of(family, "m")) as engine:
        by_engine(engine, family, tmp_path / "theirs", cwd, *words)
    ours, theirs = tokens_of(tmp_path / "ours"), tokens_of(tmp_path / "theirs")
    for name in ("doc_id", "position", "token_id", "first_byte", "n_bytes"):
        assert theirs[name].equals(ours[name])
    above = ours["greater"].to_numpy() + ours["ties"].to_numpy()
    assert np.mean(theirs["ties"].to_numpy() != above) <= 1e-3
    np.testing.assert_allclose(theirs["logprob"].to_numpy(), ours["logprob"].to_numpy(), rtol=0, atol=FLOAT32_NATS)
    here("store", "verify", "--store", tmp_path / "theirs", cwd=cwd, check=0)


def test_items_are_measured_by_an_engine_too(family: Family, cwd: Path, tmp_path: Path) -> None:
    items = tmp_path / "items.jsonl"
    rows = [{"q": f"Letter {at} left the", "choices": ["harbour", "sun"], "right": 0} for at in range(3)]
    items.write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = [*family.words("m")[:3], "dataset=file", f"dataset.path={items}", "dataset.context=q"]
    words += ["dataset.choices=choices", "dataset.right=right"]
    here("measure", *words, "--store", tmp_path / "ours", cwd=cwd, check=0)
    with serving(engine_of(family, "m")) as engine:
        asked = ("engine=vllm", f"engine.url={engine.url}", "dtype=float32")
        here("measure", *words, *asked, "--store", tmp_path / "theirs", cwd=cwd, check=0)
    ours, theirs = tokens_of(tmp_path / "ours"), tokens_of(tmp_path / "theirs")
    for name in ("doc_id", "position", "token_id", "item", "choice", "correct"):
        assert theirs[name].to_pylist() == ours[name].to_pylist()
    np.testing.assert_allclose(theirs["logprob"].to_numpy(), ours["logprob"].to_numpy(), rtol=0, atol=FLOAT32_NATS)


def test_what_is_done_is_not_asked_again_and_another_version_is_another_run(
    family: Family, own_store: Path, cwd: Path
) -> None:
    held = set(run_folders(own_store))
    with serving(engine_of(family, "xs")) as engine:
        engine.name = "served"
        words = {"sizes": ("xs",), "env": {"VLLM_API_KEY": "secret"}}
        by_engine(engine, family, own_store, cwd, "engine.model=served", **words)  # type: ignore[arg-type]
        assert {key for *_, key in engine.asked} == {"Bearer secret"}
        assert b"secret" not in b"".join(raw for _, raw in snapshot(own_store).values())
        n_asked = len(engine.asked)
        again = by_engine(engine, family, own_store, cwd, "engine.model=served", sizes=("xs",))
        assert "nothing to measure" in again.stderr
        assert len(engine.asked) == n_asked
        newer = ("engine.model=served", "engine.version=0.33.0")
        wrong = by_engine(engine, family, own_store, cwd, *newer, sizes=("xs",), check=1)
        assert "is version 0.32.0, not 0.33.0" in wrong.stderr
        engine.version = "0.33.0"
        by_engine(engine, family, own_store, cwd, *newer, sizes=("xs",))
    added = {run: facts for run, facts in manifests(own_store).items() if run not in held}
    assert sorted(facts["engine_version"] for facts in added.values()) == ["0.32.0", "0.33.0"]
    assert held <= set(run_folders(own_store))


def test_a_server_of_one_model_measures_it_alone_and_the_other_sizes_are_told(
    family: Family, cwd: Path, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    with serving(engine_of(family, "xs", context=30)) as engine:
        short = by_engine(engine, family, store, cwd, sizes=("xs",), check=1)
        assert "takes 30 tokens, one of which it generates itself" in short.stderr
        engine.context = None
        answer = by_engine(engine, family, store, cwd, sizes=("s", "xs"), check=1)
        assert f"serves {family.folders['xs']}, not {family.folders['s']}; measure that size alone" in answer.stderr
        assert [record["size"] for record in cell_records(store)] == ["xs"]
        several = by_engine(engine, family, store, cwd, "engine.model=other", sizes=("s", "xs"), check=2)
        assert "engine.model=other is one model, and 2 are asked for" in several.stderr


# ---------------------------------------------------------------------------------------------------------- failures


@pytest.mark.parametrize("mood", ["503", "hangs up", "half an answer"])
def test_what_passes_in_the_middle_of_a_cell_is_asked_again_and_said(
    mood: str, family: Family, cwd: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits, rows = list[float](), list[Any]()
    monkeypatch.setattr("rbpx.measure.engine.sleep", waits.append)
    for n_spoilt in (0, 3):
        store = tmp_path / str(n_spoilt)
        with serving(engine_of(family, "xs", mood=mood, n_well=1, n_spoilt=n_spoilt)) as engine:
            answer = by_engine(engine, family, store, cwd, "limit=4", "tokens_per_batch=1", sizes=("xs",))
        asked = [body for path, body, _ in engine.asked if path == "/v1/completions"]
        assert len(asked) == 4 + n_spoilt
        assert asked[1 : 2 + n_spoilt] == [asked[1]] * (1 + n_spoilt)
        said = [line for line in answer.stderr.splitlines() if "asking again" in line]
        assert len(said) == n_spoilt
        rows.append(tokens_of(store).drop_columns("run_id"))
    assert waits == [1.0, 4.0, 16.0]
    assert rows[0].equals(rows[1])


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("dtype=float32", "protocol.padding=masked"), "protocol.padding=masked is of rbpx's own measuring"),
        (("engine.url=http://host",), "engine.url=http://host is a key of engine, and none is named; add engine=NAME"),
        (("engine=sglang",), "but no ranks; known: vllm"),
    ],
)
def test_what_an_engine_cannot_be_asked_is_refused(
    words: tuple[str, ...], told: str, family: Family, cwd: Path, tmp_path: Path
) -> None:
    engine = () if words[0].startswith("engine") else ("engine=vllm",)
    answer = here("measure", *family.words("xs"), *engine, *words, "--store", tmp_path / "store", cwd=cwd, check=2)
    assert told in answer.stderr
    assert answer.stderr.count("\n") == 1
