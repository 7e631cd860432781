"""GGUF files: read as what they are, known by their bytes, compared by their quantisation, refused in one line."""

import json
import math
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import here
from tests.support.gguf_files import build_llama, write_gguf
from tests.support.stores import cell_records, columns_of, manifests

needs_gguf = pytest.mark.skipif(find_spec("gguf") is None, reason="gguf is not installed: pip install 'rbpx[gguf]'")


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_llama(tmp_path_factory.mktemp("llama") / "tiny")


@needs_gguf
def test_quantisations_of_two_models_are_compared_audited_and_narrowed_to_those_that_runs_have(
    llama: Path, tiny_jsonl: Path, tmp_path: Path, cwd: Path
) -> None:
    store, others = tmp_path / "store", build_llama(tmp_path / "other", seed=1)
    text = ("dataset=file", f"dataset.path={tiny_jsonl}")
    for family, folder in (("mine", llama), ("theirs", others)):
        for kind in ("F32", "Q8_0", "Q4_0"):
            write_gguf(folder, tmp_path / f"{family}-{kind}.gguf", kind)
        files = ",".join(f"{family}-{kind}.gguf" for kind in ("F32", "Q8_0", "Q4_0"))
        words = ("model=hub", f"model.id={tmp_path}", f"model.gguf=[{files}]", f"model.family={family}")
        here("measure", *words, *text, "--store", store, cwd=cwd, check=0)

    def compared(a: str, b: str, *words: str) -> dict[str, Any]:
        answer = here("compare", a, b, "k=1", "--format", "json", "--store", store, *words, cwd=cwd, check=0)
        whole: dict[str, Any] = json.loads(answer.stdout)[0]
        return whole

    rounded = compared("mine/mine:float32", "mine/mine:Q4_0")
    assert (rounded["b"], rounded["change"] != 0) == ("mine/mine:float32-Q4_0", True)
    audited = here("audit", "family=mine", "limit=2", "k=1", "resamples=20", "--store", store, cwd=cwd, check=None)
    assert "3 of 3 runs were measured in float32" in audited.stderr  # the files are rounded, whatever reads them
    runs = manifests(store)
    for kind in ("Q8_0", "Q4_0"):
        whole = compared("mine/mine", "theirs/theirs", f"model.quantise={kind}")
        assert (whole["a"], whole["b"]) == (f"mine/mine:float32-{kind}", f"theirs/theirs:float32-{kind}")
        for side in ("a", "b"):  # bits of the tokens' own rows, by the bytes of the text
            (cell,) = [
                cell
                for cell in cell_records(store)
                if (cell["family"], runs[cell["run_id"]]["quantise"]) == (whole[side].partition("/")[0], kind)
            ]
            nats = -columns_of(store / "runs" / cell["run_id"], "tokens")["logprob"].astype(float).sum()
            n_bytes = runs[cell["run_id"]]["n_bytes_scored"]
            assert whole[f"bits_{side}"] == pytest.approx(nats / math.log(2) / n_bytes, rel=1e-6)
    for asked, says in (
        (("fit", "model.quantise=Q5_0"), "Q5_0 is none of the 6 runs that are asked about; did you mean Q8_0?"),
        (("fit", "family=mine", "model.quantise=int4"), "none of the 3 runs that are asked about; rounded are: Q4_0, "),
        (("audit", "model.family=mine", "model.quantise=Q2_K"), "rounded are: Q4_0, Q8_0"),
        (("measure", *words, *text, "model.quantise=Q4_0"), "known: int8, int4, nf4; a GGUF file is measured as it is"),
        (("fit", "model.quantise=8"), "is none of the 6 runs that are asked about; rounded are: Q4_0, Q8_0"),
    ):
        answer = here(*asked, "--store", store, cwd=cwd, check=2)
        (line,) = answer.stderr.splitlines()
        assert says in line
    told = here("fit", "family=mine", "model.quantise=Q8_0", "--store", store, cwd=cwd, check=2).stderr
    assert "no group of runs" in told  # it is there, of one size
