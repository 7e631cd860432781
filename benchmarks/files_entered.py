"""Counts the files of rbpx that a command enters, as someone does who follows it from its words to its tables.

A command enters a file when a function or the body of a class in it runs, even if only because it is imported; it does
not enter a file of constants and imports. The store holds the bundled ladder, measured on the documentation of the
standard library. The command has one core, so that no other process does a part. The files are listed on stderr.

    python benchmarks/files_entered.py [DOCUMENTS, default all] [WORDS, default fit model=ladder]
"""

import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORDS = ("fit", "model=ladder")
FOLLOWED = """
import os, sys, threading

entered = set()


def enter(frame, event, argument):
    if event == "call" and frame.f_code.co_name != "<module>":
        entered.add(frame.f_code.co_filename)


os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
threading.setprofile(enter)
sys.setprofile(enter)
try:
    from rbpx.__main__ import main

    main(sys.argv[2:])
except SystemExit:
    pass
finally:
    sys.setprofile(None)
    with open(sys.argv[1], "w") as file:
        file.write("\\n".join(sorted(entered)))
"""


def files_entered(words: list[str], folder: str) -> list[Path]:
    """The files that a command enters, by their paths in rbpx."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "RBPX_STORE": f"{folder}/store", "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-c", FOLLOWED, f"{folder}/entered", *words]
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    names = Path(folder, "entered").read_text(encoding="utf-8").splitlines()
    rooms = ROOT / "rbpx"
    return [Path(name).relative_to(rooms) for name in names if Path(name).is_relative_to(rooms)]


def main(documents: str, words: list[str]) -> None:
    """Print the number of files in each folder."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "RBPX_STORE": f"{folder}/store"}
        measure = ["measure", "model=ladder", "dataset=pydoc", *([f"limit={documents}"] if documents != "all" else [])]
        command = [sys.executable, "-m", "rbpx", *measure]
        subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
        found = files_entered(words, folder)
        rooms = Counter(path.parts[0] if len(path.parts) > 1 else "(top)" for path in found)
        print("| room | files entered |\n|---|---|")
        print("\n".join(f"| {room} | {n} |" for room, n in sorted(rooms.items(), key=lambda item: -item[1])))
        print(f"| all, by `{' '.join(words)}` | {len(found)} |")
        for path in found:
            print(path, file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "all", sys.argv[2:] or list(WORDS))
