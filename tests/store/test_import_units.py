"""Headings that say a unit, factors that are typed, and numbers so small that nobody knows what they count."""

import csv
import io
from pathlib import Path

import pytest

from tests.support import imports
from tests.support.commands import Answer
from tests.support.imports import found

PUBLISHED = """\
Model,Model Family,Model Size (B),Pretraining Data Size (T),FLOPs (1E21),HellaSwag
meta-llama/Llama-2-7b-hf,Llama-2,7.0,2.0,84.0,0.7774347739494125
huggyllama/llama-65b,Llama,65.2,1.4,547.6800000000001,0.8608842859988051
mistralai/Mistral-7B-v0.1,Mistral,7.3,,,0.8331009759012149
EleutherAI/pythia-410m-deduped,Pythia,0.41,0.3,0.738,0.4128659629555865
bigscience/bloom-560m,BLOOM,0.56,0.341,1.14576,0.371539533957379
"""  # rows of base_llm_benchmark_eval.csv of Ruan et al. 2024, arXiv 2405.10938
CHOSEN = 'columns={family: "Model Family", accuracy: HellaSwag}'
FACTS = "model, non_embedding_params, training_tokens, training_flops"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A place for a store that is not there yet."""
    return tmp_path / "store"


def bring(text: str, store: Path, cwd: Path, *words: str, check: int = 0) -> Answer:
    file = store.parent / "a.csv"
    file.write_text(text, encoding="utf-8")
    return imports.bring(file, store, cwd, "source=them", "dataset=c4", *words, check=check)


def test_headings_that_say_their_unit_are_read_so_and_that_is_said_once(store: Path, cwd: Path) -> None:
    said = bring(PUBLISHED, store, cwd, CHOSEN).stderr
    (line,) = [line for line in said.splitlines() if "times" in line]
    assert line.endswith(
        "'Model Size (B)' as S times 1e9, 'Pretraining Data Size (T)' as D times 1e12, 'FLOPs (1E21)' as C times 1e21"
    )

    def times(cell: str, factor: float) -> float | None:
        return pytest.approx(float(cell) * factor) if cell else None

    rows = list(csv.DictReader(io.StringIO(PUBLISHED)))
    assert found(store, FACTS) == [
        (name, times(S, 1e9), times(D, 1e12), times(C, 1e21))
        for name, S, D, C in sorted(tuple(row.values())[:1] + tuple(row.values())[2:5] for row in rows)
    ]


@pytest.mark.parametrize(
    ("heading", "S"),
    [
        *(("params (M)", 7e6), ("N_params_millions", 7e6), ("#Params [B]", 7e9), ("non-embedding params (10^6)", 7e6)),
        *(("parameters (in billions)", 7e9), ("params_m", 7e6), ("n_params_b", 7e9), ("params_k", 7e3)),
        *(("params_million", 7e6), ("model size billion", 7e9), ("Millions of params", 7e6), ("size_b", 7e9)),
    ],
)
def test_units_are_known_as_people_write_them(heading: str, S: float, store: Path, cwd: Path) -> None:
    bring(f"loss_nats,{heading}\n3,7\n", store, cwd, "family=lab")
    assert found(store, "non_embedding_params") == [(S,)]


@pytest.mark.parametrize(
    ("heading", "C"),
    [
        *(("training compute (EFLOP)", 5e18), ("compute_zflops", 5e21), ("train flops [exaFLOPs]", 5e18)),
        *(("C (PF-days)", 5 * 1e15 * 86_400), ("compute (petaflop/s-days)", 5 * 1e15 * 86_400)),
        ("C (PFLOP)", 5e15),
    ],
)
def test_operations_have_units_of_their_own(heading: str, C: float, store: Path, cwd: Path) -> None:
    bring(f"loss_nats,params (B),{heading}\n3,7,5\n", store, cwd, "family=lab")
    assert found(store, "training_flops") == [(pytest.approx(C, rel=1e-12),)]


@pytest.mark.parametrize("heading", ["model b", "C (PFLOP/s)", "s_m"])
def test_a_letter_or_a_rate_says_no_unit(heading: str, store: Path, cwd: Path) -> None:
    line = bring(f"loss_nats,{heading}\n3,7\n", store, cwd, "family=lab", f'columns={{S: "{heading}"}}', check=2).stderr
    assert "times: TIMES" in line


def test_a_factor_is_typed_and_goes_before_a_heading(store: Path, cwd: Path) -> None:
    of = 'S: {column: "params (M)", times: 1e3}, D: {column: D, times: 1e9}, accuracy: {column: a, times: .01}'
    said = bring("params (M),D,a\n70,1.5,41\n", store, cwd, "family=lab", f"columns={{{of}}}").stderr
    assert "'params (M)' as S times 1e3" in said
    assert found(store, "non_embedding_params, training_tokens, accuracy") == [(70e3, 1_500_000_000, 0.41)]


def test_a_table_in_millions_is_refused_though_its_largest_has_five_digits(store: Path, cwd: Path) -> None:
    line = bring("S,loss_nats\n70,3\n2800,2.7\n12000,2.5\n", store, cwd, "family=lab", check=2).stderr
    assert "S is 70 to 12,000, so it may count millions or billions; say so" in line
    told = "S: {column: S, times: TIMES}"
    assert f"columns='{{{told}}}', where TIMES is 1e6 or 1e9 for S, or 1 for what counts neither" in line
    pasted = bring("S,loss_nats\n70,3\n", store, cwd, "family=lab", f"columns={{{told}}}", check=2).stderr
    assert "give a column, or a column and a number above 0" in pasted, "no unit is stored that was not typed"


def test_a_table_of_small_numbers_is_never_taken_for_parameters(store: Path, cwd: Path) -> None:
    table = "N,D,loss_nats\n7,300,3\n13,300,2.9\n70,300,2.5\n"
    line = bring(table, store, cwd, "family=lab", "columns={S: N, loss_nats: loss_nats}", check=2).stderr
    assert "S is 7 to 70, D is 300 to 300, so it may count millions or billions; say so" in line
    assert "S: {column: N, times: TIMES}, D: {column: D, times: TIMES}" in line
    assert "where TIMES is 1e6 or 1e9 for S, 1e6 or 1e9 for D, or 1" in line
    assert line.count("\n") == 1
    assert not store.exists()
    told = "columns={S: {column: N, times: 1e9}, D: {column: D, times: 1}}"
    bring(table, store, cwd, "family=lab", told)
    assert found(store, "non_embedding_params, training_tokens") == [(7e9, 300), (13e9, 300), (70e9, 300)]


def test_small_numbers_of_runs_side_by_side_are_refused_too(store: Path, cwd: Path) -> None:
    table = "step,small,big\n100,3,2\n"
    line = bring(table, store, cwd, "family=lab", "runs={loss_nats: {small: 60, big: 1200}}", check=2).stderr
    assert "runs: S is at most 1,200; write 1200M or 1200B, or 3k of one so small" in line
    bring(table, store, cwd, "family=lab", "runs={loss_nats: {small: 0.5k, big: 1.2k}}")
    assert found(store, "non_embedding_params") == [(500,), (1200,)]


def test_a_small_number_with_a_letter_says_what_it_counts(store: Path, cwd: Path) -> None:
    bring("S,loss_nats\n3k,3\n7k,2.9\n", store, cwd, "family=lab")
    assert found(store, "non_embedding_params") == [(3000,), (7000,)]


def test_a_wrong_unit_is_told_once_by_its_factor(store: Path, cwd: Path) -> None:
    wrong = PUBLISHED.replace("Size (T)", "Size (B)")
    line = bring(wrong, store, cwd, CHOSEN, check=2).stderr
    assert "line 2: FLOPs (1E21) is 8.4e+22, 1,000 times 6 S D, and about as many times in each of 4 rows" in line
    assert line.count("\n") == 1


@pytest.mark.parametrize(
    ("table", "words", "says"),
    [
        ("params (M),loss_nats\n7B,3\n", [], "params (M) is 7B, but its column is read times 1e6"),
        ("params (M),size (B),loss_nats\n7,3,3\n", [], "'params (M)' and 'size (B)' may both be S; say which"),
        (
            "S,loss_nats\n7,3\n",
            ["columns={S: {column: S, times: x}}"],
            "give a column, or a column and a number",
        ),
        ("S,loss_nats\n7,3\n", ["columns={S: {column: S}}"], "give a column, or a column and a number"),
        ("S,m,loss_nats\n7,a,3\n", ["columns={model: {column: m, times: 2}}"], "model takes no times"),
        (
            "S,quantity,value\n7B,accuracy,41\n",
            ["columns={value: {column: value, times: .01}}"],
            "value takes no times",
        ),
        ("S,a\n7B,41\n", ["columns={accuracy: {column: a, times: .1}}"], "line 2: a is 41 times 0.1; give shares"),
    ],
)
def test_what_has_two_units_or_none_is_one_line(
    table: str, words: list[str], says: str, store: Path, cwd: Path
) -> None:
    line = bring(table, store, cwd, "family=lab", *words, check=2).stderr
    assert says in line
    assert line.count("\n") == 1
