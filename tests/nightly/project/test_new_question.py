"""A question is one new folder: in a copy of the project it is seen wherever questions are."""

import shutil
from pathlib import Path

from tests.support.clone import Clone
from tests.support.places import DOCS, PROJECT
from tests.support.synthetic import Truth, write_store

FROM_PYTHON = """
import sys
import rbpx
answer = rbpx.open(sys.argv[1]).typical(ties="optimistic", resamples=50)
print(answer.records[0]["alpha"], [layer["mark"]["type"] for layer in answer.plot().to_dict()["layer"]])
"""
REFERENCE = "import sys; sys.path.insert(0, sys.argv[1]); from ext.code import verbs; print(verbs())"


def test_a_new_question_has_every_format_a_method_a_section_of_the_report_and_its_place_in_pages(
    tmp_path: Path,
) -> None:
    store = write_store(tmp_path / "store", Truth(scatter=0.02), seed=5, n_documents=30).root
    clone = Clone(tmp_path / "clone")
    folder = clone.root / "rbpx" / "questions" / "typical"
    shutil.copytree(DOCS / "examples" / "typical", folder, ignore=shutil.ignore_patterns("__pycache__"))
    (cwd := tmp_path / "cwd").mkdir()
    alpha, _, marks = clone.python(cwd, "-c", FROM_PYTHON, store).partition(" ")
    assert marks == "['area', 'line', 'point']\n"
    asked = ["typical", "ties=optimistic", "resamples=50", "--store", store, "--format"]
    begins = {"table": "The typical rank", "md": "<!-- rbpx", "tex": "% rbpx", "html": "<!doctype html>"}
    *texts, _, _, completion = clone.rbpx(
        cwd,
        *([*asked, form] for form in begins),
        [*asked, "svg", "--output", cwd / "typical.svg", "width=3.3", "font_size=8"],
        ["report", "k=1", "n=1", "resamples=20", "--store", store, "--output", cwd / "report.md"],
        ["completion", "bash"],
    )
    for text, beginning in zip(texts, begins.values(), strict=True):
        assert text.lstrip().startswith(beginning)
        assert f"{float(alpha):.4f}" in text
    assert "typical rank" in (cwd / "typical.svg").read_text()
    assert "The typical rank falls as S^−α" in (cwd / "report.md").read_text(encoding="utf-8")
    assert " typical " in completion
    assert "\n## typical\n" in clone.python(cwd, "-c", REFERENCE, PROJECT / "docs")
