"""trajectory: where runs underway end, by drawn worlds whose constants are known, from tables as people have them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rbpx.laws.schedule.law import Training
from tests.support.asking import Asked, ask, imported, refused
from tests.support.schedules import losses, rates, run
from tests.support.tables import write_table

TEACHERS = {"wsd": run("wsd", 1), "long": run("constant", 2, steps=40000)}
SEEN = 12000


def rows_of(name: str, of: Training, until: float = np.inf, plan: bool = True, **more: Any) -> list[dict[str, Any]]:
    """A row for each state of a run; later rows have the rate alone, or nothing where it has no plan."""
    return [
        {"model": name, "S": of.S, "step": int(step), "lr": of.rate_T[int(step) - 1]}
        | {"loss_nats": loss if step <= until else ""}
        | more
        for step, loss in zip(of.step_N, of.loss_N, strict=True)
        if plan or step <= until
    ]


def teachers(**more: Any) -> list[dict[str, Any]]:
    return [row for name, of in TEACHERS.items() for row in rows_of(name, of, **more)]


def asked(folder: Path, rows: list[dict[str, Any]], **keys: Any) -> Asked:
    folder.mkdir(exist_ok=True)
    names = dict.fromkeys(name for row in rows for name in row)
    file = write_table(folder / "runs.csv", [{name: row.get(name, "") for name in names} for row in rows])
    store = imported(folder / "store", file, "lab", family="lab", dataset="c4", tokens_per_step=1000, **keys)
    return ask(store, "trajectory")


def holds(row: dict[str, Any], truth: float) -> bool:
    return bool(row["lo"] <= truth <= row["hi"])


def test_a_run_underway_ends_in_its_interval(tmp_path: Path) -> None:
    hero = run("cosine", 9)
    (row,) = asked(tmp_path, [*teachers(), *rows_of("hero", hero, SEEN)]).rows
    truth = float(losses(hero.rate_T, scatter=0)[-1])
    assert (row["model"], row["S"], row["step"], row["of"]) == ("hero", 1e8, SEEN, 24000)
    assert (row["rests_on"], row["status"], row["loss"]) == ("same_size", "ok", hero.loss_N[119])
    assert row["y"] == pytest.approx(truth, abs=0.004)
    assert holds(row, truth)
    nearest = TEACHERS["wsd"]
    drop = np.median(nearest.loss_N[-3:]) + np.median(hero.loss_N[117:120] - nearest.loss_N[117:120])
    assert row["params"]["by_drop"] == pytest.approx(drop, abs=1e-9)


@pytest.mark.parametrize(
    ("shape", "told"),
    [
        ("cosine", {"schedule": "cosine"}),
        ("cosine from 0", {"schedule": "cosine"}),
        ("wsd", {"schedule": "wsd", "decay_tokens": 4_000_000, "decay": "linear"}),
        ("constant", {"schedule": "constant"}),
    ],
)
def test_a_plan_by_the_name_of_a_schedule_is_the_plan_by_rows(shape: str, told: dict[str, Any], tmp_path: Path) -> None:
    """Schedules told in tokens, 1,000 of which are a step, with and without the rates so far."""
    hero, keys = run(shape, 9), {"schedule_tokens": "24M", "warmup_tokens": "1M", **told}
    (row,) = asked(tmp_path / "rows", rows_of("hero", hero, SEEN)).rows
    without = [{name: of for name, of in row.items() if name != "lr"} for row in rows_of("hero", hero, SEEN, False)]
    (by_name,) = asked(tmp_path / "name", rows_of("hero", hero, SEEN, plan=False), final_lr=3e-5, **keys).rows
    (by_share,) = asked(tmp_path / "share", without, final_lr=0.1, **keys).rows
    for other in (by_name,) if shape == "cosine from 0" else (by_name, by_share):
        assert (other["step"], other["of"]) == (row["step"], row["of"]) == (SEEN, 24000)
        assert [other[name] for name in ("y", "lo", "hi")] == pytest.approx([row["y"], row["lo"], row["hi"]], abs=2e-4)


def test_an_exponential_decay_falls_by_equal_factors(tmp_path: Path) -> None:
    plan = rates("constant")
    plan[20000:] = 3e-4 * 0.1 ** (np.arange(1, 4001) / 4000)
    step_N = np.arange(100, 24001, 100)
    hero = Training(plan, step_N.astype(float), losses(plan)[step_N - 1], 1e8)
    keys = {"schedule": "wsd", "schedule_tokens": "24M", "warmup_tokens": "1M", "decay_tokens": "4M"}
    told = asked(
        tmp_path / "a", rows_of("hero", hero, 21000, plan=False), decay="exponential", final_lr=3e-5, **keys
    ).rows[0]
    assert told["y"] == pytest.approx(asked(tmp_path / "b", rows_of("hero", hero, 21000)).rows[0]["y"], abs=2e-4)


def test_finished_runs_of_another_size_or_recipe_are_said(tmp_path: Path) -> None:
    hero = rows_of("hero", run("cosine", 9), SEEN)
    smaller = [row | {"S": 4e7} for row in teachers()]
    answer = asked(tmp_path / "size", [*smaller, *hero])
    assert (answer.rows[0]["rests_on"], answer.rows[0]["status"]) == ("other_size", "other_size")
    assert "rests on 2 finished runs of 40M parameters." in answer.words
    other = asked(tmp_path / "recipe", [*(row | {"variant": "muon"} for row in teachers()), *hero])
    alone = asked(tmp_path / "alone", hero)
    (row,), (expected,) = other.rows, alone.rows
    assert (row["rests_on"], row["status"], expected["status"]) == ("itself", "other_recipe", "ok")
    assert (row["y"], row["lo"]) == (expected["y"], expected["lo"])


def test_what_cannot_be_predicted_is_said_beside_what_can(tmp_path: Path) -> None:
    rate_T = np.tile(run("cosine", 9).rate_T, 2)
    rising = [
        {"model": "restarts", "S": 1e8, "step": step, "lr": rate_T[step - 1], "loss_nats": 3 if step < 9000 else ""}
        for step in range(100, 48001, 100)
    ]
    early = rows_of("early", run("cosine", 4, S=3e8), 1000)
    left = run("cosine", 8)
    left.loss_N[99:] += 0.3
    answer = asked(tmp_path, [*teachers(), *rising, *early, *rows_of("left", left, SEEN)])
    found = {row["model"]: (row["status"], row["y"] is None, row["params"]["left_at"]) for row in answer.rows}
    assert found == {
        "restarts": ("rate_rises", True, None),
        "early": ("too_early", True, None),
        "left": ("leaves_law", False, 10000),
    }
    (of,) = [row["params"] for row in answer.rows if row["model"] == "left"]
    assert f"{of['progress_to_come']:.3g}" in answer.words.split("The law of each run")[1]
    assert "From step 10,000 on its losses have risen off their law." in answer.words
    assert "early is at step 1,000 of 24,000. Too few states follow" in answer.words


@pytest.mark.parametrize(
    ("more", "keys", "says"),
    [
        ({}, {"schedule": "wsd", "schedule_tokens": "24M"}, "No plan of hero: schedule=wsd needs decay_tokens=."),
        ({}, {"schedule": "mine", "schedule_tokens": "24M"}, "its rates end before its schedule_tokens"),
        ({}, {"schedule": "linear", "schedule_tokens": "24M"}, "where lr is 0.000174; correct schedule_tokens,"),
        (
            {},
            {"schedule": "cosine", "schedule_tokens": "24M", "final_lr": 0.1},
            "final_lr=0.1 is not below the highest rate, 0.0003; a tenth of it is 3e-05.",
        ),
        ({"lr": ""}, {"schedule": "cosine", "schedule_tokens": "24M", "final_lr": 3e-5}, "a share of which it is"),
        ({}, {"schedule": "wsd", "schedule_tokens": "24M", "decay_tokens": "25M"}, "linear from -1,000 on is no plan"),
    ],
)
def test_a_schedule_that_says_no_plan_is_named_with_why(
    more: dict[str, Any], keys: dict[str, Any], says: str, tmp_path: Path
) -> None:
    hero = [row | more for row in rows_of("hero", run("cosine", 9), SEEN, plan=False)]
    answer = asked(tmp_path, hero, **({"warmup_tokens": "1M"} | keys))
    assert answer.rows == []
    assert says in answer.words


def test_a_store_without_a_run_underway_is_refused(tmp_path: Path) -> None:
    with refused("no run is underway: 2 runs with learning rates at the end of their plan"):
        asked(tmp_path / "a", teachers())


def test_runs_of_one_name_and_two_seeds_are_two_runs(tmp_path: Path) -> None:
    rows = [row for seed in (0, 1) for row in rows_of("hero", run("cosine", seed), SEEN, training_seed=seed)]
    found = {row["model"]: row["y"] for row in asked(tmp_path, rows).rows}
    alone = [asked(tmp_path / str(seed), rows_of("hero", run("cosine", seed), SEEN)).rows[0]["y"] for seed in (0, 1)]
    assert found == {"hero, seed 0": alone[0], "hero, seed 1": alone[1]}
