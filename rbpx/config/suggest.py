"""Suggests the known name that was probably meant by an unknown one."""

from collections.abc import Iterable
from difflib import get_close_matches

_SYNONYMS = {
    "gpu": "cuda",
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp32": "float32",
    "half": "float16",
    "strict": "optimistic",
}


def near(name: str, known: Iterable[str]) -> str | None:
    """The closest known name, ignoring case; None where none is close."""
    by_lower = {each.lower(): each for each in known}
    synonym = _SYNONYMS.get(name.lower())
    if synonym in by_lower:
        return by_lower[synonym]
    matches = get_close_matches(name.lower(), by_lower, n=1)
    return by_lower[matches[0]] if matches else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The question, followed by a space; empty where no name is close."""
    suggestion = near(name, known)
    return "" if suggestion is None else f"did you mean {suggestion}? "
