"""Audits of engines: how far a run of another engine is from rbpx's float32, and when that refuses it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rbpx.config.model.placement import EngineConfig
from tests.support.asking import Asked, refused
from tests.support.audits import audit
from tests.support.composed import here
from tests.support.engine_server import Engine, serving
from tests.support.stores import Family, Measured, columns_of, run_folders, runs_by_size, snapshot

Tokens = dict[str, Any]


def by_engine(family: Family, store: Path, cwd: Path, dtype: str = "float32", **options: Any) -> Tokens:
    """The tokens of a run by an engine."""
    with serving(Engine(family.folders["m"], str(family.folders["m"]), dtype=dtype, **options)) as engine:
        words = (*family.words("m"), "engine=vllm", f"engine.url={engine.url}", f"dtype={dtype}")
        here("measure", *words, "--store", store, cwd=cwd, check=0)
    (run,) = run_folders(store).values()
    return columns_of(run, "tokens")


def pessimistic(tokens: Tokens) -> Any:
    return np.nan_to_num(tokens["greater"].astype(float)) + tokens["ties"].astype(float)


def differences(one: Tokens, other: Tokens) -> tuple[float, float]:
    """The share of tokens of another pessimistic rank, and the largest difference of a logprob."""
    apart = np.abs(one["logprob"].astype(float) - other["logprob"].astype(float))
    return float(np.mean(pessimistic(one) != pessimistic(other))), float(apart.max())


def test_an_engine_that_is_right_passes_with_what_a_loop_counts(measured: Measured, cwd: Path, tmp_path: Path) -> None:
    store, ours = tmp_path / "store", runs_by_size(measured.store)["m"]
    theirs = by_engine(measured.family, store, cwd)
    before = snapshot(store)
    asked, failed = audit(store, k=1)
    assert snapshot(store) == before
    assert failed == []
    (row,) = [row for row in asked.rows if row.get("law") == "cross_entropy"]
    share, nats = differences(theirs, ours)
    assert (row["engine"], row["dtype"], row["n_tokens"]) == ("vllm 0.32.0", "float32", len(ours["logprob"]))
    # Our run is measured again in other batches, so that it may differ from the stored one by rounding.
    assert row["n_changed"] / row["n_tokens"] == pytest.approx(share, abs=1e-3)
    assert row["largest_logprob_move"] == pytest.approx(nats, abs=1e-4)
    assert (row["allowed_share"], row["allowed_nats"], row["is_same"]) == (2e-3, 2e-4, True)
    assert row["stored"] == pytest.approx(-np.mean(theirs["logprob"].astype(float)), rel=1e-9)


def test_an_engine_that_is_wrong_is_refused_beyond_the_tolerance(measured: Measured, cwd: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    theirs = by_engine(measured.family, store, cwd, temperature=1.05)
    share, nats = differences(theirs, runs_by_size(measured.store)["m"])
    answer = here("audit", "resamples=50", "k=1", "--store", store, "--format", "json", cwd=cwd, check=1)
    (row,) = [row for row in json.loads(answer.stdout) if row.get("law") == "cross_entropy"]
    assert row["is_same"] is False
    assert nats > 0.01
    assert row["largest_logprob_move"] == pytest.approx(nats, rel=0.01)
    assert share < 1e-3  # a temperature keeps the order, so that only logprobs give it away
    (line,) = [line for line in answer.stderr.splitlines() if line.startswith("rbpx: ")]
    assert "mine m on file (float32, vllm 0.32.0) failed: vllm 0.32.0 is refused: " in line
    assert f"off by up to {row['largest_logprob_move']:.2g} nats (0.0002 allowed)" in line
    assert "Traceback" not in answer.stderr
    allowed, failed = audit(store, tolerance=1e6)
    assert failed == []
    assert "tolerance= times as much" in allowed.words


def test_a_16_bit_engine_may_be_as_far_off_as_our_own_run_in_16_bits(
    measured: Measured, cwd: Path, tmp_path: Path
) -> None:
    family = measured.family
    here("measure", *family.words("m"), "dtype=bfloat16", "--store", tmp_path / "ours", cwd=cwd, check=0)
    (run,) = run_folders(tmp_path / "ours").values()
    share, nats = differences(columns_of(run, "tokens"), runs_by_size(measured.store)["m"])
    assert min(share, nats) > 1e-3
    by_engine(family, tmp_path / "theirs", cwd, "bfloat16")
    (row,) = [row for row in audit(tmp_path / "theirs", k=1)[0].rows if row.get("law") == "cross_entropy"]
    assert row["is_same"] is True
    assert row["allowed_nats"] == pytest.approx(2 * nats, rel=0.1)
    assert row["allowed_share"] == pytest.approx(2 * share, rel=0.1)


def test_tokens_that_were_imported_have_no_model_to_be_audited_with(cwd: Path, tmp_path: Path) -> None:
    token = {"doc_id": 0, "position": 1, "token_id": 5, "rank": 3, "logprob": -1.5}
    file, store = tmp_path / "rows.jsonl", tmp_path / "store"
    file.write_text(json.dumps(token) + "\n")
    names = ("engine=e", "engine_version=1.0.0", "family=f", "size=s", "S=10", "dataset=d", "vocab_size=69")
    words = ("import", "tokens", file, *names, "dtype=float32", "ties=pessimistic", "--store", store)
    here(*words, cwd=cwd, check=0)
    (reason,) = audit(store)[1]
    assert "its record lacks a part of the request, as where tokens were imported" in reason


# ------------------------------------------------------------------------------------------------ engines asked again


def asked_again(store: Path, engine: Engine, **keys: Any) -> tuple[Asked, list[str]]:
    """The audit by the engine itself."""
    config = EngineConfig(url=f"{engine.url}/v1", model=keys.pop("model", None))
    return audit(store, **{"engine": config, "k": 1, **keys})


def prompts(engine: Engine) -> list[list[list[int]]]:
    """The prompts of each request, in the order in which they were sent."""
    return [body["prompt"] for path, body, _ in engine.asked if path == "/v1/completions"]


def places(requests: list[list[list[int]]]) -> dict[tuple[int, ...], int]:
    """How many prompts were before each one in its request."""
    return {tuple(ids): at for request in requests for at, ids in enumerate(request)}


def test_what_hangs_on_the_order_is_the_noise_of_the_engine_as_a_loop_counts_it(
    family: Family, cwd: Path, tmp_path: Path
) -> None:
    """Each prompt of a request costs the next ones a nat and a rank, so all moves follow from the prompts sent."""
    store, sizes = tmp_path / "store", ("s", "m", "l")
    folders = [family.folders[size] for size in sizes]
    engine = Engine(folders[0], str(folders[0]), beside=tuple(folders[1:]), drift=1.0)
    with serving(engine):
        words = (*family.words(*sizes), "engine=vllm", f"engine.url={engine.url}/v1", "dtype=float32")
        here("measure", *words, "tokens_per_batch=150", "--store", store, cwd=cwd, check=0)
        before, written = places(prompts(engine)), snapshot(store)
        sent_first = [ids for request in prompts(engine) for ids in request]
        engine.asked.clear()
        asked, _ = asked_again(store, engine, tokens_per_batch=90)
        after, sent = places(prompts(engine)), [ids for request in prompts(engine) for ids in request]
    assert snapshot(store) == written
    assert sorted(sent) == sorted(sent_first)
    assert sent != sent_first
    assert all(sum(map(len, request)) <= 90 or len(request) == 1 for request in prompts(engine))
    tokens, V, n_moved = runs_by_size(store), 300, {}
    for size in sizes:
        run, moves, lost, gained = tokens[size], [], 0, 0
        n_moved[size] = 0
        for doc_id in np.unique(run["doc_id"]):
            of_document = run["doc_id"] == doc_id
            scored = dict(zip(run["position"][of_document], run["token_id"][of_document], strict=True))
            (ids,) = [ids for ids in before if {at: ids[at] for at in scored if at < len(ids)} == scored]
            for rank in run["ties"][of_document] + 1:
                moves.append(after[ids] - before[ids])
                other = min(int(rank) + moves[-1], V) if rank < V else V
                n_moved[size] += other != rank
                lost, gained = lost + (rank == 1 < other), gained + (other == 1 < rank)
        (row,) = [row for row in asked.rows if (row.get("size"), row["law"]) == (size, "cross_entropy")]
        (of_rank,) = [row for row in asked.rows if (row.get("size"), row["law"]) == (size, "rbp")]
        assert row["difference"] == pytest.approx(np.mean(moves), abs=1e-5)
        assert row["largest_logprob_move"] == pytest.approx(np.max(np.abs(moves)), abs=1e-5)
        assert (row["n_moved"], row["n_changed"], row["against"]) == (n_moved[size], n_moved[size], "engine")
        assert row["is_same"] is False
        assert (of_rank["n_lost"], of_rank["n_gained"]) == (lost, gained)
        assert n_moved[size] > 20
    n_tokens = sum(len(tokens[size]["ties"]) for size in sizes)
    assert "asked again in another order: " in asked.words
    assert f"{sum(n_moved.values()):,} of {n_tokens:,} ranks moved by up to " in asked.words
    assert "measured again in float32" not in asked.words


@pytest.fixture
def by_m(family: Family, tmp_path: Path, cwd: Path) -> Iterator[tuple[Path, Engine]]:
    """A store with a run of size m by an engine, and the engine."""
    store = tmp_path / "store"
    with serving(Engine(family.folders["m"], str(family.folders["m"]))) as engine:
        words = (*family.words("m"), "engine=vllm", f"engine.url={engine.url}", "dtype=float32")
        here("measure", *words, "--store", store, cwd=cwd, check=0)
        yield store, engine


def test_an_engine_that_answers_alike_in_any_order_is_said_to(by_m: tuple[Path, Engine]) -> None:
    store, engine = by_m
    n_before = len(prompts(engine))
    asked, _ = asked_again(store, engine, limit=5, tokens_per_batch=1)
    assert [len(request) for request in prompts(engine)[n_before:]] == [1] * 5
    assert "1 size, 5 of 8 documents" in asked.words
    said = "asked again in another order: no rank moved, and no log-probability by more than 0 nats, its own noise."
    assert said in asked.words
    for seed in (1, 2):
        asked_again(store, engine, seed=seed)
    of_one, of_other = prompts(engine)[-2:]
    assert sorted(of_one) == sorted(of_other)
    assert of_one != of_other


def test_an_engine_that_is_not_the_one_that_measured_is_refused_before_it_is_asked(
    by_m: tuple[Path, Engine], measured: Measured
) -> None:
    store, engine = by_m
    n_prompts, folders = len(prompts(engine)), measured.family.folders

    def is_refused(*says: str, of: Path = store, **keys: Any) -> None:
        with refused(*says):
            asked_again(of, engine, **keys)

    engine.version = "0.33.0"
    is_refused("is version 0.33.0, not 0.32.0; start one of that version, or measure the run anew")
    engine.version, engine.folder, engine.name = "0.32.0", folders["s"], "served"
    is_refused("serves served, not ", str(folders["m"]))
    is_refused("serves served, not other", model="other")
    is_refused("no runs in store=", "that match were measured with engine=vllm", of=measured.store)
    is_refused("that match were measured with dtype=float16 engine=vllm", dtype="float16")
    is_refused("device=cpu is of rbpx's own measuring", device="cpu")
    assert len(prompts(engine)) == n_prompts


def test_an_engine_that_fails_or_is_not_there_costs_its_run(by_m: tuple[Path, Engine], family: Family) -> None:
    store, engine = by_m
    engine.mood = "500"
    (reason,) = asked_again(store, engine)[1]
    assert reason.startswith("mine m on file (float32, vllm 0.32.0): engine=vllm at ")
    assert "EngineCore encountered an issue" in reason
    with serving(Engine(family.folders["m"], "gone")) as gone:
        pass
    with refused("does not answer /version", gone.url):
        asked_again(store, gone)
