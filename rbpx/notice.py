"""What people should know beside the results: a line on stderr, said once a command by the process that leads."""

import os
import sys

from rbpx.display import visible_line

_said: set[str] = set()


def notice(line: str) -> None:
    """Say something that concerns the results; what was said in this command is not repeated."""
    if line not in _said:
        _said.add(line)
        if int(os.environ.get("RANK", "0")) == 0:
            print(f"rbpx: {visible_line(line)}", file=sys.stderr)


def begin() -> None:
    """A command begins: nothing is said yet."""
    _said.clear()
