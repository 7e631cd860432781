"""The page of the benchmarks says how each is run at its smallest; `make nightly` runs them so."""

import re
from pathlib import Path

from tests.support.places import PROJECT

FOLDER = PROJECT / "benchmarks"


def test_the_page_says_the_least_of_every_program() -> None:
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    least = re.findall(r"^python (benchmarks/.+)$", page, re.MULTILINE)
    programs = {path.name for path in FOLDER.glob("*.py") if "__main__" in path.read_text(encoding="utf-8")}
    assert sorted(Path(line.split()[0]).name for line in least) == sorted(programs)
