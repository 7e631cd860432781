"""A command that a scheduler stops, in an interpreter of its own."""

import re
import signal
import time
from pathlib import Path

from tests.support.commands import start
from tests.support.stores import Family


def test_sigterm_in_a_shell_is_143(family: Family, long_jsonl: Path, cwd: Path, tmp_path: Path) -> None:
    """A whole interpreter, from its start: a scheduler may send it twice, and again while the command ends."""
    command = start("measure", *family.words(text=long_jsonl), "tokens_per_batch=1", "--store", tmp_path / "s", cwd=cwd)
    while not list((tmp_path / "s" / "running").glob("[!.]*.json")) and command.poll() is None:
        time.sleep(0.01)
    while command.poll() is None:
        command.send_signal(signal.SIGTERM)
        time.sleep(0.05)
    _, stderr = command.communicate()
    assert command.returncode == 143
    assert re.findall("^rbpx: stopped.*|Traceback", stderr, re.MULTILINE) == [
        "rbpx: stopped by SIGTERM; what was finished is kept, and the same command continues"
    ]
