"""The verb `outcomes`, on stores that were drawn and on files as people bring them."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import here
from tests.support.synthetic import Truth, write_store

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def independent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tokens that share no luck."""
    root = tmp_path_factory.mktemp("independent") / "store"
    write_store(root, Truth(shared=0.0), seed=5, n_documents=200, n_tokens=240)
    return root


@pytest.fixture(scope="module")
def gathered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tokens that share a quarter of their luck with their document."""
    root = tmp_path_factory.mktemp("gathered") / "store"
    write_store(root, Truth(shared=0.25), seed=6, n_documents=400, n_tokens=240)
    return root


def rows(store: Path, cwd: Path, *words: object) -> Rows:
    words = words if words[0] == "sql" else (*words, "--details")
    answer = here(*words, "--store", store, "--format", "json", cwd=cwd, check=0)
    return list(json.loads(answer.stdout, parse_constant=lambda name: pytest.fail(f"{name} in json")))


def laws(found: Rows) -> dict[tuple[int | None, str], dict[str, Any]]:
    return {(row["n"], row["correction"]): row for row in found if row["kind"] == "law"}


# ---------------------------------------------------------------------------------------------- outcomes of a store


def test_laws_from_outcomes_are_kept_beside_the_others_and_disturb_none(gathered: Path, cwd: Path) -> None:
    here("fit", "laws=rbp", "k=10", "resamples=50", "--store", gathered, cwd=cwd, check=0)
    query = ("sql", "SELECT fit_id, method, alpha, params FROM fits WHERE law = 'rbp' AND k = 10 ORDER BY fit_id")
    before = [row for row in rows(gathered, cwd, *query) if row["method"] == "ols"]
    for _ in range(2):  # a refit replaces its own rows
        here("outcomes", "k=10", "n=[1,2]", "resamples=50", "--store", gathered, cwd=cwd, check=0)
    after = rows(gathered, cwd, *query)
    assert [row for row in after if row["method"] == "ols"] == before
    assert len(before) == 1
    kept = [json.loads(str(row["params"])) for row in after if row["method"] == "mle"]
    ours = [(p["n"], p["correction"]) for p in kept if p["n_sequences"] and p["n"] in (1, 2)]
    assert sorted(ours) == [(1, "none"), (2, "measured"), (2, "none")]


def test_documents_shorter_than_a_sequence_are_said(gathered: Path, cwd: Path) -> None:
    words = ("outcomes", "k=10", "n=[2,500]", "resamples=50", "--details", "--store", gathered)
    printed = here(*words, cwd=cwd, check=0).stdout
    assert "too short: No document has" in printed
    assert "nan" not in printed.lower()


def test_two_sizes_are_enough_for_outcomes_and_one_is_not(tmp_path: Path, cwd: Path) -> None:
    write_store(tmp_path / "two", Truth(S=(1000, 10_000_000), shared=0.0), seed=3, n_documents=100)
    told = laws(rows(tmp_path / "two", cwd, "outcomes", "k=10", "n=[1,2]", "resamples=100"))
    assert told[2, "none"]["params"]["interval"] == "documents"
    assert told[2, "none"]["alpha_lo"] < 0.1 < told[2, "none"]["alpha_hi"]
    answer = here("outcomes", "size='1000'", "--store", tmp_path / "two", cwd=cwd, check=2)
    assert "has the 2 sizes" in answer.stderr
