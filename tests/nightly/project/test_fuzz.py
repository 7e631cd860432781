"""Whatever bytes a file of texts or of results holds: thousands of them."""

import pytest

from tests.support import fuzz

MANY = {"texts": 20_000, "imports": 20_000, "engine rows": 20_000, "parts": 5_000, "samples": 20_000}


@pytest.mark.parametrize("target", MANY)
def test_many_mutations_are_read_or_refused(target: str) -> None:
    run, corpus = fuzz.TARGETS[target]
    fuzz.drive(run, fuzz.mutated(corpus), MANY[target])
