"""Losses by step are points of laws where a decay of the rate ends, or where the rate is constant, and are counted."""

import math
from pathlib import Path
from typing import Any

import pytest

from rbpx.runs.select.groups import select_trainings
from rbpx.store.sql import connect
from rbpx.store.store import Store
from tests.support.asking import ask, groups, imported, refused, request
from tests.support.raised import with_states
from tests.support.tables import write_table

TOKENS = 1_000_000  # of a step
COSINES = {  # run -> S, steps
    **{"a": (60e6, 1000), "b": (120e6, 1000), "c": (240e6, 2000), "d": (480e6, 2000)},
    **{"e": (60e6, 3000), "f": (120e6, 4000), "g": (240e6, 500), "h": (480e6, 1000)},
}
EVERY = 100  # steps
N_STATES = sum(steps // EVERY for _, steps in COSINES.values())


def loss(S: float, D: float) -> float:
    """Of a finished run."""
    return 1.7 + 400 / S**0.34 + 410 / D**0.28


def left(step: int, steps: int) -> float:
    """The share of its range that a cosine has yet to fall through."""
    return 0.5 * (1 + math.cos(math.pi * step / steps))


def wide(folder: Path) -> tuple[Path, Path]:
    """The losses of cosines by step, a column for each run, and what is known of each run."""
    rows = [
        {"step": step}
        | {
            name: loss(S, step * TOKENS) + 0.15 * math.sqrt(left(step, steps)) if step <= steps else ""
            for name, (S, steps) in COSINES.items()
        }
        for step in range(EVERY, 4001, EVERY)
    ]
    facts = [
        {"run": name, "S": int(S), "schedule": "cosine", "tokens_per_step": "1M", "schedule_tokens": steps * TOKENS}
        for name, (S, steps) in COSINES.items()
    ]
    return write_table(folder / "steps.csv", rows), write_table(folder / "runs.csv", facts)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A place for a store that is not there yet."""
    return tmp_path / "store"


def bring(file: Path, store: Path, **keys: Any) -> Path:
    return imported(store, file, "me", family="lab", dataset="c4", **keys)


def points(store: Path) -> list[tuple[str | None, float, str | None]]:
    """The run, D and place of the states that are points of laws in size and tokens."""
    with connect(Store(str(store))) as connection:
        runs = [run for group in select_trainings(connection, request(store)) for run in group.runs]
    return sorted((run.model, (run.training_tokens or 0) / TOKENS, run.place) for run in runs)


def test_each_cosine_has_one_point_its_end_and_states_of_unknown_schedules_are_points(
    store: Path, tmp_path: Path
) -> None:
    """Each of the eight cosines has one point; a ninth run, of which nothing is known, has all of its three."""
    steps, runs = wide(tmp_path)
    bring(steps, store, runs={"loss_nats": str(runs)})
    assert points(store) == [(name, float(of), "end") for name, (_, of) in COSINES.items()]
    asked = ask(store, "surface", resamples=20)
    (law,) = asked.rows
    assert law["n_points"] == len(COSINES)
    assert (law["alpha"], law["beta"], law["E"]) == pytest.approx((0.34, 0.28, 1.7), rel=1e-3)
    assert f"Points: {len(COSINES)} of {N_STATES} states: {len(COSINES)} at the end of a decay." in asked.words
    assert f"Left out: {N_STATES - len(COSINES)} states in the middle of a decay" in asked.words
    with refused(f"{N_STATES - len(COSINES)} of them in the middle of a decay"):
        ask(store, "fit", axis="D")
    other = by_step(tmp_path / "b.csv", {"i": (960e6, [(1000, None), (2000, None), (3000, None)])})
    bring(other, store, tokens_per_step="1M")
    said = ask(store, "surface", laws=["cross_entropy"], resamples=1).words
    assert f"Points: 11 of {N_STATES + 3} states: 8 at the end of a decay, 3 of an unknown schedule." in said
    assert "Nothing is known of the schedule of 3 states, so all of them are points" in said


def by_step(path: Path, runs: dict[str, tuple[float, list[tuple[int, float | None]]]], **more: Any) -> Path:
    """A long table: run -> S, (step, rate)."""
    return write_table(
        path,
        [
            {"model": name, "S": S, "step": step, "loss_nats": loss(S, step * TOKENS)}
            | ({} if rate is None else {"lr": rate})
            | more
            for name, (S, of) in runs.items()
            for step, rate in of
        ],
    )


def held(until: int, decayed: int | None = None) -> list[tuple[int, float | None]]:
    """A warm-up of 100 steps, a constant rate every 100 steps, and a decay to 0 in four parts."""
    rates: list[tuple[int, float | None]] = [(50, 5e-4), *((step, 1e-3) for step in range(100, until + 1, 100))]
    if decayed is not None:
        rates += [(until + part * (decayed - until) // 4, 1e-3 * (1 - part / 4)) for part in (1, 2, 3, 4)]
    return rates


def test_a_constant_rate_is_one_law_without_its_warm_up_and_a_decay_is_no_point_beside_it(tmp_path: Path) -> None:
    """Ten states before the decay; the three in it and its one end are left out; ends of three runs alone stand."""
    plain = by_step(tmp_path / "plain.csv", {"one": (60e6, held(1000))})
    told = ask(bring(plain, tmp_path / "plain", tokens_per_step="1M"), "fit", axis="D", method="offset").rows[0]
    assert told["alpha"] == pytest.approx(0.28, rel=0.02)
    decays = by_step(tmp_path / "b.csv", {"one": (60e6, held(1000, 1200))}, schedule="wsd")
    store = bring(decays, tmp_path / "decays", tokens_per_step="1M")
    for of in (tmp_path / "plain", store):
        assert points(of) == [("one", float(step), "constant") for step in range(100, 1001, 100)]
    said = ask(store, "surface", laws=["cross_entropy"], resamples=1).words
    assert "Points: 10 of 15 states: 10 at a constant rate." in said
    assert "Left out: 4 states in the middle of a decay" in said  # the warm-up is one of them
    assert "Left out: 1 state at the end of a decay" in said
    ends = {f"run {end}": (60e6, held(end - 200, end)) for end in (600, 1200, 2400)}
    alone = bring(by_step(tmp_path / "ends.csv", ends), tmp_path / "ends", tokens_per_step="1M")
    assert [law["n_points"] for law in ask(alone, "fit", axis="D", method="ols").rows] == [3]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, [(100, None), (200, None), (300, None)]),
        ({"schedule": "cosine"}, [(300, "end")]),
        ({"schedule": "cosine", "lr": 0.001}, [(300, "end")]),  # the highest rate, as tables of runs have it
        ({"schedule": "constant"}, [(100, "constant"), (200, "constant"), (300, "constant")]),
        ({"schedule": "linear", "schedule_tokens": 400 * TOKENS}, []),  # stopped before its end
        ({"schedule_tokens": 300 * TOKENS}, [(300, "end")]),
    ],
)
def test_without_rates_the_name_of_a_schedule_and_its_tokens_say_what_is_a_point(
    more: dict[str, Any], expected: list[tuple[int, str | None]], store: Path, tmp_path: Path
) -> None:
    steps: list[tuple[int, float | None]] = [(100, None), (200, None), (300, None)]
    file = by_step(tmp_path / "a.csv", {"one": (60e6, steps)}, **more)
    bring(file, store, tokens_per_step="1M")
    assert points(store) == [("one", float(step), place) for step, place in expected]
    if not expected:
        with refused("no run that matches has finished; 1 run is underway"):
            ask(store, "surface")


@pytest.mark.parametrize(
    ("rate", "keys", "says"),
    [
        (None, {"tokens_per_step": "4X"}, "tokens_per_step is 4X; give a whole number"),
        (None, {"schedule": 3}, "schedule=3"),
        (None, {"runs": {"loss_nats": "runs.csv"}}, "runs.csv is not a file"),
        (-1e-3, {}, "line 2: lr is -0.001"),
    ],
)
def test_what_cannot_be_meant_of_a_schedule_is_one_line(
    rate: float | None, keys: dict[str, Any], says: str, store: Path, tmp_path: Path
) -> None:
    file = by_step(tmp_path / "a.csv", {"one": (60e6, [(100, rate)])})
    with refused(says):
        bring(file, store, **keys)
    assert not store.exists()


CONSTANT = {"schedule": "constant"}


@pytest.mark.parametrize(
    "columns",
    [
        {},
        {"lr": 1e-3},
        {"lr": 1e-3, "run": "a"},
        CONSTANT,
        {**CONSTANT, "lr": 1e-3},
        {**CONSTANT, "schedule_tokens": 1e12},
    ],
    ids=["none", "rate", "more", "schedule", "both", "tokens"],
)
def test_states_of_a_constant_rate_beside_single_ends_are_mixed_and_the_advice_is_first(
    columns: dict[str, Any], tmp_path: Path
) -> None:
    """The column of rates says that nothing has decayed of what has several states, and nothing of what has one."""
    store = with_states(tmp_path / "store", **columns)
    (group,), (last,) = groups(store, "decide"), groups(store, "decide", checkpoints="last")
    assert (group.is_mixed, last.is_mixed) == (True, False)
    first = ask(store, "decide", resamples=20).results[0].notes[0]
    assert "6 of 18 points are states before the end of their training" in first


def test_where_no_rate_decays_and_all_trainings_have_states_they_are_alike(store: Path, tmp_path: Path) -> None:
    rows = [
        {"model": f"{S:g}", "S": S, "D": 20 * S * part, "loss_nats": loss(S, 20 * S * part)} | CONSTANT
        for S in (60e6, 240e6, 960e6)
        for part in (0.25, 0.5, 1)
    ]
    bring(write_table(tmp_path / "a.csv", rows), store)
    (group,) = groups(store, "decide")
    assert (len(group.runs), group.is_mixed) == (9, False)


def test_the_last_state_of_a_run_whose_plan_goes_on_is_no_end(store: Path, tmp_path: Path) -> None:
    """A decay to a fifth, of whose plan the last two rates have no loss yet."""
    of = {"one": (60e6, held(400, 800)), "two": (60e6, held(800, 1200)), "three": (60e6, held(1000, 1400))}
    file = by_step(tmp_path / "a.csv", of)
    lines = file.read_text(encoding="utf-8").splitlines()
    lines = [line for line in lines if not line.startswith("three,60000000.0,1400")]
    file.write_text("\n".join([*lines, "three,60000000.0,1400,,0.0"]), encoding="utf-8")
    found = points(bring(file, store, tokens_per_step="1M"))
    assert {place for name, _, place in found if name == "three"} <= {"constant"}
    (note,) = [note for group in groups(store, "surface") for note in group.notes if "underway" in note]
    assert note.startswith("1 run is underway: ")
