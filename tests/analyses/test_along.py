"""Laws along training tokens, FLOPs and steps: against plain least squares, and over the runs that may enter."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.commands import here
from tests.support.synthetic import TrueSurface, write_surface

TRUTH = TrueSurface(S=(10_000, 160_000), D=(1_000_000, 3_000_000, 9_000_000, 27_000_000))
SIZES, TOKENS = (1e6, 4e6, 16e6), (1e8, 3e8, 1e9, 3e9)


def fits(store: Path, cwd: Path, verb: str, *words: str) -> list[dict[str, Any]]:
    answer = here(*verb.split(), *words, "resamples=30", "--format", "json", "--store", store, cwd=cwd, check=0)
    rows: list[dict[str, Any]] = json.loads(answer.stdout)
    return rows


def loss(S: float, D: float) -> float:
    return 1.5 + 400 * S**-0.34 + 900 * D**-0.33


def drawn(tmp_path: Path, cwd: Path, *more: str, header: str = "", D: bool = True) -> Path:
    """Each of three sizes at each of four tokens, given by D or by C = 6 S D."""
    lines = [f"S,{'D' if D else 'C'},step,dataset,loss_nats{header}"]
    lines += [
        f"{S:g},{N if D else 6 * S * N:g},{N / 1e6:g},c4,{loss(S, N)!r}{end}"
        for S in SIZES
        for N in TOKENS
        for end in more or ("",)
    ]
    file, store = tmp_path / "drawn.csv", tmp_path / "store"
    file.write_text("\n".join(lines) + "\n")
    here("import", file, "source=them", "family=toy", "--store", store, cwd=cwd, check=0)
    return store


def slope(x: Any, y: Any) -> tuple[float, float]:
    """alpha and C of ordinary least squares of ln y on ln x."""
    rate, constant = np.polyfit(np.log(np.asarray(x, float)), np.log(np.asarray(y, float)), 1)
    return -float(rate), float(np.exp(constant))


@pytest.mark.parametrize(("axis", "knows_D"), [("D", True), ("D", False), ("step", True)])
def test_along_tokens_each_size_has_the_law_of_plain_least_squares(
    axis: str, knows_D: bool, tmp_path: Path, cwd: Path
) -> None:
    store = drawn(tmp_path, cwd, D=knows_D)
    laws = fits(store, cwd, "fit", f"axis={axis}", "laws=[cross_entropy]")
    assert [(law["size"], law["axis"], law["n_points"]) for law in laws] == [
        (f"{S:.0f}", axis, len(TOKENS)) for S in SIZES
    ]
    for S, law in zip(SIZES, laws, strict=True):
        x = np.array(TOKENS) / (1e6 if axis == "step" else 1.0)
        alpha, C = slope(x, [loss(S, N) for N in TOKENS])
        assert law["alpha"] == pytest.approx(alpha, rel=1e-9)
        assert law["C"] == pytest.approx(C, rel=1e-9)
        computed = [note for note in law["params"]["notes"] if "D = C / (6 S) for 4 runs" in note]
        assert bool(computed) is not knows_D


def test_along_compute_the_best_model_of_each_budget_enters(tmp_path: Path, cwd: Path) -> None:
    (law,) = fits(drawn(tmp_path, cwd), cwd, "fit", "axis=C", "laws=[cross_entropy]")
    runs = [(6 * S * N, loss(S, N)) for S in SIZES for N in TOKENS]
    best = sorted(run for run in runs if not any(C <= 1.1 * run[0] and y < run[1] for C, y in runs))
    assert 3 < len(best) < len(runs)
    assert law["params"]["S"] == pytest.approx([C for C, _ in best])
    alpha, C = slope(*zip(*best, strict=True))
    assert law["alpha"] == pytest.approx(alpha, rel=1e-9)
    assert law["C"] == pytest.approx(C, rel=1e-9)


def test_variants_and_seeds_have_laws_of_their_own(tmp_path: Path, cwd: Path) -> None:
    store = drawn(tmp_path, cwd, ",adam,0", ",adam,1", ",raw,0", header=",variant,training_seed")
    laws = fits(store, cwd, "fit", "axis=D", "laws=[cross_entropy]", 'size="1000000"')
    assert [law["n_points"] for law in laws] == [len(TOKENS)] * 3
    assert len({law["fit_id"] for law in laws}) == 3


def test_a_measured_store_of_checkpoints_has_laws_along_training(tmp_path: Path, cwd: Path) -> None:
    store = write_surface(tmp_path / "store", TRUTH, 1, n_documents=20, n_tokens=60, states=True).root
    for axis, of in (("D", TRUTH.D), ("step", [D // 1000 for D in TRUTH.D])):
        laws = fits(store, cwd, "fit", f"axis={axis}", "k=1", "laws=[rbp,cross_entropy]")
        assert {(law["size"], law["revision"]) for law in laws} == {(str(S), None) for S in TRUTH.S}
        for law in laws:
            assert law["params"]["S"] == list(of)
            alpha, C = slope(of, law["params"]["y"])
            assert law["alpha"] == pytest.approx(alpha, rel=1e-9)
            assert law["C"] == pytest.approx(C, rel=1e-9)
            assert law["alpha_lo"] < law["alpha"] < law["alpha_hi"]
    for verb, words in (("klaw", ["k=[1,2,5]"]), ("regimes", ["k=[1,10]"]), ("emergence", ["k=1", "n=[1,2]"])):
        assert {row["axis"] for row in fits(store, cwd, verb, "axis=D", *words) if "axis" in row} == {"D"}
    shown = here("fit", "axis=D", "k=1", "laws=[rbp]", "resamples=30", "--store", store, cwd=cwd, check=0).stdout
    assert "y = C · D^-alpha" in shown
    assert "3 of 4 points are before the end of their training" in " ".join(shown.split())


def test_checkpoints_with_the_same_weights_are_one_point_and_a_status_says_so(tmp_path: Path, cwd: Path) -> None:
    """A branch of an early step that holds the released weights, as in EleutherAI/pythia issue 205."""
    store = write_surface(tmp_path / "store", TRUTH, 1, n_documents=10, n_tokens=40, states=True)
    last = max(store.records("cells"), key=lambda cell: (int(cell["size"]), cell["training_tokens"]))
    branch = {"cell_key": "5" * 16, "revision": "step2000", "training_tokens": 2_000_000, "training_step": 2000}
    store.write_record("cells", branch["cell_key"], last | branch)
    small, large = fits(store.root, cwd, "fit", "axis=D", "laws=[cross_entropy]")
    assert small["params"]["S"] == large["params"]["S"] == list(TRUTH.D)
    assert "same_weights" in large["params"]["reasons"]
    assert "same_weights" not in small["params"]["reasons"]
    assert [note for note in large["params"]["notes"] if "has the weights of another point" in note]
    (surface,) = fits(store.root, cwd, "surface", "laws=[cross_entropy]")
    assert sorted(surface["params"]["D"]) == sorted(2 * TRUTH.D)
    assert "same_weights" in surface["reasons"]


def test_raw_checkpoints_and_finished_models_never_stand_in_one_law(tmp_path: Path, cwd: Path) -> None:
    """Along compute and in surfaces finished models count, along training raw checkpoints, and each says so."""
    finished = write_surface(tmp_path / "store", TRUTH, 1, n_documents=10, n_tokens=40)
    later = [(160_000, D) for D in (2_000_000, 6_000_000, 18_000_000)]
    write_surface(finished.root, TRUTH, 2, 10, 40, pairs=later, variant="raw", states=True)
    for verb in ("fit axis=C", "surface"):
        (law,) = fits(finished.root, cwd, verb, "laws=[cross_entropy]")
        variants = law["params"].get("variant"), law.get("variant")
        assert variants == (None, None)
    table = here("surface", "laws=[cross_entropy]", "resamples=30", "--store", finished.root, cwd=cwd, check=0).stdout
    assert "left out: 3 raw checkpoints" in " ".join(table.split())
    points = [r for r in fits(finished.root, cwd, "trajectory", "laws=[cross_entropy]") if r["kind"] == "point"]
    assert {row["D"] for row in points} == {D for _, D in later}
    along = fits(finished.root, cwd, "fit", "axis=C", "laws=[cross_entropy]")
    assert "Left out: 3 runs; each is a raw checkpoint, whose rate has not decayed." in along[0]["params"]["notes"]


def test_tables_of_laws_along_compute_are_printed(tmp_path: Path, cwd: Path) -> None:
    """Their constant is c, since C is compute."""
    store = write_surface(tmp_path / "store", TRUTH, 1, n_documents=10, n_tokens=40).root
    for verb, says in (
        ("klaw", "C times"),
        ("regimes", "-ln RBP_k = c · C^-alpha"),
        ("entropy", "Laws of the terms in C"),
    ):
        shown = here(verb, "axis=C", "resamples=30", "--store", store, cwd=cwd, check=0).stdout
        assert says in shown


def test_laws_in_S_keep_their_ids_and_say_their_axis(tmp_path: Path, cwd: Path) -> None:
    truth = TrueSurface(S=(10_000, 40_000, 160_000), D=(1_000_000,))
    store = write_surface(tmp_path / "store", truth, 1, n_documents=10, n_tokens=40).root
    (law,) = fits(store, cwd, "fit", "laws=[cross_entropy]")
    assert (law["axis"], law["size"], law["params"].get("notes")) == ("S", None, None)
    line = here("fit", "axis=D", "--store", store, cwd=cwd, check=2).stderr
    assert "no size has 3 runs or checkpoints with known and different training tokens" in line
    write_surface(store, truth, 2, 10, 40, pairs=[(10_000, 2_000_000), (40_000, 2_000_000)])
    answer = here("fit", "laws=[cross_entropy]", "resamples=30", "--store", store, cwd=cwd, check=0)
    assert "left out 2 checkpoints of revisions with fewer than 3 sizes" in answer.stderr
    assert "revision 2000000" not in answer.stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["fit", "axis=E"], "axis=E is unknown; known: S, D, C, step"),
        (["improve", "axis=D"], "improve has no key axis; it is a key of other verbs"),
    ],
)
def test_an_axis_that_there_is_not_is_one_line(words: list[str], says: str, tmp_path: Path, cwd: Path) -> None:
    store = drawn(tmp_path, cwd)
    (line,) = here(*words, "--store", store, cwd=cwd, check=2).stderr.splitlines()
    assert says in line


def test_gaps_along_compute_take_the_same_runs_on_both_texts(tmp_path: Path, cwd: Path) -> None:
    store = drawn(tmp_path, cwd)
    other = tmp_path / "other.csv"
    lines = [f"{S:g},{N:g},{N / 1e6:g},pile,{1.2 * loss(S, N) ** 1.1!r}" for S in SIZES for N in TOKENS]
    other.write_text("\n".join(["S,D,step,dataset,loss_nats", *lines]) + "\n")
    here("import", other, "source=them", "family=toy", "--store", store, cwd=cwd, check=0)
    (gap,) = fits(store, cwd, "gaps", "axis=C")
    runs = [(6 * S * N, loss(S, N)) for S in SIZES for N in TOKENS]
    best = sorted(run for run in runs if not any(C <= 1.1 * run[0] and y < run[1] for C, y in runs))
    rate, _ = slope([C for C, _ in best], [1.2 * y**0.1 for _, y in best])
    assert (gap["dataset"], gap["dataset_b"], gap["axis"]) == ("pile", "c4", "C")
    assert gap["alpha"] == pytest.approx(rate, rel=1e-6)
