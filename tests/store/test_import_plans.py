"""Plans of runs, which imports/plans.txt brings in: what other questions make of a run that is underway."""

from pathlib import Path

from tests.support.asking import ask, imported, refused
from tests.support.tables import write_table


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
