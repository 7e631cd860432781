"""Two models with different tokenizers, measured on one text, meet at their bytes."""

import json
import math
from pathlib import Path

import pytest

from rbpx.questions.compare.meeting import Tokens
from tests.support.asking import ask
from tests.support.byte_nats import byte_nats
from tests.support.checkpoints import TINY_TEXT, build_checkpoint
from tests.support.commands import here
from tests.support.stores import columns_of, write_jsonl


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A GPT-2 and an OPT, whose tokenizers differ and begin in different ways, on one text."""
    folder, cwd = tmp_path_factory.mktemp("mixed"), tmp_path_factory.mktemp("cwd")
    text = write_jsonl(folder / "text.jsonl", *(text for text in TINY_TEXT if len(text) > 5))
    for arch in ("gpt2", "opt"):
        build_checkpoint(arch, folder / arch)
        words = ("model=hub", f"model.id={folder / arch}", "dataset=file", f"dataset.path={text}", "dataset.name=tiny")
        here("measure", *words, "--store", folder / "store", cwd=cwd, check=0)
    return folder / "store"


def test_models_with_different_tokenizers_meet_at_their_bytes(mixed: Path) -> None:
    (run_a, run_b) = (
        (json.loads(path.read_text()), path.parent) for path in sorted(mixed.glob("runs/*/manifest.json"))
    )
    ids = [run[0]["run_id"] for run in (run_a, run_b)]
    asked = ask(mixed, "compare", a=ids[0], b=ids[1])
    (whole,) = [row for row in asked.of_kind("part") if row["by"] == "text"]
    of = []
    for _, folder in (run_a, run_b):
        t = columns_of(folder, "tokens")
        of.append(byte_nats(Tokens(t["doc_id"], t["first_byte"], t["n_bytes"], -t["logprob"].astype(float))))
    both = of[0].keys() & of[1].keys()
    assert whole["n_bytes"] == len(both)
    assert 0 < len(both) < max(map(len, of)), "one of them predicts the first token of a document, the other does not"
    bits = [math.fsum(nats[place] for place in both) / math.log(2) / len(both) for nats in of]
    assert [whole["bits_a"], whole["bits_b"]] == pytest.approx(bits, rel=1e-9)
    assert asked.of_kind("hits") + asked.of_kind("moves") == []
    assert {row["name"] for row in asked.rows if row.get("by") == "kind"} >= {"word", "white space", "punctuation"}
