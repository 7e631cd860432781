"""What people should know beside the results: a line on stderr, said once a command by the process that leads."""

import os
import sys
from collections import Counter
from pathlib import Path
from typing import Final

from rbpx.display.visible import visible_line

_LINES_OF_DAMAGE: Final = 5
_said: set[str] = set()
_damaged: Counter[Path] = Counter()


def leads() -> bool:
    """Whether this is the process that prints."""
    return int(os.environ.get("RANK", "0")) == 0


def notice(line: str) -> None:
    """Say something that concerns the results; what was said in this command is not repeated."""
    if line not in _said:
        _said.add(line)
        if leads():
            print(f"rbpx: {visible_line(line)}", file=sys.stderr)


def notice_damage(store: Path, line: str) -> None:
    """Say that something in a store is left out; of very much, say after some lines who names the rest."""
    if line in _said:
        return
    _damaged[store] += 1
    if _damaged[store] > _LINES_OF_DAMAGE:
        line = f"more in store={store} is left out; rbpx store verify --store {store} names all of it"
    notice(line)


def begin() -> None:
    """A command begins: nothing is said yet."""
    _said.clear()
    _damaged.clear()
