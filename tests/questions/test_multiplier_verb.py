"""What a change is worth, asked of a store: the numbers are those of the laws, and what cannot be compared is said."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.asking import Asked, ask, imported, refused
from tests.support.stores import cell_records, columns_of
from tests.support.synthetic import TrueSurface, Truth, write_store, write_surface

TRUTH = Truth(scatter=0.01)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A family, and a better one that needs half of the size; a text that only the first has."""
    root = tmp_path_factory.mktemp("worth") / "store"
    better = Truth(scatter=0.01, C=TRUTH.C * 2**-TRUTH.alpha)
    write_store(root, TRUTH, seed=1, n_documents=30, family="plain")
    write_store(root, better, seed=2, n_documents=30, family="better")
    write_store(root, TRUTH, seed=3, n_documents=30, family="plain", dataset="other")
    return root


def asked(store: Path, base: str | None, variant: str | None, **keys: Any) -> Asked:
    named = {"base": base, "variant": variant and [variant]}
    return ask(store, "multiplier", **{name: value for name, value in named.items() if value}, resamples=60, **keys)


def test_the_lines_of_both_families_give_the_multiplier(store: Path) -> None:
    found = asked(store, "plain", "better", k=10, laws=["rbp"])
    losses: dict[str, Any] = {family: [] for family in ("plain", "better")}
    for record in cell_records(store):
        if record["dataset"] == "synthetic":
            ranks = columns_of(store / "runs" / record["run_id"], "tokens")["greater"] + 1
            losses[record["family"]].append((float(record["size"]), -np.log((ranks <= 10).mean())))
    losses = {family: np.array(sorted(points)).T for family, points in losses.items()}
    (slope_b, level_b), (slope_v, level_v) = (np.polyfit(np.log(S), np.log(y), 1) for S, y in losses.values())
    overall = {row["offset"]: row for row in found.of_kind("overall")}
    at = [row for row in found.of_kind("at") if row["offset"] == "none"]
    for row, S in zip(at, losses["better"][0], strict=True):
        assert row["x_variant"] == pytest.approx(S, rel=1e-9)
        ln_S = (level_v + slope_v * np.log(S) - level_b) / slope_b
        assert row["multiplier"] == pytest.approx(np.exp(ln_S) / S, rel=1e-6)
    within = [row["multiplier"] for row in at if row["status"] == "ok"]
    assert overall["none"]["multiplier"] == pytest.approx(np.exp(np.mean(np.log(within))), rel=1e-9)
    assert overall["none"]["multiplier_lo"] < 2 < overall["none"]["multiplier_hi"]


def test_tokens_are_compared_at_each_size_that_both_have(tmp_path: Path) -> None:
    """Of one family here: its name alone is that of its models without a variant."""
    D = (1_000_000, 3_000_000, 9_000_000, 27_000_000)
    truth = TrueSurface(S=(10_000, 40_000), D=D, scatter=0.001)
    better = TrueSurface(S=(10_000, 40_000), D=D, scatter=0.001, B=truth.B * 2**-truth.beta)
    for variant, of, seed in (("raw", truth, 1), (None, better, 2)):
        write_surface(tmp_path / "store", of, seed=seed, n_documents=12, n_tokens=100, family="mine", variant=variant)
    rows = asked(tmp_path / "store", "mine:raw", "mine", axis="D", laws=["rbp"], k=10).rows
    assert {(row["base"], row["variant"], row["axis"]) for row in rows} == {("mine:raw", "mine", "D")}
    rows = [row for row in rows if row["offset"] == "shared"]
    overall = {row["fixed_size"]: row for row in rows if row["kind"] == "overall"}
    assert overall.keys() == {"10000", "40000"}
    at = [row for row in rows if row["kind"] == "at" and row["fixed_size"] == "10000"]
    assert [row["size"] for row in at] == list(map(str, D))
    assert all(row["multiplier_lo"] < 2 < row["multiplier_hi"] for row in overall.values())


def test_several_revisions_of_two_families_are_compared_one_by_one(tmp_path: Path) -> None:
    """Lines 5 S^-0.1, and those of a family that needs half of the size at one revision, a third at the other."""
    rows = ["family,size,dataset,revision,S,cross_entropy_nats,n_tokens"]
    for family, revision, worth in (("plain", "1b", 1), ("plain", "2b", 1), ("better", "1b", 2), ("better", "2b", 3)):
        rows += [f"{family},{S},t,{revision},{S},{5 * (S * worth) ** -0.1:.9f},1000" for S in (1e4, 3e4, 1e5, 3e5, 1e6)]
    store = imported(tmp_path / "store", "\n".join(rows), "s", family=None)
    overall = asked(store, "plain", "better", laws=["cross_entropy"]).of_kind("overall")
    worth = {row["revision"]: row["multiplier"] for row in overall if row["offset"] == "none"}
    assert worth == pytest.approx({"1b": 2, "2b": 3}, 1e-6)
    apart = [rows[0], *(row.replace("better", "apart") for row in rows if "better" in row and "2b" in row)]
    both = imported(imported(tmp_path / "both", "\n".join(rows), "s", family=None), "\n".join(apart), "o", family=None)
    with refused("which source and revision do not pair: plain on t, revision 1b"):
        asked(both, "plain", "apart")
