"""What came of calls in several processes, in an interpreter of its own, and which processes computed them."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from tests.support.commands import command_environment

ALL: Final = list(range(40))
Found = dict[str, Any]


def done(case: str, folder: Path) -> Found:
    """What came of a case of `tests.support.in_processes`."""
    words = [sys.executable, "-m", "tests.support.in_processes", case, folder]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=120, env=command_environment(None))
    assert (ended.returncode, ended.stderr) == (0, "")
    found: Found = json.loads(ended.stdout)
    return found


def processes(places: list[tuple[int, int]]) -> set[int]:
    """Those that computed the calls, which stand in their order."""
    assert [at for at, _ in places] == list(range(len(places)))
    return {process for _, process in places}
