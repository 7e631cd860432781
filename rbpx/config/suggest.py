"""A name that nobody knows in; the known one that was probably meant, as advice to read, out."""

from collections.abc import Iterable
from difflib import get_close_matches

_MEANT = {
    "gpu": "cuda",
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp32": "float32",
    "half": "float16",
    "strict": "optimistic",
}


def near(name: str, known: Iterable[str]) -> str | None:
    """The known name that is nearest, capitals aside; None where none is near."""
    by_lower = {each.lower(): each for each in known}
    other = _MEANT.get(name.lower())
    if other in by_lower:
        return by_lower[other]
    found = get_close_matches(name.lower(), by_lower, n=1)
    return by_lower[found[0]] if found else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The question, with a blank after it; nothing where no name is near."""
    found = near(name, known)
    return "" if found is None else f"did you mean {found}? "
