"""A page about several sizes and seeds, and about the jobs of a sweep: each has its own numbers."""

from pathlib import Path

import pytest

from tests.support import synthetic
from tests.support.commands import here
from tests.support.reports import read, report
from tests.support.synthetic import TrueSurface, write_surface

SIZES, SEEDS, TOKENS = (10_000, 160_000), (0, 1), (1_000_000, 3_000_000, 9_000_000)


def drawn(root: Path, sizes: tuple[int, ...] = SIZES, seeds: tuple[int, ...] = SEEDS) -> Path:
    """Checkpoints of each size and seed; those of one size and seed are the same in any store."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(synthetic, "V", 3_000)
        for S, seed in ((S, seed) for S in sizes for seed in seeds):
            truth = TrueSurface(S=(S,), D=TOKENS, scatter=0.05)
            write_surface(root, truth, S + 10 * seed, 12, 40, states=True, training_seed=seed)
    return root


def test_a_report_says_of_a_size_and_seed_what_it_says_of_it_alone(place: Path) -> None:
    stores = drawn(place.parent / "together"), drawn(place.parent / "alone", SIZES[1:], SEEDS[1:])
    full, own = (read(report(store, store.with_suffix(".html"), place, "axis=D", "k=[1,3,10]")) for store in stores)
    tables = {name: table for name, table in own.tables.items() if name.startswith("grid-")}
    assert len(tables) > 10
    assert {name: full.tables[name] for name in tables} == tables
    figures = [name for name in own.figures if name.startswith("grid-")]
    assert [full.figures[name] for name in figures] == [own.figures[name] for name in figures]


def test_the_jobs_of_a_sweep_have_each_its_own_numbers_in_a_report(place: Path) -> None:
    """The first job's stood in the sections of the second, which looks at the same runs."""
    store, output = drawn(place.parent / "one", SIZES[:1]), place.parent / "sweep.html"
    words = "k=[1],[10]", "axis=D", "resamples=20"
    here("report", "-m", *words, "--store", store, "--output", output, cwd=place, check=0)
    tables = read(output.read_text(encoding="utf-8")).tables
    found = [table[0]["k"] for name, table in tables.items() if "regimes-alpha-values" in name]
    assert found == ["1", "1", "10", "10"]
