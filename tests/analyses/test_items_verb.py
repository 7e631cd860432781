"""Items of tasks by real commands: what the store holds of them, what `items` prints, and what laws are about."""

import json
import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rbpx.analyses.items.exact_match import exact_match
from rbpx.laws.intervals.estimate import document_weights, of_share
from tests.support.commands import here
from tests.support.stores import Measured

WORDS = ("salt", "rope", "boat", "a light", "the keeper of it")
KEYS = ("dataset.choices=c", "dataset.right=r", "dataset.category=s", "dataset.domains={sea: [ship, fish]}")
TEMPLATE = ('dataset.template="Q: {q}\\nA:"', 'dataset.delimiter=" "')


def rows(n: int) -> list[dict[str, Any]]:
    kinds = ("ship", "fish", "law")
    return [
        {"q": f"which {n}", "c": [WORDS[n % 5], WORDS[(n + 2) % 5], "none"], "r": n % 3, "s": kinds[n % 3]}
        for n in range(n)
    ]


def write(path: Path, items: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(item) + "\n" for item in items))
    return path


def ask(store: Path, cwd: Path, *words: str) -> list[dict[str, Any]]:
    answer: list[dict[str, Any]] = json.loads(
        here(*words, "--store", store, "--format", "json", cwd=cwd, check=0).stdout
    )
    return answer


@pytest.fixture(scope="module")
def store(tiny_checkpoint: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("items")
    (folder / "cwd").mkdir()
    path = write(folder / "quiz.jsonl", rows(30))
    words = ("measure", "model=hub", f"model.id={tiny_checkpoint('gpt2', hidden_size=16)}", "model.family=tiny")
    here(
        *words, "dataset=file", f"dataset.path={path}", *KEYS, *TEMPLATE, "--store", folder / "s",
        cwd=folder / "cwd", check=0,
    )  # fmt: skip
    return folder / "s"


def test_scores_are_those_of_the_tokens_by_hand(store: Path, cwd: Path) -> None:
    query = "SELECT item, choice, correct, sum(logprob::DOUBLE) AS ll, max(greater) AS worst FROM tokens GROUP BY ALL"
    tokens = {(row["item"], row["choice"]): row for row in ask(store, cwd, "sql", query)}
    of_item = {row["q"]: (n, row) for n, row in enumerate(rows(30))}
    drawn = ask(store, cwd, "sql", "SELECT item, source_id::INT - 1 AS row FROM documents WHERE correct ORDER BY item")
    right, by_characters, nats, n_bytes = [], [], [], 0
    for each in drawn:
        row = rows(30)[each["row"]]
        ll = np.array([tokens[each["item"], choice]["ll"] for choice in range(3)])
        assert [tokens[each["item"], choice]["correct"] for choice in range(3)] == [n == row["r"] for n in range(3)]
        right.append(int(np.argmax(ll)) == row["r"])
        by_characters.append(int(np.argmax(ll / [len(choice) for choice in row["c"]])) == row["r"])
        nats.append(-ll[row["r"]])
        n_bytes += len(" " + row["c"][row["r"]])
    assert len(of_item) == len(drawn) == 30
    (total,) = (row for row in ask(store, cwd, "items", "k=[1,10]", "resamples=50") if row["kind"] == "items")
    assert (total["acc"], total["acc_norm"]) == (np.mean(right), np.mean(by_characters))
    assert total["acc_stderr"] == pytest.approx(np.std(right, ddof=1) / math.sqrt(30))  # as in the harness
    shown = here("items", "--store", store, cwd=cwd, check=0).stdout
    both = {f"{total[name]:.3f}" for name in ("acc", "acc_stderr")}
    assert any(both <= set(line.split()) for line in shown.splitlines())
    assert total["chance"] == pytest.approx(1 / 3)
    n_right = round(total["acc"] * 30)
    ways = sum(math.comb(30, n) * 2 ** (30 - n) for n in range(n_right, 31))
    assert total["p_chance"] == pytest.approx(ways / 3**30)
    assert total["perplexity"] == pytest.approx(math.exp(np.mean(nats)), rel=1e-6)
    assert total["bits_per_byte"] == pytest.approx(sum(nats) / math.log(2) / n_bytes, rel=1e-6)
    assert total["acc_lo"] < total["acc"] < total["acc_hi"]


def test_of_equal_choices_the_first_counts_and_such_items_are_counted(
    tiny_checkpoint: Callable[..., Path], tmp_path: Path, cwd: Path
) -> None:
    items = [{"q": f"which {n}", "c": [WORDS[n % 5], "none", WORDS[n % 5]], "r": (0, 2)[n % 2]} for n in range(16)]
    words = ("measure", "model=hub", f"model.id={tiny_checkpoint('gpt2', hidden_size=16)}", *KEYS[:2], *TEMPLATE)
    path = write(tmp_path / "twice.jsonl", items)
    store = tmp_path / "s"
    here(*words, "dataset=file", f"dataset.path={path}", "tokens_per_batch=64", "--store", store, cwd=cwd, check=0)
    by_choice = "SELECT item, choice, correct, list(logprob ORDER BY position) AS logprobs FROM tokens GROUP BY ALL"
    told = {(row["item"], row["choice"]): row for row in ask(store, cwd, "sql", by_choice)}
    right, tied = [], []
    for item in range(16):
        first, other, last = (told[item, choice] for choice in range(3))
        assert first["logprobs"] == last["logprobs"]
        wins = sum(first["logprobs"]) > sum(other["logprobs"])
        right.append(wins and first["correct"])
        tied.append(wins)
    assert 0 < sum(right) < sum(tied)
    (total,) = (row for row in ask(store, cwd, "items", "k=1", "resamples=50") if row["kind"] == "items")
    assert (total["acc"], total["n_tied"]) == (np.mean(right), sum(tied))
    said = here("items", "k=1", "--store", store, cwd=cwd, check=0).stdout
    assert f"{sum(tied)} right choices tie with another; the first one counts." in " ".join(said.split())


def test_laws_are_about_right_choices_alone(store: Path, cwd: Path) -> None:
    (run,) = ask(store, cwd, "sql", "FROM runs")
    (truth,) = ask(
        store,
        cwd,
        "sql",
        "SELECT count(*) AS n, -avg(logprob::DOUBLE) AS ce, avg((greater + ties < 10)::INT) AS rbp FROM tokens "
        "WHERE correct",
    )
    assert (run["n_tokens"], run["n_documents"], run["protocol"]) == (truth["n"], 30, "harness")
    assert run["cross_entropy_nats"] == pytest.approx(truth["ce"], rel=1e-6)
    (rbp,) = ask(store, cwd, "sql", "SELECT rbp, n_tokens FROM rbp_at(10, 'pessimistic')")
    assert (rbp["rbp"], rbp["n_tokens"]) == (pytest.approx(truth["rbp"]), truth["n"])
    (units,) = ask(store, cwd, "units", "resamples=50")
    assert units["nats_per_token"] == pytest.approx(truth["ce"], rel=1e-6)
    assert here("store", "verify", "--store", store, cwd=cwd, check=0)


def test_two_models_are_compared_on_right_choices_alone(
    tiny_checkpoint: Callable[..., Path], tmp_path: Path, cwd: Path
) -> None:
    for seed in (0, 1):
        model = tiny_checkpoint("gpt2", hidden_size=16, seed=seed)
        here(
            *("measure", "model=hub", f"model.id={model}", f"model.family=of_{seed}", "dataset=file"),
            *(f"dataset.path={write(tmp_path / 'quiz.jsonl', rows(30))}", *KEYS, *TEMPLATE, "--store", tmp_path / "s"),
            cwd=cwd, check=0, writes=True,
        )  # fmt: skip
    query = """
        SELECT family, sum(t.n_bytes)::BIGINT AS bytes, avg((greater + ties < 10)::INT) AS rbp,
          -sum(logprob::DOUBLE) / ln(2) / sum(t.n_bytes) AS bits
        FROM tokens AS t JOIN runs USING (run_id) WHERE correct GROUP BY family ORDER BY family"""
    truth = ask(tmp_path / "s", cwd, "sql", query)
    runs = ask(tmp_path / "s", cwd, "sql", "SELECT family, run_id FROM runs ORDER BY family")
    a, b = (row["run_id"] for row in runs)
    found = ask(tmp_path / "s", cwd, "compare", a, b, "k=10")
    text = next(row for row in found if row["kind"] == "part" and row["by"] == "text")
    (hits,) = (row for row in found if row["kind"] == "hits")
    assert (text["documents"], text["n_bytes"]) == (30, truth[0]["bytes"])
    assert (text["bits_a"], text["bits_b"]) == pytest.approx((truth[0]["bits"], truth[1]["bits"]), rel=1e-6)
    assert (hits["rbp_a"], hits["rbp_b"]) == pytest.approx((truth[0]["rbp"], truth[1]["rbp"]))


def test_slices_are_the_categories_of_the_items(store: Path, cwd: Path) -> None:
    by_slice = {
        row["slice"]: row["n_items"]
        for row in ask(store, cwd, "items", "k=1", "slices=category", "resamples=50")
        if row["kind"] == "items"
    }
    assert by_slice == {None: 30, "fish": 10, "law": 10, "ship": 10}
    domains = ask(store, cwd, "sql", "SELECT DISTINCT category, domain FROM documents")
    assert {row["category"]: row["domain"] for row in domains} == {"ship": "sea", "fish": "sea", "law": None}


def test_a_target_that_joins_its_context_or_leaves_it_no_room_is_named(
    tiny_checkpoint: Callable[..., Path], tmp_path: Path, cwd: Path
) -> None:
    words = ("measure", "model=hub", f"model.id={tiny_checkpoint('gpt2', hidden_size=16)}", "dataset=file")
    words = (*words, "dataset.context=[q]", "dataset.target=a", "--store", str(tmp_path / "s"))
    long = write(tmp_path / "long.jsonl", [{"q": "x", "a": "The sea. " * 60}])
    said = here(*words, f"dataset.path={long}", cwd=cwd, check=2).stderr
    assert "item 1 has a target of" in said
    assert "leaves no room for the context" in said
    joined = write(tmp_path / "joined.jsonl", [{"q": "th", "a": "e"}])
    said = here(*words, f"dataset.path={joined}", cwd=cwd, check=2).stderr
    assert "item 1 has the target 'e', which the tokenizer joins to its context" in said


def test_texts_that_the_harness_would_read_have_bits_per_byte_and_perplexities(
    tiny_checkpoint: Callable[..., Path], tiny_jsonl: Path, tiny_text: list[str], tmp_path: Path, cwd: Path
) -> None:
    model = f"model.id={tiny_checkpoint('gpt2', hidden_size=16)}"
    words = ("dataset=file", f"dataset.path={tiny_jsonl}", "protocol=harness")
    here("measure", "model=hub", model, *words, "--store", tmp_path / "s", cwd=cwd, check=0)
    (row,) = ask(tmp_path / "s", cwd, "items", "resamples=50")
    (total,) = ask(tmp_path / "s", cwd, "sql", "SELECT -sum(logprob::DOUBLE) AS nats, count(*) AS n FROM tokens")
    n_bytes, n_words = (sum(map(count, tiny_text)) for count in (lambda t: len(t.encode()), lambda t: len(t.split())))
    assert row["bits_per_byte"] == pytest.approx(total["nats"] / math.log(2) / n_bytes, rel=1e-9)
    n_words += sum(text != text.strip() for text in tiny_text)  # the harness counts what is behind the last line end
    assert row["word_perplexity"] == pytest.approx(math.exp(total["nats"] / n_words), rel=1e-9)
    assert (row["n_items"], row["acc"], row["perplexity"]) == (len(tiny_text), None, None)
    assert "bits/byte" in here("items", "--store", tmp_path / "s", cwd=cwd, check=0).stdout


def test_a_store_without_items_says_so(untouched: Any, cwd: Path) -> None:
    said = here("items", "--store", untouched.store, cwd=cwd, check=2).stderr
    assert "has items; measure some" in said


def test_exact_match_is_that_of_a_loop_over_the_items() -> None:
    generator = np.random.default_rng(3)
    ranks = [generator.integers(1, 4, size=n).astype(float) for n in generator.integers(1, 6, size=40)]
    weights = document_weights(40, 50, 0)
    for chosen in (np.ones(40, bool), np.arange(40) % 3 == 0):
        match = exact_match(ranks, weights, chosen, 2)
        own = [ranks[n] <= 2 for n in np.flatnonzero(chosen)]
        p = np.concatenate(own).mean()
        assert match.rbp == pytest.approx(p)
        assert match.measured.value == np.mean([hits.all() for hits in own])
        assert match.independent.value == pytest.approx(np.mean([p ** len(hits) for hits in own]))
        pairs = [(a, b) for hits in own for i, a in enumerate(hits) for j, b in enumerate(hits) if i != j]
        rho = np.mean([(a - p) * (b - p) for a, b in pairs]) / (p * (1 - p))
        assert match.rho == pytest.approx(rho)
        a, b = p * (1 / rho - 1), (1 - p) * (1 / rho - 1)
        expected = np.mean([np.prod([(a + i) / (a + b + i) for i in range(len(hits))]) for hits in own])
        assert match.correlated.value == pytest.approx(expected)


def test_items_that_are_alike_are_predicted_by_their_correlation_and_not_by_independence() -> None:
    generator = np.random.default_rng(5)
    ease = generator.beta(2, 1, size=3000)
    ranks = [np.where(generator.random(8) < p, 1.0, 9.0) for p in ease]
    match = exact_match(ranks, document_weights(3000, 100, 0), np.ones(3000, bool), 1)
    lo, hi = match.measured.lo, match.measured.hi
    assert lo is not None and hi is not None and match.correlated.value is not None  # noqa: PT018
    assert lo < match.correlated.value < hi
    assert match.independent.hi is not None
    assert match.independent.hi < lo


def test_the_interval_of_a_share_holds_it_at_its_level_and_at_the_ends() -> None:
    generator = np.random.default_rng(7)
    for share in (0.02, 0.3, 0.9):
        ends = [of_share(int(hits), 60) for hits in generator.binomial(60, share, 2000)]
        assert 0.92 < np.mean([each.lo <= share <= each.hi for each in ends]) <= 0.98  # type: ignore[operator]
    none, every = of_share(0, 20), of_share(20, 20)
    assert none.ends == (0.0, pytest.approx(0.1611, abs=1e-4))  # 3.84 / (20 + 3.84)
    assert every.ends == (pytest.approx(0.8389, abs=1e-4), 1.0)


@pytest.fixture(scope="module")
def ladder_of_items(measured: Measured, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four models of a family on items without choices, of targets of one to three tokens."""
    folder = tmp_path_factory.mktemp("lengths")
    (folder / "cwd").mkdir()
    items = [{"q": f"Letter {n} is about the", "a": (" e", " sea", " harbour e")[n % 3]} for n in range(18)]
    path = write(folder / "items.jsonl", items)
    words = measured.family.words(text=path)
    here("measure", *words, "dataset.context=[q]", "dataset.target=a", "--store", folder / "s",
         cwd=folder / "cwd", check=0)  # fmt: skip
    return folder / "s"


def test_the_law_of_emergence_is_fitted_to_items_of_their_own_lengths(ladder_of_items: Path, cwd: Path) -> None:
    k = 100
    rows = ask(ladder_of_items, cwd, "items", f"k={k}", "resamples=50")
    laws = {row["correction"]: row for row in rows if row["kind"] == "law"}
    assert set(laws) == {"none", "measured", "free"}
    query = f"""
        SELECT r.non_embedding_params AS S, count(*) AS n, (max(t.greater + t.ties) < {k})::INT AS passed
        FROM tokens AS t JOIN runs AS r USING (run_id) GROUP BY r.run_id, S, t.doc_id"""
    items = ask(ladder_of_items, cwd, "sql", query)
    S, n, passed = (np.array([row[name] for row in items], float) for name in ("S", "n", "passed"))
    assert len(set(n)) > 1
    alpha, C = laws["none"]["alpha"], laws["none"]["C"]

    def ln_likelihood(C: float, alpha: float) -> float:
        ln_p = -n * C * S**-alpha
        return float(np.sum(np.where(passed == 1, ln_p, np.log(-np.expm1(ln_p)))))

    best = ln_likelihood(C, alpha)
    assert laws["none"]["aic"] == pytest.approx(4 - 2 * best)
    for step in (0.99, 1.01):  # nothing beside it is likelier
        assert ln_likelihood(C * step, alpha) < best
        assert ln_likelihood(C * float(np.exp((step - 1) * np.log(S).mean())), alpha + step - 1) < best
    assert "The law of emergence on items" in here("items", "--store", ladder_of_items, cwd=cwd, check=0).stdout


def test_success_is_drawn_against_size_and_an_item_is_shown_with_its_context(ladder_of_items: Path, cwd: Path) -> None:
    plot = here("items", "k=[1,100]", "--plot", "--store", ladder_of_items, cwd=cwd, check=0).stdout
    assert "Success against size on" in plot
    assert {"● greedy", "■ exact match at 100"} <= {line.strip() for line in plot.splitlines()}
    shown = here("view", "doc=4", "--store", ladder_of_items, cwd=cwd, check=0).stdout
    (row,) = ask(ladder_of_items, cwd, "sql", "SELECT DISTINCT source_id FROM documents WHERE item = 4")
    assert f"Letter {int(row['source_id']) - 1} is about the" in shown
    ranks = ask(
        ladder_of_items, cwd, "sql",
        "SELECT size, list(greater + ties + 1 ORDER BY position) AS ranks, exp(sum(logprob::DOUBLE)) AS p "
        "FROM tokens JOIN runs USING (run_id) WHERE doc_id = 4 GROUP BY size",
    )  # fmt: skip
    for each in ranks:
        (line,) = (line for line in shown.splitlines() if line.strip().startswith(f"mine/{each['size']} "))
        assert line.split()[3:] == [str(rank) for rank in each["ranks"]]
        assert float(line.split()[2]) == pytest.approx(each["p"], rel=0.01)


def test_an_item_has_its_ranks_under_every_model_on_its_page(ladder_of_items: Path, tmp_path: Path, cwd: Path) -> None:
    output = tmp_path / "item.html"
    here("view", "doc=4", "--format", "html", "--output", output, "--store", ladder_of_items, cwd=cwd, check=0)
    query = """SELECT size, list(greater + ties + 1 ORDER BY position) AS ranks, exp(sum(logprob::DOUBLE)) AS p
        FROM tokens JOIN runs USING (run_id) WHERE doc_id = 4 GROUP BY size, run_id"""
    rows = ET.fromstring(re.search(r"<tbody>.*?</tbody>", output.read_text(), re.DOTALL)[0]).findall("tr")
    shown = {row[0].text: (float(row[2].text), [int(rank) for rank in row[3].text.split()]) for row in rows}
    for each in ask(ladder_of_items, cwd, "sql", query):
        probability, ranks = shown[f"mine/{each['size']}"]
        assert probability == pytest.approx(each["p"], rel=0.01)
        assert ranks == each["ranks"]


def test_an_item_whose_file_has_changed_is_shown_without_its_context(ladder_of_items: Path, cwd: Path) -> None:
    path = ladder_of_items.parent / "items.jsonl"
    written = path.read_text()
    try:
        path.write_text(written.replace("Letter", "Parcel"))
        shown = here("view", "doc=4", "fresh=true", "--store", ladder_of_items, cwd=cwd, check=0).stdout
    finally:
        path.write_text(written)
    assert "is about the" not in shown
    assert "ranks of its tokens" in shown


def test_items_stand_on_the_page_of_a_report(ladder_of_items: Path, tmp_path: Path, cwd: Path) -> None:
    here("report", "resamples=50", "--store", ladder_of_items, "--output", tmp_path / "r.html", cwd=cwd, check=0)
    page = (tmp_path / "r.html").read_text()
    assert "Success against size" in page
    assert "one by one" in page
    assert "is about the" in page
