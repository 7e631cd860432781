"""GGUF files: read as what they are, known by their bytes, compared by their quantisation, refused in one line."""

import json
from pathlib import Path
from typing import Any

import pytest

from rbpx.models import gguf
from tests.support.commands import here
from tests.support.gguf_files import build_llama, write_gguf

needs_gguf = pytest.mark.skipif(not gguf.is_installed(), reason="gguf is not installed: pip install 'rbpx[gguf]'")


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_llama(tmp_path_factory.mktemp("llama") / "tiny")


@needs_gguf
def test_files_of_one_model_make_a_family_by_their_quantisation(
    llama: Path, tiny_jsonl: Path, tmp_path: Path, cwd: Path
) -> None:
    store = tmp_path / "store"
    for kind in ("F32", "Q8_0", "Q4_0"):
        write_gguf(llama, tmp_path / f"tiny-{kind}.gguf", kind)
    words = ("model=hub", f"model.id={tmp_path}", "model.family=mine", "dataset=file", f"dataset.path={tiny_jsonl}")
    names = "model.gguf=[tiny-F32.gguf,tiny-Q8_0.gguf,tiny-Q4_0.gguf]"
    here("measure", *words, names, "--store", store, cwd=cwd, check=0)
    query = "SELECT size, dtype, quantise, run_id FROM runs ORDER BY dtype"
    runs = json.loads(here("sql", query, "--format", "json", "--store", store, cwd=cwd, check=0).stdout)
    assert [(run["size"], run["dtype"], run["quantise"]) for run in runs] == [
        ("tiny", "float32", None),
        ("tiny", "float32-Q4_0", "Q4_0"),
        ("tiny", "float32-Q8_0", "Q8_0"),
    ]
    asked = ("compare", "mine/tiny:float32", "mine/tiny:Q4_0", "k=1", "--format", "json", "--store", store)
    (whole, *_) = json.loads(here(*asked, cwd=cwd, check=0).stdout)
    assert (whole["b"], whole["change"] != 0) == ("mine/tiny:float32-Q4_0", True)
    audited = here("audit", "limit=2", "k=1", "resamples=20", "--store", store, cwd=cwd, check=None)
    assert "3 of 3 runs were measured in float32" in audited.stderr  # the files are rounded, whatever reads them
    # each file is found again among those of one size, by its weights
    asked = ("temperature", "resamples=20", "--format", "json", "--store", store)
    found = [row for row in json.loads(here(*asked, cwd=cwd, check=0).stdout) if row["kind"] == "run"]
    query = "SELECT run_id, cross_entropy_nats AS ce FROM runs ORDER BY run_id"
    truth = json.loads(here("sql", query, "--format", "json", "--store", store, cwd=cwd, check=0).stdout)
    told = sorted((row["run_id"], row["cross_entropy_nats"]) for row in found)
    assert told == [(row["run_id"], pytest.approx(row["ce"], rel=1e-5)) for row in truth]
    assert len({round(nats, 12) for _, nats in told}) == 3
    # the bytes say which model it is: another name measures nothing, another byte does
    moved = tmp_path / "elsewhere-Q8_0.gguf"
    moved.write_bytes((tmp_path / "tiny-Q8_0.gguf").read_bytes())
    for n_runs in (3, 4):
        here("measure", "model=hub", f"model.id={moved}", *words[2:], "--store", store, cwd=cwd, check=0)
        query = "SELECT count(DISTINCT run_id) AS n FROM runs"
        counted = here("sql", query, "--format", "json", "--store", store, cwd=cwd, check=0)
        assert json.loads(counted.stdout) == [{"n": n_runs}]
        content = bytearray(moved.read_bytes())
        content[-40] ^= 1
        moved.write_bytes(bytes(content))


@needs_gguf
def test_a_question_is_narrowed_to_a_quantisation_that_runs_have(
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

    def compared(*words: str) -> list[dict[str, Any]]:
        asked = ("compare", "mine/mine", "theirs/theirs", "k=1", "--format", "json", "--store", store, *words)
        return list(json.loads(here(*asked, cwd=cwd, check=0).stdout))

    for kind in ("Q8_0", "Q4_0"):
        (whole, *_) = compared(f"model.quantise={kind}")
        assert (whole["a"], whole["b"]) == (f"mine/mine:float32-{kind}", f"theirs/theirs:float32-{kind}")
        for side in ("a", "b"):  # bits of the tokens' own rows, by the bytes of the text
            family = whole[side].partition("/")[0]
            query = (
                "SELECT -sum(t.logprob) / ln(2) / any_value(r.n_bytes_scored) AS bits FROM tokens AS t JOIN runs AS r "
                f"USING (run_id) WHERE r.family = '{family}' AND r.quantise = '{kind}'"
            )
            (row,) = json.loads(here("sql", query, "--format", "json", "--store", store, cwd=cwd, check=0).stdout)
            assert whole[f"bits_{side}"] == pytest.approx(row["bits"], rel=1e-6)
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
