"""Items of tasks: what the store holds of them, what `items` and `view` say, and what laws are about."""

import math
import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from rbpx.laws.intervals.estimate import document_weights, of_share
from rbpx.questions.items.exact_match import exact_match
from tests.support import quiz
from tests.support.asking import Asked, ask
from tests.support.composed import here
from tests.support.stores import Family, columns_of, manifests, runs_by_size

ITEMS = quiz.items(36, n_twice=6)


@pytest.fixture(scope="module")
def store(tiny_checkpoint: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("items")
    path = quiz.written(folder / "quiz.jsonl", ITEMS)
    return quiz.measured(folder / "s", path, tiny_checkpoint("gpt2", hidden_size=16), "model.family=tiny")


@pytest.fixture(scope="module")
def tokens(store: Path) -> dict[str, Any]:
    """The tokens of the only run."""
    (run_id,) = manifests(store)
    return columns_of(store / "runs" / run_id, "tokens")


@pytest.fixture(scope="module")
def told(store: Path) -> Asked:
    return ask(store, "items", k=[1, 10], slices="category", resamples=50)


def test_scores_are_those_of_the_tokens_by_hand(store: Path, tokens: dict[str, Any], told: Asked) -> None:
    nats_of: dict[tuple[int, int], list[float]] = defaultdict(list)
    for item, choice, logprob in zip(tokens["item"], tokens["choice"], tokens["logprob"], strict=True):
        nats_of[item, choice].append(-float(logprob))
    right_of = dict(zip(zip(tokens["item"], tokens["choice"], strict=True), tokens["correct"], strict=True))
    (run_id,) = manifests(store)
    documents = columns_of(store / "runs" / run_id, "documents")
    row_of = {item: int(line) - 1 for item, line in zip(documents["item"], documents["source_id"], strict=True)}
    assert sorted(row_of.values()) == list(range(36))
    right, by_characters, tied, nats, n_bytes = [], [], [], [], 0
    for item, row in row_of.items():
        asked = ITEMS[row]
        of_item = np.array([sum(nats_of[item, choice]) for choice in range(3)])
        assert [right_of[item, choice] for choice in range(3)] == [n == asked["r"] for n in range(3)]
        right.append(int(np.argmin(of_item)) == asked["r"])  # of equal choices the first counts
        by_characters.append(int(np.argmin(of_item / [len(choice) for choice in asked["c"]])) == asked["r"])
        nats.append(of_item[asked["r"]])
        n_bytes += len(" " + asked["c"][asked["r"]])
        tied.append(asked["c"][0] == asked["c"][2] and of_item[0] < of_item[1])
    (total,) = (row for row in told.of_kind("items") if row["slice"] is None)
    by_slice = {row["slice"]: row["n_items"] for row in told.of_kind("items")}
    assert by_slice == {None: 36, "fish": 12, "law": 12, "ship": 12}
    assert (total["acc"], total["acc_norm"], total["n_tied"]) == (np.mean(right), np.mean(by_characters), sum(tied))
    assert total["acc_stderr"] == pytest.approx(np.std(right, ddof=1) / math.sqrt(36))  # as in the harness
    assert total["acc_lo"] < total["acc"] < total["acc_hi"]
    assert total["chance"] == pytest.approx(1 / 3)
    ways = sum(math.comb(36, n) * 2 ** (36 - n) for n in range(sum(right), 37))
    assert total["p_chance"] == pytest.approx(ways / 3**36)
    assert total["perplexity"] == pytest.approx(math.exp(np.mean(nats)), rel=1e-6)
    assert total["bits_per_byte"] == pytest.approx(sum(nats) / math.log(2) / n_bytes, rel=1e-6)
    assert sum(tied) > 0


def test_laws_are_about_right_choices_alone(store: Path, tokens: dict[str, Any], cwd: Path) -> None:
    ((run_id, run),) = manifests(store).items()
    right = tokens["correct"].astype(bool)
    nats = -tokens["logprob"][right].mean(dtype=np.float64)
    assert (run["n_tokens"], run["n_documents"], run["protocol"]) == (right.sum(), 36, "harness")
    (units,) = ask(store, "units", resamples=50).rows
    assert (run["cross_entropy_nats"], units["nats_per_token"]) == pytest.approx((nats, nats), rel=1e-6)
    counts = columns_of(store / "runs" / run_id, "rank_counts")
    hits = counts["n_tokens"][counts["greater"] + counts["ties"] < 10].sum()
    assert hits == ((tokens["greater"] + tokens["ties"])[right] < 10).sum()
    assert here("store", "verify", "--store", store, cwd=cwd, check=0)


def test_texts_that_the_harness_would_read_have_bits_per_byte_and_perplexities(
    tiny_checkpoint: Callable[..., Path], tiny_jsonl: Path, tiny_text: list[str], tmp_path: Path, cwd: Path
) -> None:
    model = f"model.id={tiny_checkpoint('gpt2', hidden_size=16)}"
    words = ("dataset=file", f"dataset.path={tiny_jsonl}", "protocol=harness")
    here("measure", "model=hub", model, *words, "--store", tmp_path / "s", cwd=cwd, check=0)
    asked = ask(tmp_path / "s", "items", resamples=50)
    (row,) = asked.rows
    (run_id,) = manifests(tmp_path / "s")
    nats = -columns_of(tmp_path / "s" / "runs" / run_id, "tokens")["logprob"].sum(dtype=np.float64)
    n_bytes, n_words = (sum(map(count, tiny_text)) for count in (lambda t: len(t.encode()), lambda t: len(t.split())))
    assert row["bits_per_byte"] == pytest.approx(nats / math.log(2) / n_bytes, rel=1e-9)
    n_words += sum(text != text.strip() for text in tiny_text)  # the harness counts what is behind the last line end
    assert row["word_perplexity"] == pytest.approx(math.exp(nats / n_words), rel=1e-9)
    assert (row["n_items"], row["acc"], row["perplexity"]) == (len(tiny_text), None, None)
    assert "bits/byte" in asked.words


def test_exact_match_is_that_of_a_loop_over_the_items() -> None:
    generator = np.random.default_rng(3)
    ranks = [generator.integers(1, 4, size=n).astype(float) for n in generator.integers(1, 6, size=40)]
    weights = document_weights(40, 50, 0)
    for chosen in (np.ones(40, bool), np.arange(40) % 3 == 0):
        match = exact_match(ranks, weights, chosen, 2)
        own = [ranks[n] <= 2 for n in np.flatnonzero(chosen)]
        p = np.concatenate(own).mean()
        assert match["rbp"] == pytest.approx(p)
        assert match["measured"] == np.mean([hits.all() for hits in own])
        assert match["independent"] == pytest.approx(np.mean([p ** len(hits) for hits in own]))
        pairs = [(a, b) for hits in own for i, a in enumerate(hits) for j, b in enumerate(hits) if i != j]
        rho = np.mean([(a - p) * (b - p) for a, b in pairs]) / (p * (1 - p))
        assert match["rho"] == pytest.approx(rho)
        a, b = p * (1 / rho - 1), (1 - p) * (1 / rho - 1)
        expected = np.mean([np.prod([(a + i) / (a + b + i) for i in range(len(hits))]) for hits in own])
        assert match["correlated"] == pytest.approx(expected)


@pytest.mark.parametrize("n", [5, 20, 100, 500])
def test_the_interval_of_a_share_holds_every_share_at_its_level(n: int) -> None:
    """The exact rate, by the binomial distribution; near 1 it is the worst case of other intervals."""
    lo, hi = np.array([of_share(hits, n).ends for hits in range(n + 1)], np.float64).T
    shares = np.concatenate([np.linspace(0.001, 0.999, 300), 1 - np.array([0.05, 0.18, 0.5, 1, 2, 4]) / n])
    for share in shares:
        held = (lo <= share) & (share <= hi)
        assert binom.pmf(np.arange(n + 1), n, share)[held].sum() >= 0.95
    # None or all of them are hits: where they come 2.5 times of 100 with independent items.
    assert (lo[0], hi[-1]) == (0.0, 1.0)
    assert (hi[0], lo[-1]) == pytest.approx((1 - 0.025 ** (1 / n), 0.025 ** (1 / n)))


@pytest.fixture(scope="module")
def ladder_of_items(family: Family, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four models of a family on items without choices, of targets of one to three tokens."""
    folder = tmp_path_factory.mktemp("lengths")
    (folder / "cwd").mkdir()
    items = [{"q": f"Letter {n} is about the", "a": (" e", " sea", " harbour e")[n % 3]} for n in range(18)]
    words = family.words(text=quiz.written(folder / "items.jsonl", items))
    here("measure", *words, "dataset.context=[q]", "dataset.target=a", "--store", folder / "s",
         cwd=folder / "cwd", check=0)  # fmt: skip
    return folder / "s"


def test_the_law_of_emergence_is_fitted_to_items_of_their_own_lengths(ladder_of_items: Path) -> None:
    k, items = 100, []
    asked = ask(ladder_of_items, "items", k=k, resamples=50)
    laws = {row["correction"]: row for row in asked.of_kind("law")}
    assert set(laws) == {"none", "measured", "free"}
    for run in runs_by_size(ladder_of_items).values():
        rank = run["greater"] + run["ties"] + 1
        for item in np.unique(run["doc_id"]):
            own = rank[run["doc_id"] == item]
            items.append((run["non_embedding_params"], len(own), (own <= k).all()))
    S, n, passed = np.array(items, float).T
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
    assert "The law of emergence on items" in asked.words


def test_an_item_has_its_context_and_its_ranks_under_every_model_on_its_page(
    ladder_of_items: Path, tmp_path: Path, cwd: Path
) -> None:
    output = tmp_path / "item.html"
    here("view", "doc=4", "--format", "html", "--output", output, "--store", ladder_of_items, cwd=cwd, check=0)
    page, runs = output.read_text(), runs_by_size(ladder_of_items)
    table = page.partition(">Item 4</summary>")[2].partition("</table>")[0]
    rows = [re.findall(r"<td[^>]*>([^<]*)", row) for row in table.partition("<tbody>")[2].split("<tr>")[1:]]
    for (size, run), row in zip(runs.items(), rows, strict=True):
        own = run["doc_id"] == 4
        assert row[0] == f"mine/{size}"
        assert float(row[2]) == pytest.approx(math.exp(run["logprob"][own].sum(dtype=np.float64)), rel=0.01)
        assert [int(rank) for rank in row[3].split()] == (run["greater"] + run["ties"] + 1)[own].tolist()
    documents = columns_of(ladder_of_items / "runs" / runs["l"]["run_id"], "documents")
    (line,) = documents["source_id"][documents["doc_id"] == 4]
    assert f"Letter {int(line) - 1} is about the" in page


def test_an_item_whose_file_has_changed_is_shown_without_its_context(ladder_of_items: Path) -> None:
    path = ladder_of_items.parent / "items.jsonl"
    path.write_text(path.read_text().replace("Letter", "Parcel"))
    shown = ask(ladder_of_items, "view", doc=4).table()
    assert "is about the" not in shown
    assert "ranks of its tokens" in shown
