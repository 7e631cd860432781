"""What the page of the study of two arms says is what its points say."""

import re

import pandas as pd
import pytest

from experiments.arms import TARGETS, judge, robustness, summary
from tests.support.places import DOCS, EXPERIMENTS


def test_what_the_page_says_is_what_the_points_say() -> None:
    judged = judge(pd.read_csv(EXPERIMENTS / "arms.csv"))
    rows = pd.concat([summary(judged), robustness(judged).rename(columns={"arm": "across"})])
    lines = (DOCS / "explanation/ranks-or-losses.md").read_text(encoding="utf-8").splitlines()
    said = [cells for cells in (line.strip("| ").split(" | ") for line in lines) if cells[0] in TARGETS]
    assert len(said) == 7
    for target, across, error, *others in said:
        of = rows[(rows["target"] == target) & (rows["across"] == across) & (rows["way"] == "chained")]
        found = of.set_index("contestant")
        assert float(error) == pytest.approx(found.loc["RBP", "error"], abs=5.1e-4)
        for contestant, words in zip(("CE", "CE at T*"), others, strict=True):
            wanted = found.loc[contestant, ["worse", "worse_lo", "worse_hi"]].tolist()
            assert [float(each) for each in re.findall(r"[-+][0-9.]+", words)] == pytest.approx(wanted, abs=5.1e-4)
