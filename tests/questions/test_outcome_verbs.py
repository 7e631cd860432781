"""The question `outcomes`, on stores that were drawn and on files as people bring them."""

import csv
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rbpx.store.sql import connected_once
from tests.support.asking import Asked, Rows, ask, ask_file, imported, refused
from tests.support.composed import here
from tests.support.stores import columns_of
from tests.support.synthetic import Truth, write_store


@pytest.fixture(scope="module")
def independent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Tokens that share no luck."""
    root = tmp_path_factory.mktemp("independent") / "store"
    write_store(root, Truth(shared=0.0), seed=5, n_documents=200, n_tokens=60)
    with connected_once():
        yield root


@pytest.fixture(scope="module")
def gathered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Tokens that share a quarter of their luck with their document."""
    root = tmp_path_factory.mktemp("gathered") / "store"
    write_store(root, Truth(shared=0.25), seed=6, n_documents=400, n_tokens=120)
    with connected_once():
        yield root


@pytest.fixture(scope="module")
def asked(gathered: Path) -> Asked:
    return ask(gathered, "outcomes", k=[10, 100], n=[1, 2, 5, 10], resamples=50)


def laws(found: Rows) -> dict[tuple[int | None, str], dict[str, Any]]:
    return {(row["n"], row["correction"]): row for row in found if row["kind"] == "law"}


# ---------------------------------------------------------------------------------------------- outcomes of a store


def test_a_kept_law_is_fitted_again_from_the_counts_that_it_carries(gathered: Path, asked: Asked, cwd: Path) -> None:
    law = laws([row for row in asked.rows if row["k"] == 10])[None, "free"]
    shown = json.loads(here("show", law["fit_id"], "--store", gathered, cwd=cwd, check=0).stdout)
    assert shown["reproduced"]["alpha"] == pytest.approx(law["alpha"], rel=1e-9)
    assert shown["reproduced"]["largest_relative_difference"] <= 1e-9


def test_independent_tokens_come_back_at_every_length(independent: Path) -> None:
    found = ask(independent, "outcomes", k=10, n=[1, 2, 5], resamples=100).rows
    told = laws(found)
    assert len(told) == 3 + 1 + 3 + 1  # each N and all of them; the same but N = 1 corrected; one r for all
    for law in told.values():
        assert (law["law"], law["method"], law["status"]) == ("rbp", "mle", "ok")
        assert law["alpha_lo"] < 0.1 < law["alpha_hi"]
    for row in (row for row in found if row["kind"] == "rbp"):
        truth = math.exp(-4 * row["non_embedding_params"] ** -0.1 * 10**-0.35)
        assert row["rbp"] == pytest.approx(truth, abs=0.04)
        assert row["rbp_lo"] < row["rbp"] < row["rbp_hi"]
    assert told[None, "free"]["params"]["r"] < 0.02


def test_gathered_hits_bias_long_sequences_and_the_correction_takes_most_of_it(asked: Asked) -> None:
    told = laws([row for row in asked.rows if row["k"] == 100])
    bias = {key: law["params"]["bias_against_tokens"] for key, law in told.items()}
    sizes = [bias[n, "none"]["value"] for n in (1, 2, 5, 10)]
    assert sizes == sorted(sizes, reverse=True)  # alpha is the smaller, the longer the sequences
    assert sizes[3] < -0.01
    assert bias[10, "none"]["hi"] < 0
    assert abs(bias[10, "measured"]["value"]) < abs(bias[10, "none"]["value"]) / 2
    told = laws([row for row in asked.rows if row["k"] == 10])
    bias = {key: law["params"]["bias_against_tokens"] for key, law in told.items()}
    for correction in ("measured", "free"):
        assert abs(bias[None, correction]["value"]) < abs(bias[None, "none"]["value"]) / 2
    of_five = [row for row in asked.of_kind("outcomes") if row["k"] == 10 and row.get("n") == 5 and "size" in row]
    correlation = np.mean([row["correlation"] for row in of_five])
    assert told[None, "free"]["params"]["r"] == pytest.approx(correlation, abs=0.02)


def test_the_tables_of_outcomes_fit_a_terminal_and_say_what_is_wrong(gathered: Path, asked: Asked) -> None:
    for columns, details in ((80, True), (100, False)):
        lines = asked.table(columns, details).splitlines()
        assert max(len(line) for line in lines if line.startswith(" ")) <= columns
    printed = asked.table()
    for words in ("tokens themselves", "independent", "r measured", "all N, r fitted", "RBP_k"):
        assert words in printed
    hard = ask(gathered, "outcomes", k=1, n=[2, 110, 500], resamples=50).words
    assert "one outcome: All sequences pass or all fail" in hard
    assert "too short: No document has" in hard
    assert "nan" not in hard.lower()


def test_the_first_line_has_the_exponent_of_the_outcomes_and_that_of_the_tokens(gathered: Path, asked: Asked) -> None:
    line = asked.table(100, details=False).splitlines()[0]
    law = laws([row for row in asked.rows if row["k"] == 10])[None, "free"]
    ranks = {}
    for run in (gathered / "runs").glob("[!_]*"):
        tokens = columns_of(run, "tokens")
        ranks[int(run.name.removeprefix("synthetic"))] = tokens["greater"] + tokens["ties"] + 1
    y = [-math.log(np.mean(rank <= 10)) for rank in ranks.values()]
    own = -np.polyfit(np.log(list(ranks)), np.log(y), 1)[0]
    ends = f"(95 %: {law['alpha_lo']:.4f} to {law['alpha_hi']:.4f})"
    assert (
        f"From sequences of 1 to 10 tokens, right or wrong as a whole, alpha of -ln RBP_10 is {law['alpha']:.4f} {ends}"
        in line
    )
    assert f"from the tokens themselves it is {own:.4f}" in line


def test_one_document_has_a_law_and_no_interval(tmp_path: Path) -> None:
    store = write_store(tmp_path / "store", Truth(shared=0.0), seed=2, n_documents=1, n_tokens=1000).root
    for law in laws(ask(store, "outcomes", k=10, n=[1, 2]).rows).values():
        assert law["status"] == "one_document"
        assert law["alpha"] is not None
        assert (law["alpha_lo"], law["alpha_hi"], law["alpha_stderr"]) == (None, None, None)


def test_one_size_is_too_few(gathered: Path) -> None:
    with refused("has the 2 sizes"):
        ask(gathered, "outcomes", size="1000")


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
def test_the_rows_of_a_benchmark_tell_the_law_of_its_tokens(group: bool, tmp_path: Path) -> None:
    asked = ask_file(benchmark(tmp_path / "mine.csv", group), "outcomes", resamples=100)
    told = laws(asked.rows)
    assert set(told) == {(3, "none"), (12, "none"), (None, "none"), (None, "free")}
    for law in told.values():
        assert law["alpha_lo"] < 0.2 < law["alpha_hi"]
        assert law["params"]["interval"] == ("documents and models" if group else "sequences and models")
    assert [row["size"] for row in asked.of_kind("rbp") if row["n"] == 3] == ["a", "b", "c", "d"]
    assert "mine.csv: -ln RBP_k = C · S^-alpha from the outcomes" in asked.words
    alpha = next(law["alpha"] for key in ("free", "none") if (law := told[None, key])["status"] == "ok")
    first = asked.table(100, details=False).splitlines()[0]
    assert first.startswith(
        f"From sequences of 3 to 12 tokens, right or wrong as a whole, alpha of -ln RBP_k is {alpha:.4f}"
    )


def test_counts_say_the_same_as_the_rows_they_count(tmp_path: Path) -> None:
    path = benchmark(tmp_path / "mine.csv")
    counts: dict[tuple[str, str, str], list[int]] = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            counted = counts.setdefault((row["model"], row["S"], row["n"]), [0, 0])
            counted[0] += row["passed"] == "True"
            counted[1] += 1
    records = [
        {"model": m, "non_embedding_params": int(S), "N": int(n), "passed": passed, "trials": trials, "k": 1}
        for (m, S, n), (passed, trials) in counts.items()
    ]
    (tmp_path / "counts.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    one, other = (laws(ask_file(file, "outcomes").rows) for file in (path, tmp_path / "counts.jsonl"))
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
        ("model,S,n,passed\na,10,5,1\na,11,5,1\n", "line 3: a has S = 11, and in"),
        ("model,S,n,passed\na,10,5,1\nb,10,5,1\n", "a has S = 10; each model has an S of its own"),
        ("S,n,passed,task\n10,5,1,\n", "line 2: task is empty"),
        ("model,S,n,passed,trials\nm,1000,2000000,3,10\n", "from 1 to 1,000,000"),
    ],
)
def test_a_wrong_file_is_one_line_that_names_the_fault(content: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "wrong.csv").write_text(content)
    with refused(said):
        ask_file(tmp_path / "wrong.csv", "outcomes")


def test_two_files_and_keys_that_narrow_a_store_are_refused(tmp_path: Path, cwd: Path) -> None:
    assert "takes FILE.csv, got a.csv b.csv" in here("outcomes", "a.csv", "b.csv", cwd=cwd, check=2).stderr
    told = here("outcomes", benchmark(tmp_path / "rows.csv"), "size=a", cwd=cwd, check=2).stderr
    assert "size= narrows what the store holds" in told


# --------------------------------------------------------------------------------------------------------- learners


def test_learners_are_judged_against_the_true_hits(gathered: Path) -> None:
    asked = ask(gathered, "outcomes", k=10, n=[1, 4], resamples=50)
    found = asked.of_kind("learner")
    by = {(row["learner"], row["n"]): row for row in found}
    assert set(by) == {(name, n) for name in ("outcomes", "naive", "constant") for n in (1, 4)} | {("tokens", None)}
    tokens = columns_of(gathered / "runs" / found[0]["run_ids"][0], "tokens")
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


def test_imported_results_have_no_sequences_to_cut(tmp_path: Path) -> None:
    table = "S,k,rbp\n" + "".join(f"{10**i},1,0.{i}\n" for i in (4, 5, 6))
    store = imported(tmp_path / "store", table, ties="optimistic", dataset="d")
    with refused("imported results have none"):
        ask(store, "outcomes", ties="optimistic")
