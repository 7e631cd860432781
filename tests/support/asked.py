"""What a question needs to be asked at all of any store, and with few replicates."""

from collections.abc import Mapping
from typing import Final

from rbpx.cli.registry import asking

WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "compare": ("a=ladder/25k", "b=ladder/1.2m"),
    "predict": ("S=[1e7,1e9]",),
    "outcomes": ("n=[2]",),
    "emergence": ("n=[1,5]", "k=[1,10]"),
    "surface": ("flops=[1e14,1e16]", "form=all", "laws=[cross_entropy,rbp]", "k=1"),
    "multiplier": ("base=a", "variant=b"),
    "downstream": ("features=all",),
}


def few(verb: str) -> tuple[str, ...]:
    """Few replicates, of a verb that has any: rows do not depend on how many, the time does."""
    return ("resamples=25",) if "resamples" in asking(verb).keys else ()
