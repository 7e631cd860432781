"""Cells measured by another engine: the rows of rbpx's own run, but ties; a server that fails loses nothing.

The server answers by vLLM's documented schema (`tests.support.engine_server`), from checkpoints of the family; a few
answers that were recorded from vLLM 0.32.0 lie in vllm_answers.json.
"""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from rbpx.config.model.placement import EngineConfig
from rbpx.data.windows import Window
from rbpx.errors import MeasureError, RbpxError
from rbpx.measure.engine import ServedCell, ServedModel, Server
from rbpx.store.imports.engine_tokens import tokens_of_prompt
from tests.support.commands import Answer
from tests.support.composed import here
from tests.support.engine_server import Engine, serving
from tests.support.ladder import whole_copy
from tests.support.stores import Family, manifests, run_folders, runs_by_size, snapshot

V = 300  # of the family
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


@pytest.mark.parametrize("words", [(), ("protocol=rolling", "protocol.window=32", "protocol.stride=16")], ids=len)
def test_an_engine_gives_the_rows_of_our_own_run(
    words: tuple[str, ...], family: Family, cwd: Path, tmp_path: Path
) -> None:
    store, own = tmp_path / "theirs", tmp_path / "ours"
    here("measure", *family.words("m"), *words, "--store", own, cwd=cwd, check=0)
    with serving(engine_of(family, "m")) as engine:
        by_engine(engine, family, store, cwd, *words)
    asked = [body for path, body, _ in engine.asked if path == "/v1/completions"]
    assert {(body["prompt_logprobs"], body["max_tokens"], body["return_token_ids"]) for body in asked} == {(0, 1, True)}
    ours, theirs = runs_by_size(own)["m"], tokens_of(store)
    for name in ("doc_id", "position", "token_id", "first_byte", "n_bytes"):
        assert theirs[name].to_pylist() == ours[name].tolist()
    assert theirs["greater"].null_count == len(theirs) > 100
    assert np.mean(ours["ties"] > 0) > 0.05  # twins, so that a rank which left them apart would be seen
    assert np.mean(theirs["ties"].to_numpy() != ours["greater"] + ours["ties"]) <= 1e-3
    np.testing.assert_allclose(theirs["logprob"].to_numpy(), ours["logprob"], rtol=0, atol=FLOAT32_NATS)
    (of_run,), of_ours = manifests(store).values(), manifests(own)[ours["run_id"]]
    same = ("text_hash", "tokenizer_hash", "weights_hash", "window", "stride", "bos", "padding", "protocol", "dtype")
    same += ("n_documents", "n_skipped", "n_tokens", "n_bytes", "n_bytes_scored", "vocab_size", "non_embedding_params")
    assert {name: of_run[name] for name in same} == {name: of_ours[name] for name in same}
    assert of_run["run_id"] != of_ours["run_id"]
    assert (of_run["engine"], of_run["engine_version"]) == ("vllm", "0.32.0")


def test_items_are_measured_by_an_engine_too(family: Family, cwd: Path, tmp_path: Path) -> None:
    items = tmp_path / "items.jsonl"
    rows = [{"q": f"Letter {at} left the", "choices": ["harbour", "sun"], "right": 0} for at in range(3)]
    items.write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ["measure", *family.words("m", text=items), "dataset.context=q", "dataset.choices=choices"]
    words += ["dataset.right=right", "dtype=float32"]
    here(*words, "--store", tmp_path / "ours", cwd=cwd, check=0)
    with serving(engine_of(family, "m")) as engine:
        asked = ("engine=vllm", f"engine.url={engine.url}")
        here(*words, *asked, "--store", tmp_path / "theirs", cwd=cwd, check=0)
    ours, theirs = tokens_of(tmp_path / "ours"), tokens_of(tmp_path / "theirs")
    for name in ("doc_id", "position", "token_id", "item", "choice", "correct"):
        assert theirs[name].to_pylist() == ours[name].to_pylist()
    np.testing.assert_allclose(theirs["logprob"].to_numpy(), ours["logprob"].to_numpy(), rtol=0, atol=FLOAT32_NATS)


def test_what_is_done_is_not_asked_again_another_version_is_another_run_and_a_server_has_one_model(
    family: Family, cwd: Path, tmp_path: Path
) -> None:
    store, served = tmp_path / "store", ("engine.model=served", "limit=4")
    with serving(engine_of(family, "xs", context=30)) as engine:
        short = by_engine(engine, family, store, cwd, sizes=("xs",), check=1)
        assert "takes 30 tokens, one of which it generates itself" in short.stderr
        engine.context = None
        other = by_engine(engine, family, store, cwd, "limit=3", sizes=("s", "xs"), check=1)
        assert f"serves {family.folders['xs']}, not {family.folders['s']}; measure that size alone" in other.stderr
        several = by_engine(engine, family, store, cwd, *served, sizes=("s", "xs"), check=2)
        assert "engine.model=served is one model, and 2 are asked for" in several.stderr
        engine.name = "served"
        engine.asked.clear()
        by_engine(engine, family, store, cwd, *served, sizes=("xs",), env={"VLLM_API_KEY": "secret"})
        assert {key for *_, key in engine.asked} == {"Bearer secret"}
        assert b"secret" not in b"".join(raw for _, raw in snapshot(store).values())
        n_asked = len(engine.asked)
        again = by_engine(engine, family, store, cwd, *served, sizes=("xs",))
        assert ("nothing to measure" in again.stderr, len(engine.asked)) == (True, n_asked)
        newer = (*served, "engine.version=0.33.0")
        wrong = by_engine(engine, family, store, cwd, *newer, sizes=("xs",), check=1)
        assert "is version 0.32.0, not 0.33.0" in wrong.stderr
        engine.version = "0.33.0"
        by_engine(engine, family, store, cwd, *newer, sizes=("xs",))
    versions = [
        (facts["n_documents"] + facts["n_skipped"], facts["engine_version"]) for facts in manifests(store).values()
    ]
    assert sorted(versions) == [(3, "0.32.0"), (4, "0.32.0"), (4, "0.33.0")]


def test_answers_recorded_from_vllm_are_those_of_the_bundled_model_they_are_of(tmp_path: Path) -> None:
    """vllm_answers.json was recorded from vLLM 0.32.0 serving ladder 3.2m on a CPU in float32."""
    recorded = json.loads((Path(__file__).parent / "vllm_answers.json").read_text())
    folder = whole_copy("3.2m", tmp_path / "model")
    engine = Engine(folder, "NAME", version=recorded["version"]["version"], context=513)
    (card,), (own_card,) = recorded["models"]["data"], json.loads(engine.answer("/v1/models", None)[1])["data"]
    assert set(own_card) <= set(card)
    status, raw = engine.answer("/v1/completions", {"model": "NAME", **recorded["asked"]})
    assert status == 200
    for theirs, ours in zip(recorded["choices"], json.loads(raw)["choices"], strict=True):
        assert set(ours) <= set(theirs), "the server of these tests says what vLLM says"
        ids = theirs["prompt_token_ids"]
        told, made = (list(tokens_of_prompt(each, 0, 10**6)) for each in (theirs, ours))
        assert [token.token_id for token in told] == ids[1:]
        for one, other in zip(told, made, strict=True):
            assert (one.position, one.token_id, one.ties) == (other.position, other.token_id, other.ties)
            assert one.logprob == pytest.approx(other.logprob, abs=FLOAT32_NATS)


# ---------------------------------------------------------------------------------------------------------- failures


def windows_of(n: int) -> list[Window]:
    ids = np.arange(1, 6, dtype=np.int32)
    return [Window(doc_id, ids, ids > 1, 5, 4, bytes_T=np.ones(5, np.int64)) for doc_id in range(n)]


def asking(url: str, **keys: Any) -> ServedCell:
    """A server that has the model `m`."""
    of_family: Any = SimpleNamespace(loaded=SimpleNamespace(vocab_size=V))
    return ServedCell(Server(EngineConfig(url=url, **keys)), "0.32.0", ServedModel("m", "m", 100), of_family)


@pytest.mark.parametrize(
    ("mood", "told"),
    [
        ("500", 'answers /v1/completions with 500: {"error": {"message": "EngineCore encountered an issue."'),
        ("503", 'answers /v1/completions with 503: {"error": {"message": "EngineCore encountered an issue."'),
        ("hangs up", "does not answer /v1/completions ("),
        ("half an answer", "does not answer /v1/completions (IncompleteRead"),
        ("silent", "gave no answer to /v1/completions in 0.5 s; raise engine.timeout_s"),
        (
            "no json",
            "with 200: <html>Bad gateway</html>; look at its log, and type the same again, or check engine.url",
        ),
        (
            "too few tokens",
            "document 3 has no probability of token 4",
        ),
        ("other tokens", "document 3 is about other tokens than were sent"),
        ("clamped", "document 3 has no probability of token 4; its logits may not be finite"),
        ("rank excluded", "position 4 of document 3: rank 250 and logprob -0.1 exclude each other: none of 250 tokens"),
        ("another model", 'with 404: {"error": {"message": "The model `m` does not exist."'),
    ],
)
def test_each_failure_of_a_server_is_told_in_one_line(
    mood: str, told: str, family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rbpx.measure.engine._WAITS_S", (0.0, 0.01))
    scored = list[int]()
    with serving(engine_of(family, "xs")) as engine:
        engine.name = "m"
        asking(engine.url).columns(windows_of(2), 10, scored.append)
        engine.mood, engine.name = ("well", "other") if mood == "another model" else (mood, "m")
        asked = asking(engine.url, timeout_s=0.5 if mood == "silent" else 600.0)
        with pytest.raises(RbpxError) as raised:
            asked.columns(windows_of(4)[2:], 10, scored.append)
    assert told in str(raised.value)
    assert "\n" not in str(raised.value)
    assert scored == [8]


@pytest.mark.parametrize("mood", ["503", "hangs up", "half an answer"])
def test_what_passes_in_the_middle_of_a_cell_is_asked_again(
    mood: str, family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits, found = list[float](), list[Any]()
    monkeypatch.setattr("rbpx.measure.engine.sleep", waits.append)
    for n_spoilt in (0, 3):
        with serving(engine_of(family, "xs", mood=mood, n_well=1, n_spoilt=n_spoilt)) as engine:
            engine.name = "m"
            found.append(asking(engine.url).columns(windows_of(4), 1, lambda n: None))
        asked = [body for path, body, _ in engine.asked if path == "/v1/completions"]
        assert len(asked) == 4 + n_spoilt
        assert asked[1 : 2 + n_spoilt] == [asked[1]] * (1 + n_spoilt)
        salts = {body["cache_salt"] for body in asked}
        assert (len(salts), min(map(len, salts)) >= 32) == (4, True), "each request has one of its own, asked again too"
    assert waits == [1.0, 4.0, 16.0]
    assert all(column.equals(found[1][name]) for name, column in found[0].items())


def test_a_server_that_was_never_there_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rbpx.measure.engine.sleep", lambda wait_s: pytest.fail("it waited"))
    with pytest.raises(MeasureError, match="does not answer /version"):
        Server(EngineConfig(url="http://127.0.0.1:9/v1")).version()


def test_a_server_that_fails_in_the_middle_of_a_cell_leaves_no_half_run(
    family: Family, cwd: Path, tmp_path: Path
) -> None:
    store, words = tmp_path / "store", ("limit=4", "tokens_per_batch=1")
    with serving(engine_of(family, "xs", mood="500", n_well=1)) as engine:
        answer = by_engine(engine, family, store, cwd, *words, sizes=("xs",), check=1)
        assert sum(path == "/v1/completions" for path, *_ in engine.asked) == 2
        (line,) = [line for line in answer.stderr.splitlines() if line.startswith("rbpx: ")]
        assert "mine xs on file by vllm failed: engine=vllm at http" in line
        assert "Traceback" not in answer.stderr
        assert run_folders(store) == {}
        (failure,) = (json.loads(path.read_text()) for path in (store / "failures").glob("*.json"))
        assert "with 500" in failure["error"]
        engine.mood = "well"
        urls = f"engine.url=http://127.0.0.1:9/v1,{engine.url}/v1"
        asked = (*family.words("xs"), "engine=vllm", "dtype=float32", urls, *words)
        swept = here("measure", "-m", *asked, "--store", store, cwd=cwd, check=1)
    assert "does not answer /version (" in swept.stderr
    assert len(run_folders(store)) == 1, "the sweep went on past the server that is not there"
    assert list((store / "failures").glob("*.json")) == []


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("engine.url=127.0.0.1:8000", "is no address of a server; give one as http://host:8000/v1"),
        ("engine.url=http://me:pass@host/v1", "give a server's key in VLLM_API_KEY instead"),
        ("engine.urll=http://host", "engine.url"),
        ("dtype=null", "dtype=null is not a precision, which engine=vllm does not tell"),
        ("best=5", "best=5 is of rbpx's own measuring, not of engine=vllm"),
        ("protocol.padding=masked", "protocol.padding=masked is of rbpx's own measuring"),
        ("engine=sglang", "but no ranks; known: vllm"),
        ("engine=llama.cpp", "engine=llama.cpp is unknown; its server tells log-probabilities of what it"),
        ("~engine", "engine.url=http://host is a key of engine, and none is named; add"),
    ],
)
def test_what_is_no_engine_and_what_one_cannot_be_asked_is_refused(
    word: str, told: str, family: Family, cwd: Path, tmp_path: Path
) -> None:
    words = ["engine.url=http://host"] if word == "~engine" else ["engine=vllm", "dtype=float32", word]
    answer = here("measure", *family.words("xs"), *words, "--store", tmp_path / "store", cwd=cwd, check=2)
    assert told in answer.stderr
    assert answer.stderr.count("\n") == 1
