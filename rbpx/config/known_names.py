"""The names that a key lists, each of which must be known."""

from collections.abc import Sequence
from typing import Any

from rbpx.config.suggest import did_you_mean
from rbpx.errors import RbpxError

__all__ = ["checked_names"]


def checked_names(key: str, value: Any, known: Sequence[str], about: str = "") -> list[Any]:
    """The names asked for, in order; `all` is one of them.

    Args:
        key: that lists them.
        value: one name, or a list.
        known: the names there are beside `all`.
        about: what else an error says of them.

    Raises:
        RbpxError: one of them is unknown.
    """
    names = value if isinstance(value, list) else [value]
    for name in names:
        if name not in (*known, "all"):
            hint = did_you_mean(str(name), known)
            raise RbpxError(f"{key}={name} is unknown; {hint}known: all, {', '.join(known)}{about}")
    return names
