"""Groups of several sizes, seeds and variants in one store: each result is of its own, and each row says of which."""

import math
from pathlib import Path
from typing import Any

import pytest

from rbpx.questions.registry import analyses, asking
from rbpx.store.sql import connected_once
from tests.support import synthetic
from tests.support.asking import Rows, ask, imported
from tests.support.synthetic import TrueSurface, write_surface

SIZES, SEEDS, TOKENS = (10_000, 160_000), (0, 1), (1_000_000, 3_000_000, 9_000_000)
ELSEWHERE = ("attempts", "gaps", "multiplier", "predict")  # look at items, two texts, two families, or no axis=D
ALONG = [name for name in analyses() if "axis" in asking(name).keys and name not in ELSEWHERE]


def drawn(root: Path, sizes: tuple[int, ...], seeds: tuple[int, ...]) -> Path:
    """Checkpoints of each size and seed; those of one size and seed are the same in any store."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(synthetic, "V", 3_000)
        for S in sizes:
            for seed in seeds:
                truth = TrueSurface(S=(S,), D=TOKENS, scatter=0.05)
                write_surface(root, truth, S + 10 * seed, 12, 40, states=True, training_seed=seed)
    return root


def asked(store: Path, verb: str, **keys: Any) -> Rows:
    """The rows of a question, without when they were written and what several groups are tested together by."""
    rows = ask(store, verb, resamples=20, **keys).rows
    for row in rows:
        row.pop("created_at", None)
        (row.get("params") or {}).pop("p_adjusted", None)
    return rows


def test_rows_of_a_size_and_seed_are_those_of_it_alone(tmp_path: Path) -> None:
    """Two sizes and two seeds of each, and the second seed of the second size."""
    together, alone = drawn(tmp_path / "together", SIZES, SEEDS), drawn(tmp_path / "alone", SIZES[1:], SEEDS[1:])
    with connected_once():
        for verb in ALONG:
            keys = {} if verb == "entropy" else {"k": [1, 3]} | ({"n": [1, 2]} if verb == "emergence" else {})
            rows, own = (asked(store, verb, axis="D", **keys) for store in (together, alone))
            assert [row for row in rows if (row["size"], row["training_seed"]) == (str(SIZES[1]), SEEDS[1])] == own, (
                verb
            )
            assert len(rows) > len(own) > 0, verb


def test_variants_are_told_apart_in_questions_about_size_and_tokens(tmp_path: Path) -> None:
    lines = ["S,D,dataset,variant,training_seed,loss_nats"]
    for variant in ("adam", "muon"):
        for S in (1e6, 4e6, 16e6):
            for D in (1e8, 3e8, 1e9):
                loss = (1.5 + 400 * S**-0.34 + 900 * D**-0.33) * (1 + 0.001 * math.sin(S + D + len(lines)))
                lines.append(f"{S:g},{D:g},c4,{variant},0,{loss!r}")
    store = imported(tmp_path / "store", "\n".join(lines))
    with connected_once():
        assert {row["variant"] for row in asked(store, "surface", laws=["cross_entropy"])} == {"adam", "muon"}
