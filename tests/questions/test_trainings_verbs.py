"""predict at (S, D), what to train next and histories along training of drawn trainings: by plainer ways."""

import math
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import t as student_t

from rbpx.laws.surface.fit import fit_surface
from rbpx.laws.surface.runs import Runs
from tests.support.asking import Asked, ask, imported, refused
from tests.support.stores import cell_records, columns_of
from tests.support.synthetic import TrueSurface, write_surface

TRUTH = TrueSurface(S=(10_000, 40_000, 160_000, 640_000))
CHECKPOINTS = TrueSurface(S=(10_000, 640_000), D=(10**5, 3 * 10**5, 10**6, 3 * 10**6, 10**7, 3 * 10**7), scatter=0.001)


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A measured grid of 16 trainings."""
    root = tmp_path_factory.mktemp("trainings") / "store"
    write_surface(root, TRUTH, 3, n_documents=20, n_tokens=100)
    return root


@pytest.fixture(scope="module")
def predicted(grid: Path) -> Asked:
    return ask(grid, "predict", S=[1e6], D=[1e8], laws=["cross_entropy"], resamples=5)


def test_predictions_at_points_are_those_of_the_surface_through_the_runs(grid: Path, predicted: Asked) -> None:
    found = predicted.of_kind("prediction")
    assert [row["method"] for row in found] == ["combined", "chinchilla", "kaplan"]
    runs = sorted((float(record["size"]), record["training_tokens"], record["run_id"]) for record in cell_records(grid))
    nats = [-columns_of(grid / "runs" / run_id, "tokens")["logprob"].mean(dtype=np.float64) for *_, run_id in runs]
    plain = fit_surface(Runs.of([S for S, *_ in runs], [D for _, D, _ in runs], nats), n_replicates=0)
    assert found[1]["y"] == pytest.approx(plain.surface.predict(1e6, 1e8).value, rel=1e-4)
    assert sum(found[0]["weights"].values()) == pytest.approx(1)


def test_joint_intervals_of_two_points_leave_out_half_as_much_each(grid: Path) -> None:
    """Of a single form by Student's t of the 16 runs less 5 constants; what is predicted stays the same."""
    of = {"S": [1e6, 4e6], "D": [1e8], "laws": ["cross_entropy"], "resamples": 30}
    single, joint = (ask(grid, "predict", joint=joint, **of) for joint in (False, True))
    assert " (95 % for all 2 points at once: " in joint.words
    both = list(zip(single.of_kind("prediction"), joint.of_kind("prediction"), strict=True))
    assert len(both) == 6
    for one, each in both:
        assert (each["n_joint"], each["y"]) == (2, one["y"])
        assert each["lo"] < one["lo"] < one["hi"] < each["hi"]
        if one["method"] == "chinchilla":
            wider = student_t.ppf(1 - 0.05 / 4, 11) / student_t.ppf(0.975, 11)
            assert math.log(each["hi"] / each["lo"]) == pytest.approx(wider * math.log(one["hi"] / one["lo"]))


def test_histories_along_training_are_those_of_a_plain_count(tmp_path: Path) -> None:
    """Two measured trainings of six checkpoints."""
    write_surface(tmp_path, CHECKPOINTS, 4, states=True, n_documents=20, n_tokens=30)
    asked = ask(tmp_path, "learning", axis="D", k=3, resamples=20, top=2)
    hits_of = defaultdict(list)
    for record in sorted(cell_records(tmp_path), key=lambda record: record["training_tokens"]):
        hits_of[record["size"]].append(columns_of(tmp_path / "runs" / record["run_id"], "tokens")["greater"] < 3)
    tokens = {row["size"]: row for row in asked.of_kind("tokens")}
    assert set(tokens) == {"10000", "640000"}
    for size, row in tokens.items():
        of_size = np.stack(hits_of[size], axis=1).tolist()
        changes = [sum(a != b for a, b in pairwise(hits)) for hits in of_size]
        plain = {
            "never": sum(not any(hits) for hits in of_size),
            "always": sum(all(hits) for hits in of_size),
            "learned": sum(n == 1 and hits[-1] for n, hits in zip(changes, of_size, strict=True)),
            "forgotten": sum(n == 1 and hits[0] for n, hits in zip(changes, of_size, strict=True)),
            "unstable": sum(n > 1 for n in changes),
        }
        assert row["n_tokens"] == len(of_size) == 600
        assert {name: row[name] for name in plain} == {name: pytest.approx(n / 600) for name, n in plain.items()}
    named = [row for row in asked.of_kind("history") if row["history"] == "learned" and row["size"] == "640000"]
    assert [row["text"] for row in named] == [{0: "a", 1: "b", 2: "c"}[row["token_id"]] for row in named]
    assert len(named) == 2
    assert named[0]["n"] >= named[1]["n"] > 0


def test_the_last_checkpoints_say_what_a_store_of_these_alone_says_and_the_others_are_counted(tmp_path: Path) -> None:
    """Imported trainings with three checkpoints each, and the same without all but the last of each."""
    rng, lines = np.random.default_rng(8), []
    for S, ratio in ((10_000, 20), (40_000, 90), (160_000, 30), (640_000, 10), (2_560_000, 50)):
        for step in (1, 2, 3):
            D = S * ratio * step // 3
            y = TRUTH.level(S, D) * (1.3 - 0.1 * step) * math.exp(rng.normal(0, 0.003))
            lines.append(f"base-{S},{S},{D},{step},{y}")
    every, last = (
        imported(tmp_path / name, "\n".join(["model,S,D,step,loss_nats", *kept]), dataset="t")
        for name, kept in (("all", lines), ("last", lines[2::3]))
    )
    for axis in ("S", "C"):
        told, alone = (
            [[row[name] for name in ("alpha", "alpha_lo", "alpha_hi", "C", "n_points")] for row in asked.rows]
            for asked in (ask(every, "fit", axis=axis, checkpoints="last"), ask(last, "fit", axis=axis))
        )
        assert told == alone
    said = "Left out: 10 runs; each is before the last checkpoint of its training."
    assert said in ask(every, "fit", checkpoints="last").words
    assert "Left out" not in ask(last, "fit", checkpoints="last").words
    unnamed = imported(
        tmp_path / "unnamed", "S,D,loss_nats\n1e4,1e6,3\n1e4,1e7,2\n4e4,1e6,2.5\n1e5,1e7,2\n", dataset="t"
    )
    with refused("checkpoints=last needs a column model or step"):
        ask(unnamed, "fit", checkpoints="last")


def test_last_states_of_measured_trainings_stand_for_their_sizes_whatever_their_revisions(tmp_path: Path) -> None:
    pairs = [(10_000, 10**6), (40_000, 3 * 10**6), (160_000, 9 * 10**6)]
    states = [*pairs, (40_000, 10**6), (160_000, 10**6), (160_000, 3 * 10**6)]
    write_surface(tmp_path, TRUTH, 1, pairs=states, states=True, n_documents=5, n_tokens=40)
    (row,) = ask(tmp_path, "fit", laws=["cross_entropy"], checkpoints="last").rows
    run_of = {(int(record["size"]), record["training_tokens"]): record["run_id"] for record in cell_records(tmp_path)}
    logprobs = [columns_of(tmp_path / "runs" / run_of[pair], "tokens")["logprob"] for pair in pairs]
    ln_y = np.log([-each.mean(dtype=np.float64) for each in logprobs])
    assert row["alpha"] == pytest.approx(-np.polyfit(np.log([S for S, _ in pairs]), ln_y, 1)[0], rel=1e-6)
    assert (row["n_points"], row["revision"]) == (3, None)
