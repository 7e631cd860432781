"""Improvement by token, of learning, against a fit per occurrence, counts of a loop, and documents drawn again."""

import math
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rbpx.display.table import Column, Table
from rbpx.display.terminal import console, print_tables
from rbpx.display.vocabulary import legible
from rbpx.laws.intervals.estimate import Estimate
from rbpx.questions.learning.improvements import trend_of
from tests.support.asking import Asked, ask
from tests.support.stores import Measured, reseal, runs_by_size
from tests.support.synthetic import Truth, write_store


@pytest.fixture(scope="module")
def every(measured: Measured) -> Asked:
    """What is said of every token id of a measured family."""
    return ask(measured.store, "learning", least=1, k=10, top=5, resamples=5)


def occurrences(store: Path) -> tuple[Any, dict[int, list[tuple[int, Any, Any]]]]:
    """ln S, and by token id (document, nats at each size, ranks at each size) of each occurrence, from a loop."""
    runs = runs_by_size(store)
    nats, ranks, ids = defaultdict(list), defaultdict(list), {}
    for run in runs.values():
        for n in range(len(run["doc_id"])):
            place = (int(run["doc_id"][n]), int(run["position"][n]))
            ids[place] = int(run["token_id"][n])
            nats[place].append(-float(run["logprob"][n]))
            ranks[place].append(int(run["greater"][n]) + int(run["ties"][n]) + 1)
    found = defaultdict(list)
    for place, token_id in ids.items():
        found[token_id].append((place[0], nats[place], ranks[place]))
    return np.log([run["non_embedding_params"] for run in runs.values()]), found


def test_slopes_shares_and_hits_are_those_of_a_fit_to_each_occurrence(measured: Measured, every: Asked) -> None:
    ln_S, by_hand = occurrences(measured.store)
    found = {row["token_id"]: row for row in every.of_kind("token")}
    assert found.keys() == by_hand.keys()
    whole = sum(nats[0] - nats[-1] for each in by_hand.values() for _, nats, _ in each)
    for token_id, each in by_hand.items():
        row = found[token_id]
        slopes = [np.polyfit(ln_S, nats, 1)[0] for _, nats, _ in each]
        assert row["slope"] == pytest.approx(np.mean(slopes), rel=1e-6, abs=1e-9)
        assert (row["n_tokens"], row["n_documents"]) == (len(each), len({doc for doc, _, _ in each}))
        assert row["smallest_nats"] == pytest.approx(np.mean([nats[0] for _, nats, _ in each]))
        assert row["largest_nats"] == pytest.approx(np.mean([nats[-1] for _, nats, _ in each]))
        assert row["smallest_rbp"] == pytest.approx(np.mean([ranks[0] <= 10 for _, _, ranks in each]))
        assert row["largest_rbp"] == pytest.approx(np.mean([ranks[-1] <= 10 for _, _, ranks in each]))
        assert row["share"] == pytest.approx(sum(n[0] - n[-1] for _, n, _ in each) / whole, abs=1e-12)
    assert math.fsum(row["share"] for row in found.values()) == pytest.approx(1, abs=1e-9)


def test_rarer_token_ids_are_one_row_and_shares_still_add_up_to_one(measured: Measured, every: Asked) -> None:
    asked = ask(measured.store, "learning", least=3, k=1, resamples=5)
    found, (rarer,) = asked.of_kind("token"), asked.of_kind("rarer")
    assert min(row["n_tokens"] for row in found) >= 3
    assert math.fsum(row["share"] for row in (*found, rarer)) == pytest.approx(1, abs=1e-9)
    shares = [row["share"] for row in found]
    assert shares == sorted(shares, reverse=True)
    assert rarer["n_types"] == sum(row["n_tokens"] < 3 for row in every.of_kind("token"))


def test_tokens_that_are_not_scored_at_every_size_are_left_out_and_told(tmp_path: Path) -> None:
    store = write_store(tmp_path / "store", Truth(), seed=1, n_documents=10, n_tokens=30)
    path = store.run_folder(store.run_ids()[2]) / "tokens.parquet"
    table = pq.read_table(path)
    other = np.where(table["position"].to_numpy() > 25, 9, table["token_id"].to_numpy()).astype(np.int32)
    pq.write_table(table.set_column(3, "token_id", pa.array(other)), path)
    reseal(path.parent)
    asked = ask(store, "learning", k=1, resamples=5)
    (row,), (group,) = asked.of_kind("token"), asked.of_kind("group")
    assert (row["token_id"], row["n_tokens"], group["n_left_out"]) == (0, 250, 50)


def test_a_family_that_gets_worse_has_no_shares(tmp_path: Path) -> None:
    asked = ask(write_store(tmp_path / "store", Truth(alpha=-0.1), seed=1), "learning", k=1, resamples=5)
    (row,) = asked.of_kind("token")
    assert row["slope_lo"] > 0
    assert (row["share"], row["share_lo"]) == (None, None)
    assert "not predicted better" in asked.words
    assert "nan" not in asked.words.lower()


@pytest.mark.parametrize(
    ("slope", "half", "fall", "trend"),
    [
        (-0.3, 0.1, 2.0, "improves"),
        (0.3, 0.1, -2.0, "worsens"),
        (-0.039, 0.028, -1.04, "turns"),
        (0.039, 0.028, 1.04, "turns"),
        (0.1, 0.2, -2.0, "unclear"),
        (-0.1, None, 2.0, "unknown"),
    ],
)
def test_a_trend_is_what_the_interval_and_both_ends_say(
    slope: float, half: float | None, fall: float, trend: str
) -> None:
    ends = (None, None) if half is None else (slope - half, slope + half)
    assert trend_of(Estimate(slope, *ends), fall) == trend


def test_each_list_has_the_ids_whose_slope_says_so(tmp_path: Path) -> None:
    """Ids 0 to 3 in most of each document, which gets better, 4 to 7 at its end, which gets worse."""
    ids_DT = np.tile(np.arange(40) % 4 + 4 * (np.arange(40) >= 32), (40, 1))
    store = write_store(tmp_path, Truth(), 1, n_tokens=40, late=Truth(alpha=-0.1), cut=32, token_DT=ids_DT)
    every = ask(store.root, "learning", least=1, k=10, top=3, resamples=5)
    better, worse = every.table(columns=200).split("What gets worse")
    for listed, sign in ((better, -1), (worse.split("Points and tokens")[0], 1)):
        ids = [int(line.split()[-8]) for line in listed.splitlines() if "%.." in line]
        clear = [r for r in every.of_kind("token") if r["slope_lo"] is not None and r["slope_lo"] * r["slope_hi"] > 0]
        wanted = [r["token_id"] for r in clear if sign * r["slope"] > 0 and sign * r["fall_nats"] < 0]
        assert wanted
        assert ids == wanted[::-sign][:3]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\n", "'\\n'"), ("    ", "'    '"), ("[bold]", "'[bold]'"), ("\\", "'\\\\'"), ("[/]", "'[/]'"), ("é", "'é'"),
        ("\x1b[31m", "'\\x1b[31m'"), ("abcdefghijklmnopq", "'abcdefghijk…"), (None, "id 7"),
    ],
)  # fmt: skip
def test_every_text_is_legible_and_safe_in_markup(
    text: str | None, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    print_tables(console(), [Table("tokens", (Column("token", "token"),)).of("", [{"token": legible(text, 7)}])])
    assert capsys.readouterr().out.splitlines()[-2].strip() == shown
