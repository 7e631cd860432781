"""Every question along every axis, under every tie rule, by every method: one answer in all formats, in 80 columns."""

import csv
import io
import json
import re
import shutil
from pathlib import Path

import pytest

from rbpx.questions.registry import analyses, asking
from tests.same_answers.answers import STORES
from tests.support.asked import WORDS, few
from tests.support.commands import here
from tests.support.once import answered_once, once_a_session

MEASURING = [name for name, each in analyses().items() if each.measures]
CHOICES = {"axis": ("S", "D", "C", "step"), "ties": ("mid",), "method": ("all",)}
CASES = [
    (store, name, f"{key}={value}")
    for store in sorted(path.name for path in STORES.iterdir() if path.is_dir())
    for name in analyses()
    for key, values in CHOICES.items()
    for value in values
    if key in asking(name).keys and name not in MEASURING
]
OF_SIZE = re.compile(r"\bwith size\b|\btimes the size\b|[^_]S\^|\blargest size\b")


@pytest.mark.parametrize(("store", "name", "word"), CASES)
def test_all_formats_tell_one_answer(
    store: str, name: str, word: str, tmp_path_factory: pytest.TempPathFactory, cwd: Path
) -> None:
    copied = once_a_session(tmp_path_factory, "frozen", lambda to: Path(shutil.copytree(STORES, to / "stores")))
    asked = (name, *WORDS.get(name, ()), word, *few(name), "--store", copied / store)
    with answered_once():
        told = {form: here(*asked, "--format", form, cwd=cwd) for form in ("table", "csv", "json", "html", "md", "tex")}
    table = told["table"]
    assert {each.returncode for each in told.values()} == {table.returncode}
    if table.returncode:
        assert table.returncode == 2
        *notices, refusal = table.stderr.splitlines()  # such as which runs were left out
        assert all(line.startswith("rbpx: ") for line in (*notices, refusal))
        return
    rows = json.loads(told["json"].stdout)
    assert len(rows) == len(list(csv.reader(io.StringIO(told["csv"].stdout)))) - bool(rows)
    assert "Traceback" not in table.stderr
    for form, begins in (("md", "<!-- rbpx report"), ("tex", "% rbpx report"), ("html", "<!doctype html>")):
        assert told[form].stdout.lstrip().lower().startswith(begins)
    cells = [line for line in table.stdout.splitlines() if re.search(r"\S {2,}\S|───", line)]  # which prose has not
    assert name == "view" or max(map(len, cells), default=0) <= 80  # lines of a text are its own
    if word.startswith("axis=") and word != "axis=S" and name != "surface":
        assert OF_SIZE.findall(table.stdout) == []
