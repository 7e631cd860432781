"""Losses by step are points of laws where a decay of the rate ends, or where the rate is constant, and are counted."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import Answer, here
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


def bring(file: Path, store: Path, cwd: Path, *words: str, check: int = 0) -> Answer:
    return here("import", file, "source=me", "family=lab", "dataset=c4", *words, "--store", store, cwd=cwd, check=check)


def asked(store: Path, cwd: Path, *words: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(here(*words, "--format", "json", "--store", store, cwd=cwd, check=0).stdout)
    return rows


def words_of(answer: Answer) -> str:
    """What a question prints, on one line."""
    return " ".join(answer.stdout.split())


def points(store: Path, cwd: Path) -> list[tuple[str, float, str | None]]:
    """The run, D and place of the states that a trajectory takes."""
    rows = [row for row in asked(store, cwd, "trajectory") if row["kind"] == "point"]
    return sorted((row["model"], row["D"] / TOKENS, row["place"]) for row in rows if row["is_point"])


def test_the_surface_of_cosines_is_that_of_their_ends(store: Path, cwd: Path, tmp_path: Path) -> None:
    steps, runs = wide(tmp_path)
    bring(steps, store, cwd, f"runs={{loss_nats: {runs}}}")
    D = asked(store, cwd, "sql", "SELECT count(*) AS n, max(training_tokens) AS D FROM observations")
    assert D == [{"n": N_STATES, "D": 4000 * TOKENS}]
    (law,) = asked(store, cwd, "surface", "resamples=20")
    assert law["n_points"] == len(COSINES)
    assert (law["alpha"], law["beta"], law["E"]) == pytest.approx((0.34, 0.28, 1.7), rel=1e-3)
    said = words_of(here("surface", "resamples=20", "--store", store, cwd=cwd, check=0))
    assert f"Points: {len(COSINES)} of {N_STATES} states: {len(COSINES)} at the end of a decay." in said
    assert f"Left out: {N_STATES - len(COSINES)} states in the middle of a decay" in said


def test_a_trajectory_shows_which_states_are_points(store: Path, cwd: Path, tmp_path: Path) -> None:
    steps, runs = wide(tmp_path)
    bring(steps, store, cwd, f"runs={{loss_nats: {runs}}}")
    assert points(store, cwd) == sorted((name, float(of), "end") for name, (_, of) in COSINES.items())
    answer = here("trajectory", "--store", store, cwd=cwd, check=0)
    table = answer.stdout.split("Which states are points, by the schedule of the rate")[1]
    counted = {cells[0]: cells[1:4] for line in table.splitlines() if len(cells := line.split()) > 5}
    assert {name: counted[name] for name in COSINES} == {
        name: [str(of // EVERY), "1", "1"] for name, (_, of) in COSINES.items()
    }
    refused = here("fit", "axis=D", "--store", store, cwd=cwd, check=2).stderr
    assert f"{N_STATES - len(COSINES)} of them in the middle of a decay" in refused


def by_step(path: Path, runs: dict[str, tuple[float, list[tuple[int, float | None]]]], **more: Any) -> Path:
    """A long table: run -> S, (step, rate)."""
    rows = [
        {"model": name, "S": S, "step": step, "loss_nats": loss(S, step * TOKENS)}
        | ({} if rate is None else {"lr": rate})
        | more
        for name, (S, of) in runs.items()
        for step, rate in of
    ]
    return write_table(path, rows)


def held(until: int, decayed: int | None = None) -> list[tuple[int, float | None]]:
    """A warm-up of 100 steps, a constant rate every 100 steps, and a decay to 0 in four parts."""
    rates: list[tuple[int, float | None]] = [(50, 5e-4), *((step, 1e-3) for step in range(100, until + 1, 100))]
    if decayed is not None:
        rates += [(until + part * (decayed - until) // 4, 1e-3 * (1 - part / 4)) for part in (1, 2, 3, 4)]
    return rates


def test_a_constant_rate_is_one_law_and_its_warm_up_is_none_of_it(store: Path, cwd: Path, tmp_path: Path) -> None:
    file = by_step(tmp_path / "a.csv", {"one": (60e6, held(1000))})
    bring(file, store, cwd, "tokens_per_step=1M")
    assert points(store, cwd) == [("one", float(step), "constant") for step in range(100, 1001, 100)]


def test_a_decay_is_no_point_beside_many_of_a_constant_rate(store: Path, cwd: Path, tmp_path: Path) -> None:
    """Ten states before it; the three in the decay and its one end are left out."""
    file = by_step(tmp_path / "a.csv", {"one": (60e6, held(1000, 1200))}, schedule="wsd", tokens_per_step="1M")
    bring(file, store, cwd)
    assert points(store, cwd) == [("one", float(step), "constant") for step in range(100, 1001, 100)]
    said = words_of(here("trajectory", "--store", store, cwd=cwd, check=0))
    assert "Points: 10 of 15 states: 10 at a constant rate." in said
    assert "Left out: 4 states in the middle of a decay" in said  # the warm-up is one of them
    assert "Left out: 1 state at the end of a decay" in said


def test_ends_of_three_decays_stand_without_states_before_them(store: Path, cwd: Path, tmp_path: Path) -> None:
    ends = {"one": 600, "two": 1200, "three": 2400}
    file = by_step(tmp_path / "a.csv", {name: (60e6, held(end - 200, end)) for name, end in ends.items()})
    bring(file, store, cwd, "tokens_per_step=1M")
    (law,) = asked(store, cwd, "fit", "axis=D", "method=ols")
    assert law["n_points"] == 3
    rows = asked(store, cwd, "sql", "SELECT count(*) FILTER (lr = 0) AS ends, count(*) AS n FROM observations")
    assert rows == [{"ends": 3, "n": sum(1 + (end - 200) // 100 + 4 for end in ends.values())}]


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
    more: dict[str, Any], expected: list[tuple[int, str | None]], store: Path, cwd: Path, tmp_path: Path
) -> None:
    steps: list[tuple[int, float | None]] = [(100, None), (200, None), (300, None)]
    file = by_step(tmp_path / "a.csv", {"one": (60e6, steps)}, **more)
    bring(file, store, cwd, "tokens_per_step=1M")
    rows = [row for row in asked(store, cwd, "trajectory") if row["kind"] == "point"]
    found = [(row["D"] / TOKENS, row.get("place")) for row in rows if row.get("is_point", True)]
    assert found == [(float(step), place) for step, place in expected]
    said = words_of(here("trajectory", "--store", store, cwd=cwd, check=0))
    assert ("Nothing is known of the schedule of 3 states" in said) is (more == {})


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["tokens_per_step=4X"], "tokens_per_step is 4X; give a whole number"),
        (["schedule=3"], "schedule=3"),
        (["runs={loss_nats: runs.csv}"], "runs.csv is not a file"),
    ],
)
def test_what_cannot_be_meant_of_a_schedule_is_one_line(
    words: list[str], says: str, store: Path, cwd: Path, tmp_path: Path
) -> None:
    file = by_step(tmp_path / "a.csv", {"one": (60e6, [(100, None)])})
    (line,) = bring(file, store, cwd, *words, check=2).stderr.splitlines()
    assert says in line
    assert not store.exists()


def test_a_rate_below_0_is_a_fault_of_its_line(store: Path, cwd: Path, tmp_path: Path) -> None:
    file = by_step(tmp_path / "a.csv", {"one": (60e6, [(100, 1e-3), (200, -1e-3)])})
    assert "line 3: lr is -0.001" in bring(file, store, cwd, check=2).stderr
