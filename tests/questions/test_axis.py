"""Laws along training tokens, FLOPs and steps: against plain least squares, and over the runs that may enter."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rbpx.runs.group import LeftOut
from tests.support.asking import Rows, ask, groups, imported
from tests.support.synthetic import TrueSurface, write_surface

TRUTH = TrueSurface(S=(10_000, 160_000), D=(1_000_000, 3_000_000, 9_000_000, 27_000_000))
SIZES, TOKENS = (1e6, 4e6, 16e6), (1e8, 3e8, 1e9, 3e9)


def fits(store: Path, verb: str, **keys: Any) -> Rows:
    return ask(store, verb, resamples=30, **keys).rows


def loss(S: float, D: float) -> float:
    return 1.5 + 400 * S**-0.34 + 900 * D**-0.33


def drawn(store: Path, D: bool = True) -> Path:
    """Each of three sizes at each of four tokens, given by D or by C = 6 S D."""
    lines = [f"{S:g},{N if D else 6 * S * N:g},{N / 1e6:g},c4,{loss(S, N)!r}" for S in SIZES for N in TOKENS]
    return imported(store, "\n".join([f"S,{'D' if D else 'C'},step,dataset,loss_nats", *lines]))


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return drawn(tmp_path_factory.mktemp("theirs") / "store")


def slope(x: Any, y: Any) -> tuple[float, float]:
    """alpha and C of ordinary least squares of ln y on ln x."""
    rate, constant = np.polyfit(np.log(np.asarray(x, float)), np.log(np.asarray(y, float)), 1)
    return -float(rate), float(np.exp(constant))


def best_of_budgets() -> list[tuple[float, float]]:
    """C and loss of the runs that no other betters for up to a tenth more compute."""
    runs = [(6 * S * N, loss(S, N)) for S in SIZES for N in TOKENS]
    return sorted(run for run in runs if not any(C <= 1.1 * run[0] and y < run[1] for C, y in runs))


@pytest.mark.parametrize(("axis", "knows_D"), [("D", True), ("D", False), ("step", True)])
def test_along_tokens_each_size_has_the_law_of_plain_least_squares(
    axis: str, knows_D: bool, theirs: Path, tmp_path: Path
) -> None:
    """Laws of cross-entropy without E; those with one stand behind them in the answer."""
    laws = fits(theirs if knows_D else drawn(tmp_path / "store", D=False), "fit", axis=axis, laws=["cross_entropy"])
    laws = [law for law in laws if law["method"] == "ols"]
    assert [(law["size"], law["axis"], law["n_points"]) for law in laws] == [(f"{S:.0f}", axis, 4) for S in SIZES]
    for S, law in zip(SIZES, laws, strict=True):
        x = np.array(TOKENS) / (1e6 if axis == "step" else 1.0)
        assert (law["alpha"], law["C"]) == pytest.approx(slope(x, [loss(S, N) for N in TOKENS]), rel=1e-9)
        computed = [note for note in law["params"]["notes"] if "D = C / (6 S) for 4 runs" in note]
        assert bool(computed) is not knows_D


def test_along_compute_the_best_model_of_each_budget_enters(theirs: Path) -> None:
    asked, best = ask(theirs, "fit", axis="C", laws=["cross_entropy"], resamples=30), best_of_budgets()
    (law,) = asked.rows
    assert "y = c · C^-alpha" in asked.words  # the constant is c, since C is compute
    assert 3 < len(best) < len(SIZES) * len(TOKENS)
    assert law["params"]["S"] == pytest.approx([C for C, _ in best])
    assert (law["alpha"], law["C"]) == pytest.approx(slope(*zip(*best, strict=True)), rel=1e-9)


def test_a_measured_store_of_checkpoints_has_laws_along_training(tmp_path: Path) -> None:
    store = write_surface(tmp_path / "store", TRUTH, 1, n_documents=20, n_tokens=60, states=True).root
    asked = ask(store, "fit", axis="D", k=1, laws=["rbp", "cross_entropy"], resamples=30)
    along_steps = fits(store, "fit", axis="step", laws=["cross_entropy"])
    for laws, of in ((asked.rows, TRUTH.D), (along_steps, [D // 1000 for D in TRUTH.D])):
        assert {(law["size"], law["revision"]) for law in laws} == {(str(S), None) for S in TRUTH.S}
        for law in laws:
            assert law["params"]["S"] == list(of)
            assert (law["alpha"], law["C"]) == pytest.approx(slope(of, law["params"]["y"]), rel=1e-9)
    assert "y = C · D^-alpha" in asked.words
    assert "3 of 4 points are before the end of their training" in asked.words
    (law, *_) = fits(store, "emergence", axis="D", k=1, n=[1, 2])
    assert law["axis"] == "D"


def test_checkpoints_with_the_same_weights_are_one_point_and_a_status_says_so(tmp_path: Path) -> None:
    """A branch of an early step that holds the released weights, as in EleutherAI/pythia issue 205."""
    store = write_surface(tmp_path / "store", TRUTH, 1, n_documents=10, n_tokens=40, states=True)
    last = max(store.records("cells"), key=lambda cell: (int(cell["size"]), cell["training_tokens"]))
    branch = {"cell_key": "5" * 16, "revision": "step2000", "training_tokens": 2_000_000, "training_step": 2000}
    store.write_record("cells", branch["cell_key"], last | branch)
    small, large = fits(store.root, "fit", axis="D", laws=["cross_entropy"])
    assert small["params"]["S"] == large["params"]["S"] == list(TRUTH.D)
    assert "mixed" in large["params"]["reasons"]
    assert "mixed" not in small["params"]["reasons"]
    assert [note for note in large["params"]["notes"] if "has the weights of another point" in note]
    (of_surface,) = groups(store, "surface")
    assert sorted(run.training_tokens for run in of_surface.runs) == sorted(2 * TRUTH.D)
    assert of_surface.left_out[LeftOut.same] == 1


def test_raw_checkpoints_and_finished_models_never_stand_in_one_law(tmp_path: Path) -> None:
    """Along compute and in surfaces finished models count, and each says so."""
    store = write_surface(tmp_path / "store", TRUTH, 1, n_documents=10, n_tokens=40).root
    later = [(160_000, D) for D in (2_000_000, 6_000_000, 18_000_000)]
    write_surface(store, TRUTH, 2, 10, 40, pairs=later, variant="raw", states=True)
    (law,) = fits(store, "fit", axis="C", laws=["cross_entropy"])
    (of_surface,) = groups(store, "surface")
    assert law["variant"] is None
    assert {run.variant for run in of_surface.runs} == {None}
    assert of_surface.left_out[LeftOut.raw] == 3
    assert "Left out: 3 runs; each is a raw checkpoint, whose rate has not decayed." in law["params"]["notes"]


def test_laws_in_S_keep_their_ids_and_say_their_axis(tmp_path: Path) -> None:
    truth = TrueSurface(S=(10_000, 40_000, 160_000), D=(1_000_000,))
    store = write_surface(tmp_path / "store", truth, 1, n_documents=10, n_tokens=40).root
    (law,) = fits(store, "fit", laws=["cross_entropy"])
    assert (law["axis"], law["size"], law["params"].get("notes")) == ("S", None, None)
    write_surface(store, truth, 2, 10, 40, pairs=[(10_000, 2_000_000), (40_000, 2_000_000)])
    asked = ask(store, "fit", laws=["cross_entropy"], resamples=30)
    assert "left out 2 checkpoints of revisions with fewer than 3 sizes" in " ".join(asked.messages)
    assert "revision 2000000" not in asked.words


def test_gaps_along_compute_take_the_same_runs_on_both_texts(tmp_path: Path) -> None:
    store = drawn(tmp_path / "store")
    lines = [f"{S:g},{N:g},{N / 1e6:g},pile,{1.2 * loss(S, N) ** 1.1!r}" for S in SIZES for N in TOKENS]
    imported(store, "\n".join(["S,D,step,dataset,loss_nats", *lines]))
    (gap,), best = fits(store, "gaps", axis="C"), best_of_budgets()
    rate, _ = slope([C for C, _ in best], [1.2 * y**0.1 for _, y in best])
    assert (gap["dataset"], gap["dataset_b"], gap["axis"]) == ("pile", "c4", "C")
    assert gap["alpha"] == pytest.approx(rate, rel=1e-6)
