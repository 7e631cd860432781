"""A real model of 135 million parameters, from a package: its digits against float64, its costs against the plan."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from rbpx.models.gguf import is_installed
from tests.support.commands import here
from tests.support.real_model import PlainLlama, ranks_and_nats, real_model

_TEXT = (
    "In 1789, 12 of the 13 states had agreed.\n\n  2. The letters are read twice: once by the one who writes them, and "
    "once by the one who waits. def add(a, b):\n    return a + b  # 東京\n"
)
# The text as llama.cpp cuts it (`/tokenize` of its server, xllamacpp 2026.10.11549).
_IDS = [
    *(788, 216, 33, 39, 40, 41, 28, 216, 33, 34, 282, 260, 216, 33, 35, 2496, 761, 6454, 30, 39892, 34, 30, 378, 5073),
    *(359, 1012, 6757, 42, 2268, 411, 260, 582, 617, 9095, 601, 28, 284, 2268, 411, 260, 582, 617, 43910, 30, 753, 803),
    *(24, 81, 28, 278, 727, 472, 1003, 253, 1232, 278, 216, 907, 17097, 247, 126, 16736, 122, 198),
]


@pytest.mark.skipif(not is_installed(), reason="gguf is not installed: pip install 'rbpx[gguf]'")
def test_ranks_and_log_probabilities_of_a_real_model_are_those_of_float64_and_its_costs_those_of_the_plan(
    tmp_path: Path, cwd: Path
) -> None:
    file, store, text = real_model(tmp_path / "package"), tmp_path / "store", tmp_path / "text.txt"
    text.write_text(_TEXT, encoding="utf-8")
    asked = ("model=hub", f"model.id={file}", "dataset=file", f"dataset.path={text}", "--store", store)
    plan = json.loads(here("plan", *asked, "--format", "json", cwd=cwd, check=0).stdout)[0]
    words = [sys.executable, "-m", "rbpx", "measure", *map(str, asked)]
    subprocess.run(words, cwd=cwd, check=True, capture_output=True)  # whose peak is that of the measurement alone
    query = "SELECT token_id, greater, ties, logprob FROM tokens ORDER BY position"
    rows = json.loads(here("sql", query, "--format", "json", "--store", store, cwd=cwd, check=0).stdout)
    query = "SELECT quantise, dtype, non_embedding_params, total_params, n_tokens, peak_mib FROM runs"
    (run,) = json.loads(here("sql", query, "--format", "json", "--store", store, cwd=cwd, check=0).stdout)
    assert (run["quantise"], run["dtype"]) == ("Q4_1", "float32-Q4_1")
    assert (run["total_params"], run["non_embedding_params"]) == (134_515_008, 134_515_008 - 49_152 * 576)
    assert (plan["total_params"], plan["non_embedding_params"]) == (run["total_params"], run["non_embedding_params"])
    assert plan["memory_mib"] == pytest.approx(run["peak_mib"], rel=0.2)
    assert plan["tokens"] == pytest.approx(run["n_tokens"], rel=0.5)  # estimated by bytes
    assert [row["token_id"] for row in rows] == list(_IDS[1:])
    greater, logprobs = ranks_and_nats(PlainLlama(file).logits(_IDS), _IDS)
    assert [row["greater"] for row in rows] == greater
    assert [row["logprob"] for row in rows] == pytest.approx(logprobs, abs=2e-4)
    assert {row["ties"] for row in rows} == {0}
