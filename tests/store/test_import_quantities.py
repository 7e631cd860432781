"""Losses, accuracies and facts of training come in with their units, from wide and long tables, checked by line."""

import csv
import json
import math
from pathlib import Path

import pytest

from tests.support import imports
from tests.support.commands import Answer
from tests.support.imports import found, imported

REFERENCE = Path(__file__).resolve().parents[3] / "shared" / "reference"
COLUMNS = (
    *("size", "dataset", "non_embedding_params", "training_tokens", "training_flops", "training_step"),
    *("unique_tokens", "training_seed", "variant", "cross_entropy_nats", "cross_entropy_nats_stderr"),
    *("bits_per_byte", "accuracy", "k", "ties"),
)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A place for a store that is not there yet."""
    return tmp_path / "store"


def table(path: Path, *lines: str) -> Path:
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def bring(file: Path, store: Path, cwd: Path, *words: str, check: int | None = 0) -> Answer:
    return imports.bring(file, store, cwd, "source=them", "family=toy", *words, check=check)


def test_a_loss_needs_no_rank_and_no_tie_rule(store: Path, cwd: Path, tmp_path: Path) -> None:
    header = "S,D,C,step,unique_tokens,training_seed,variant,dataset,loss_nats,loss_nats_stderr,accuracy"
    file = table(tmp_path / "a.csv", header, "6795600349.289497,2e9,8e19,10,1000,3,adamw,c4,2.5,0.01,.4")
    bring(file, store, cwd)
    (row,) = imported(store, *COLUMNS)
    expected = {"size": "6795600349.289497", "dataset": "c4", "non_embedding_params": 6795600349.289497}
    expected |= {"training_tokens": 2 * 10**9, "training_flops": 8e19, "training_step": 10, "unique_tokens": 1000}
    expected |= {"training_seed": 3, "variant": "adamw", "cross_entropy_nats": 2.5, "cross_entropy_nats_stderr": 0.01}
    assert row == expected | {"bits_per_byte": None, "accuracy": 0.4, "k": None, "ties": None}


def test_texts_side_by_side_and_rows_of_quantities_say_the_same(store: Path, cwd: Path, tmp_path: Path) -> None:
    wide = table(tmp_path / "wide.csv", "model,S,D,a_bits,b_bpb,b_acc", "o/m,10M,7M,3,1.25,.5", "o/m,10M,9M,,1.0,")
    long = table(
        tmp_path / "long.csv",
        "model,S,D,dataset,metric,value",
        "o/m,10M,7M,a,loss_bits,3",
        "o/m,10M,7M,b,bits_per_byte,1.25",
        "o/m,10M,7M,b,accuracy,.5",
        "o/m,10M,9M,b,bits_per_byte,1.0",
    )
    bring(wide, store, cwd, "texts={a: {loss_bits: a_bits}, b: {bits_per_byte: b_bpb, accuracy: b_acc}}")
    bring(long, tmp_path / "other", cwd, "columns={quantity: metric}")
    by_hand = [
        ("a", 7_000_000, 3 * math.log(2), None, None),
        ("b", 7_000_000, None, 1.25, 0.5),
        ("b", 9_000_000, None, 1.0, None),
    ]
    names = ("dataset", "training_tokens", "cross_entropy_nats", "bits_per_byte", "accuracy")
    for root in (store, tmp_path / "other"):
        of_place: dict[tuple[str, int], dict[str, float]] = {}
        for row in imported(root, *names):
            told = of_place.setdefault((row["dataset"], row["training_tokens"]), {})
            told |= {name: row[name] for name in names[2:] if row[name] is not None}
        assert sorted((*place, *map(told.get, names[2:])) for place, told in of_place.items()) == by_hand


def test_a_preview_counts_and_writes_nothing(store: Path, cwd: Path, tmp_path: Path) -> None:
    file = table(tmp_path / "a.csv", "S,D,x,more", "10M,7M,3,z", "10M,9M,2,z", "20M,7M,2.5,z", "20M,9M,,z")
    words = ("texts={wiki: {loss_nats: x}}", "--dry-run")
    answer = bring(file, store, cwd, *words, "--format", "json")
    (row,) = json.loads(answer.stdout)
    counts = {"dataset": "wiki", "quantity": "cross_entropy_nats", "rows": 3, "new": 3, "models": 2, "runs": 3}
    assert row == row | counts | {"S_min": 1e7, "S_max": 2e7, "D_min": 7e6, "D_max": 9e6, "C_min": None}
    assert "ignored columns" in answer.stderr
    assert "left out 1 row" in answer.stderr
    assert not store.exists()
    assert "nothing was written" in bring(file, store, cwd, *words).stderr
    assert not store.exists()


WRONG = {
    "a loss of what": ("S,dataset,nll", "10M,c,3", [], ["it has: S, dataset, nll", "loss_nats, loss_bits, perplexity"]),
    "a perplexity of words": ("S,dataset,word_perplexity", "10M,c,30", [], ["it has: S, dataset, word_perplexity"]),
    "a perplexity below 1": ("S,dataset,ppl", "10M,c,.5", [], ["ppl is .5; a perplexity is finite and 1 or more"]),
    "two losses": ("S,dataset,val/loss,val_loss", "10M,c,3,3", [], ["'val/loss' and 'val_loss' may both be loss_nats"]),
    "two counts": ("params,n_params,dataset,loss", "10M,9M,c,3", [], ["'params' and 'n_params' may both be S; say"]),
    "perplexity as nats": ("S,dataset,ppl", "10M,c,3", ["columns={loss_nats: ppl}"], ["no loss_nats; a perplexity"]),
    "a character": ("S,dataset,loss_per_char", "10M,c,1", [], ["columns='{vary_loss_per_char: loss_per_char}'"]),
    "a unigram": ("S,dataset,loss_nats", "10M,c,-1", [], ["loss_nats is -1; give nats", "as a column vary_NAME"]),
    "bits of what": ("S,dataset,loss_in_bits", "10M,c,3", [], ["it has: S, dataset, loss_in_bits", "bits_per_byte"]),
    "no S": ("N,dataset,loss_nats", "10M,c,3", [], ["no column S", "columns='{S: NAME}'"]),
    "D of 0": ("S,D,dataset,loss_nats", "10M,0,c,3", [], ["line 2: D is 0"]),
    "D in billions": ("S,D,dataset,loss_nats", "10M,1.5,c,3", [], ["D is 1.5 to 1.5", "D: {column: D, times: TIMES}"]),
    "C of another run": ("S,D,C,dataset,loss_nats", "1e6,1e7,2e14,c,3", [], ["C is 2e+14", "6e+13"]),
    "C that no count explains": (
        "S,total_params,D,C,dataset,loss_nats",
        "1e6,2e6,1e7,4e14,c,3",
        [],
        ["line 2: C is", "6 times all parameters times D is 1.2e+14"],
    ),
    "C of no parameters": (
        "S,active_params,D,C,dataset,loss_nats",
        "1e8,1e6,1e7,6e14,c,3",
        [],
        ["6 times active_params times D is 6e+13"],
    ),
    "more active than all": ("S,active_params,dataset,loss_nats", "1e6,2e6,c,3", [], ["active_params is above S"]),
    "percent": ("S,dataset,accuracy", "10M,c,41", [], ["line 2: accuracy is 41", "not percent"]),
    "no value": ("S,dataset,loss_nats", "10M,c,", [], ["has 1 row, but no value"]),
    "two units": ("S,dataset,loss_nats,loss_bits", "10M,c,3,4", [], ["has both 'loss_nats' and 'loss_bits'"]),
    "texts twice": ("S,dataset,x", "10M,c,3", ["texts={a: {loss_nats: x}}"], ["dataset twice"]),
    "a text of none": ("S,x", "10,3", ["texts={a: {nll: x}}"], ["texts: a", "nll is not a field"]),
    "a column that is not there": ("S,x", "10,3", ["texts={a: {loss_nats: y}}"], ["texts: a", "no column 'y'"]),
}  # fmt: skip


@pytest.mark.parametrize(("header", "row", "words", "says"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_read_is_one_line(
    header: str, row: str, words: list[str], says: list[str], store: Path, cwd: Path, tmp_path: Path
) -> None:
    answer = bring(table(tmp_path / "a.csv", header, row), store, cwd, *words, check=2)
    (line,) = answer.stderr.splitlines()
    assert [part for part in says if part not in line] == [], line
    assert not store.exists()


SPOKEN = {  # heading -> as it is said
    **dict.fromkeys(("params", "n_params", "#params", "Parameters"), "S (parameters without embeddings)"),
    "tokens": "D (tokens)",
    **dict.fromkeys(("compute", "FLOPs"), "C (FLOPs)"),
    **dict.fromkeys(("loss", "val_loss", "val/loss", "eval_loss", "train_loss"), "loss_nats (nats per token)"),
    **dict.fromkeys(("ppl", "val_ppl"), "perplexity of a token (its logarithm is loss_nats)"),
    "bpb": "bits_per_byte",
}


@pytest.mark.parametrize("heading", SPOKEN)
def test_headings_that_people_write_are_read_and_that_is_said(
    heading: str, store: Path, cwd: Path, tmp_path: Path
) -> None:
    own = {"S": "S", "D (tokens)": "D", "C (FLOPs)": "C"}.get(SPOKEN[heading].partition(" (p")[0], "loss_nats")
    row = {"S": "2M", "D": "", "C": "", "loss_nats": "3"} | {own: ""}
    row = {name: cell for name, cell in row.items() if cell} | {"dataset": "c"}
    row[heading] = {"S": "2M", "D": "2B", "C": "2.4e16", "loss_nats": "3.5"}[own]
    said = bring(table(tmp_path / "a.csv", ",".join(row), ",".join(row.values())), store, cwd).stderr
    assert f"read headings of {tmp_path / 'a.csv'}: {heading!r} as {SPOKEN[heading]}\n" in said
    nats = {"ppl": math.log(3.5), "val_ppl": math.log(3.5), "bpb": None}.get(heading, 3.5 if own == "loss_nats" else 3)
    assert found(store, "non_embedding_params, training_tokens, training_flops, cross_entropy_nats, bits_per_byte") == [
        (2e6, 2e9 if own == "D" else None, 2.4e16 if own == "C" else None, nats, 3.5 if heading == "bpb" else None)
    ]


def test_a_loss_of_validation_goes_before_others_and_what_is_known_is_not_read_twice(
    store: Path, cwd: Path, tmp_path: Path
) -> None:
    header = "params,S,tokens,flops,train_loss,loss,eval_loss,ppl,dataset"
    said = bring(table(tmp_path / "a.csv", header, "9M,2M,1B,1e30,4,3.5,3,99,c"), store, cwd).stderr
    assert "ignored columns of" in said
    assert said.partition("ignored columns of ")[2].splitlines()[0].endswith(": params, flops, train_loss, loss, ppl")
    assert found(store, "non_embedding_params, training_tokens, training_flops, cross_entropy_nats") == [
        (2e6, 10**9, None, 3)
    ]


@pytest.mark.parametrize(("name", "key"), [("HellaSwag", "accuracy"), ("rbp_10", "rbp_10")])
def test_percent_is_one_line_with_its_factor(name: str, key: str, store: Path, cwd: Path, tmp_path: Path) -> None:
    file = table(tmp_path / "a.csv", f"S,dataset,{name}", *(f"{at}M,c,{40 + at}" for at in range(1, 21)))
    words = ("ties=mid", f"columns={{{key}: {name}}}")
    (line,) = bring(file, store, cwd, *words, check=2).stderr.splitlines()
    told = f"{{{key}: {{column: {name}, times: 0.01}}}}"
    assert f"line 2: {name} is 41; give shares in [0, 1], not percent: columns='{told}'" in line
    bring(file, store, cwd, "ties=mid", f"columns={told}")
    column = "accuracy" if key == "accuracy" else "rbp"
    assert found(store, column) == [(pytest.approx((40 + at) / 100, rel=1e-15),) for at in range(1, 21)]


def test_flops_that_count_the_head_are_taken_with_all_parameters(store: Path, cwd: Path, tmp_path: Path) -> None:
    header = "S,total_params,D,C,dataset,loss_nats"
    bring(table(tmp_path / "a.csv", header, "1e6,5e6,1e7,3e14,c,3"), store, cwd)
    assert [row["training_flops"] for row in imported(store, *COLUMNS)] == [3e14]


def test_another_value_of_a_checkpoint_is_refused_and_another_quantity_is_not(
    store: Path, cwd: Path, tmp_path: Path
) -> None:
    bring(table(tmp_path / "a.csv", "S,D,dataset,loss_nats", "10M,7M,c,3", "10M,8M,c,2"), store, cwd)
    other = table(tmp_path / "b.csv", "S,D,dataset,loss_nats", "10M,7M,c,3.5")
    line = bring(other, store, cwd, check=2).stderr
    assert "loss_nats of toy 10000000 on c, D=7000000 is 3.5, but 3.0 in the store" in line
    more = table(tmp_path / "c.csv", "S,D,dataset,loss_nats,accuracy", "10M,7M,c,3,.5", "10M,8M,c,2,")
    assert "(1 of them were there already; 1 row updated: accuracy)" in bring(more, store, cwd).stderr
    assert "nothing new" in bring(more, store, cwd).stderr


TABLES = {  # words, observations, a column that is among them
    "chinchilla_points.csv": (["family=chinchilla", "dataset=massivetext", "columns={S: params}"], 245, "loss_nats"),
    "gemstones_checkpoints.csv": (
        ["family=gemstones", "dataset=dolma", "columns={S: params, D: tokens, size: run}"],
        770,
        "loss_nats",
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_published_points_come_in_by_one_line(name: str, store: Path, cwd: Path) -> None:
    if not (REFERENCE / name).is_file():
        pytest.skip(f"{name} is not beside the project")
    words, n, column = TABLES[name]
    imports.bring(REFERENCE / name, store, cwd, "source=them", *words)
    with (REFERENCE / name).open(newline="") as lines:
        theirs = sorted(float(row[column]) for row in csv.DictReader(lines))
    ours = [row["cross_entropy_nats"] for row in imported(store, "cross_entropy_nats")]
    assert len(ours) == n
    assert [loss for loss in ours if loss is not None] == theirs
