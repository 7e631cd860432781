"""How many of something, in words: `1 document`, `2 documents`."""


def number_of(n: int, noun: str, plural: str | None = None) -> str:
    """A count with its noun, in the plural unless there is exactly one; `plural` where it does not end in s."""
    return f"{n:,} {noun if n == 1 else plural or f'{noun}s'}"
