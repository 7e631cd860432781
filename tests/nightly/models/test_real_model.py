"""Real models from packages: their digits against plain ones, their costs against the plan."""

import json
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.commands import here
from tests.support.real_model import PACKAGES, plain_logits, ranks_and_nats, real_model

_TEXT = (
    "In 1789, 12 of the 13 states had agreed.\n\n  2. The letters are read twice: once by the one who writes them, and "
    "once by the one who waits. def add(a, b):\n    return a + b  # 東京\n"
)
# The text as llama.cpp cuts it (`/tokenize` of its server with `add_special`, xllamacpp 2026.10.11549).
_SMOLLM2_IDS = [
    *(788, 216, 33, 39, 40, 41, 28, 216, 33, 34, 282, 260, 216, 33, 35, 2496, 761, 6454, 30, 39892, 34, 30, 378, 5073),
    *(359, 1012, 6757, 42, 2268, 411, 260, 582, 617, 9095, 601, 28, 284, 2268, 411, 260, 582, 617, 43910, 30, 753, 803),
    *(24, 81, 28, 278, 727, 472, 1003, 253, 1232, 278, 216, 907, 17097, 247, 126, 16736, 122, 198),
]
# Without the comment, whose likelihoods lie closer together than float32 tells apart, among 262,144.
_GEMMA3_TEXT = _TEXT.partition("  #")[0]
_GEMMA3_IDS = [
    *(2, 902, 236743, 236770, 236832, 236828, 236819, 236764, 236743, 236770, 236778, 529, 506, 236743, 236770, 236800),
    *(5022, 1053, 10344, 236761, 108, 138, 236778, 236761, 669, 11739, 659, 1676, 10911, 236787, 3622, 684, 506, 886),
    *(1015, 19874, 1091, 236764, 532, 3622, 684, 506, 886, 1015, 79425, 236761, 1096, 1138, 236769, 236746, 236764),
    *(518, 1473, 107, 140, 2060, 496, 900, 518),
]


@pytest.mark.skipif(find_spec("gguf") is None, reason="gguf is not installed: pip install 'rbpx[gguf]'")
@pytest.mark.parametrize(
    ("model", "text", "ids", "n_special", "kind", "n_all", "n_embedding"),
    [
        ("smollm2", _TEXT, _SMOLLM2_IDS, 0, "Q4_1", 134_515_008, 49_152 * 576),
        ("gemma3", _GEMMA3_TEXT, _GEMMA3_IDS, 1, "Q4_K_M", 268_098_176, 262_144 * 640),
    ],
    ids=["smollm2", "gemma3"],
)
def test_ranks_and_log_probabilities_of_a_real_model_are_the_plain_ones_and_its_costs_those_of_the_plan(
    model: str,
    text: str,
    ids: list[int],
    n_special: int,
    kind: str,
    n_all: int,
    n_embedding: int,
    tmp_path: Path,
    cwd: Path,
) -> None:
    try:
        file = real_model(tmp_path / "package", model)
    except subprocess.CalledProcessError:
        pytest.skip(f"pip finds no {PACKAGES[model]}")
    store, read = tmp_path / "store", tmp_path / "text.txt"
    read.write_text(text, encoding="utf-8")
    asked = ("model=hub", f"model.id={file}", "dataset=file", f"dataset.path={read}", "--store", store)
    plan = json.loads(here("plan", *asked, "--format", "json", cwd=cwd, check=0).stdout)[0]
    here("measure", *asked, cwd=cwd, check=0)
    query = "SELECT token_id, greater, ties, logprob FROM tokens ORDER BY position"
    rows = json.loads(here("sql", query, "--format", "json", "--store", store, cwd=cwd, check=0).stdout)
    query = "SELECT quantise, dtype, non_embedding_params, total_params, n_tokens FROM runs"
    (run,) = json.loads(here("sql", query, "--format", "json", "--store", store, cwd=cwd, check=0).stdout)
    assert (run["quantise"], run["dtype"]) == (kind, f"float32-{kind}")
    assert (run["total_params"], run["non_embedding_params"]) == (n_all, n_all - n_embedding)
    assert (plan["total_params"], plan["non_embedding_params"]) == (run["total_params"], run["non_embedding_params"])
    assert plan["tokens"] == pytest.approx(run["n_tokens"], rel=0.5)  # estimated by bytes
    assert [row["token_id"] for row in rows] == ids[n_special + 1 :]  # the first of the text is not predicted
    greater, logprobs = ranks_and_nats(plain_logits(file, ids), ids)
    assert [row["greater"] for row in rows] == greater[n_special:]
    assert [row["logprob"] for row in rows] == pytest.approx(logprobs[n_special:], abs=2e-4)
    assert {row["ties"] for row in rows} == {0}
