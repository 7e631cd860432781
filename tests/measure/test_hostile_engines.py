"""A server's key goes nowhere else, and no softmax excludes its own ranks."""

import json
import math
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rbpx.config.model.placement import EngineConfig
from rbpx.errors import MeasureError
from rbpx.measure.engine import Server
from rbpx.store.imports.engine_tokens import EngineToken, exclusion
from tests.support.loopback import Handler, served

VERSION = json.dumps({"version": "0.32.0"}).encode()
Say = Callable[[Handler], None]


def speaking(say: Say, asked: list[tuple[str, dict[str, str]]] | None = None) -> type[Handler]:
    """A server that answers everything by `say`, and notes what it is asked with which headers."""

    class Saying(Handler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if asked is not None:
                asked.append((self.path, dict(self.headers)))
            self.close_connection = True
            say(self)

        do_POST = do_GET

    return Saying


def answering(status: int = 200, content: bytes = VERSION, **headers: str) -> Say:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda handler: handler.say(status, named, content)


@pytest.mark.parametrize(
    ("status", "path"),
    [*((status, "/version") for status in (300, 301, 302, 303, 304, 305, 307, 308)), (302, "/v1/completions"),
     (307, "/v1/completions")],
)  # fmt: skip
def test_a_redirect_is_not_followed_and_the_key_stays_at_home(
    status: int, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "secret")
    elsewhere: list[tuple[str, dict[str, str]]] = []
    with served(speaking(answering(), elsewhere)) as other:
        asked: list[tuple[str, dict[str, str]]] = []
        with served(speaking(answering(status, b"", Location=f"{other}{path}"), asked)) as url:
            server = Server(EngineConfig(url=url))
            with pytest.raises(MeasureError) as raised:
                server.version() if path == "/version" else server.prompt_logprobs("m", [[1, 2]])
    told = str(raised.value)
    assert told.startswith(f"engine=vllm at {url} answers {path} with {status}: ")
    assert told.endswith(", or check engine.url")
    assert elsewhere == []
    assert [headers["Authorization"] for _, headers in asked] == ["Bearer secret"]


# ---------------------------------------------------------------------------------------- ranks and log-probabilities


def told_by(logits_V: npt.NDArray[np.float32]) -> Iterator[EngineToken]:
    """What engines tell of each token of a vocabulary, by each definition, in float32 and rounded to bfloat16."""
    logits = torch.from_numpy(logits_V)
    for kept in (logits, logits.bfloat16().float()):
        exact = kept.log_softmax(-1)
        for logprobs in (exact, exact.bfloat16().float(), exact.half().float()):
            for token in range(len(logits_V)):
                for of in (logprobs, exact):  # what ranks are counted by
                    greater, ties = int((of > of[token]).sum()), int((of == of[token]).sum()) - 1
                    logprob = min(float(logprobs[token]), 0.0)
                    for g, t in ((greater, ties), (None, greater + ties), (greater, None)):
                        yield EngineToken(0, 1, token, logprob, g, t)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(-40, 40, width=32) | st.sampled_from([0.0, 1.0, 7.125]), min_size=1, max_size=24),
    st.integers(1, 40),
)
def test_no_softmax_excludes_its_own_ranks(values: list[float], copies: int) -> None:
    logits = np.array(values * (copies if len(values) < 4 else 1), np.float32)
    for token in told_by(logits):
        assert exclusion(token, len(logits)) is None, token


def test_large_vocabularies_of_real_shapes_exclude_nothing() -> None:
    draw = np.random.default_rng(0)
    for V in (50_257, 151_936):
        logits = draw.normal(0, 4, V).astype(np.float32)
        logits[draw.integers(0, V, V // 4)] = 2.5  # a quarter of them tied
        exact = torch.from_numpy(logits).log_softmax(-1)
        for logprobs in (exact, exact.bfloat16().float()):
            values, place, counts = np.unique(-logprobs.numpy(), return_inverse=True, return_counts=True)
            at_least = np.cumsum(counts)[place]
            tokens = [*draw.integers(0, V, 500).tolist(), int(logits.argmax()), int(logits.argmin())]
            for token in tokens:
                told = EngineToken(0, 1, token, float(logprobs[token]), None, int(at_least[token]) - 1)
                assert exclusion(told, V) is None
            assert values.size


@pytest.mark.parametrize("ranked", [2, 3, 7, 1000])
def test_a_rank_whose_share_is_just_taken_passes_and_a_larger_probability_does_not(ranked: int) -> None:
    """Of `ranked` tokens that are at least as probable, none has more than 1/ranked."""
    at_bound = -math.log(ranked)
    for greater, ties in ((None, ranked - 1), (ranked - 1, None), (0, ranked - 1), (ranked - 1, 0)):
        for logprob, excluded in ((at_bound, False), (at_bound * 0.995, False), (at_bound * 0.98, True), (0.0, True)):
            told = exclusion(EngineToken(0, 1, 5, logprob, greater, ties), 10**6)
            assert (told is not None) is excluded, (greater, ties, logprob)
    told = exclusion(EngineToken(0, 1, 5, -0.1, None, ranked - 1), 10**6)
    assert told == (
        f"rank {ranked:,} and logprob -0.1 exclude each other: none of {ranked:,} tokens that are as probable can have "
        f"more than 1/{ranked:,}"
    )


def test_the_best_of_a_vocabulary_has_at_least_its_share() -> None:
    V = 1000
    for greater, ties in ((0, None), (None, 0), (0, 0), (0, 3)):
        for logprob, excluded in ((-math.log(V), False), (-1.005 * math.log(V), False), (-1.02 * math.log(V), True)):
            assert (exclusion(EngineToken(0, 1, 5, logprob, greater, ties), V) is not None) is excluded
    for greater, ties in ((1, 0), (None, 1), (None, None)):
        assert exclusion(EngineToken(0, 1, 5, -50.0, greater, ties), V) is None
    assert exclusion(EngineToken(0, 1, 5, -8.0, 0, None), V) == (
        "rank 1 and logprob -8 exclude each other: the best of 1,000 tokens has at least 1/1,000"
    )
