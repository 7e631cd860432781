"""Quotes values for the grammar of Hydra's overrides."""

import re


def quoted(value: str) -> str:
    """A value quoted so that Hydra takes it literally, whatever characters it contains."""
    return '"' + re.sub(r'(\\*)("|$)', lambda m: m[1] * 2 + ('\\"' if m[2] else ""), value) + '"'
