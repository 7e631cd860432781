"""A bash that has the completion of `rbpx`: what Tab offers, and the keyboard of an interactive one."""

import os
import pty
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

BASH = shutil.which("bash")
RUNS = (  # names that run something where a shell expands them
    "$(touch RUN)",
    "`touch RUN`",
    '"; touch RUN; "',
    "'; touch RUN; '",
    "x\\$(touch RUN)",
    "$(touch${IFS}RUN)",
    ");touch RUN;(",
)


def offered(script: Path, *words: str, cwd: Path | None = None) -> list[str]:
    """What Tab offers at the end of these words, as bash makes words of a line: `=` is one of its own."""
    typed = " ".join(f"'{word}'" for word in ("rbpx", *words))
    asked = (
        f"source {script}; COMP_WORDS=({typed}); COMP_CWORD={len(words)}; _rbpx; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    )
    done = subprocess.run([BASH, "--norc", "-c", asked], capture_output=True, text=True, check=True, cwd=cwd)
    assert done.stderr == ""
    return [line for line in done.stdout.splitlines() if line]


@contextmanager
def terminal(script: Path, cwd: Path, first: str) -> Iterator[int]:
    """The keyboard of an interactive bash that writes the words given to `rbpx` into the file `words`."""
    keyboard, end = pty.openpty()
    environment = {**os.environ, "HOME": str(cwd), "TERM": "dumb", "PS1": "READY"}
    process = subprocess.Popen(
        [BASH, "--norc", "--noprofile", "-i"],
        stdin=end,
        stdout=end,
        stderr=end,
        cwd=cwd,
        env=environment,
        start_new_session=True,
    )
    try:
        said = ""
        os.write(keyboard, f"{first}; . {script}; rbpx() {{ printf '%s\\0' \"$@\" > words; }}; PS1=GO\n".encode())
        deadline = time.monotonic() + 30
        while not said.endswith("GO"):
            assert time.monotonic() < deadline, said
            if select.select([keyboard], [], [], 1)[0]:
                said += os.read(keyboard, 4096).decode(errors="replace")
        yield keyboard
    finally:
        process.kill()
        process.wait()
        os.close(keyboard)
        os.close(end)


def typed_words(cwd: Path) -> list[str]:
    """The words that `rbpx` was given in the folder, once they are written."""
    deadline = time.monotonic() + 30
    while not (cwd / "words").exists() or not (cwd / "words").read_bytes().endswith(b"\0"):
        assert time.monotonic() < deadline, cwd
        time.sleep(0.01)
    return (cwd / "words").read_text().split("\0")[:-1]
