"""Values in the grammar of Hydra's overrides."""

import re


def quoted(value: str) -> str:
    """A value as Hydra's grammar takes it literally, whatever characters it holds."""
    return '"' + re.sub(r'(\\*)("|$)', lambda m: m[1] * 2 + ('\\"' if m[2] else ""), value) + '"'
