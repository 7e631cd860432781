"""A store of imported losses, without a share, a token or D: every question answers, or says in one line why not."""

import json
import re
from pathlib import Path

import pytest

from rbpx.analyses.registry import analyses
from tests.support.commands import here


@pytest.fixture(scope="module")
def losses(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("losses")
    file = folder / "losses.csv"
    file.write_text("S,loss_nats\n" + "".join(f"1e{at},{5.5 - 0.5 * at + 0.01 * at**2}\n" for at in (5, 6, 7, 8)))
    words = ("source=them", "family=f", "dataset=c4", "--store", folder / "store")
    here("import", file, *words, cwd=folder, check=0, writes=True)
    return folder / "store"


@pytest.mark.parametrize("form", ["table", "json"])
@pytest.mark.parametrize("verb", analyses())
def test_every_question_answers_or_says_why_not(verb: str, form: str, losses: Path, cwd: Path) -> None:
    answer = here(verb, "resamples=20", "--format", form, "--store", losses, cwd=cwd)
    if answer.returncode == 0:
        assert form == "table" or json.loads(answer.stdout) is not None
        assert answer.stdout.strip()
    else:
        assert answer.returncode == 2
        assert re.fullmatch(r"rbpx: \S.*\n", answer.stderr), answer.stderr
