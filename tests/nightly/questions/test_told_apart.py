"""Groups of several sizes, seeds and texts in one store: each result is of its own, and each row says of which."""

import json
import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rbpx.questions.registry import analyses
from tests.support import synthetic
from tests.support.commands import here
from tests.support.reports import read, report
from tests.support.synthetic import TrueSurface, write_surface

SIZES, SEEDS, TEXTS = (10_000, 160_000), (0, 1), ("prose", "code")
TOKENS = (1_000_000, 3_000_000, 9_000_000)
ALONG = [
    name
    for name, each in analyses().items()
    if "axis" in each.keys and name not in ("multiplier", "attempts", "predict")
]  # attempts, which look at items, below; predict takes S alone, or another loss
NAMES = (  # columns that say what a row is about; no id, and no number that was found
    *("kind", "source", "family", "size", "model", "non_embedding_params", "dataset", "dataset_b", "text_hash"),
    *("protocol", "window", "stride", "padding", "bos", "dtype", "revision", "variant", "engine", "training_tokens"),
    *("training_flops", "training_step", "unique_tokens", "training_seed", "k", "n", "ties", "method", "axis", "law"),
    *("base", "fixed_size", "offset", "form", "S", "D", "rank", "n_fitted", "x", "name", "by", "how", "of"),
    *("one", "other"),
)


def drawn(root: Path, sizes: tuple[int, ...] = SIZES, seeds: tuple[int, ...] = SEEDS) -> Path:
    """Checkpoints of each size and seed on each text; those of one size and seed are the same in any store."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(synthetic, "V", 3_000)
        for S in sizes:
            for seed in seeds:
                for at, text in enumerate(TEXTS):
                    truth = TrueSurface(S=(S,), D=TOKENS, scatter=0.05)
                    write_surface(
                        root, truth, S + 10 * seed + at, 12, 40, states=True, training_seed=seed, dataset=text
                    )
    return root


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cwd = tmp_path_factory.mktemp("apart") / "cwd"
    cwd.mkdir()
    return cwd


@pytest.fixture(scope="module")
def together(place: Path) -> Path:
    """Two sizes, two seeds of each."""
    return drawn(place.parent / "together")


@pytest.fixture(scope="module")
def alone(place: Path) -> Path:
    """The second seed of the second size."""
    return drawn(place.parent / "alone", SIZES[1:], SEEDS[1:])


def asked(store: Path, cwd: Path, verb: str, *words: str) -> list[dict[str, Any]]:
    """The rows of a question, without when they were written and what several groups are tested together by."""
    more = ["n=[1,2]"] if verb == "emergence" else []
    given = ["resamples=20", *([] if verb == "entropy" else ["k=[1,3,10]"]), *more, *words]
    rows = json.loads(here(verb, *given, "--format", "json", "--details", "--store", store, cwd=cwd, check=0).stdout)
    for row in rows:
        row.pop("created_at", None)
        (row.get("params") or {}).pop("p_adjusted", None)
    assert [
        names for names, n in Counter(tuple(row.get(name) for name in NAMES) for row in rows).items() if n > 1
    ] == []
    return list(rows)


@pytest.mark.parametrize("verb", ALONG)
def test_rows_of_a_size_and_seed_are_those_of_it_alone(verb: str, together: Path, alone: Path, place: Path) -> None:
    rows = asked(together, place, verb, "axis=D")
    own = [row for row in rows if (row["size"], row["training_seed"]) == (str(SIZES[1]), SEEDS[1])]
    assert own == asked(alone, place, verb, "axis=D")
    across = [row for row in rows if row["size"] is None]
    assert {row["kind"] for row in across} <= {"pair", "factor", "loading"}, "of trainings that are compared"
    assert len(rows) - len(across) == len(SIZES) * len(SEEDS) * len(own)


@pytest.mark.parametrize("verb", ALONG)
def test_each_row_along_compute_says_what_it_is_about(verb: str, together: Path, place: Path) -> None:
    assert asked(together, place, verb, "axis=C")


def test_attempts_of_a_size_along_tokens_are_those_of_it_alone(tmp_path: Path, place: Path) -> None:
    """Counts of twelve items, whose chances rise with tokens and, more, with size."""

    def brought(name: str, sizes: tuple[int, ...]) -> Path:
        lines = ["S,D,dataset,item,n_samples,n_correct"]
        for S in sizes:
            for D in TOKENS:
                right = [min(100, int(3 * item + 2 * math.log(D) + math.log(S))) for item in range(12)]
                lines += [f"{S},{D},quiz,{item},100,{n}" for item, n in enumerate(right)]
        file, store = tmp_path / f"{name}.csv", tmp_path / name
        file.write_text("\n".join(lines) + "\n")
        here("import", file, "source=them", "family=toy", "--store", store, cwd=place, check=0)
        return store

    rows, own = (asked(brought(*each), place, "attempts", "axis=D") for each in (("all", SIZES), ("one", SIZES[1:])))
    assert [row for row in rows if row["size"] == str(SIZES[1])] == own
    assert len(rows) == len(SIZES) * len(own) > 0


@pytest.fixture(scope="module")
def pages(together: Path, alone: Path, place: Path) -> list[Any]:
    """The report of all, and that of the second seed of the second size, on one text."""
    words = "axis=D", "dataset=prose", "k=[1,3,10]", "n=[1,2]"
    return [read(report(store, store.with_suffix(".html"), place, *words)) for store in (together, alone)]


def test_a_report_says_of_a_size_and_seed_what_it_says_of_it_alone(pages: list[Any]) -> None:
    full, own = pages
    tables = {name: table for name, table in own.tables.items() if name.startswith("grid-")}
    assert len(tables) > 10
    assert {name: full.tables[name] for name in tables} == tables
    figures = [name for name in own.figures if name.startswith("grid-")]
    assert [full.figures[name] for name in figures] == [own.figures[name] for name in figures]
    assert own.tables["paper-table2"]
    assert [row for row in full.tables["paper-table2"] if row in own.tables["paper-table2"]] == own.tables[
        "paper-table2"
    ]
    assert len(full.tables["glance"]) == len(SIZES) * len(SEEDS)


def test_each_model_has_a_row_of_its_own_in_table_1(pages: list[Any], together: Path, place: Path) -> None:
    """It was the last checkpoint that stood under the name of its size."""
    of_each = asked(together, place, "klaw", "axis=D", "dataset=prose")
    laws = {(row["size"], row["training_seed"], row["training_tokens"]): row for row in of_each}
    rows = pages[0].tables["paper-table1"]
    assert len(rows) == len(SIZES) * len(SEEDS) * len(TOKENS)
    for row in rows:
        size, seed, D = re.fullmatch(r"(\d+), seed (\d), D = (.+)", row["size"]).groups()  # type: ignore[union-attr]
        assert float(row["prose:slope"]) == pytest.approx(-laws[size, int(seed), float(D)]["alpha"], rel=1e-6)


def test_rows_of_seeds_and_variants_are_told_apart_in_questions_about_size_and_tokens(
    tmp_path: Path, place: Path
) -> None:
    lines = ["S,D,dataset,variant,training_seed,loss_nats"]
    for variant in ("adam", "muon"):
        for seed in (0, 1):
            for S in (1e6, 4e6, 16e6):
                for D in (1e8, 3e8, 1e9):
                    loss = (1.5 + 400 * S**-0.34 + 900 * D**-0.33) * (1 + 0.001 * math.sin(S + D + seed + len(lines)))
                    lines.append(f"{S:g},{D:g},c4,{variant},{seed},{loss!r}")
    file, store = tmp_path / "runs.csv", tmp_path / "store"
    file.write_text("\n".join(lines) + "\n")
    here("import", file, "source=them", "family=toy", "--store", store, cwd=place, check=0)
    for verb, words in (("surface", []), ("trajectory", []), ("decide", []), ("predict", ["S=1e8", "D=1e10"])):
        rows = asked(store, place, verb, "laws=[cross_entropy]", *words)
        assert {row["variant"] for row in rows} == {"adam", "muon"}


def test_the_jobs_of_a_sweep_have_each_its_own_numbers_in_a_report(together: Path, place: Path) -> None:
    """The first job's stood in the sections of the second, which looks at the same runs."""
    output = place.parent / "sweep.html"
    words = "k=[1],[10]", "axis=D", "dataset=prose", 'size="10000"', "resamples=20"
    here("report", "-m", *words, "--store", together, "--output", output, cwd=place, check=0)
    tables = read(output.read_text(encoding="utf-8")).tables
    found = [table[0]["k"] for name, table in tables.items() if "regimes-alpha-values" in name]
    assert found == ["1", "1", "10", "10"]


def test_two_drawn_texts_of_one_name_stand_apart_in_a_report(tmp_path: Path, place: Path) -> None:
    alphas = {"a" * 16: 0.1, "b" * 16: 0.2}
    lines = ["S,dataset,text_hash,k,rbp,loss_nats"]
    lines += [
        f"{S:g},c4,{text},1,{math.exp(-6 * S**-alpha)!r},{6 * S**-alpha!r}"
        for text, alpha in alphas.items()
        for S in (1e6, 1e7, 1e8, 1e9)
    ]
    file, store = tmp_path / "runs.csv", tmp_path / "store"
    file.write_text("\n".join(lines) + "\n")
    here("import", file, "source=them", "family=toy", "ties=pessimistic", "--store", store, cwd=place, check=0)
    tables = read(report(store, tmp_path / "page.html", place)).tables
    named = [f"c4 (them), text {text[:8]}" for text in alphas]
    assert {row["group"]: float(row["alpha_ce"]) for row in tables["glance"]} == pytest.approx(
        {f"toy on {name}": alpha for name, alpha in zip(named, alphas.values(), strict=True)}
    )
    assert {row["dataset"]: float(row["toy:slope"]) for row in tables["paper-table2"]} == pytest.approx(
        {name: -alpha for name, alpha in zip(named, alphas.values(), strict=True)}
    )
