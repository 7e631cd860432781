"""`shard=3/16`: the parts of a grid are disjoint, together all of it, alike on every machine, and balanced by cost."""

import json
import shlex
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rbpx.cli.registry import asking
from rbpx.config.compose import compose
from rbpx.config.keys.runs import Shard
from rbpx.measure.shards import divide, of_shard
from tests.support.commands import here
from tests.support.stores import Family, cell_records


def requests_of(*words: str) -> list[Any]:
    return list(compose(asking("measure"), [word for word in words if word != "-m"], sweeps="-m" in words).requests)


@pytest.fixture(scope="module")
def known() -> list[Any]:
    """Two families on four texts and limits."""
    return requests_of("-m", "model=pythia,gpt2", "dataset=pydoc,c4", "limit=10,1000")


def test_the_shards_of_a_sweep_are_disjoint_and_together_all_of_it(known: list[Any]) -> None:
    n_cells = {place: len(request.model.sizes) for place, request in enumerate(known)}
    whole = {(place, cell) for place, n in n_cells.items() for cell in range(n)}
    for n_shards in (1, 2, 7, len(whole) + 3):
        parts = [load.places for load in divide(known, n_shards)]
        of_last = [request.but(shard=Shard(n_shards, n_shards)) for request in known]
        cells = of_shard(of_last, [[(place, cell) for cell in range(n)] for place, n in n_cells.items()])
        assert set(cells) == parts[-1]
        assert Counter(place for part in parts for place in part) == Counter(whole)


def test_no_shard_has_more_than_an_equal_share_and_one_cell_and_models_stay_together(known: list[Any]) -> None:
    (whole,) = divide(known, 1)
    largest = divide(known, len(whole.places))[0].cost
    for n_shards in (2, 5, 11):
        loads = divide(known, n_shards)
        assert sum(load.cost for load in loads) == pytest.approx(whole.cost)
        assert max(load.cost for load in loads) <= whole.cost / n_shards + largest
    models = [{(known[n].model.family, at) for n, at in load.places} for load in loads]
    n_models = sum(len(request.model.sizes) for request in known[:1]) + len(known[-1].model.sizes)
    assert sum(len(each) for each in models) < len(whole.places) / 2  # of 4 texts and limits, not a model for each
    assert len(set().union(*models)) == n_models


def test_costs_are_those_of_the_windows_by_the_formula() -> None:
    (request,) = requests_of("-m", "model=gpt2", "size=gpt2", "dataset=c4", "limit=10")
    (load,) = divide([request], 1)
    S, V, D, L, T = 85_056_000, 50_257, 768, 12, 512  # 12 layers of 7,087,872 and the last norm without the embeddings
    counted = request.model.sizes["gpt2"].non_embedding_params
    assert abs(counted - S) < 10_000
    assert load.cost == pytest.approx(10 * T * (2 * counted + 2 * V * D + 4 * L * D * T), rel=1e-12)


def test_what_a_store_or_a_hub_holds_does_not_move_a_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("-m", "model=hub", "model.id=[nobody/knows,nobody/cares]", "model.family=far", "dataset=c4,lambada")
    before = divide(requests_of(*words, f"store={tmp_path}/one"), 2)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    (tmp_path / "two" / "samples").mkdir(parents=True)
    assert divide(requests_of(*words, f"store={tmp_path}/two"), 2) == before
    assert [len(load.places) for load in before] == [2, 2]


def test_the_lines_of_a_plan_measure_the_grid_together(family: Family, cwd: Path, tmp_path: Path) -> None:
    words = (*family.words("xs", "s"), "limit=3", "--store", tmp_path / "store")
    answer = here("plan", *words, "shard=2", "--format", "jobs", cwd=cwd, check=0)
    lines = [shlex.split(line) for line in answer.stdout.splitlines()]
    assert [line[:4] for line in lines] == [["python", "-m", "rbpx", "measure"]] * 2
    assert [line[-1] for line in lines] == ["shard=1/2", "shard=2/2"]
    assert "sbatch --array=1-2" in answer.stderr
    assert "JOB_COMPLETION_INDEX + 1))/2" in answer.stderr
    for n_cells, line in enumerate(lines, 1):
        here(*line[3:], cwd=cwd, check=0)
        assert len(cell_records(tmp_path / "store")) == n_cells
        shard = json.loads(here("status", *words, line[-1], "--format", "json", cwd=cwd, check=0).stdout)
        assert [row["state"] for row in shard] == ["done"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("run", "shard=1/3"), "run has no key shard; it is a key of other verbs"),
        (("measure", "--format", "jobs"), "measure has no key format"),
        (("status", "--format", "jobs"), "format=jobs is of a plan"),
        (("measure", "shard=3"), "shard=3 names no part; give a part, as in shard=1/3"),
        (("plan", "size=3k", "shard=2", "--format", "jobs"), "shard=2 is more than the 1 cell of the grid"),
    ],
)
def test_a_shard_that_is_none_is_refused(words: tuple[str, ...], told: str, cwd: Path, tmp_path: Path) -> None:
    answer = here(*words, "--store", tmp_path / "store", cwd=cwd, check=2)
    assert told in answer.stderr
    assert answer.stdout == ""
    assert not (tmp_path / "store").exists()
