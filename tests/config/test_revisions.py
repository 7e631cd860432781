"""Which of a family's checkpoints a request means."""

from typing import Any

import pytest

from rbpx.config.grid import members
from rbpx.config.model.family import ModelConfig, SizeConfig
from rbpx.errors import RbpxError

FAMILY = {
    "small": SizeConfig("rbpx:x/small/8m", 10, revisions=["1m", "2m", "raw-1m"]),
    "large": SizeConfig("rbpx:x/large/8m", 20, revisions=["2m"]),
}


def chosen(revision: Any, sizes: list[str] | None = None) -> list[str]:
    """The models that a request means, as size@revision=id."""
    found = members(ModelConfig(family="x", revision=revision, sizes=FAMILY), sizes)[1]
    return [f"{each.size}@{each.revision}={each.model}" for each in found]


SMALL = {name: f"small@{name}=rbpx:x/small/{name}" for name in ("1m", "2m", "raw-1m")}
OWN = ["small@None=rbpx:x/small/8m", "large@None=rbpx:x/large/8m"]
LARGE = "large@2m=rbpx:x/large/2m"


@pytest.mark.parametrize(
    ("revision", "expected"),
    [
        (None, OWN),
        ("8m", OWN),
        ("1m", [SMALL["1m"]]),
        ("2m", [SMALL["2m"], LARGE]),
        ("raw", [SMALL["raw-1m"]]),
        ("log", [SMALL["raw-1m"]]),
        ("finished", [OWN[0], SMALL["1m"], SMALL["2m"], OWN[1], LARGE]),
        ("all", [OWN[0], *SMALL.values(), OWN[1], LARGE]),
        (["raw-*", "8m"], [OWN[0], SMALL["raw-1m"], OWN[1]]),
    ],
)
def test_a_name_a_word_a_pattern_or_a_list_chooses_checkpoints(revision: Any, expected: list[str]) -> None:
    assert chosen(revision) == expected


def test_a_checkpoint_that_no_size_or_not_this_size_has_is_refused() -> None:
    with pytest.raises(
        RbpxError, match=r"model\.revision=3m names no checkpoint of x: small has 1m, 2m, raw-1m; large"
    ):
        chosen(["2m", "3m"])
    with pytest.raises(RbpxError, match=r"size=large is unknown in family x at model\.revision=raw; known: small"):
        chosen("raw", ["large"])
    with pytest.raises(RbpxError, match=r"model\.revision=8 was read as a number"):
        chosen(8)
