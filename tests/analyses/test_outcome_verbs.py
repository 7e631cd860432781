"""The verbs `outcomes` and `tokenwise`, on stores that were drawn and on files as people bring them."""

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.commands import here
from tests.support.stores import columns_of
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
    answer = here(*words, "--store", store, "--format", "json", cwd=cwd, check=0)
    return list(json.loads(answer.stdout, parse_constant=lambda name: pytest.fail(f"{name} in json")))


def laws(found: Rows) -> dict[tuple[int | None, str], dict[str, Any]]:
    return {(row["n"], row["correction"]): row for row in found if row["kind"] == "law"}


# ---------------------------------------------------------------------------------------------- outcomes of a store


def test_a_kept_law_is_fitted_again_from_the_counts_that_it_carries(gathered: Path, cwd: Path) -> None:
    found = laws(rows(gathered, cwd, "outcomes", "k=10", "n=[2,5]", "resamples=50"))
    assert {correction for _, correction in found} == {"none", "measured", "free"}
    for law in found.values():
        shown = json.loads(here("show", law["fit_id"], "--store", gathered, cwd=cwd, check=0).stdout)
        assert shown["reproduced"]["alpha"] == pytest.approx(law["alpha"], rel=1e-9)
        assert shown["reproduced"]["largest_relative_difference"] <= 1e-9


def test_independent_tokens_come_back_at_every_length(independent: Path, cwd: Path) -> None:
    found = rows(independent, cwd, "outcomes", "k=10", "n=[1,2,5,10]", "resamples=200")
    told = laws(found)
    assert len(told) == 4 + 1 + 4 + 1  # each N and all of them; the same but N = 1 corrected; one r for all
    for law in told.values():
        assert (law["law"], law["method"], law["status"]) == ("rbp", "mle", "ok")
        assert law["alpha_lo"] < 0.1 < law["alpha_hi"]
    for row in (row for row in found if row["kind"] == "rbp" and row["n"] != 10):
        truth = math.exp(-4 * row["non_embedding_params"] ** -0.1 * 10**-0.35)
        assert row["rbp"] == pytest.approx(truth, abs=0.03)
        assert row["rbp_lo"] < row["rbp"] < row["rbp_hi"]
    assert told[None, "free"]["params"]["r"] < 0.01


def test_gathered_hits_bias_long_sequences_and_the_correction_takes_most_of_it(gathered: Path, cwd: Path) -> None:
    found = rows(gathered, cwd, "outcomes", "k=[10,100]", "n=[1,2,5,10]", "resamples=200")
    told = laws([row for row in found if row["k"] == 100])
    bias = {key: law["params"]["bias_against_tokens"] for key, law in told.items()}
    sizes = [bias[n, "none"]["value"] for n in (1, 2, 5, 10)]
    assert sizes == sorted(sizes, reverse=True)  # alpha is the smaller, the longer the sequences
    assert sizes[3] < -0.01
    assert bias[10, "none"]["hi"] < 0
    for n in (5, 10):
        assert abs(bias[n, "measured"]["value"]) < abs(bias[n, "none"]["value"]) / 2
    told = laws([row for row in found if row["k"] == 10])
    bias = {key: law["params"]["bias_against_tokens"] for key, law in told.items()}
    for correction in ("measured", "free"):
        assert abs(bias[None, correction]["value"]) < abs(bias[None, "none"]["value"]) / 2
    measured = np.mean([row["correlation"] for row in found if row["k"] == 10 and row.get("n") == 5 and "size" in row
                        and row["kind"] == "outcomes"])  # fmt: skip
    assert told[None, "free"]["params"]["r"] == pytest.approx(measured, abs=0.02)


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


def test_the_tables_of_outcomes_fit_a_terminal_and_say_what_is_wrong(gathered: Path, cwd: Path) -> None:
    printed = here("outcomes", "k=10", "resamples=100", "--store", gathered, cwd=cwd, check=0).stdout
    tables = printed.split("A sequence of N tokens passes")[0].splitlines()
    assert max(map(len, tables)) <= 80
    for words in ("tokens themselves", "independent", "r measured", "all N, r fitted", "all, fitted r"):
        assert words in printed
    wide = {"COLUMNS": "160"}
    printed = here("outcomes", "k=10", "resamples=100", "--store", gathered, cwd=cwd, env=wide, check=0).stdout
    assert re.search(r"all N, r fitted .* 0\.\d{4} .*passes", printed)
    hard = here("outcomes", "k=1", "n=[120]", "resamples=50", "--store", gathered, cwd=cwd, check=0).stdout
    assert "one outcome: All sequences pass or all fail" in hard
    assert "nan" not in hard.lower()


def test_documents_shorter_than_a_sequence_are_said(gathered: Path, cwd: Path) -> None:
    for verb in ("outcomes", "tokenwise"):
        few = ("resamples=50",) if verb == "outcomes" else ()
        printed = here(verb, "k=10", "n=[2,500]", *few, "--store", gathered, cwd=cwd, check=0).stdout
        assert "too short: No document has" in printed
        assert "nan" not in printed.lower()


def test_one_document_has_a_law_and_no_interval(tmp_path: Path, cwd: Path) -> None:
    write_store(tmp_path / "store", Truth(shared=0.0), seed=2, n_documents=1, n_tokens=3000)
    for law in laws(rows(tmp_path / "store", cwd, "outcomes", "k=10", "n=[1,2]")).values():
        assert law["status"] == "one_document"
        assert law["alpha"] is not None
        assert (law["alpha_lo"], law["alpha_hi"], law["alpha_stderr"]) == (None, None, None)
    printed = here("tokenwise", "k=10", "n=2", "--store", tmp_path / "store", cwd=cwd, check=0).stdout
    assert "one document: All tokens are from one document" in printed


def test_two_sizes_are_enough_for_outcomes_and_one_is_not(tmp_path: Path, cwd: Path) -> None:
    write_store(tmp_path / "two", Truth(S=(1000, 10_000_000), shared=0.0), seed=3, n_documents=100)
    told = laws(rows(tmp_path / "two", cwd, "outcomes", "k=10", "n=[1,2]", "resamples=100"))
    assert told[2, "none"]["params"]["interval"] == "documents"
    assert told[2, "none"]["alpha_lo"] < 0.1 < told[2, "none"]["alpha_hi"]
    for verb in ("outcomes", "tokenwise"):
        answer = here(verb, "size='1000'", "--store", tmp_path / "two", cwd=cwd, check=2)
        assert "has the 2 sizes" in answer.stderr


# ----------------------------------------------------------------------------------------------- outcomes of a file


def benchmark(path: Path, group: bool = False) -> Path:
    """Four models, sequences of 3 and 12 tokens, one row an outcome."""
    rng = np.random.default_rng(9)
    lines = ["model,S,n,passed" + (",task" if group else "")]
    for name, S in (("a", 10**5), ("b", 10**6), ("c", 10**7), ("d", 10**8)):
        for N in (3, 12):
            p = math.exp(-4 * N * S**-0.2)
            for trial in range(300):
                lines.append(f"{name},{S},{N},{rng.random() < p}" + (f",task{trial % 30}" if group else ""))
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("group", [False, True], ids=["rows", "groups"])
def test_the_rows_of_a_benchmark_tell_the_law_of_its_tokens(group: bool, tmp_path: Path, cwd: Path) -> None:
    path = benchmark(tmp_path / "mine.csv", group)
    found = json.loads(here("outcomes", path, "--format", "json", "resamples=200", cwd=cwd, check=0).stdout)
    told = laws(found)
    assert set(told) == {(3, "none"), (12, "none"), (None, "none"), (None, "free")}
    for law in told.values():
        assert law["alpha_lo"] < 0.2 < law["alpha_hi"]
        assert law["params"]["interval"] == ("documents and models" if group else "sequences and models")
    assert [row["size"] for row in found if row["kind"] == "rbp" and row["n"] == 3] == ["a", "b", "c", "d"]
    printed = here("outcomes", path, "resamples=200", cwd=cwd, check=0).stdout
    assert "mine.csv: -ln RBP_k = C · S^-alpha from the outcomes" in printed
    assert max(map(len, printed.split("A sequence of N")[0].splitlines())) <= 80


def test_counts_say_the_same_as_the_rows_they_count_in_every_format(tmp_path: Path, cwd: Path) -> None:
    import csv

    path = benchmark(tmp_path / "mine.csv")
    with path.open(newline="") as file:
        counts: dict[tuple[str, str, str], list[int]] = {}
        for row in csv.DictReader(file):
            counted = counts.setdefault((row["model"], row["S"], row["n"]), [0, 0])
            counted[0] += row["passed"] == "True"
            counted[1] += 1
    records = [
        {"model": m, "non_embedding_params": int(S), "N": int(n), "passed": passed, "trials": trials, "k": 1}
        for (m, S, n), (passed, trials) in counts.items()
    ]
    (tmp_path / "counts.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    one = laws(json.loads(here("outcomes", path, "--format", "json", cwd=cwd, check=0).stdout))
    other = laws(json.loads(here("outcomes", tmp_path / "counts.jsonl", "--format", "json", cwd=cwd, check=0).stdout))
    assert [law["alpha"] for law in one.values()] == [law["alpha"] for law in other.values()]
    assert {law["k"] for law in other.values()} == {1}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("model,S,passed\na,10,1\n", "has no column n; it has: model, S, passed"),
        ("model,n,passed\na,10,1\n", "has no column non_embedding_params or s"),
        ("S,n,passed\n10,5,maybe\n", "line 2: passed is maybe"),
        ("S,n,passed\n10,5,1\n1000,5,2\n", "line 3: passed is 2; true or false"),
        ("S,n,passed,trials\n10,5,4,3\n", "line 2: passed is 4; sequences that passed, 0 to 3"),
        ("S,n,passed,trials\n10,5,0,\n", "line 2: trials is empty"),
        ("S,n,passed\n1.5,5,1\n", "line 2: non_embedding_params is 1.5"),
        ("S,n,passed\n10,0,1\n", "line 2: n is 0"),
        ("model,S,n,passed\na,10,5,1\na,11,5,1\n", "line 3: a has S = 11, but 10 in"),
        ("model,S,n,passed\na,10,5,1\nb,10,5,1\n", "a and b have the same S"),
        ("S,n,passed,task\n10,5,1,\n", "line 2: task is empty"),
    ],
)
def test_a_wrong_row_is_one_line_that_names_it(content: str, said: str, tmp_path: Path, cwd: Path) -> None:
    (tmp_path / "wrong.csv").write_text(content)
    (line,) = here("outcomes", tmp_path / "wrong.csv", cwd=cwd, check=2).stderr.strip().splitlines()
    assert said in line


def test_a_file_that_tells_no_law_says_why_and_two_files_are_refused(tmp_path: Path, cwd: Path) -> None:
    (tmp_path / "one.csv").write_text("S,n,passed\n10,5,1\n10,5,0\n")
    assert "outcomes of one model" in here("outcomes", tmp_path / "one.csv", cwd=cwd, check=2).stderr
    assert "takes one file, got 2" in here("outcomes", "a.csv", "b.csv", cwd=cwd, check=2).stderr
    assert "is not a file" in here("outcomes", "none.csv", cwd=cwd, check=2).stderr
    answer = here("outcomes", tmp_path / "one.csv", "n=7", cwd=cwd, check=2)
    assert "no row of" in answer.stderr
    assert "it has n = 5" in answer.stderr


# -------------------------------------------------------------------------------------------------------- tokenwise


def test_learners_are_judged_against_the_true_hits(gathered: Path, cwd: Path) -> None:
    found = rows(gathered, cwd, "tokenwise", "k=10", "n=[1,4]")
    by = {(row["learner"], row["n"]): row for row in found}
    assert set(by) == {(name, n) for name in ("outcomes", "naive", "constant") for n in (1, 4)} | {("tokens", None)}
    run = gathered / "runs" / found[0]["run_ids"][0]
    tokens = columns_of(run, "tokens")
    scored = tokens["position"] > 1  # the first of a document has none before it
    assert found[0]["rbp"] == pytest.approx(float(np.mean(tokens["greater"][scored] + 1 <= 10)), rel=1e-12)
    for name in ("outcomes", "naive"):  # sequences of one token are labels
        assert by[name, 1]["log_loss_nats"] == pytest.approx(by["tokens", None]["log_loss_nats"], abs=1e-7)
    assert by["outcomes", 4]["log_loss_nats"] < by["naive", 4]["log_loss_nats"]
    assert by["outcomes", 4]["auc_lo"] > 0.5  # luck is shared with the smaller model's document
    assert abs(by["outcomes", 4]["excess"]) < abs(by["naive", 4]["excess"])
    p = by["constant", 1]["rbp"]
    entropy = -p * math.log(p) - (1 - p) * math.log(1 - p)
    assert by["constant", 1]["log_loss_nats"] == pytest.approx(entropy, abs=1e-3)
    assert by["constant", 1]["told_nats"] == pytest.approx(by["constant", 1]["log_loss_nats"], abs=1e-9)
    assert "ln_frequency" not in by["tokens", None]["coefficients"]  # one token id only: no feature
    printed = here("tokenwise", "k=10", "n=[4,200]", "--store", gathered, cwd=cwd, check=0).stdout
    assert max(map(len, printed.split("Logistic models")[0].splitlines())) <= 80
    assert "one outcome" in printed
    assert " tokens " in printed


def test_imported_results_have_no_sequences_to_cut(tmp_path: Path, cwd: Path) -> None:
    lines = ["model,S,k,rbp", *(f"m{i},{10**i},1,0.{i}" for i in (4, 5, 6))]
    (tmp_path / "theirs.csv").write_text("\n".join(lines) + "\n")
    words = ("source=them", "ties=optimistic", "family=f", "dataset=d", "--store", tmp_path / "store")
    here("import", tmp_path / "theirs.csv", *words, cwd=cwd, check=0)
    for verb in ("outcomes", "tokenwise"):
        answer = here(verb, "source=them", "ties=optimistic", "--store", tmp_path / "store", cwd=cwd, check=2)
        assert "imported results have none" in answer.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [(["size=a"], "size= narrows what the store holds"), (["dataset=pydoc"], "dataset= narrows what the store holds")],
)
def test_a_file_is_taken_whole(words: list[str], said: str, tmp_path: Path, cwd: Path) -> None:
    answer = here("outcomes", benchmark(tmp_path / "rows.csv"), *words, cwd=cwd, check=2)
    assert said in answer.stderr
    assert len(answer.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("row", "said"), [("m,1000,5,3,10", "outcomes of one model, m"), ("m,1000,2000000,3,10", "from 1 to 1,000,000")]
)
def test_a_file_that_no_law_could_come_from_is_refused(row: str, said: str, tmp_path: Path, cwd: Path) -> None:
    (tmp_path / "rows.csv").write_text(f"model,S,n,passed,trials\n{row}\n")
    answer = here("outcomes", tmp_path / "rows.csv", cwd=cwd, check=2)
    assert said in answer.stderr
    assert len(answer.stderr.strip().splitlines()) == 1
