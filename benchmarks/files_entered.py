"""Counts the files of rbpx that a command enters, and the lines that it runs, as someone does who follows it.

A command enters a file when a function or the body of a class in it runs, even if only because it is imported; it does
not enter a file of constants and imports. Lines run are those of statements that run within functions: all lines of one
that spans several, without definitions, imports and docstrings. The store holds the bundled ladder, measured on the
documentation of the standard library. The command has one core, so that no other process does a part. Each file is
listed on stderr.

    python benchmarks/files_entered.py [DOCUMENTS, default all] [WORDS, default fit model=ladder]
"""

import ast
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORDS = ("fit", "model=ladder")
FOLLOWED = """
import json, os, sys, threading

rooms, entered = sys.argv[2], {}


def enter(frame, event, argument):
    code = frame.f_code
    if not code.co_filename.startswith(rooms) or code.co_name == "<module>":
        return None
    lines = entered.setdefault(code.co_filename, set())

    def follow(frame, event, argument):
        if event == "line":
            lines.add(frame.f_lineno)
        return follow

    return follow


os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
threading.settrace(enter)
sys.settrace(enter)
try:
    from rbpx.__main__ import main

    main(sys.argv[3:])
except SystemExit:
    pass
finally:
    sys.settrace(None)
    with open(sys.argv[1], "w") as file:
        json.dump({name: sorted(lines) for name, lines in entered.items()}, file)
"""


def followed(words: list[str], folder: str) -> dict[Path, int]:
    """The files that a command enters, by their paths in rbpx, and how many lines of each it runs."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "RBPX_STORE": f"{folder}/store", "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-c", FOLLOWED, f"{folder}/entered", f"{ROOT / 'rbpx'}{os.sep}", *words]
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    entered = json.loads(Path(folder, "entered").read_text(encoding="utf-8"))
    found = {Path(name): set(lines) for name, lines in entered.items()}
    return {path.relative_to(ROOT / "rbpx"): len(lines_run(path, lines)) for path, lines in sorted(found.items())}


def lines_run(path: Path, traced: set[int]) -> set[int]:
    """The lines of the statements within functions of which a line was traced."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    spans = [span for function in ast.walk(tree) if isinstance(function, ast.FunctionDef) for span in _spans(function)]
    return {line for span in spans if traced.intersection(span) for line in span}


def _spans(function: ast.FunctionDef) -> Iterator[range]:
    """The lines of each statement of a function; of one with statements in it, those before them."""
    apart = (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
    for node in ast.walk(function):
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node, ast.stmt) and not isinstance(node, apart) and not is_text:
            body = getattr(node, "body", None)
            yield range(node.lineno, body[0].lineno if body else (node.end_lineno or node.lineno) + 1)


def main(documents: str, words: list[str]) -> None:
    """Print the number of files and lines in each folder."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "RBPX_STORE": f"{folder}/store"}
        measure = ["measure", "model=ladder", "dataset=pydoc", *([f"limit={documents}"] if documents != "all" else [])]
        command = [sys.executable, "-m", "rbpx", *measure]
        subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
        found = followed(words, folder)
    files, lines = Counter[str](), Counter[str]()
    for path, n in found.items():
        room = path.parts[0] if len(path.parts) > 1 else "(top)"
        files[room] += 1
        lines[room] += n
        print(f"{n:4} {path}", file=sys.stderr)
    print("| room | files entered | lines run |\n|---|---|---|")
    for room, n in files.most_common():
        print(f"| {room} | {n} | {lines[room]:,} |")
    print(f"| all, by `{' '.join(words)}` | {len(found)} | {sum(lines.values()):,} |")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "all", sys.argv[2:] or list(WORDS))
