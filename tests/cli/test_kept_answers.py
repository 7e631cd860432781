"""Answers that are kept in the store: printed again to the last bit, computed anew when what they depend on changes."""

from pathlib import Path

import pytest

from rbpx.analyses import told
from rbpx.store.store import Store
from tests.support.commands import here
from tests.support.synthetic import Truth, write_store


def test_the_same_asked_again_is_printed_to_the_last_bit_and_anything_else_computed(
    cwd: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "store"
    write_store(store, Truth(), seed=1, n_documents=4, n_tokens=8)
    computed: list[str] = []
    answer = told.answer

    def counting(name: str, *args: object, **options: object) -> object:
        computed.append(name)
        return answer(name, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(told, "answer", counting)

    def ask(*words: str) -> tuple[str, str]:
        asked = ("fit", "laws=[rbp]", "k=1", "resamples=20", *words, "--store", store)
        done = here(*asked, cwd=cwd, check=0)
        return done.stdout, done.stderr

    first = ask()
    assert ask() == first
    assert len(computed) == 1
    assert ask("ties=mid") != first
    assert len(computed) == 2
    here("store", "rm", Store(store).run_ids()[0], "--store", store, cwd=cwd, check=0)
    assert ask() != first
    assert len(computed) == 3
