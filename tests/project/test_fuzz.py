"""Whatever bytes a file of texts or of results holds, it is read, or refused in one line."""

import pytest

from tests.support import fuzz

FEW = {"texts": 4, "imports": 5, "engine rows": 20, "parts": 20, "samples": 20}


@pytest.mark.parametrize("target", FEW)
def test_the_corpus_and_a_few_mutations_of_it_are_read_or_refused(target: str) -> None:
    run, corpus = fuzz.TARGETS[target]
    for content in corpus:
        run(content)
    fuzz.drive(run, fuzz.mutated(corpus), FEW[target])
