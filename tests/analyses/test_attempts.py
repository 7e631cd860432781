"""Attempts: pass@k, tails, forecasts and bounds, each by a second, plainer way, and the verb by real commands."""

import csv
import itertools
import json
import math
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta as beta_of
from scipy.stats import binom, kstest

from rbpx.analyses.attempts.bounds import missed_at_most, rank_bounds
from rbpx.analyses.attempts.discrete import discrete_tail
from rbpx.analyses.attempts.forecasts import forecast
from rbpx.analyses.attempts.goodness import goodness_p
from rbpx.analyses.attempts.mixing import Shape
from rbpx.analyses.attempts.passing import Counted, Known, grid_to, slope_in_k, slopes_at
from rbpx.analyses.attempts.tails import Likelihood, fit_tail
from rbpx.groups.points.items import Answers
from rbpx.laws.intervals.estimate import Recipe, document_weights, estimate
from rbpx.ties import Ties
from tests.support.commands import here
from tests.support.draws import few_or_all, plausible
from tests.support.stores import Measured

HEADER = "family,size,S,dataset,item,n_samples,n_correct"
SIZES = {"70M": "70m", "160M": "160m", "410M": "410m", "1B": "1b", "2.8B": "2.8b", "6.9B": "6.9b", "12B": "12b"}


def counted(right: list[int], tried: int) -> Counted:
    return Counted(tuple(map(str, range(len(right)))), np.array(right), np.full(len(right), tried))


def drawn(rng: np.random.Generator, a: float, b: float, n_items: int, n: int) -> Counted:
    return counted(rng.binomial(n, rng.beta(a, b, n_items)).tolist(), n)


def rows_of(store: Path, cwd: Path, *words: object) -> list[dict[str, Any]]:
    answer = here("attempts", *words, "--store", store, "--format", "json", cwd=cwd, check=0)
    found: list[dict[str, Any]] = json.loads(answer.stdout)
    return found


def write(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


# ------------------------------------------------------------------------------------------------------------- pass@k


def test_pass_at_k_is_the_share_of_choices_of_k_samples_that_hold_a_right_one() -> None:
    for n, c in [(5, 0), (5, 2), (6, 6), (7, 1)]:
        samples = [True] * c + [False] * (n - c)
        for k in range(1, n + 1):
            chosen = list(itertools.combinations(samples, k))
            share = sum(map(any, chosen)) / len(chosen)
            assert counted([c], n).passes([k])[0, 0] == pytest.approx(share, abs=1e-12)


def test_pass_at_k_of_many_samples_is_exact() -> None:
    n, c, k = 10_000, 37, 400
    fails = Fraction(math.comb(n - c, k), math.comb(n, k))
    assert counted([c], n).passes([k])[0, 0] == pytest.approx(float(1 - fails), rel=1e-10)


def test_pass_at_k_of_known_chances_keeps_its_digits_where_they_are_tiny() -> None:
    items = Known(("a", "b", "c"), np.log([1e-30, 0.25, 1.0]))
    assert items.passes([1, 8]).tolist() == [
        pytest.approx([1e-30, 8e-30], rel=1e-12),
        pytest.approx([0.25, 1 - 0.75**8], rel=1e-12),
        [1.0, 1.0],
    ]


def test_noise_of_samples_is_that_of_samples_drawn_again() -> None:
    rng, p_I, n, k = np.random.default_rng(3), np.array([0.02, 0.1, 0.4]), 60, 10
    values, told = [], []
    for _ in range(1500):
        items = counted(rng.binomial(n, p_I).tolist(), n)
        values.append(items.passes([k]).mean())
        told.append(items.stderr_of_samples([k])[0] ** 2)
    assert math.sqrt(np.mean(told)) == pytest.approx(np.std(values), rel=0.06)


def test_local_slopes_are_those_of_the_curve() -> None:
    items = Known(("a", "b"), np.log([0.3, 1e-4]))

    def q(k: int) -> float:
        return (0.7**k + (1 - 1e-4) ** k) / 2

    at = slopes_at(items, 100)
    step = math.log(316 / 32)
    assert at.failures == pytest.approx(math.log(q(32) / q(316)) / step, rel=1e-9)
    assert at.neg_ln == pytest.approx(math.log(math.log(1 - q(32)) / math.log(1 - q(316))) / step, rel=1e-9)


# ------------------------------------------------------------------------------------------------- published counts


def test_published_counts_give_the_exponents_found_by_plain_scipy(shared_data: Path, tmp_path: Path, cwd: Path) -> None:
    reference = shared_data / "reference"
    with (reference / "non_embedding_params.csv").open() as file:
        S = {row["hub_id"]: row["non_embedding_params"] for row in csv.DictReader(file)}
    with (reference / "monkeys_math_counts.csv").open() as file:
        counts = [
            f"pythia,{(size := SIZES[row['model'].split()[1]])},{S[f'EleutherAI/pythia-{size}']},math,"
            f"{row['problem']},{row['n_samples']},{row['n_correct']}"
            for row in csv.DictReader(file)
        ]
    with (reference / "monkeys_math_fits.csv").open() as file:
        published = {SIZES[row["model"].split()[1]]: row for row in csv.DictReader(file)}
    here("import", write(tmp_path / "counts.csv", HEADER, *counts), "source=monkeys", "--store", tmp_path / "s",
         cwd=cwd, check=0)  # fmt: skip
    rows = rows_of(tmp_path / "s", cwd, "source=monkeys", "resamples=50")
    assert {row["n_items"] for row in rows if row["kind"] == "pass"} == {128}
    by = {(row["size"], row["how"]): row for row in rows if row["kind"] == "exponent"}
    first = {row["size"]: row["passes"] for row in rows if row["kind"] == "pass" and row["k"] == 1}
    assert len(published) == 7
    for size, expected in published.items():
        straight, of_beta = by[size, "least_squares"], by[size, "beta"]
        assert first[size] == pytest.approx(float(expected["pass_at_1"]), abs=5.1e-7)
        assert straight["alpha"] == pytest.approx(float(expected["least_squares_exponent"]), abs=5.1e-6)
        assert of_beta["alpha"] == pytest.approx(float(expected["beta_a"]), abs=1e-5)
        assert of_beta["b"] == pytest.approx(float(expected["beta_b"]), rel=1e-5)
        neg_ln = float(expected["beta_binomial_negative_loglik_without_binomial_coefficient"])
        assert (of_beta["aic"] - 4) / 2 == pytest.approx(neg_ln, abs=1e-6)
    assert len(grid_to(10_000)) == 45
    hidden = {row["way"]: row for row in rows if row["kind"] == "hidden"}
    assert {row["n_models"] for row in hidden.values()} == {7}
    laws = {(row["law"], row["k"]): row for row in rows if row["kind"] == "law"}
    assert {key for key in laws if key[0] == "pass_at"} == {("pass_at", 10**at) for at in range(5)}
    assert laws["tail_beta", None]["alpha"] < 0  # the tail gets lighter with size


# --------------------------------------------------------------------------------------------------------------- tails


@pytest.mark.parametrize(("n", "c"), [(20, 0), (20, 3), (20, 20), (400, 7)])
def test_the_likelihood_under_kumaraswamy_is_an_integral_over_p(n: int, c: int) -> None:
    a, b = 0.4, 2.5

    def of(y: float) -> float:  # p = y^(1/a), whose density has no pole at 0
        p = y ** (1 / a)
        return float(b * (1 - y) ** (b - 1) * p**c * (1 - p) ** (n - c))

    whole = quad(of, 0, 1, epsabs=0, epsrel=1e-11, limit=400, points=[(max(c, 0.5) / n) ** a])[0]
    ln_U, _, _ = Likelihood(Shape.kumaraswamy, counted([c], n)).at(np.log([a, b]))
    assert ln_U[0] == pytest.approx(math.log(whole), rel=1e-8)


def test_both_distributions_with_b_of_1_are_one() -> None:
    items, theta = counted([0, 0, 1, 4, 30, 50], 50), np.log([0.35, 1.0])
    ours, theirs = (Likelihood(shape, items).at(theta) for shape in Shape)
    assert ours[0] == pytest.approx(theirs[0], abs=1e-9)
    assert ours[1][:, 0] == pytest.approx(theirs[1][:, 0], abs=1e-8)


@pytest.mark.parametrize("shape", Shape)
def test_derivatives_are_those_of_differences(shape: Shape) -> None:
    for items in (counted([0, 2, 9, 40], 40), Known(("a", "b", "c"), np.log([1e-9, 0.3, 1.0]))):
        likelihood, theta, step = Likelihood(shape, items), np.log([0.4, 3.0]), 1e-5
        _, score, hessian = likelihood.total(theta)
        for at, d in enumerate(np.eye(2) * step):
            up, down = likelihood.total(theta + d), likelihood.total(theta - d)
            assert score[at] == pytest.approx((up[0] - down[0]) / (2 * step), rel=1e-6, abs=1e-6)
            assert hessian[at] == pytest.approx((up[1] - down[1]) / (2 * step), rel=1e-5, abs=1e-5)


def test_known_chances_are_fitted_as_scipy_does() -> None:
    p_I = np.random.default_rng(0).beta(0.3, 4.0, 400)
    a, b, _, _ = beta_of.fit(p_I, floc=0, fscale=1)
    tail = fit_tail(Shape.beta, Known(tuple(map(str, range(400))), np.log(p_I)))
    assert tail.theta is not None
    assert np.exp(tail.theta).tolist() == pytest.approx([a, b], rel=2e-4)


def test_the_tail_without_a_form_is_hills_for_known_chances() -> None:
    p = [0.5, 0.02, 0.004, 0.0009, 0.0003, 1e-6, 0.0]  # from 1e-4 to 0.01; below it two are censored
    items = Known(
        tuple("abcdefg"), np.log(np.array(p, dtype=np.float64), where=np.array(p) > 0, out=np.full(7, -900.0))
    )
    found, ends = discrete_tail(items, document_weights(7, 50, 0))
    far = sum(math.log(0.01 / each) for each in (0.004, 0.0009, 0.0003)) + 2 * math.log(0.01 / 1e-4)
    assert ends == pytest.approx((1e-4, 0.01))
    assert found.value == pytest.approx(3 / far, rel=1e-9)


def test_counts_tell_the_tail_without_a_form() -> None:
    rng = np.random.default_rng(1)
    p_I = rng.beta(0.3, 20.0, 20_000)
    items = counted(rng.binomial(10_000, p_I).tolist(), 10_000)
    found, _ = discrete_tail(items, document_weights(20_000, 20, 0)[:0])
    true, _ = discrete_tail(Known(items.names, np.log(p_I)), document_weights(20_000, 20, 0)[:0])
    assert found.value == pytest.approx(true.value, abs=0.015)
    assert true.value == pytest.approx(0.3, abs=0.04)


def test_items_that_are_all_alike_have_no_heavy_tail(tmp_path: Path, cwd: Path) -> None:
    rng = np.random.default_rng(5)
    lines = [f"f,s{S},{S}e6,t,{item},1000,{rng.binomial(1000, 0.1 * S)}" for S in (1, 2, 4) for item in range(80)]
    here("import", write(tmp_path / "a.csv", HEADER, *lines), "source=x", "--store", tmp_path / "s", cwd=cwd, check=0)
    rows = rows_of(tmp_path / "s", cwd, "resamples=50")
    statuses = {row["status"] for row in rows if row["kind"] == "exponent"}
    assert statuses <= {"no_heavy_tail", "not_positive"}
    assert "no_heavy_tail" in statuses
    answer = here("attempts", "resamples=50", "--store", tmp_path / "s", cwd=cwd, check=0)
    assert "there is no heavy tail" in answer.stdout


def test_items_that_all_pass_or_all_fail_have_no_exponent(tmp_path: Path, cwd: Path) -> None:
    lines = [f"f,s{S},{S}e6,t,{item},50,{0 if S == 1 else 50}" for S in (1, 2, 4) for item in range(30)]
    here("import", write(tmp_path / "a.csv", HEADER, *lines), "source=x", "--store", tmp_path / "s", cwd=cwd, check=0)
    rows = rows_of(tmp_path / "s", cwd, "resamples=50")
    assert {row["status"] for row in rows if row["kind"] == "exponent"} == {"one_outcome"}


def test_goodness_of_fit_finds_a_distribution_that_is_another() -> None:
    rng = np.random.default_rng(2)
    p_I = np.where(rng.random(300) < 0.5, 0.001, 0.5)
    items = counted(rng.binomial(1000, p_I).tolist(), 1000)
    for shape in Shape:
        p = goodness_p(fit_tail(shape, items), items, 0)
        assert p is not None
        assert p <= 0.01


# ----------------------------------------------------------------------------------------------------------- forecasts


def test_a_forecast_is_what_each_item_fails_given_its_counts() -> None:
    items, k = counted([0, 0, 0, 1, 2, 12], 30), 900
    for shape in Shape:
        tail = fit_tail(shape, items)
        assert tail.theta is not None
        a, b = np.exp(tail.theta)
        fails = []
        for c in items.right_I.tolist():

            def of(y: float, c: int = c, more: int = 0, a: float = a, b: float = b, shape: Shape = shape) -> float:
                p = y ** (1 / a)
                rest = (1 - p) ** (b - 1) if shape is Shape.beta else (1 - y) ** (b - 1)
                return float(rest * p**c * (1 - p) ** (30 - c + more))

            above, below = (quad(of, 0, 1, args=(c, more), limit=400, epsabs=0, epsrel=1e-10)[0] for more in (k, 0))
            fails.append(above / below)
        foretold = forecast(shape.value, items, k, tail).passes
        assert foretold.value == pytest.approx(1 - np.mean(fails), rel=1e-6)
        assert foretold.ends is not None
        assert foretold.ends[0] < 1 - np.mean(fails) < foretold.ends[1]


def test_hidden_samples_are_a_part_of_those_there_are() -> None:
    items = counted([0, 3, 50, 997, 1000], 1000)
    left = items.hidden(10, seed=4)
    assert left.tried_I.tolist() == [10] * 5
    assert left.right_I[0] == 0
    assert left.right_I[4] == 10
    mean = np.mean([items.hidden(10, seed).right_I for seed in range(400)], axis=0)
    assert mean == pytest.approx(items.right_I / 100, abs=0.15)


# -------------------------------------------------------------------------------------------------------------- bounds


def answers_of(p: list[list[float]], right: list[list[int]]) -> tuple[Answers, Known]:
    """Items whose targets are given tokens of given distributions, with pessimistic ranks."""
    ranks = [
        np.array([sum(other >= each[token] for other in each) for token in tokens], np.float64)
        for each, tokens in ((list(itertools.repeat(one, 9)), tokens) for one, tokens in zip(p, right, strict=True))
        for each in [each[0]]
    ]
    nothing = np.full(len(p), np.nan)
    ln_p = np.array([sum(math.log(one[token]) for token in tokens) for one, tokens in zip(p, right, strict=True)])
    none = np.array([None] * len(p), object)
    answers = Answers(
        nothing, nothing, nothing, nothing, nothing, -ln_p, nothing, nothing, nothing > 0, ranks, none, none
    )
    return answers, Known(tuple(map(str, range(len(p)))), ln_p)


@pytest.mark.parametrize("n_tokens", [1, 3])
def test_ranks_bound_attempts_whatever_the_model(n_tokens: int) -> None:
    rng, V = np.random.default_rng(n_tokens), 12
    for spread in (0.2, 1.0, 4.0):
        p = rng.dirichlet(np.full(V, spread), 60).tolist()
        right = [
            [int(token) for token in (np.argsort(one)[::-1][:n_tokens] if at % 2 else rng.integers(V, size=n_tokens))]
            for at, one in enumerate(p)
        ]
        answers, items = answers_of(p, right)
        for bound in rank_bounds(answers, items, [1, 2, 5, 11, 40], V, Ties.pessimistic):
            assert bound.lower is not None
            assert bound.upper is not None
            assert bound.lower <= bound.passes <= bound.upper
            assert bound.likely <= bound.exact_match
            sure = np.exp(items.ln_p_I) > 1 / (bound.k + 1)
            worst = np.array([ranks.max() for ranks in answers.ranks])
            assert np.all(worst[sure] <= bound.k)


def test_both_bounds_are_reached() -> None:
    k = 4
    even = [1 / (k + 1)] * (k + 1)  # every token has the pessimistic rank k + 1
    (bound,) = rank_bounds(*answers_of([even], [[0]]), [k], k + 1, Ties.pessimistic)
    assert bound.exact_match == 0
    assert bound.passes == pytest.approx(missed_at_most(k)) == pytest.approx(bound.upper)
    first = [0.2 + 1e-12, *([(0.8 - 1e-12) / 4] * 4)]
    (bound,) = rank_bounds(*answers_of([first], [[0]]), [k], 5, Ties.pessimistic)
    assert bound.exact_match == 1
    assert bound.passes == pytest.approx(bound.lower, rel=1e-9)


def test_a_rank_within_k_bounds_nothing_from_below() -> None:
    unlikely = [1 - 1e-9, 1e-9, 0.0]  # rank 2, and next to never drawn
    (bound,) = rank_bounds(*answers_of([unlikely], [[1]]), [2], 3, Ties.pessimistic)
    assert bound.exact_match == 1
    assert bound.passes < 1e-8
    assert bound.lower == 0


# ------------------------------------------------------------------------------------------------------------- imports


def test_counts_are_observations_with_their_items(tmp_path: Path, cwd: Path) -> None:
    file = write(tmp_path / "a.csv", "family,model,S,benchmark,problem,n_samples,n_correct", "f,m,1e6,t,x,100,3",
                 "f,m,1e6,t,y,80,0")  # fmt: skip
    told = here("import", file, "source=x", "columns={dataset: benchmark}", "--store", tmp_path / "s", cwd=cwd, check=0)
    assert told.stderr.startswith("imported 2 observations of 1 model on 1 dataset")
    query = "SELECT item, n_samples, n_correct, rbp, k FROM observations ORDER BY item"
    answer = here("sql", query, "--format", "json", "--store", tmp_path / "s", cwd=cwd, check=0)
    assert json.loads(answer.stdout) == [
        {"item": "x", "n_samples": 100, "n_correct": 3, "rbp": None, "k": None},
        {"item": "y", "n_samples": 80, "n_correct": 0, "rbp": None, "k": None},
    ]
    again = here(
        "import", file, "source=x", "columns={dataset: benchmark}", "--store", tmp_path / "s", cwd=cwd, check=0
    )
    assert again.stderr.startswith("nothing new")


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        ("1,10,11", "n_correct is 11, but n_samples is 10"),
        ("1,10,-1", "n_correct is -1"),
        ("1,10,2.5", "n_correct is 2.5"),
        ("1,0,0", "n_samples is 0"),
        ("1,,3", "n_samples is empty"),
        ("1,10,", "n_correct is empty"),
        (",10,3", "item is empty"),
        ("1,ten,3", "n_samples is ten"),
    ],
)
def test_counts_that_cannot_be_are_refused_in_one_line(cells: str, says: str, tmp_path: Path, cwd: Path) -> None:
    file = write(tmp_path / "a.csv", HEADER, "f,m,1e6,t,0,10,3", f"f,m,1e6,t,{cells}")
    answer = here("import", file, "source=x", "--store", tmp_path / "s", cwd=cwd, check=2)
    (line,) = answer.stderr.splitlines()[:1]
    assert "line 3" in line
    assert says in line
    assert not (tmp_path / "s").exists()


def test_counts_without_a_column_of_items_are_refused(tmp_path: Path, cwd: Path) -> None:
    file = write(tmp_path / "a.csv", "family,size,S,dataset,n_samples,n_correct", "f,m,1e6,t,10,3")
    answer = here("import", file, "source=x", "--store", tmp_path / "s", cwd=cwd, check=2)
    assert "has no column item" in answer.stderr


def test_an_item_has_one_count_in_a_source(tmp_path: Path, cwd: Path) -> None:
    for name, right in (("a", 3), ("b", 4)):
        file = write(tmp_path / f"{name}.csv", HEADER, f"f,m,1e6,t,0,10,{right}")
        answer = here("import", file, "source=x", "--store", tmp_path / "s", cwd=cwd)
    assert answer.returncode == 2
    assert "item=0 is 4, but 3 in the store" in answer.stderr


def test_a_file_of_losses_keeps_its_columns_of_that_name_out(tmp_path: Path, cwd: Path) -> None:
    file = write(tmp_path / "a.csv", "family,size,S,dataset,item,loss_nats", "f,m,1e6,t,7,2.5")
    answer = here("import", file, "source=x", "--store", tmp_path / "s", cwd=cwd, check=0)
    assert "ignored columns" in answer.stderr
    assert "item" in answer.stderr


# ---------------------------------------------------------------------------------------------------------------- verb


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Counts of three models on 60 items."""
    folder, rng = tmp_path_factory.mktemp("tried"), np.random.default_rng(8)
    (folder / "cwd").mkdir()
    ease_I = rng.beta(0.4, 6.0, 60)
    lines = [
        f"f,s{at},{S},t,i{item},1000,{rng.binomial(1000, min(1.0, 2.0**at * ease))}"
        for at, S in enumerate((1e6, 1e7, 1e8))
        for item, ease in enumerate(ease_I)
    ]
    here("import", write(folder / "a.csv", HEADER, *lines), "source=x", "--store", folder / "s", cwd=folder / "cwd",
         check=0)  # fmt: skip
    shuffled = [lines[at] for at in rng.permutation(len(lines))]
    here("import", write(folder / "b.csv", HEADER, *shuffled), "source=x", "--store", folder / "t",
         cwd=folder / "cwd", check=0)  # fmt: skip
    return folder


def test_rows_do_not_depend_on_the_order_of_a_file(tried: Path, cwd: Path) -> None:
    ours, theirs = (rows_of(tried / store, cwd, "resamples=50") for store in ("s", "t"))
    passing = ("created_at",)
    assert [{k: v for k, v in row.items() if k not in passing} for row in ours] == [
        {k: v for k, v in row.items() if k not in passing} for row in theirs
    ]


def test_attempts_beyond_the_samples_are_foretold(tried: Path, cwd: Path) -> None:
    rows = rows_of(tried / "s", cwd, "resamples=50", "k=[1,10,5000]")
    assert {row["k"] for row in rows if row["kind"] == "pass"} == {1, 10}
    assert {row["k"] for row in rows if row["kind"] == "forecast"} == {5000}
    whole = rows_of(tried / "s", cwd, "resamples=50")
    assert {row["k"] for row in whole if row["kind"] == "forecast"} == {10_000, 100_000}


def test_ten_attempts_are_worth_what_both_laws_say(tried: Path, cwd: Path) -> None:
    rows = rows_of(tried / "s", cwd, "resamples=50", "k=[1,10]")
    y = {(row["size"], row["k"]): -math.log(row["passes"]) for row in rows if row["kind"] == "pass"}
    of_S = -np.polyfit(np.log([1e6, 1e7, 1e8]), [math.log(y[f"s{at}", 1]) for at in range(3)], 1)[0]
    (worth,) = [row for row in rows if row["kind"] == "exchange" and row["size"] == "s0"]
    in_k = math.log(y["s0", 1] / y["s0", 10]) / math.log(10)
    assert worth["factor"] == pytest.approx(10 ** (in_k / of_S), rel=1e-6)


def test_chances_in_the_store_are_those_of_the_exact_answer(
    tiny_checkpoint: Callable[..., Path], tmp_path: Path, cwd: Path
) -> None:
    lines = [json.dumps({"q": f"which {n}", "a": f"boat {n % 3}"}) for n in range(24)]
    path, store = write(tmp_path / "quiz.jsonl", *lines), tmp_path / "s"
    for at, width in enumerate((16,)):
        model = ("model=hub", f"model.id={tiny_checkpoint('gpt2', seed=at, hidden_size=width)}", "model.family=tiny")
        keys = ("dataset=file", f"dataset.path={path}", "dataset.context=[q]", "dataset.target=a")
        here("measure", *model, *keys, "--store", store, cwd=cwd, check=0)
    query = (
        "SELECT size, 1 - avg((1 - p) ^ 50) AS passes, avg(CASE WHEN worst <= 50 THEN 1 ELSE 0 END) AS exact FROM "
        "(SELECT run_id, doc_id, exp(sum(logprob::DOUBLE)) AS p, max(greater + ties + 1) AS worst FROM tokens "
        "GROUP BY ALL) JOIN runs USING (run_id) GROUP BY size"
    )
    by_hand = json.loads(here("sql", query, "--format", "json", "--store", store, cwd=cwd, check=0).stdout)
    rows = rows_of(store, cwd, "resamples=50", "k=50")
    found = {row["size"]: row for row in rows if row["kind"] == "bound"}
    assert len(found) == 1
    for row in by_hand:
        assert found[row["size"]]["passes"] == pytest.approx(row["passes"], rel=1e-6)
        assert found[row["size"]]["exact_match"] == pytest.approx(row["exact"])
    assert not [row for row in rows if row["kind"] in ("forecast", "hidden")]
    table = here("attempts", "resamples=50", "--store", store, cwd=cwd, check=0, env={"COLUMNS": "200"}).stdout
    assert "Ranks and attempts" in table
    assert re.search(r"lower bound of being\s+right", table)
    refused = here("attempts", "T=0.8", "--store", store, cwd=cwd, check=2)
    assert "python -m rbpx temperature family=tiny" in refused.stderr
    here("temperature", "resamples=50", "--store", store, cwd=cwd, check=0)
    query = (
        "SELECT beta, 1 - avg((1 - exp(-sum_loss_nats)) ^ 50) AS passes FROM temperatures WHERE beta > 1 "
        "GROUP BY beta ORDER BY beta LIMIT 1"
    )
    (node,) = json.loads(here("sql", query, "--format", "json", "--store", store, cwd=cwd, check=0).stdout)
    (row,) = [
        row for row in rows_of(store, cwd, "resamples=50", "k=50", f"T={1 / node['beta']!r}") if row["kind"] == "bound"
    ]
    assert row["passes"] == pytest.approx(node["passes"], rel=1e-6)
    assert row["exact_match"] == pytest.approx(by_hand[0]["exact"])  # no temperature moves a rank


def test_a_store_without_items_is_told_where_they_come_from(measured: Measured, cwd: Path) -> None:
    answer = here("attempts", "--store", measured.store, cwd=cwd, check=2)
    (line,) = answer.stderr.splitlines()
    assert "n_samples and n_correct" in line


# ------------------------------------------------------------------------------------------------------------ coverage


@few_or_all(12, 400)
def test_intervals_over_items_and_samples_hold_the_truth(n_draws: int) -> None:
    a, b, n_items, n = 0.4, 12.0, 128, 1000
    ks = grid_to(n)
    true_K = np.array([1 - math.exp(math.lgamma(b + k) - math.lgamma(b) + math.lgamma(a + b) - math.lgamma(a + b + k))
                       for k in ks])  # fmt: skip
    slope, hits = float(slope_in_k(ks, true_K)), np.zeros(4)
    weights = document_weights(n_items, 300, 0)
    for draw in range(n_draws):
        items = drawn(np.random.default_rng(draw), a, b, n_items, n)
        passes = items.passes(ks)
        drawn_BK = weights @ passes / n_items
        for at, of in enumerate((len(ks) // 2, len(ks) - 1)):
            found = estimate(float(passes[:, of].mean()), drawn_BK[:, of], n_items, Recipe.percentile)
            hits[at] += found.ends is not None and found.ends[0] <= true_K[of] <= found.ends[1]
        of_slope = estimate(
            float(slope_in_k(ks, passes.mean(axis=0))), slope_in_k(ks, drawn_BK), n_items, Recipe.uncentred
        )
        tail = fit_tail(Shape.beta, items).a
        for at, (found, truth) in enumerate(((of_slope, slope), (tail, a)), 2):
            hits[at] += found.ends is not None and found.ends[0] <= truth <= found.ends[1]
    lowest, highest = (0.9, 0.99) if n_draws > 100 else (0.5, 1.0)
    assert np.all((lowest <= hits / n_draws) & (hits / n_draws <= highest)), hits / n_draws


@few_or_all(8, 300)
def test_intervals_of_forecasts_hold_what_a_hundred_times_the_samples_give(n_draws: int) -> None:
    hits = 0
    for draw in range(n_draws):
        rng = np.random.default_rng(draw)
        p_I = rng.beta(0.4, 12.0, 128)
        items, k = counted(rng.binomial(100, p_I).tolist(), 100), 10_000
        truth, found = float(np.mean(1 - (1 - p_I) ** k)), forecast("beta", items, k).passes
        hits += found.ends is not None and found.ends[0] <= truth <= found.ends[1]
    lowest, highest = (0.9, 0.99) if n_draws > 100 else (0.5, 1.0)
    assert lowest <= hits / n_draws <= highest, hits / n_draws


@pytest.mark.long
@pytest.mark.parametrize("shape", Shape)
def test_goodness_of_fit_rejects_the_truth_at_its_level(shape: Shape) -> None:
    ps = []
    for draw in range(200):
        rng = np.random.default_rng(draw)
        y = rng.random(100)
        p_I = rng.beta(0.4, 12.0, 100) if shape is Shape.beta else (1 - (1 - y) ** (1 / 5.0)) ** (1 / 0.4)
        items = counted(rng.binomial(300, p_I).tolist(), 300)
        p = goodness_p(fit_tail(shape, items), items, draw)
        assert p is not None
        ps.append(p)
    assert plausible(sum(p >= 0.05 for p in ps), 200)
    assert kstest(ps, "uniform").pvalue > 0.001


def test_sampling_hits_as_often_as_probabilities_say() -> None:
    import torch

    from experiments.attempts import attempts

    generator = torch.Generator().manual_seed(0)
    logits = torch.tensor([[0.0, 1.0, 2.0], [1.0, 0.0, 0.0]])
    p = float(torch.softmax(logits[0].double(), -1)[2] * torch.softmax(logits[1].double(), -1)[0])
    hits = attempts(logits, torch.tensor([2, 0]), 20_000, generator)
    assert binom.ppf(1e-4, 20_000, p) <= hits <= binom.ppf(1 - 1e-4, 20_000, p)
