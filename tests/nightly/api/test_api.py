"""A script of a user is checked strictly."""

import subprocess
import sys
from pathlib import Path

from tests.support.places import PROJECT

SCRIPT = """
import rbpx

measured = rbpx.open("store")
fits = measured.fit(dataset="stdlib", k=[1, 10], ties="mid")
alpha: float | None = fits.details[0]["alpha"]
said: list[str] = [*fits.results[0].sentences]
ends: list[float] = fits.frame()["alpha_hi"].tolist()
fits.plot().save("laws.svg")
"""
WRONG = 'import rbpx\n\nrbpx.open("store").fit(tise="mid")\nrbpx.opne("store")\n'


def test_a_script_of_a_user_is_checked_strictly(tmp_path: Path) -> None:
    right, wrong = tmp_path / "right.py", tmp_path / "wrong.py"
    right.write_text(SCRIPT)
    wrong.write_text(WRONG)
    # The project's own settings are strict, and its cache saves the half minute that reading the libraries takes.
    words = [sys.executable, "-m", "mypy", "--no-error-summary", str(right), str(wrong)]
    done = subprocess.run(words, cwd=PROJECT, capture_output=True, text=True, timeout=300)
    errors = [line.split("error: ")[1] for line in done.stdout.splitlines() if ": error: " in line]
    assert [error.split(" for ")[0] for error in errors] == [
        'Unexpected keyword argument "tise"',
        'Module has no attribute "opne"  [attr-defined]',
    ], done.stdout
