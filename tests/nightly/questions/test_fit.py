"""Laws of models that are measured: one of them was trained on."""

from pathlib import Path

from tests.support.asking import ask
from tests.support.commands import here
from tests.support.stores import Family, build_member, manifests


def test_a_model_that_was_trained_on_enters_once_with_its_newest_run(family: Family, cwd: Path, tmp_path: Path) -> None:
    seen = []
    for seed in (7, 8):
        own = Family(family.folders | {"m": build_member(tmp_path / "m", "m", seed=seed)}, family.text)
        here("measure", *own.words(), "--store", tmp_path / "store", cwd=cwd, check=0)
        seen.append(set(manifests(tmp_path / "store")))
    (new,) = seen[1] - seen[0]
    (row,) = ask(tmp_path / "store", "fit", laws=["cross_entropy"], resamples=20).rows
    assert (row["n_points"], len(seen[1])) == (4, 5)
    assert new in row["run_ids"]
