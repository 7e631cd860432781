"""Hydra refuses under every verb some of the keys of others."""

import pytest

from rbpx.cli.registry import asking, names
from rbpx.config.request import KEYS
from rbpx.errors import RbpxError
from tests.support.composing import request_of

OF_STUDIES = {"study", "imports"}  # what a file of experiments/ says
PLAIN = [verb for verb in names() if asking(verb).kind is None]


@pytest.mark.parametrize("verb", [verb for verb in PLAIN if asking(verb).performs is None])
def test_a_verb_refuses_the_keys_of_others(verb: str) -> None:
    foreign = sorted(
        set(KEYS)
        - set(asking(verb).names)
        - OF_STUDIES
        - {"model", "dataset", "protocol", "parallel", "engine", "experiment"}
    )
    for name in foreign[:: max(1, len(foreign) // 3)]:
        with pytest.raises(RbpxError, match=f"{verb} has no key {name}; it is a key of other verbs"):
            request_of(verb, [f"{name}=1"])
