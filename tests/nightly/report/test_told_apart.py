"""A page about the jobs of a sweep: each has its own numbers."""

from pathlib import Path

from tests.support.commands import here
from tests.support.reports import read
from tests.support.synthetic import TrueSurface, write_surface


def test_the_jobs_of_a_sweep_have_each_its_own_numbers_in_a_report(place: Path) -> None:
    """The first job's stood in the sections of the second, which looks at the same runs."""
    output = place.parent / "sweep.html"
    truth = TrueSurface(S=(10_000,), D=(1_000_000, 3_000_000, 9_000_000))
    store = write_surface(place.parent / "store", truth, seed=1, n_documents=12, n_tokens=40, states=True).root
    words = "k=[1],[10]", "axis=D", "resamples=20"
    here("report", "-m", *words, "--store", store, "--output", output, cwd=place, check=0)
    tables = read(output.read_text(encoding="utf-8")).tables
    found = [table[0]["k"] for name, table in tables.items() if "regimes-alpha-values" in name]
    assert found == ["1", "10"]
