"""Protocols: the authors' tokens and masks, whole documents read in windows, rows of the vocabulary without a token."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rbpx.data.corpus import read_pydoc
from tests.support.authors import THEIRS, check_against_the_authors, check_padding_inside, rows_of
from tests.support.checkpoints import ARCHITECTURES, TINY_TEXT
from tests.support.commands import here
from tests.support.ladder import whole_copy
from tests.support.stores import Family

Answered = list[dict[str, Any]]


def answered(query: str, store: Path, cwd: Path) -> Answered:
    return list(json.loads(here("sql", query, f"store={store}", "--format", "json", cwd=cwd, check=0).stdout))


# ------------------------------------------------------------------------------------------------------ official


def test_official_draws_and_cuts_real_texts_as_the_authors_code_does(cwd: Path, tmp_path: Path) -> None:
    order = np.random.default_rng(42).permutation(len(read_pydoc()))[:12]  # what `Dataset.shuffle(seed=42)` does
    texts = [read_pydoc()[i][1] for i in order]
    check_against_the_authors(
        whole_copy("3k", tmp_path / "3k"), ["dataset=pydoc", "limit=12"], texts, tmp_path / "s", cwd
    )


def test_official_and_paper_are_runs_of_their_own_that_agree_token_for_token(cwd: Path, tmp_path: Path) -> None:
    words = ("model=ladder", "size=3k", "dataset=pydoc", "limit=9")
    stores = {name: tmp_path / name for name in ("paper", "official")}
    for name, store in stores.items():
        here("measure", *words, f"protocol={name}", f"store={store}", cwd=cwd, check=0)
    assert rows_of(stores["paper"]) == rows_of(stores["official"])
    ids = {answered("SELECT run_id FROM runs", store, cwd)[0]["run_id"] for store in stores.values()}
    assert len(ids) == 2


def test_laws_of_official_runs_count_ties_optimistically_unless_asked_otherwise(
    tmp_path: Path, tiny_checkpoint: Callable[..., Path], tiny_jsonl: Path, cwd: Path
) -> None:
    ids = [str(tiny_checkpoint("gpt2", context=THEIRS, twins=8, hidden_size=d)) for d in (8, 16, 24)]
    words = [
        "model=hub",
        f"model.id=[{','.join(ids)}]",
        "model.family=mine",
        "dataset=file",
        f"dataset.path={tiny_jsonl}",
    ]
    store = f"store={tmp_path / 's'}"
    here("measure", "-m", *words, "protocol=paper,official", store, cwd=cwd, check=0)

    def rules(*more: str) -> dict[str, set[str]]:
        words = ("fit", "laws=[rbp]", "k=[1]", "resamples=20", store, "--format", "json", *more)
        rows = json.loads(here(*words, cwd=cwd, check=0).stdout)
        return {name: {row["ties"] for row in rows if row["protocol"] == name} for name in ("paper", "official")}

    assert rules() == {"paper": {"pessimistic"}, "official": {"optimistic"}}
    assert rules("ties=mid") == {"paper": {"mid"}, "official": {"mid"}}


# ------------------------------------------------------------------------------------------------------- padding


def test_masking_is_no_choice_where_every_row_has_a_token(cwd: Path, tmp_path: Path) -> None:
    """The ladder has 4,096 rows for 4,096 tokens."""
    words = ("-m", "model=ladder", "size=3k", "dataset=pydoc", "limit=3", f"store={tmp_path / 's'}")
    here("measure", *words, "protocol.padding=counted,masked", cwd=cwd, check=0)
    runs = answered("SELECT run_id, padding FROM runs", tmp_path / "s", cwd)
    assert len(runs) == 2
    assert len({row["run_id"] for row in runs}) == 1
    assert {row["padding"] for row in runs} == {"counted"}


def test_runs_with_and_without_the_padded_rows_never_enter_one_fit(family: Family, own_store: Path, cwd: Path) -> None:
    here("measure", *family.words(), "protocol.padding=masked", f"store={own_store}", cwd=cwd, check=0)
    words = ("fit", "laws=[cross_entropy]", f"store={own_store}", "resamples=20")
    rows = json.loads(here(*words, "--format", "json", cwd=cwd, check=0).stdout)
    assert {row["padding"]: row["n_points"] for row in rows} == {"counted": 4, "masked": 4}
    titles = [line.strip() for line in here(*words, cwd=cwd, check=0).stdout.splitlines()]
    assert {"mine on file, window 64", "mine on file, window 64, padding masked"} <= set(titles)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_official_scores_the_tokens_of_the_authors_code_with_its_ranks(
    arch: str, tiny_checkpoint: Callable[..., Path], cwd: Path, tmp_path: Path
) -> None:
    check_padding_inside(tiny_checkpoint(arch, context=THEIRS, twins=8), TINY_TEXT, tmp_path, cwd)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("protocol=official", "limit=1001"), "which is 1000"),
        (("protocol=official", "model.bos=add"), "which is tokenizer"),
        (("protocol.padding=some",), "padding"),
    ],
)
def test_what_a_protocol_does_not_take_is_refused(words: tuple[str, ...], says: str, cwd: Path, tmp_path: Path) -> None:
    answer = here("measure", "model=ladder", "size=3k", "dataset=pydoc", *words, f"store={tmp_path}", cwd=cwd, check=2)
    assert says in answer.stderr
