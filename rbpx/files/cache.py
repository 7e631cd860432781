"""The folder of what this machine keeps to save time; all of it can be made again, and be removed at any time."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """`~/.cache/rbpx`, or where XDG_CACHE_HOME says."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rbpx"
