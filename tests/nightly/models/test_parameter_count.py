"""S against the published counts: every model of the reference table, built without weights on the meta device."""

import csv
from pathlib import Path

import pytest

from rbpx.models.architecture import non_embedding_params, total_params
from tests.support.published_shapes import build_published


def read_table(shared_data: Path, name: str) -> list[dict[str, str]]:
    with (shared_data / "reference" / name).open(newline="", encoding="utf-8") as table:
        return list(csv.DictReader(table))


@pytest.mark.parametrize("family", ["gpt2", "opt", "pythia", "qwen2.5"])
def test_every_published_model_has_its_published_counts(shared_data: Path, family: str) -> None:
    shapes = [row for row in read_table(shared_data, "architectures.csv") if row["family"] == family]
    assert len(shapes) == {"gpt2": 4, "opt": 8, "pythia": 10, "qwen2.5": 7}[family]
    released = {row["hub_id"]: row for row in read_table(shared_data, "non_embedding_params.csv")}
    counted, expected = {}, {}
    for shape in shapes:
        name = shape["model"]
        model = build_published(shape)
        counted[name] = non_embedding_params(model), total_params(model)
        expected[name] = int(shape["non_embedding_params"]), int(shape["total_params_hf_causal_lm"])
        if name in released:  # all but the three largest opt models
            assert int(released[name]["non_embedding_params"]) == counted[name][0], name
            if int(shape["tied_embeddings"]):  # the released totals leave an untied head out
                assert int(released[name]["total_params"]) == counted[name][1], name
    assert counted == expected
