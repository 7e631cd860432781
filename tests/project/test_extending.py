"""A law, a family, a dataset, a question are one new file or folder each: here the law and the question.

One process in a copy of the project runs them; `make nightly` goes on to families, datasets, formats and pages. Another
does without each question in turn.
"""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from rbpx.questions import registry
from tests.support.clone import Clone
from tests.support.places import DOCS, PACKAGE
from tests.support.stores import runs_by_size
from tests.support.synthetic import Truth, write_store

EXAMPLES = DOCS / "examples"


def test_a_law_and_a_question_are_one_new_file_and_one_new_folder(tmp_path: Path) -> None:
    clone = Clone(tmp_path / "clone")
    shutil.copy(EXAMPLES / "reciprocal_rank.py", clone.root / "rbpx" / "laws" / "quantities" / "reciprocal_rank.py")
    folder = clone.root / "rbpx" / "questions" / "typical"
    shutil.copytree(EXAMPLES / "typical", folder, ignore=shutil.ignore_patterns("__pycache__"))
    knows = re.compile(r"questions.typical|typical_rank|ln_ranks\b|/typical")
    others = [path for path in clone.root.rglob("*.*") if path.suffix in (".py", ".sql", ".yaml")]
    others = [path for path in others if path.is_file() and not path.is_relative_to(folder)]
    assert len(others) > 400
    assert [path for path in others if knows.search(path.read_text())] == []
    store = write_store(tmp_path / "store", Truth(scatter=0.02), seed=5, n_documents=30).root
    asked = ("ties=optimistic", "resamples=100", "--store", store, "--format", "json", "--details")
    lines = ("fit", "laws=[reciprocal_rank]", *asked), ("typical", *asked), ("--help", "all")
    laws, questions, help_page = clone.rbpx(tmp_path, *lines)
    (law,), (question,) = json.loads(laws), json.loads(questions)
    assert "how the typical rank of the true token falls with size" in help_page
    ranks = [tokens["greater"] + 1.0 for tokens in runs_by_size(store).values()]
    ys = [-np.log(np.mean(1 / rank)) for rank in ranks], [np.exp(np.log(rank).mean()) for rank in ranks]
    for fit, y in zip((law, question), ys, strict=True):
        assert fit["params"]["y"] == pytest.approx(y, rel=1e-12)
        assert fit["alpha"] == pytest.approx(-np.polyfit(np.log(Truth.S), np.log(y), 1)[0], rel=1e-9)
        assert fit["alpha_lo"] < fit["alpha"] < fit["alpha_hi"]
    assert law["params"]["interval"] == "documents and models"


def test_no_module_that_questions_share_knows_one_of_them() -> None:
    names = "|".join(registry.names())
    knows = re.compile(rf"questions\.({names})\b|(?<!typed\()(?<!id=)[\"']({names})[\"']")
    shared = [*(PACKAGE / "questions").glob("*.py"), *(PACKAGE / "report").glob("*.*")]
    assert len(shared) > 12
    found = {path.name: [m[0] for m in knows.finditer(path.read_text(encoding="utf-8"))] for path in shared}
    themes_and_advice = {f'"{each}"' for each in (*registry.THEMES, *registry.REMOVED.values())}
    assert set(found.pop("registry.py")) <= themes_and_advice
    assert {name: known for name, known in found.items() if known} == {}
