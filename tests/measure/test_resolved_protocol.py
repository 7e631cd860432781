"""Windows of a resolved protocol: a text is cut once for models of one tokenizer, and again for any difference."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from rbpx.config.options import Bos, Padding
from rbpx.data.corpus import Document
from rbpx.data.windows import cut_windows
from rbpx.measure import protocol
from rbpx.measure.protocol import ResolvedProtocol
from rbpx.models.tokenizer import hash_tokenizer
from tests.support.checkpoints import VOCAB_ROWS, build_tokenizer

TEXTS = [Document(n, str(n), "The sea reads nothing. " * (n + 2)) for n in range(5)]


def resolved(arch: str, **how: Any) -> ResolvedProtocol:
    tokenizer = build_tokenizer(arch)
    loaded: Any = SimpleNamespace(tokenizer=tokenizer, tokenizer_hash=hash_tokenizer(tokenizer), n_rows=VOCAB_ROWS)
    return ResolvedProtocol(loaded, **{"window": 20, "stride": 5, "bos": Bos.tokenizer, "padding": Padding.counted,
                              "unscored": [], **how})  # fmt: skip


@pytest.fixture
def cuts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of documents of each call of the tokenizer."""
    calls: list[int] = []

    def counted(documents: Any, *how: Any) -> Any:
        calls.append(len(documents))
        return cut_windows(documents, *how)

    monkeypatch.setattr(protocol, "cut_windows", counted)
    monkeypatch.setattr(protocol, "_cached_windows", {})
    return calls


OTHERS = {
    "nothing": lambda: resolved("gpt2").windows(TEXTS),
    "tokenizer": lambda: resolved("opt").windows(TEXTS),
    "window": lambda: resolved("gpt2", window=19).windows(TEXTS),
    "stride": lambda: resolved("gpt2", stride=6).windows(TEXTS),
    "prefix": lambda: resolved("gpt2", prefix=40).windows(TEXTS),
    "bos": lambda: resolved("gpt2", bos=Bos.add).windows(TEXTS),
    "unscored": lambda: resolved("gpt2", unscored=[40]).windows(TEXTS),
    "text": lambda: resolved("gpt2").windows([*TEXTS[:4], replace(TEXTS[4], text="The sea is still.")]),
    "order": lambda: resolved("gpt2").windows(TEXTS[::-1]),
    "numbers": lambda: resolved("gpt2").windows([replace(text, doc_id=text.doc_id + 9) for text in TEXTS]),
}


@pytest.mark.parametrize("other", OTHERS)
def test_whatever_differs_is_cut_anew_and_nothing_else(other: str, cuts: list[int]) -> None:
    resolved("gpt2").windows(TEXTS)
    OTHERS[other]()
    assert cuts == ([5] if other == "nothing" else [5, 5])
