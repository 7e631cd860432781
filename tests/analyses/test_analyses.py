"""The analyses on stores with a known truth: what was put in comes out, within the stated intervals, so often."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rbpx.analyses.fit import analysis as fit
from rbpx.analyses.klaw import analysis as klaw
from rbpx.analyses.predict import analysis as predict
from rbpx.config.request import Request
from rbpx.groups.group import Group
from rbpx.groups.select.sizes import select
from rbpx.store.sql.queries import connect
from tests.support.commands import here
from tests.support.draws import few_or_all, plausible
from tests.support.stores import columns_of
from tests.support.synthetic import Truth, write_store

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of five sizes, 96,000 tokens each."""
    root = tmp_path_factory.mktemp("drawn") / "store"
    write_store(root, Truth(shared=0.1), seed=5, n_documents=400, n_tokens=240)
    return root


def rows(store: Path, cwd: Path, *words: str) -> Rows:
    return list(json.loads(here(*words, "--store", store, "--format", "json", cwd=cwd, check=0).stdout))


def coverage(n: int, tmp_path: Path, truth: Truth, ask: Any) -> list[dict[str, bool]]:
    """What `ask` finds covered in each of n stores."""
    found = []
    for seed in range(n):
        store = write_store(tmp_path / str(seed), truth, seed)
        with connect(store) as connection:
            request = Request(resamples=200, k=[1, 10, 100], laws=["rbp"])
            (group,) = select(connection, request)
            found.append(ask(connection, group, request, seed))
    return found


def holds(lo: float | None, hi: float | None, value: float) -> bool:
    return (lo is None or lo <= value) and (hi is None or value <= hi)


@few_or_all(15, 40)
def test_the_intervals_of_the_laws_hold_the_truth_as_often_as_they_say(n_draws: int, tmp_path: Path) -> None:
    truth = Truth(scatter=0.01)
    at_100m = truth.C * 1e8**-truth.alpha

    def ask(connection: Any, group: Group, request: Request, seed: int) -> dict[str, bool]:
        laws = fit.analyse(connection, group, request).laws
        covered = {f"alpha {law.k}": holds(law.fit.alpha_lo, law.fit.alpha_hi, truth.alpha) for law in laws}
        of_k = klaw.analyse(connection, group, Request(resamples=200))
        true_factor = 10 ** (truth.beta / truth.alpha)
        for law in of_k.laws[1:-1]:
            assert law.exchange is not None
            covered[f"exchange {law.run.size}"] = holds(law.exchange.lo, law.exchange.hi, true_factor)
        far = predict.analyse(connection, group, Request(resamples=200, k=1, laws=["rbp"], S=1e8)).laws[0]
        said = far.predictions[0].prediction
        assert said.lo is not None
        assert said.hi is not None
        new = at_100m * math.exp(np.random.default_rng([seed, 1]).normal(0, truth.scatter))  # it scatters too
        covered["prediction"] = said.lo <= new <= said.hi
        return covered

    found = coverage(n_draws, tmp_path, truth, ask)
    for name in found[0]:
        n = sum(each[name] for each in found)
        assert plausible(n, n_draws), f"{name}: {n} of {n_draws}"
        assert n_draws < 40 or n >= 34, f"{name}: {n} of 40"  # 38 are expected; fewer have a probability below 1 %
    assert sum(sum(each.values()) for each in found) < n_draws * len(found[0])  # intervals of everything are none


def test_the_law_in_k_is_recovered_at_every_size(drawn: Path, tmp_path: Path, cwd: Path) -> None:
    every = rows(drawn, cwd, "klaw", "resamples=200")
    found, (joint,) = every[:-1], every[-1:]
    assert (joint["law"], joint["params"]["range"]) == ("joint_law", [1, 100])  # as it was drawn
    assert [row["size"] for row in found] == [str(S) for S in Truth().S]
    for row in found:
        assert row["law"] == "k_law"
        assert row["n_points"] == 11
        assert row["params"]["k"] == [1, 2, 3, 5, 7, 10, 18, 30, 50, 78, 100]
        assert row["alpha"] == pytest.approx(Truth().beta, abs=0.03)
        assert row["params"]["exchange"]["lo"] < 10 ** (0.35 / 0.1) < row["params"]["exchange"]["hi"]


def test_the_law_in_k_is_the_line_through_counted_shares(drawn: Path, cwd: Path) -> None:
    found = [row for row in rows(drawn, cwd, "klaw", "resamples=200", "k=[1,2,5,20]") if row["law"] == "k_law"]
    assert len(found) == len(Truth().S)
    for row in found:
        greater = columns_of(drawn / "runs" / row["run_ids"][0], "tokens")["greater"]
        counted = [np.mean(greater + 1 <= k) for k in (1, 2, 5, 20)]
        slope = np.polyfit(np.log([1, 2, 5, 20]), np.log(-np.log(counted)), 1)[0]
        assert row["alpha"] == pytest.approx(-slope, rel=1e-9)


def test_too_few_resamples_for_an_interval_leave_what_a_larger_k_is_worth(drawn: Path, cwd: Path) -> None:
    few, many = (rows(drawn, cwd, "klaw", f"resamples={n}")[:-1] for n in (10, 200))
    for row, other in zip(few, many, strict=True):
        factor = other["params"]["exchange"]["factor"]
        assert row["params"]["exchange"] | {"lo": None, "hi": None} == row["params"]["exchange"]
        assert row["params"]["exchange"]["factor"] == pytest.approx(factor, rel=1e-9)


def test_the_law_stands_at_every_k_where_it_was_put_and_ends_where_misses_are_few(drawn: Path, cwd: Path) -> None:
    found = rows(drawn, cwd, "regimes", "resamples=200")
    ks = [row["k"] for row in found]
    assert ks[0] == 1
    assert 50_000 < ks[-1] < 100_000
    (supported,) = {row["params"]["regime"]["supported_up_to_k"] for row in found}
    for row in found:
        about = row["params"]["regime"]
        if row["k"] <= supported:
            assert about["stands"]
            assert row["alpha"] == pytest.approx(0.1, abs=0.05)
        if row["status"] == "ok" and about["n_misses"]:
            n, misses = 96_000, about["n_misses"]
            p = 1 - misses / n
            expected = math.sqrt(p * (1 - p) / n) / (p * -math.log(p))
            assert about["binomial_sd"] == pytest.approx(expected, rel=1e-6)
    assert supported >= 1000
    assert here("regimes", "resamples=100", "--store", drawn, cwd=cwd, check=0).stdout.count("holds") > 10


def test_predictions_hold_what_a_larger_model_shows_and_say_how_far_they_reach(drawn: Path, cwd: Path) -> None:
    found = rows(drawn, cwd, "predict", "laws=rbp", "k=10", "S=[2e7,1e9,1e12]", "resamples=200")
    assert list(dict.fromkeys(row["method"] for row in found)) == ["combined", "power", "offset", "bend", "ols"]
    for method in ("combined", "ols"):
        said = [row for row in found if row["kind"] == "prediction" and row["method"] == method]
        assert [row["beyond"] for row in said] == pytest.approx([2, 100, 1e5])
        assert ["beyond" in row["reasons"] for row in said] == [False, True, True]
        widths = [math.log(row["hi"] / row["lo"]) for row in said]
        assert widths == sorted(widths)
        for row in said:
            assert row["lo"] < 4.0 * 10**-0.35 * row["S"] ** -0.1 < row["hi"]
            assert row["lo"] < row["y"] < row["hi"]
        tests = [row for row in found if row["kind"] == "backtest" and row["method"] == method]
        assert [(row["n_fitted"], row["S"]) for row in tests] == [(3, 1_000_000), (3, 10_000_000), (4, 10_000_000)]
        for row in tests:
            assert row["error"] == pytest.approx(row["y"] / row["measured"] - 1, rel=1e-12)
            assert row["held"] == (row["lo"] <= row["measured"] <= row["hi"])
    printed = here("predict", "S=1e12", "resamples=50", "--store", drawn, cwd=cwd, check=0).stdout
    assert "more than 10 times beyond the sizes: an extrapolation that no backtest covers" in printed
    assert "an extrapolation" not in here("predict", "S=2e7", "resamples=50", "--store", drawn, cwd=cwd, check=0).stdout


def test_laws_are_ranked_by_the_errors_of_their_backtests(drawn: Path, cwd: Path) -> None:
    found = rows(drawn, cwd, "predict", "laws=[rbp,cross_entropy]", "resamples=50")
    errors: dict[tuple[str, int | None], list[float]] = {}
    for row in found:
        if row["kind"] == "backtest" and row["method"] == "combined":
            errors.setdefault((row["law"], row["k"]), []).append(abs(row["error"]))
    means = [float(np.mean(values)) for values in errors.values()]
    assert means == sorted(means)
    assert len(means) > 5


def test_every_method_recovers_the_law(drawn: Path, cwd: Path) -> None:
    found = rows(drawn, cwd, "fit", "laws=rbp", "k=10", "method=all", "resamples=200")
    assert [row["method"] for row in found] == ["ols", "weighted", "offset", "robust"]
    for row in found:
        assert row["alpha_lo"] < 0.1 < (row["alpha_hi"] or 9)
    assert found[0]["params"]["choice"]["form"] in ("power", "either")


def test_a_fit_shows_what_it_came_from_and_comes_out_again(drawn: Path, cwd: Path) -> None:
    for row in rows(drawn, cwd, "fit", "laws=[rbp]", "k=10", "method=all", "resamples=50"):
        shown = json.loads(here("show", row["fit_id"], "--store", drawn, cwd=cwd, check=0).stdout)
        assert shown["reproduced"]["largest_relative_difference"] <= 1e-9
        params = shown["params"]
        for name in ("S", "y", "starts", "tolerances", "gradient", "residuals_ln"):
            assert params[name], name
        assert max(map(abs, params["gradient"])) < 1e-6 * max(map(abs, np.log(params["y"]))) * (
            1 if row["method"] != "weighted" else 1e9
        )


def test_the_gap_between_two_texts_is_the_difference_of_their_laws(tmp_path: Path, cwd: Path) -> None:
    store = tmp_path / "store"
    write_store(store, Truth(C=6.0, alpha=0.12, shared=0.1), seed=11, n_documents=300, n_tokens=120, dataset="hard")
    write_store(store, Truth(C=3.0, alpha=0.07, shared=0.1), seed=12, n_documents=300, n_tokens=120, dataset="easy")
    found = rows(store, cwd, "gaps", "resamples=200", "k=[1,10]")
    assert [(row["law"], row["params"]["loss"], row["k"]) for row in found] == [
        ("gap", "rbp", 1), ("gap", "rbp", 10), ("gap", "cross_entropy", None)
    ]  # fmt: skip
    for row in found[:2]:
        assert (row["dataset"], row["dataset_b"]) == ("hard", "easy")
        about = row["params"]
        assert about["delta_lo"] < 0.07 - 0.12 < about["delta_hi"] < 0
        assert about["verdict"] == "closes"
        assert about["ln_S_closed_lo"] < math.log(6 / 3) / 0.05 < about["ln_S_closed_hi"]
        assert len(row["run_ids"]) == 10
    counted = {
        (row["dataset"], row["S"]): row["p"]
        for row in rows(store, cwd, "sql", "SELECT r.dataset, r.non_embedding_params AS S, "
                        "avg((t.greater = 0)::DOUBLE) AS p FROM tokens t JOIN runs r USING (run_id) GROUP BY ALL")
    }  # fmt: skip
    ratio = [math.log(counted["hard", S]) / math.log(counted["easy", S]) for S in Truth().S]
    slope = np.polyfit(np.log(Truth().S), np.log(ratio), 1)[0]
    assert found[0]["params"]["delta"] == pytest.approx(slope, rel=1e-9)
    printed = here("gaps", "resamples=50", "--store", store, cwd=cwd, check=0).stdout
    assert "hard / easy" in printed
    assert max(map(len, printed.splitlines()[:8])) <= 80


def test_two_texts_of_many_are_chosen_by_a_sweep(tmp_path: Path, cwd: Path) -> None:
    for number, dataset in enumerate(("a", "b", "c")):
        write_store(tmp_path / "store", Truth(), seed=number, dataset=dataset, n_documents=20)
    every = rows(tmp_path / "store", cwd, "gaps", "k=1", "resamples=50")
    assert len({frozenset((row["dataset"], row["dataset_b"])) for row in every}) == 3
    with_files = tmp_path / "conf" / "dataset"
    with_files.mkdir(parents=True)
    for dataset in ("a", "b"):
        (with_files / f"{dataset}.yaml").write_text(f"name: {dataset}\nkind: file\npath: none\n")
    words = ["gaps", "-m", "dataset=a,b", "k=1", "resamples=50", "--config-dir", str(tmp_path / "conf")]
    chosen = rows(tmp_path / "store", cwd, *words)
    assert {row["dataset"] for row in chosen} | {row["dataset_b"] for row in chosen} == {"a", "b"}
    same = {row["fit_id"]: row["alpha"] for row in every}
    assert all(same[row["fit_id"]] == row["alpha"] for row in chosen)


def test_one_text_has_no_gap(drawn: Path, cwd: Path) -> None:
    (line,) = here("gaps", "--store", drawn, cwd=cwd, check=2).stderr.strip().splitlines()
    assert "no two of the requested texts" in line


# ------------------------------------------------------------------------------------------------------- no law at all


def test_one_document_has_no_interval_and_says_so(tmp_path: Path, cwd: Path) -> None:
    write_store(tmp_path / "store", Truth(), seed=2, n_documents=1, n_tokens=3000)
    for row in rows(tmp_path / "store", cwd, "fit", "laws=[rbp,cross_entropy]", "k=10", "resamples=50"):
        assert row["status"] == "one_document"
        assert row["alpha"] is not None
        assert (row["alpha_lo"], row["alpha_hi"]) == (None, None)
    for verb in ("fit", "klaw", "regimes", "predict", "emergence"):
        assert "nan" not in here(verb, "resamples=50", "--store", tmp_path / "store", cwd=cwd, check=0).stdout.lower()


def test_two_sizes_are_no_law_for_any_analysis_but_the_one_in_k(tmp_path: Path, cwd: Path) -> None:
    write_store(tmp_path / "store", Truth(S=(1000, 10_000)), seed=3)
    assert "klaw" in here("klaw", "--help", cwd=cwd, check=0).stdout
    printed = here("klaw", "resamples=50", "--store", tmp_path / "store", cwd=cwd, check=0).stdout
    assert "drawn on synthetic" in printed
    for verb in ("fit", "regimes", "predict", "emergence"):
        answer = here(verb, "resamples=50", "--store", tmp_path / "store", cwd=cwd, check=2)
        assert "has the 3 sizes that" in answer.stderr
        assert len(answer.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("verb", ["fit", "klaw", "regimes", "predict", "emergence"])
def test_shares_of_0_and_1_are_a_status_and_never_a_nan(verb: str, tmp_path: Path, cwd: Path) -> None:
    truth = Truth(C=900.0)  # small models have no token of rank 1; k near V has no miss
    write_store(tmp_path / "store", truth, seed=4, n_documents=5, n_tokens=20)
    answer = here(verb, "k=[1,10,99999]", "resamples=50", "--store", tmp_path / "store", cwd=cwd, check=0)
    assert "nan" not in answer.stdout.lower()
    assert "inf" not in answer.stdout.lower().replace("inference", "").replace("information", "")
    text = here(verb, "k=[1,10,99999]", "resamples=50", "--store", tmp_path / "store", "--format", "json", cwd=cwd)
    json.loads(text.stdout, parse_constant=lambda name: pytest.fail(f"{name} in json"))


def test_nothing_that_matches_is_said_in_one_line(drawn: Path, cwd: Path) -> None:
    for words in (["family=other"], ["source=elsewhere"], ["size=7b"]):
        answer = here("fit", *words, "--store", drawn, cwd=cwd, check=2)
        assert words[0] in answer.stderr
        assert len(answer.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("verb", "wrong", "remedy"),
    [
        ("fit", "method=best", "known: all, ols"), ("emergence", "n=0", "as in n='[1,5,10]'"),
        ("emergence", "n=x", "as in n='[1,5,10]'"), ("predict", "S=-1", "as in S='[1e9,1e10]'"),
        ("predict", "S=big", "as in S='[1e9,1e10]'"), ("fit", "family=7", "quote it"),
        ("fit", "k=0.5", "as in k='[1,10,100]', or k=log"),
    ],
)  # fmt: skip
def test_a_wrong_choice_of_an_analysis_is_one_line(verb: str, wrong: str, remedy: str, drawn: Path, cwd: Path) -> None:
    (line,) = here(verb, wrong, "--store", drawn, cwd=cwd, check=2).stderr.strip().splitlines()
    assert wrong in line
    assert remedy in line
