"""The points of the study of two arms, measured again, and what its page says of them."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest
import torch
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM

import rbpx
from experiments.arms import TARGETS, judge, points, robustness, summary
from rbpx.errors import RbpxError
from tests.support.commands import here
from tests.support.places import DOCS, EXPERIMENTS


def loss_of(size: str, text: str, temperature: float) -> float:
    """Cross-entropy of a bundled model's logits over a temperature, nats a token, in float64."""
    bundled = Path(rbpx.__file__).parent / "ladder"
    model = AutoModelForCausalLM.from_pretrained(bundled / size / "8m", dtype=torch.float32)
    ids = torch.tensor(Tokenizer.from_file(str(bundled / "tokenizer.json")).encode(text).ids)
    with torch.inference_mode():
        logits = model(ids[None]).logits[0].double() / temperature
    return float(torch.nn.functional.cross_entropy(logits[:-1], ids[1:]))


def test_points_are_those_of_the_runs(cwd: Path, tmp_path: Path) -> None:
    """Counted again from the tokens of a measured model; a run without temperatures is refused."""
    text, file, store = (
        "def mean(values):\n    return sum(values) / len(values)\n" * 20,
        tmp_path / "t.jsonl",
        tmp_path / "store",
    )
    file.write_text(
        "".join(json.dumps({"text": each}) + "\n" for each in ("", text))
    )  # one without a token, one window
    one = ("model=ladder", "size=3k", "dataset=file", f"dataset.path={file}", "--store", store)
    here("measure", *one, cwd=cwd, check=0)
    with pytest.raises(RbpxError, match="type python -m rbpx temperature first"):
        list(points(str(store)))
    asked = here("temperature", "--store", store, "resamples=20", "--format", "json", cwd=cwd, check=0)
    run = json.loads(asked.stdout)[0]
    found = {row[5]: row[6] for row in points(str(store))}
    query = "SELECT greater + ties AS rank FROM tokens ORDER BY position"
    tokens = here("sql", query, "--format", "csv", "--store", store, cwd=cwd, check=0)
    right = [int(line) <= 10 for line in tokens.stdout.split()[1:]]
    windows = [all(right[at : at + 5]) for at in range(len(right) - 4)]
    assert found["RBP_10"] == pytest.approx(sum(right) / len(right))
    assert found["exact match of 5 at 10"] == pytest.approx(sum(windows) / len(windows))
    assert (found["T*"], found["CE at T*"]) == (run["temperature"], run["cross_entropy_at_temperature_nats"])
    assert found["CE at T*"] < found["CE"] == pytest.approx(run["cross_entropy_nats"], abs=1e-6)
    assert (found["CE"], found["CE at 0.8"]) == pytest.approx([loss_of("3k", text, T) for T in (1, 0.8)], abs=1e-5)
    query = "SELECT -sum(logprob) / sum(n_bytes) / ln(2) AS bits FROM tokens"
    bits = here("sql", query, "--format", "csv", "--store", store, cwd=cwd, check=0)
    assert found["bits per byte"] == pytest.approx(float(bits.stdout.split()[1]), rel=1e-6)
    assert set(TARGETS) - set(found) == {"accuracy"}


def test_what_the_page_says_is_what_the_points_say() -> None:
    judged = judge(pd.read_csv(EXPERIMENTS / "arms.csv"))
    rows = pd.concat([summary(judged), robustness(judged).rename(columns={"arm": "across"})])
    said = [
        line.strip("| ").split(" | ") for line in (DOCS / "explanation/ranks-or-losses.md").read_text().splitlines()
    ]
    said = [cells for cells in said if cells[0] in TARGETS]
    assert len(said) == 7
    for target, across, error, *others in said:
        of = rows[(rows["target"] == target) & (rows["across"] == across) & (rows["way"] == "chained")]
        found = of.set_index("contestant")
        assert float(error) == pytest.approx(found.loc["RBP", "error"], abs=5.1e-4)
        for contestant, words in zip(("CE", "CE at T*"), others, strict=True):
            numbers = [float(each) for each in re.findall(r"[-+][0-9.]+", words)]
            wanted = found.loc[contestant, ["worse", "worse_lo", "worse_hi"]].tolist()
            assert numbers == pytest.approx(wanted, abs=5.1e-4)
