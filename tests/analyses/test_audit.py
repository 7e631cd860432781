"""Runs measured again in float32: what moved as a loop over tokens counts it, what is refused, intervals that hold."""

import csv
import io
import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rbpx.analyses.audit.analysis import ROUNDING, Moves, Remeasured, analyse, count_moves
from rbpx.config.request import Request
from rbpx.files.digest import read_sealed, write_sealed
from rbpx.groups.group import Group, Run
from rbpx.groups.shifts import shift
from rbpx.store.sql.queries import ask_beside, connect
from rbpx.store.store import Store
from rbpx.ties import Ties
from tests.support.commands import Answer, here
from tests.support.stores import (
    SHAPES,
    Family,
    Measured,
    build_member,
    columns_of,
    rank_by_hand,
    reseal,
    run_folders,
    runs_by_size,
    snapshot,
    write_jsonl,
)

Rows = list[dict[str, Any]]
QUICK = "resamples=50"


def rows(store: Path, cwd: Path, *words: object, check: int = 0) -> Rows:
    answer = here("audit", QUICK, *words, "--store", store, "--format", "json", cwd=cwd, check=check)
    return list(json.loads(answer.stdout))


def of_run(found: Rows, size: str, law: str = "rbp", k: int | None = None) -> dict[str, Any]:
    (row,) = [r for r in found if (r["kind"], r.get("size"), r["law"], r["k"]) == ("run", size, law, k)]
    return row


@pytest.fixture(scope="module")
def both(measured: Measured, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the family in float32 and in bfloat16; do not write into it."""
    place = tmp_path_factory.mktemp("both")
    store, cwd = Path(shutil.copytree(measured.store, place / "store")), place / "cwd"
    cwd.mkdir()
    here("measure", *measured.family.words(), "dtype=bfloat16", "--store", store, cwd=cwd, check=0)
    return store


@pytest.fixture(scope="module")
def found(both: Path, tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """The rows of the bfloat16 runs."""
    return rows(both, tmp_path_factory.mktemp("cwd"), "dtype=bfloat16", "k=[1,10]")


def pairs_by_hand(store: Path, size: str, doc_ids: set[int] | None = None) -> list[tuple[Any, Any]]:
    """(bfloat16, float32) rows (greater, ties, logprob) of the tokens of both runs of a size."""
    sides = []
    for dtype in ("bfloat16", "float32"):
        run = runs_by_size(store, dtype)[size]
        names = ("doc_id", "position", "token_id", "greater", "ties", "logprob")
        tokens = zip(*(run[name].tolist() for name in names), strict=True)
        sides.append({row[:3]: row[3:] for row in tokens if doc_ids is None or row[0] in doc_ids})
    assert sides[0].keys() == sides[1].keys()
    return [(sides[0][token], sides[1][token]) for token in sides[0]]


# ---------------------------------------------------------------------------------------------------------- numbers


@pytest.mark.parametrize("ties", ["pessimistic", "mid"])
def test_what_moved_is_what_a_loop_over_both_runs_counts(ties: str, both: Path, cwd: Path) -> None:
    share = {"pessimistic": 1.0, "mid": 0.5}[ties]
    found = rows(both, cwd, "dtype=bfloat16", f"ties={ties}", "k=[1,10]")
    assert {row["dtype"] for row in found} == {"bfloat16"}
    crossed = 0
    for size in SHAPES:
        pairs = pairs_by_hand(both, size)
        ranks = [tuple(side[0] + share * side[1] + 1 for side in pair) for pair in pairs]
        moves = [abs(again - stored) for stored, again in ranks if again != stored]
        row = of_run(found, size, "cross_entropy")
        assert row["n_tokens"] == len(pairs)
        assert row["n_changed"] == sum(one[:2] != other[:2] for one, other in pairs) > 0
        assert row["n_moved"] == len(moves) > 0
        assert (row["median_move"], row["largest_move"]) == (np.median(moves), max(moves))
        nats = [[-side[2] for side in pair] for pair in pairs]
        assert row["largest_logprob_move"] == pytest.approx(max(abs(a - b) for a, b in nats), rel=1e-12)
        means = [sum(side) / len(pairs) for side in zip(*nats, strict=True)]
        assert (row["stored"], row["again"]) == pytest.approx(tuple(means), rel=1e-9)
        assert row["difference"] == pytest.approx(means[1] - means[0], abs=1e-9)
        assert row["difference_lo"] <= row["difference"] <= row["difference_hi"]
        for k in (1, 10):
            row = of_run(found, size, k=k)
            hits = [sum(rank[side] <= k for rank in ranks) / len(ranks) for side in (0, 1)]
            assert (row["stored"], row["again"]) == pytest.approx(tuple(hits), rel=1e-12)
            assert row["n_lost"] == sum(stored <= k < again for stored, again in ranks)
            assert row["n_gained"] == sum(again <= k < stored for stored, again in ranks)
            assert row["difference"] * len(ranks) == pytest.approx(row["n_gained"] - row["n_lost"], abs=1e-9)
            crossed += row["n_lost"] + row["n_gained"]
    assert crossed > 0


def test_the_shift_of_alpha_is_that_between_two_lines(both: Path, found: Rows) -> None:
    laws = {(row["law"], row["k"]): row for row in found if row["kind"] == "law"}
    assert set(laws) == {("rbp", 1), ("rbp", 10), ("cross_entropy", None)}
    for (law, k), row in laws.items():
        alphas, losses = [], []
        for dtype in ("bfloat16", "float32"):
            runs = runs_by_size(both, dtype).values()
            S = [run["non_embedding_params"] for run in runs]
            if law == "rbp":
                y = [-np.log(np.mean(rank_by_hand(run, "pessimistic") <= k)) for run in runs]
            else:
                y = [-np.mean(run["logprob"].astype(np.float64)) for run in runs]
            losses.append(y)
            alphas.append(-np.polyfit(np.log(S), np.log(y), 1)[0])
        assert (row["stored"], row["again"]) == pytest.approx(tuple(alphas), rel=1e-9)
        assert row["difference"] == pytest.approx(alphas[1] - alphas[0], rel=1e-6, abs=1e-12)
        assert row["n_points"] == 4
        if losses[0] == losses[1]:  # no rank crossed k at any size
            assert (row["difference"], row["difference_lo"], row["status"]) == (0, None, "no_variation")
        else:
            assert row["difference_lo"] < row["difference"] < row["difference_hi"]
            assert row["status"] == "ok"
    assert {row["status"] for row in laws.values()} == {"ok", "no_variation"}


def test_a_sample_holds_the_same_documents_at_every_size(both: Path, cwd: Path) -> None:
    n_tokens = {row["doc_id"]: row["n_scored"] for row in documents_of(both)}
    seen = set()
    for seed in (1, 2):
        found = rows(both, cwd, "dtype=bfloat16", "limit=4", f"seed={seed}", "k=1")
        (n,) = {row["n_tokens"] for row in found if row["kind"] == "run"}
        assert {row["n_documents"] for row in found} == {4}
        whole = sorted(n_tokens.values())
        assert sum(whole[:4]) <= n <= sum(whole[-4:])
        seen.add(n)
    assert len(seen) > 1


def documents_of(store: Path) -> Rows:
    """The documents of one run."""
    folder = next(iter(run_folders(store).values()))
    return list(pq.read_table(folder / "documents.parquet").to_pylist())


def test_fifty_documents_are_measured_again_unless_a_limit_is_given(family: Family, cwd: Path, tmp_path: Path) -> None:
    text = write_jsonl(tmp_path / "many.jsonl", *(f"Letter {n} left the harbour." for n in range(60)))
    store = tmp_path / "store"
    here("measure", *family.words("xs", text=text), "--store", store, cwd=cwd, check=0)
    assert {row["n_documents"] for row in rows(store, cwd, "dtype=float32")} == {50}
    assert {row["n_documents"] for row in rows(store, cwd, "dtype=float32", "limit=1000")} == {60}


# ------------------------------------------------------------------------------------------------------- same results


def test_a_float32_run_comes_out_the_same_in_other_batches(both: Path, found: Rows, cwd: Path) -> None:
    again = [row for row in rows(both, cwd, "dtype=float32", "tokens_per_batch=64") if row["kind"] == "run"]
    assert {row["is_same"] for row in again} == {True}
    assert all(row["n_changed"] <= row["n_tokens"] / 1000 for row in again)
    assert {row["is_same"] for row in found if row["kind"] == "run"} == {None}


def rewrite_tokens(store: Path, size: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the stored tokens of a float32 run."""
    path = store / "runs" / runs_by_size(store)[size]["run_id"] / "tokens.parquet"
    table = pq.read_table(path)
    columns = {name: table[name].to_numpy().copy() for name in table.column_names}
    change(columns)
    pq.write_table(pa.table(columns, schema=table.schema), path)
    reseal(path.parent)


def test_a_float32_run_that_was_something_else_is_told(own_store: Path, cwd: Path) -> None:
    def change(columns: dict[str, Any]) -> None:
        columns["greater"][:5] += 7
        columns["logprob"][3] += 2 * ROUNDING.nats

    rewrite_tokens(own_store, "s", change)
    row = of_run(rows(own_store, cwd, "dtype=float32"), "s", k=1)
    assert (row["is_same"], row["n_changed"], row["n_moved"], row["median_move"]) == (False, 5, 5, 7)
    assert row["largest_logprob_move"] == pytest.approx(2 * ROUNDING.nats, rel=1e-2)
    shown = here("audit", QUICK, "dtype=float32", "--store", own_store, cwd=cwd, check=0).stdout
    (line,) = [line for line in shown.splitlines() if line.split()[:1] == ["s"] and line.split()[-1] == "no"]
    assert "%" in line


def test_tokens_that_are_cut_otherwise_now_are_not_compared(own_store: Path, cwd: Path) -> None:
    def change(columns: dict[str, Any]) -> None:
        columns["token_id"][0] += 1

    rewrite_tokens(own_store, "s", change)
    answer = here("audit", QUICK, "dtype=float32", "--store", own_store, cwd=cwd, check=1)
    assert_told(answer, "mine s on file", "other tokens")


# -------------------------------------------------------------------------------------------------------- refusals


def assert_told(answer: Answer, *names: str) -> None:
    """One line about one run, and what came of the others."""
    assert "Traceback" not in answer.stderr, answer.stderr[-2000:]
    (line,) = [line for line in answer.stderr.splitlines() if line.startswith("rbpx: ")]
    assert [name for name in names if name not in line] == [], line
    assert "3 sizes, 8 of 8 documents" in answer.stdout


@pytest.fixture
def moved(family: Family, cwd: Path, tmp_path: Path) -> tuple[Path, Family]:
    """A store of a family of which one model and the text may be changed."""
    folders = family.folders | {"s": build_member(tmp_path / "models" / "s", "s")}
    text = Path(shutil.copy(family.text, tmp_path / "own.jsonl"))
    own = Family(folders, text)
    here("measure", *own.words(), "--store", tmp_path / "store", cwd=cwd, check=0)
    return tmp_path / "store", own


@pytest.mark.parametrize("harm", ["weights", "tokenizer", "gone"])
def test_a_model_that_is_not_the_one_measured_is_refused_and_the_others_go_on(
    harm: str, moved: tuple[Path, Family], cwd: Path
) -> None:
    store, own = moved
    if harm == "weights":
        build_member(own.folders["s"], "s", seed=9)
    elif harm == "tokenizer":
        tokenizer = json.loads((own.folders["s"] / "tokenizer.json").read_text())
        tokenizer["model"]["merges"] = tokenizer["model"]["merges"][:-1]
        (own.folders["s"] / "tokenizer.json").write_text(json.dumps(tokenizer))
    else:
        shutil.rmtree(own.folders["s"])
    before = snapshot(store)
    answer = here("audit", QUICK, "dtype=float32", "--store", store, cwd=cwd, check=1)
    assert_told(answer, "mine s on own", {"gone": str(own.folders["s"])}.get(harm, f"{harm}_hash"))
    assert snapshot(store) == before
    (law,) = {row["n_points"] for row in rows(store, cwd, "dtype=float32", check=1) if row["kind"] == "law"}
    assert law == 3


def test_a_text_that_is_not_the_one_measured_is_refused(moved: tuple[Path, Family], cwd: Path) -> None:
    store, own = moved
    write_jsonl(own.text, "Another text.", "Than before.")
    answer = here("audit", QUICK, "dtype=float32", "size=xs", "--store", store, cwd=cwd, check=1)
    assert answer.stdout == ""
    assert "is not the text that was measured" in answer.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [(["dtype=float16"], "dtype=float16"), (["family=[nosuch]"], "status"), (["limit=0"], "limit=0")],
    ids=str,
)
def test_a_request_that_means_no_run_is_one_line(words: list[str], says: str, measured: Measured, cwd: Path) -> None:
    answer = here("audit", *words, "--store", measured.store, cwd=cwd, check=2)
    assert answer.stdout == ""
    (line,) = answer.stderr.splitlines()
    assert says in line


# ------------------------------------------------------------------------------------------------------ what is printed


def test_an_audit_writes_nothing_and_says_how_fast_it_was(both: Path, cwd: Path) -> None:
    before = snapshot(both)
    answer = here("audit", QUICK, "--store", both, cwd=cwd, check=0)
    assert snapshot(both) == before
    assert answer.stderr.count("tokens/s") == len(SHAPES)
    assert f"{len(SHAPES)} of {2 * len(SHAPES)} runs were measured in float32 by these versions" in answer.stderr
    lines = answer.stdout.splitlines()
    assert max(len(line) for line in lines if line.startswith(" ")) <= 80
    assert len(answer.stdout.splitlines()) <= 40
    assert "mine on file, window 64, bfloat16: Ranks measured again in float32, 8 of 8 documents" in lines
    assert "mine on file, window 64, bfloat16: alpha of the laws measured again in float32" in lines
    assert not any("window 64: " in line for line in lines)


def test_float32_runs_are_left_out_until_they_are_asked_for(measured: Measured, cwd: Path) -> None:
    answer = here("audit", QUICK, "--store", measured.store, cwd=cwd, check=0)
    assert (answer.stdout, answer.stderr.count("tokens/s")) == ("", 0)
    (line,) = answer.stderr.splitlines()
    assert "dtype=float32" in line
    answer = here("audit", QUICK, "dtype=float32", "--store", measured.store, cwd=cwd, check=0)
    (line,) = answer.stdout.splitlines()
    assert "no rank moved" in line
    assert answer.stderr.count("tokens/s") == len(SHAPES)


def test_a_float32_run_of_other_versions_is_measured_again(own_store: Path, cwd: Path) -> None:
    for size in ("s", "l"):
        path = own_store / "runs" / runs_by_size(own_store)[size]["run_id"] / "manifest.json"
        facts = read_sealed(path)
        write_sealed(path, facts | {"versions": facts["versions"] | {"torch": "1.0"}}, in_lines=True)
    answer = here("audit", QUICK, "--store", own_store, cwd=cwd, check=0)
    assert "2 of 4 runs" in answer.stderr
    assert answer.stderr.count("tokens/s") == 2


def test_the_rows_are_the_same_in_json_and_csv_and_over_a_sweep(both: Path, cwd: Path) -> None:
    asked = ("dtype=bfloat16", "size=[xs,s,m]", "k=[1,10]")
    found = rows(both, cwd, *asked)
    printed = here("audit", QUICK, *asked, "--store", both, "--format", "csv", cwd=cwd, check=0).stdout
    lines = list(csv.DictReader(io.StringIO(printed)))
    assert len(lines) == len(found) == 3 * 3 + 3
    for line, row in zip(lines, found, strict=True):
        assert {name: line[name] for name in row if row[name] is None} == {n: "" for n in row if row[n] is None}
        assert line["difference"] == ("" if row["difference"] is None else repr(row["difference"]))
    swept = rows(both, cwd, "-m", "dtype=bfloat16,float32", *asked[1:])
    assert [row for row in swept if row["dtype"] == "bfloat16"] == found
    assert len(swept) == 2 * len(found)


def test_rank_pairs_returns_what_its_header_says(both: Path) -> None:
    run = runs_by_size(both, "bfloat16")["s"]
    again = columns_of(both / "runs" / runs_by_size(both)["s"]["run_id"], "tokens")
    given = pa.table({name: again[name] for name in again if name != "run_id"})
    with connect(Store(both)) as connection:
        found = ask_beside(
            connection, given, "rank_pairs", run_id=run["run_id"], doc_ids=[0, 3], ties="pessimistic"
        ).to_pylist()
    header = ["doc_id", "rank", "rank_again", "n_tokens", "n_changed", "sum_logprob", "sum_logprob_again"]
    assert list(found[0]) == [*header, "largest_logprob_move"]
    in_sample = np.isin(run["doc_id"], [0, 3])
    assert sum(row["n_tokens"] for row in found if row["rank"] is not None) == in_sample.sum()
    alone = sum(row["n_tokens"] for row in found if row["rank"] is None)
    assert alone == (~np.isin(again["doc_id"], [0, 3])).sum() > 0  # tokens that only one of the two has


# -------------------------------------------------------------------------------------------------------- intervals

S = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
N_DOCUMENTS, N_TOKENS = 40, 50
ALPHA, SHIFT, NATS_SHIFT = 0.1, 0.004, 0.001


def drawn_run(size: int, z_D1: Any, rng: np.random.Generator) -> tuple[Run, pa.Table, dict[str, float]]:
    """A run whose ranks have Pr(R <= k) = exp(-level k^-0.35) on each side, and how far its quantities truly shift.

    Both sides share the luck of a token, as rounding changes little of it.
    """
    u_DT = norm_cdf(np.sqrt(0.3) * z_D1 + np.sqrt(0.7) * rng.normal(size=(N_DOCUMENTS, N_TOKENS)))
    levels = [4.0 * size**-ALPHA, 4.6 * size ** -(ALPHA + SHIFT) * np.exp(rng.normal(0, 0.02))]
    stored, again = (np.ceil((level / -np.log(u_DT)) ** (1 / 0.35)).clip(1, 100_000).ravel() for level in levels)
    scale = 1.02 * size**-NATS_SHIFT * np.exp(rng.normal(0, 0.001))
    n = u_DT.size
    pairs = {
        "doc_id": np.repeat(np.arange(N_DOCUMENTS), N_TOKENS),
        "rank": stored,
        "rank_again": again,
        "n_tokens": np.ones(n, np.int64),
        "n_changed": (stored != again).astype(np.int64),
        "sum_logprob": np.log(u_DT).ravel(),
        "sum_logprob_again": (scale * np.log(u_DT) * rng.normal(1, 0.01, (N_DOCUMENTS, 1))).ravel(),
        "largest_logprob_move": np.zeros(n),
    }
    names = {"source": "measured", "family": "drawn", "dataset": "drawn", "text_hash": "1", "protocol": "paper"}
    counts = {"n_documents": N_DOCUMENTS, "n_skipped": 0, "n_tokens": n, "cross_entropy_nats": None}
    run = Run(
        run_ids=(str(size),), **names, size=str(size), window=512, stride=None, padding="counted", bos=None,
        dtype="bfloat16", revision=None, non_embedding_params=size, vocab_size=100_000, **counts,
    )  # fmt: skip
    truth = {"rbp": float(np.exp(-levels[1]) - np.exp(-levels[0])), "cross_entropy": scale - 1}
    truth |= {"ratio of rbp": levels[1] / levels[0], "ratio of cross_entropy": scale}
    return run, pa.table(pairs), truth


def norm_cdf(z: Any) -> Any:
    from scipy.stats import norm

    return norm.cdf(z)


def test_the_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """200 texts: shifts of RBP_1 and cross-entropy of the smallest model, and of the exponents of their laws."""
    covered: Counter[str] = Counter()
    for seed in range(200):
        rng = np.random.default_rng(seed)
        z_D1 = rng.normal(size=(N_DOCUMENTS, 1))
        drawn = [drawn_run(size, z_D1, rng) for size in S]
        group = Group(tuple(run for run, _, _ in drawn), Ties.pessimistic)
        request = Request(resamples=200, k=1, seed=seed)
        measured = [(run, Remeasured(pairs)) for run, pairs, _ in drawn]
        audit = analyse(measured, group, list(range(N_DOCUMENTS)), request)
        truth = drawn[0][2]
        for (name, _), found in audit.runs[0].shifts.items():
            lo, hi = found.difference.lo, found.difference.hi
            assert lo is not None
            assert hi is not None
            covered[name] += int(lo <= truth[name] <= hi)
        for law, true in zip(audit.laws, (SHIFT, NATS_SHIFT), strict=True):
            lo, hi = law.difference.alpha_lo, law.difference.alpha_hi
            assert lo is not None
            assert hi is not None
            covered[f"alpha of {law.law}"] += lo <= true <= hi
            of_these = -np.polyfit(np.log(S), [np.log(truth[f"ratio of {law.law}"]) for _, _, truth in drawn], 1)[0]
            about = law.difference.alpha_text
            covered[f"alpha of {law.law}, these models"] += about.lo <= of_these <= about.hi
    assert len(covered) == 6
    assert {name: n for name, n in covered.items() if not 180 <= n <= 198} == {}, covered


def test_there_is_no_interval_where_the_documents_tell_no_spread() -> None:
    flat, noisy = np.full(100, 0.5), np.random.default_rng(1).normal(0.5, 0.1, 100)
    assert (shift(0.5, 0.5, flat, flat, 9).difference.lo, shift(0.5, 0.6, flat, noisy, 1).difference.hi) == (None, None)
    assert shift(0.5, 0.6, flat[:10], noisy[:10], 9).difference.lo is None  # too few resamples
    known = shift(0.5, 0.6, flat, noisy, 9).difference
    assert known.value == pytest.approx(0.1)
    # Of 9 documents Student's t with 8 degrees of freedom is 2.306; times sqrt(9 / 8), the normal quantile of 0.722 %.
    assert (known.lo, known.hi) == pytest.approx(tuple(np.quantile(noisy - 0.5, [0.00722, 0.99278])), abs=1e-4)


def test_moves_are_counted_by_hand() -> None:
    columns = {
        "rank": [1.0, 2.0, 3.0, 10.0, 5.0],
        "rank_again": [1.0, 1.0, 7.0, 12.0, 5.0],
        "n_tokens": [4, 2, 1, 1, 2],
        "n_changed": [0, 2, 1, 1, 1],
        "largest_logprob_move": [0.0, 0.1, 0.2, 0.05, 0.0],
    }
    found = count_moves(pa.table(columns), [1, 5, 10])
    lost, gained = {1: 0, 5: 1, 10: 1}, {1: 2, 5: 0, 10: 0}
    assert found == Moves(10, 5, 4, 1.5, 4.0, 0.2, lost, gained)  # moves of 1, 1, 2, 4
    assert not found.is_same
