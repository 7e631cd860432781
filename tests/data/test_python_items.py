"""Items of Python source that come with rbpx."""

import re
from collections import Counter

import pytest
from omegaconf import OmegaConf

from rbpx.config.text.dataset import DatasetConfig
from rbpx.data.corpus import draw, read_items, read_source, text_hash
from tests.support.places import CONF, EXPERIMENTS

KINDS = ("identifiers", "keywords", "brackets")


@pytest.mark.parametrize("kind", KINDS)
def test_five_hundred_items_come_with_rbpx_each_from_a_place_of_its_own(kind: str) -> None:
    items = read_items(f"python_{kind}")
    assert len({(row["file"], row["context"]) for _, row in items}) == len(items) == 500
    for name, row in items:
        assert name == f"{row['file']}:{row['line']}"
        assert 100 <= len(row["context"]) <= 800
        assert len(set(row["choices"])) == len(row["choices"]) == (2 if kind == "brackets" else 3)
        assert row["right"] in range(len(row["choices"]))


@pytest.mark.parametrize("kind", ["identifiers", "keywords"])
def test_without_the_context_nothing_tells_which_choice_is_right(kind: str) -> None:
    """The shortest and the first of the three are right a third of the time, within four standard deviations."""
    rows = [row for _, row in read_items(f"python_{kind}")]
    shortest = sum(min(row["choices"], key=len) == row["choices"][row["right"]] for row in rows)
    first = sum(row["right"] == 0 for row in rows)
    for right in (shortest, first):
        assert abs(right - len(rows) / 3) < 4 * (len(rows) * 2 / 9) ** 0.5


def test_each_bracket_is_right_in_half_of_the_items_whatever_was_opened_last() -> None:
    rows = [row for _, row in read_items("python_brackets")]
    assert Counter(row["choices"][row["right"]] for row in rows) == {")": 250, "]": 250}
    last = [re.findall(r"[([]", re.sub(r"\".*?\"|'.*?'", "", row["context"]))[-1:] for row in rows]
    kinds = Counter((row["right"], *each) for row, each in zip(rows, last, strict=True))
    assert all(abs(kinds[right, opener] - 125) <= 12 for right in (0, 1) for opener in "([")  # but for odd comments


@pytest.mark.parametrize("kind", KINDS)
def test_the_sample_is_the_text_that_studies_were_recorded_of(kind: str) -> None:
    named = OmegaConf.load(CONF / "dataset" / f"python_{kind}.yaml")
    dataset = DatasetConfig(**OmegaConf.to_container(named))
    source = read_source(dataset.kind, None, dataset)
    recorded = re.search(rf"# texts: .*python_{kind} (\w+)", (EXPERIMENTS / "ladder_tasks.yaml").read_text())
    assert text_hash(draw(source, 10_000, 42)).startswith(recorded[1])
