"""Cells measured by another engine: the tokens, ranks and logprobs of rbpx's own run; a server that fails loses nothing.

The server answers by vLLM's documented schema (`tests.support.engine_server`), from checkpoints of the family.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.support.commands import Answer, here
from tests.support.engine_server import Engine, serving
from tests.support.stores import Family, Measured, cell_records, manifests, run_folders, runs_by_size, snapshot

FLOAT32_NATS = 1e-4  # what two ways of computing in float32 may differ by


@contextmanager
def serving_size(family: Family, size: str, **options: Any) -> Iterator[Engine]:
    folder = family.folders[size]
    with serving(Engine(folder, str(folder), **options)) as engine:
        yield engine


def by_engine(
    engine: Engine, family: Family, store: Path, cwd: Path, *words: object, sizes: tuple[str, ...] = ("m",),
    check: int = 0, env: dict[str, str] | None = None,
) -> Answer:  # fmt: skip
    asked = ["engine=vllm", f"engine.url={engine.url}/v1", "dtype=float32", *words]
    return here("measure", *family.words(*sizes), *asked, "--store", store, cwd=cwd, check=check, env=env)


def tokens_of(store: Path) -> Any:
    (run,) = run_folders(store).values()
    return pq.read_table(run / "tokens.parquet")


@pytest.mark.parametrize("words", [(), ("protocol=rolling", "protocol.window=32", "protocol.stride=16")])
def test_an_engine_gives_the_rows_of_our_own_run(
    words: tuple[str, ...], measured: Measured, cwd: Path, tmp_path: Path
) -> None:
    store, family, own = tmp_path / "theirs", measured.family, measured.store
    if words:
        own = tmp_path / "ours"
        here("measure", *family.words("m"), *words, "--store", own, cwd=cwd, check=0)
    with serving_size(family, "m") as engine:
        by_engine(engine, family, store, cwd, *words)
        asked = [body for path, body, _ in engine.asked if path == "/v1/completions"]
    assert {(body["prompt_logprobs"], body["max_tokens"], body["return_token_ids"]) for body in asked} == {(0, 1, True)}
    ours, theirs = runs_by_size(own)["m"], tokens_of(store)
    for name in ("doc_id", "position", "token_id", "first_byte", "n_bytes"):
        assert theirs[name].to_pylist() == ours[name].tolist()
    assert theirs["greater"].null_count == len(theirs) > 100
    pessimistic = ours["greater"] + ours["ties"]
    # Twins tie by construction, so a rank that left them apart would differ on many tokens.
    assert np.mean(ours["ties"] > 0) > 0.05
    assert np.mean(theirs["ties"].to_numpy() != pessimistic) <= 1e-3
    np.testing.assert_allclose(theirs["logprob"].to_numpy(), ours["logprob"], rtol=0, atol=FLOAT32_NATS)
    facts, facts_ours = manifests(store), manifests(own)
    (of_run,), of_ours = facts.values(), facts_ours[ours["run_id"]]
    same = ("text_hash", "tokenizer_hash", "weights_hash", "window", "stride", "bos", "padding", "protocol", "dtype")
    same += ("n_documents", "n_skipped", "n_tokens", "n_bytes", "n_bytes_scored", "vocab_size", "non_embedding_params")
    assert {name: of_run[name] for name in same} == {name: of_ours[name] for name in same}
    assert of_run["run_id"] != of_ours["run_id"]
    assert (of_run["engine"], of_run["engine_version"]) == ("vllm", "0.32.0")
    here("store", "verify", "--store", store, cwd=cwd, check=0)


def test_items_are_measured_by_an_engine_too(family: Family, cwd: Path, tmp_path: Path) -> None:
    items = tmp_path / "items.jsonl"
    rows = [{"q": "A letter left the", "choices": ["harbour", "sun"], "right": 0}] * 3
    items.write_text("".join(json.dumps(row | {"q": f"{row['q']} {at}"}) + "\n" for at, row in enumerate(rows)))
    words = [
        *("dataset=file", f"dataset.path={items}", "dataset.context=q", "dataset.choices=choices"),
        *("dataset.right=right", "protocol=harness"),
    ]
    model = family.words("m")[:3]
    here("measure", *model, *words, "--store", tmp_path / "ours", cwd=cwd, check=0)
    with serving_size(family, "m") as engine:
        asked = ("engine=vllm", f"engine.url={engine.url}", "dtype=float32")
        here("measure", *model, *words, *asked, "--store", tmp_path / "theirs", cwd=cwd, check=0)
    ours, theirs = tokens_of(tmp_path / "ours"), tokens_of(tmp_path / "theirs")
    for name in ("doc_id", "position", "token_id", "item", "choice", "correct"):
        assert theirs[name].to_pylist() == ours[name].to_pylist()
    np.testing.assert_allclose(theirs["logprob"].to_numpy(), ours["logprob"].to_numpy(), rtol=0, atol=FLOAT32_NATS)


def test_what_is_done_is_not_asked_again_and_another_version_is_another_run(
    family: Family, cwd: Path, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    with serving_size(family, "m") as engine:
        by_engine(engine, family, store, cwd, env={"VLLM_API_KEY": "secret"})
        assert {key for *_, key in engine.asked} == {"Bearer secret"}
        assert b"secret" not in b"".join(raw for _, raw in snapshot(store).values())
        n_asked = len(engine.asked)
        assert "nothing to measure" in by_engine(engine, family, store, cwd).stderr
        assert len(engine.asked) == n_asked
        wrong = by_engine(engine, family, store, cwd, "engine.version=0.33.0", check=1)
        assert "is version 0.32.0, not engine.version=0.33.0" in wrong.stderr
        engine.version = "0.33.0"
        by_engine(engine, family, store, cwd, "engine.version=0.33.0")
    assert sorted(facts["engine_version"] for facts in manifests(store).values()) == ["0.32.0", "0.33.0"]
    own = here("measure", *family.words("m"), "--store", store, cwd=cwd, check=0)
    assert "nothing to measure" not in own.stderr
    assert len({record["run_id"] for record in cell_records(store)}) == 3
    state = here("status", *family.words("m"), "--store", store, "--format", "json", cwd=cwd, check=0).stdout
    assert [row["state"] for row in json.loads(state)] == ["done"]


def test_a_server_of_one_model_measures_it_alone_and_the_other_sizes_are_told(
    family: Family, cwd: Path, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    with serving_size(family, "m") as engine:
        answer = by_engine(engine, family, store, cwd, sizes=("s", "m"), check=1)
        assert f"serves {family.folders['m']}, not {family.folders['s']}; measure that size alone" in answer.stderr
        assert [record["size"] for record in cell_records(store)] == ["m"]
        several = by_engine(engine, family, store, cwd, "engine.model=other", sizes=("s", "m"), check=2)
        assert "engine.model=other is one model, and 2 are asked for" in several.stderr
        engine.name = "ours"
        by_engine(engine, family, tmp_path / "named", cwd, "engine.model=ours")
        engine.context = 30
        short = by_engine(engine, family, tmp_path / "short", cwd, check=1)
        assert "reads 30 tokens, of which the last is one that it generates" in short.stderr
    assert len(run_folders(tmp_path / "named")) == 1


@pytest.mark.parametrize(
    ("mood", "told"),
    [
        ("500", "answers /v1/completions with 500: EngineCore encountered an issue."),
        ("hangs up", "does not answer /v1/completions ("),
        ("half an answer", "does not answer /v1/completions (IncompleteRead"),
        ("silent", "gave no answer to /v1/completions in 1 s; raise engine.timeout_s"),
        ("no json", "with what is no JSON: <html>Bad gateway</html>"),
        ("too few answers", "answers to"),
        ("too few tokens", "tokens; nothing was written"),
        ("other tokens", "is of other tokens than were sent"),
        ("nan", "logprob nan is not the logarithm of a probability"),
        ("infinite", "logprob -inf is not the logarithm of a probability"),
        ("no logprob", "logprob None is not the logarithm of a probability"),
        ("clamped", "its logits may not be finite"),
        ("null", "has no probability of token"),
        ("rank beyond", "has the rank 1,000,000 of"),
    ],
)
def test_a_server_that_fails_costs_its_cell_one_line_and_no_half_run(
    mood: str, told: str, family: Family, cwd: Path, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    n_before = 0 if mood == "silent" else 1  # the first answer takes longer on a busy machine than silence is borne
    with serving_size(family, "xs", mood=mood, least_prompts=n_before) as engine:
        words = ("limit=4", "tokens_per_batch=1", *(["engine.timeout_s=1"] if mood == "silent" else []))
        answer = by_engine(engine, family, store, cwd, *words, sizes=("xs",), check=1)
        n_asked = sum(path == "/v1/completions" for path, *_ in engine.asked)
        assert n_asked == n_before + 1, "it failed in the middle of a cell"
        lines = [line for line in answer.stderr.splitlines() if line.startswith("rbpx: ")]
        assert len(lines) == 1
        assert told in lines[0]
        assert "Traceback" not in answer.stderr
        assert [path.name for path in (store / "runs").iterdir()] == []
        (failure,) = (json.loads(path.read_text()) for path in (store / "failures").glob("*.json"))
        assert told in failure["error"]
        engine.mood = "well"
        by_engine(engine, family, store, cwd, "limit=4", sizes=("xs",))
    assert len(run_folders(store)) == 1
    assert list((store / "failures").glob("*.json")) == []


def test_a_sweep_goes_on_past_a_server_that_is_not_there(family: Family, cwd: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    with serving_size(family, "xs") as engine:
        urls = f"engine.url=http://127.0.0.1:9/v1,{engine.url}/v1"
        words = (*family.words("xs"), "engine=vllm", "dtype=float32", urls)
        answer = here("measure", "-m", *words, "limit=2", "--store", store, cwd=cwd, check=1)
    assert "does not answer /version (" in answer.stderr
    assert len(run_folders(store)) == 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("engine.url=127.0.0.1:8000",), "is no address of a server; give one as http://host:8000/v1"),
        (("engine.url=http://me:pass@host/v1",), "give a server's key in VLLM_API_KEY instead"),
        (("engine.url=http://host:port/v1",), "is no address ("),
        (("engine.timeout_s=0",), "engine.timeout_s=0.0 is not a positive number of seconds"),
        (("engine.version=0.11",), "engine.version=0.11 was read as a number; quote it"),
        (("engine.name=other",), "engine.name=other is unknown; known: vllm"),
        (("dtype=null",), "engine=vllm does not tell in which precision it computes"),
        (("best=5",), "best=5 is of rbpx's own measuring, not of engine=vllm"),
        (("protocol.padding=masked",), "protocol.padding=masked is of rbpx's own measuring"),
        (("model.quantise=int8",), "model.quantise=int8 is of rbpx's own measuring"),
    ],
)
def test_what_an_engine_cannot_be_asked_is_refused(
    words: tuple[str, ...], told: str, family: Family, cwd: Path, tmp_path: Path
) -> None:
    asked = (*family.words("xs"), "engine=vllm", "dtype=float32", *words, "--store", tmp_path / "store")
    answer = here("measure", *asked, cwd=cwd, check=2)
    assert told in answer.stderr
    assert answer.stderr.count("\n") == 1
