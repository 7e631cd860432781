"""Plans of runs: rows that have a rate and no loss, or a schedule that is named by keys, columns or facts of a run."""

import json
from pathlib import Path
from typing import Any

import pytest

from rbpx.store.sql import ask_user, connect
from rbpx.store.store import Store
from tests.support.asking import ask, imported, refused
from tests.support.composed import here
from tests.support.tables import write_table


def table(path: Path, seen: int = 3, planned: int = 2, **more: Any) -> Path:
    """A run of which some rows have a loss, and the others a rate alone."""
    rows = [
        {"model": "hero", "S": 60e6, "step": 100 * n, "loss_nats": 4 - n / 10 if n <= seen else "", "lr": 1e-3 / n}
        | more
        for n in range(1, seen + planned + 1)
    ]
    return write_table(path, rows)


def rows(store: Path, columns: str) -> list[tuple[Any, ...]]:
    with connect(Store(str(store))) as connection:
        found = ask_user(connection, f"SELECT {columns} FROM observations ORDER BY training_step").to_pylist()
    return [tuple(row.values()) for row in found]


def test_rows_that_have_a_rate_and_no_loss_are_the_plan_of_a_run(tmp_path: Path, cwd: Path) -> None:
    store, file = tmp_path / "store", table(tmp_path / "a.csv")
    keys = ("source=me", "family=lab", "dataset=c4", "tokens_per_step=1M", "--store", store)
    said = here("import", file, *keys, cwd=cwd, check=0).stderr
    assert f"took 2 rates of {file} without a value as plans of runs" in said
    assert said.startswith(f"imported 3 observations of 1 model on 1 dataset from {file}")
    assert "next: python -m rbpx trajectory source=me" in said
    (brought,) = json.loads(here("status", "--format", "json", "--store", store, cwd=cwd, check=0).stdout)
    assert brought["n_observations"] == 3
    assert "empty or NaN" not in said
    expected = [(100 * n, 100 * n * 10**6, 1e-3 / n, 4 - n / 10 if n < 4 else None) for n in range(1, 6)]
    assert rows(store, "training_step, training_tokens, lr, cross_entropy_nats") == expected
    assert "nothing new" in here("import", file, *keys, cwd=cwd, check=0).stderr
    later = table(tmp_path / "later.csv", seen=4, planned=1)
    said = here("import", later, *keys, cwd=cwd, check=0).stderr
    assert said.startswith(
        f"imported 4 observations of 1 model on 1 dataset from {later} into {store} as me (3 of them "
    )
    assert f"took 1 rate of {later} without a value as plans of runs" in said
    assert sorted(nats for (nats,) in rows(store, "cross_entropy_nats") if nats) == [3.6, 3.7, 3.8, 3.9]


def test_rates_of_runs_in_columns_are_plans_where_their_losses_are_empty(tmp_path: Path, cwd: Path) -> None:
    store, steps = tmp_path / "store", (100, 200, 300)
    table = [{"step": s, "a": 4 - s / 1e3, "b": 3.5 if s < 200 else "", "a_lr": 1e-3, "b_lr": s / 1e6} for s in steps]
    file = write_table(tmp_path / "a.csv", table)
    runs = "runs={loss_nats: {a: 60M, b: 60M}, lr: {a: a_lr, b: b_lr}}"
    said = here(
        "import", file, "source=me", "family=lab", "dataset=c4", runs, "--store", store, cwd=cwd, check=0
    ).stderr
    assert f"took 2 rates of {file} without a value as plans of runs" in said
    assert "empty or NaN" not in said
    of_b = [row[1:] for row in rows(store, "model, training_step, lr, cross_entropy_nats") if row[0] == "b"]
    assert of_b == [(s, s / 1e6, 3.5 if s < 200 else None) for s in steps]


def test_a_rate_without_a_step_or_beside_rbp_is_no_plan(tmp_path: Path) -> None:
    store = tmp_path / "store"
    losses = [{"model": "a", "S": 1e6, "loss_nats": loss, "lr": 1e-3} for loss in (4, "")]
    imported(store, write_table(tmp_path / "a.csv", losses), "me", family="lab", dataset="c4")
    shares = [{"model": "b", "S": 1e6, "step": n, "k": 1, "rbp": rbp, "lr": 1e-3} for n, rbp in ((1, 0.3), (2, ""))]
    with refused("rbp is empty"):
        imported(store, write_table(tmp_path / "b.csv", shares), "me", family="lab", dataset="c4", ties="mid")
    assert len(rows(store, "*, training_step")) == 1


def test_a_schedule_is_given_by_keys_columns_or_facts_of_a_run(tmp_path: Path) -> None:
    said = "schedule, schedule_tokens, warmup_tokens, decay_tokens, lr_decay, final_lr"
    wsd = {"schedule": "wsd", "schedule_tokens": "1B", "warmup_tokens": 0, "decay_tokens": "0.2B"}
    keys = {**wsd, "decay": "exponential", "final_lr": 0.1}
    expected = [("wsd", 10**9, 0, 2 * 10**8, "exponential", 0.1)]
    facts = {"run": "hero", "S": 60e6, **wsd, "decay": "exponential", "final_lr": 0.1}
    alone = [{"model": "hero", "S": 60e6, "step": 100, "loss_nats": 4.0}]
    of_runs = write_table(tmp_path / "runs.csv", [facts])
    for n, (file, given) in enumerate(
        (
            (write_table(tmp_path / "a.csv", alone), keys),
            (write_table(tmp_path / "b.csv", [alone[0] | wsd | {"lr_decay": "exponential", "final_lr": 0.1}]), {}),
            (write_table(tmp_path / "c.csv", [{"step": 100, "hero": 4.0}]), {"runs": {"loss_nats": str(of_runs)}}),
        )
    ):
        store = tmp_path / f"store{n}"
        imported(store, file, "me", family="lab", dataset="c4", **given)
        assert rows(store, said) == expected, file


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"schedule_tokens": "1B"}, "schedule_tokens is 2000, but schedule_tokens=1000000000 was given"),
        ({"decay": "steps"}, "decay=steps is no way to fall; give linear, exponential, cosine"),
        ({"decay": "exponential"}, "exponential needs final_lr= above 0"),
        ({"final_lr": -1}, "final_lr is -1; give a number from 0"),
        ({"warmup_tokens": "4X"}, "warmup_tokens is 4X; give a whole number"),
    ],
)
def test_what_cannot_be_meant_of_a_plan_is_one_line(keys: dict[str, Any], says: str, tmp_path: Path) -> None:
    file = table(tmp_path / "a.csv", 1, 0, schedule_tokens=2000)
    with refused(says):
        imported(tmp_path / "store", file, "me", family="lab", dataset="c4", **keys)
    assert not (tmp_path / "store").exists()


def test_other_questions_pass_over_a_run_that_is_underway_and_say_so(tmp_path: Path) -> None:
    """Of three finished runs and one in the middle of its plan the points are the three ends."""
    store = tmp_path / "store"
    finished = [
        {"model": f"m{S:g}", "S": S, "step": step, "loss_nats": 2 + 40 / S**0.3 + 4 / step, "lr": 1e-3 - 9e-7 * step}
        for S in (1e6, 4e6, 16e6)
        for step in (500, 1000)
    ]
    here_now = [
        {"model": "hero", "S": 64e6, "step": step, "loss_nats": 3.0 if step < 600 else "", "lr": 1e-3 - 9e-7 * step}
        for step in (250, 500, 750, 1000)
    ]
    for name, of in (("b", here_now), ("a", finished)):
        imported(
            store, write_table(tmp_path / f"{name}.csv", of), "me", family="lab", dataset="c4", tokens_per_step=1000
        )
        if name == "b":
            for verb, more in (("decide", {}), ("surface", {}), ("predict", {"S": [1e8], "D": [1e7]})):
                with refused("no run that matches has finished; 1 run is underway: "):
                    ask(store, verb, **more)
    for verb, keys in (("decide", {}), ("surface", {}), ("predict", {"S": [1e8], "D": [1e7]})):
        words = ask(store, verb, resamples=5, **keys).words
        assert '1 run is underway: .trajectory(source="me") says where it ends.' in words, verb
        assert "Points: 3 of 8 states: 3 at the end of a decay." in words, verb
