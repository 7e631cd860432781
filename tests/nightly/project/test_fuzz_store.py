"""Whatever bytes a file of a store holds, it is read, left out with a line, or refused: thousands of them."""

import pytest

from tests.support import fuzz, fuzz_store

FEW = {"table": 1, "sample": 15, "push": 4, "pull": 4}
MANY = {"record": 2_000, "table": 1_000, "sample": 5_000, "push": 1_000, "pull": 1_000}
NOT_DAILY = [name for name in fuzz_store.TARGETS if name.partition(" ")[0] in FEW]


@pytest.mark.parametrize("name", NOT_DAILY)
def test_what_else_is_read_of_a_store_is_sound_or_left_out(name: str) -> None:
    run, corpus, changed = fuzz_store.target_of(name, whole=False)
    for content in [] if name.startswith("table") else corpus:
        run(content)
    fuzz.drive(run, changed | fuzz.mutated(corpus), FEW[name.partition(" ")[0]])


@pytest.mark.parametrize("kind", [kind for kind in fuzz_store.RECORDS if kind != "cells"])
def test_half_a_record_of_any_kind_is_left_out_by_all_that_read_a_store(kind: str) -> None:
    run, corpus, _ = fuzz_store.target_of(f"record {kind}", whole=True)
    run(corpus[2])


@pytest.mark.parametrize("name", fuzz_store.TARGETS)
def test_a_whole_store_is_sound_whatever_a_file_of_it_holds(name: str) -> None:
    run, corpus, changed = fuzz_store.target_of(name, whole=True)
    for content in corpus:
        run(content)
    fuzz.drive(run, changed | fuzz.mutated(corpus), MANY[name.partition(" ")[0]])
