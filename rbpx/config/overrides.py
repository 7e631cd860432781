"""Overrides as Hydra takes them: values quoted for their grammar, the store that they name."""

import os
import re
from collections.abc import Sequence


def quoted(value: str) -> str:
    """A value quoted so that Hydra takes it literally, whatever characters it contains."""
    return '"' + re.sub(r'(\\*)("|$)', lambda m: m[1] * 2 + ('\\"' if m[2] else ""), value) + '"'


def with_condition(override: str) -> str:
    """An override `where=SQL` with its value quoted, unless all of it is; Hydra's grammar has no < and no =."""
    key, _, value = override.partition("=")
    is_bare = key == "where" and re.fullmatch(r'"[^"]*"|null', value) is None
    return f"where={quoted(value)}" if is_bare else override


def store_of(overrides: Sequence[str]) -> str:
    """The store that overrides name, before Hydra has read them; else the environment's, else `store`."""
    stores = [override.partition("=")[2].strip("\"'") for override in overrides if override.startswith("store=")]
    return stores[-1] if stores else os.environ.get("RBPX_STORE", "store")
