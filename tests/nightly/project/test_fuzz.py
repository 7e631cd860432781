"""Whatever bytes a file of texts, of results or of configuration holds: thousands of them."""

import pytest

from tests.support import fuzz

MANY = {"texts": 20_000, "imports": 20_000, "engine rows": 20_000, "parts": 5_000, "samples": 20_000}
MANY |= {"configuration": 50_000, "composed": 2_000}


def test_the_whole_corpus_of_configuration_is_composed_or_refused() -> None:
    for content in fuzz.FILES:
        fuzz.composed(content)


@pytest.mark.parametrize("target", MANY)
def test_many_mutations_are_read_or_refused(target: str) -> None:
    run, corpus = fuzz.TARGETS[target]
    fuzz.drive(run, fuzz.mutated(corpus), MANY[target])
