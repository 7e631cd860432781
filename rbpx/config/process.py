"""Which process of a distributed launch this is, from the environment that launchers set."""

import os


def is_main_process() -> bool:
    """Whether this process is alone or has rank 0: the one that prints."""
    return int(os.environ.get("RANK", "0")) == 0
