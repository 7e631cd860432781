"""The memory that a plan says, beside the peak of a real run."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rbpx.models.costs import _PROCESS_MIB
from tests.support.checkpoints import build_tokenizer
from tests.support.commands import command_environment, here
from tests.support.stores import manifests, write_jsonl

PLAIN: dict[str, Any] = {"vocab_size": 1000, "bos_token_id": None, "eos_token_id": None, "pad_token_id": None}


def build(shape: dict[str, Any]) -> Any:
    from transformers import AutoConfig, AutoModelForCausalLM

    return AutoModelForCausalLM.from_config(AutoConfig.for_model(**shape))


# What a run holds besides the process itself is activations here, scores of eager attention there; that of a model
# whose weights are the most of it is in tests/nightly/models/test_real_model.py.
HEAVY = {
    "activations": ({"model_type": "gpt2", "n_embd": 768, "n_layer": 1, "n_head": 12}, 3072),
    "scores": ({"model_type": "gpt_neo", "hidden_size": 192, "num_layers": 1, "num_heads": 24,
                "attention_types": [[["global"], 1]]}, 2048),
}  # fmt: skip
# The peak of a process counts what reading a model's code takes too, so each forks before that. The first one compiles
# the kernel, which takes a hundred MiB once in a checkout; the second says what one takes that ranks next to nothing.
APART = """
import json, os, resource, sys
import accelerate, lmfit, scipy.stats, transformers
import rbpx.measure.cell, rbpx.measure.runner
from rbpx.__main__ import main

def rank_nothing(told):
    import torch
    from rbpx.ranks.tiles import rank_tiles
    rank_tiles(torch.ones(1, 2), torch.tensor([0]), torch.ones(3, 2))
    open(told, "w").write(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))
    return 0

told = sys.argv[2]
for words in [None, None, *json.loads(sys.argv[1])]:
    child = os.fork()
    if not child:
        os._exit(rank_nothing(told) if words is None else main(words))
    if os.waitpid(child, 0)[1]:
        sys.exit(1)
"""


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[float, float, float]]:
    """The MiB that were planned for each, those that a process took, and those that any process takes."""
    cwd = tmp_path_factory.mktemp("cwd")
    lines: dict[str, list[str]] = {}
    planned = {}
    for what, (shape, batch) in HEAVY.items():
        folder = tmp_path_factory.mktemp(what)
        build({**shape, **PLAIN, "vocab_size": 2000}).save_pretrained(folder / "model")
        build_tokenizer("gpt2").save_pretrained(folder / "model")
        long = [f"{n} the sea reads nothing. " * 90 for n in range(batch // 512)]
        text = write_jsonl(folder / "text.jsonl", *long)
        lines[what] = ["model=hub", f"model.id={folder / 'model'}", "dataset=file", f"dataset.path={text}"]
        lines[what] += [f"tokens_per_batch={batch}", "device=cpu", "--store", str(folder / "store")]
        (row,) = json.loads(here("plan", *lines[what], "--format", "json", cwd=cwd, check=0).stdout)
        planned[what] = row["memory_mib"]
    told = cwd / "process_mib"
    program = [sys.executable, "-c", APART, json.dumps([["measure", *words] for words in lines.values()]), str(told)]
    subprocess.run(program, cwd=cwd, env=command_environment(None), check=True)
    process_mib = float(told.read_text())
    stores = {what: Path(words[words.index("--store") + 1]) for what, words in lines.items()}
    taken = {what: next(iter(manifests(stores[what]).values()))["peak_mib"] for what in HEAVY}
    return {what: (planned[what], taken[what], process_mib) for what in HEAVY}


@pytest.mark.parametrize("what", HEAVY)
def test_the_memory_of_a_plan_is_what_a_run_takes(what: str, memory: dict[str, tuple[float, float, float]]) -> None:
    """Within a quarter in all, and within a half without the process that any run needs."""
    planned, taken, process_mib = memory[what]
    assert taken > process_mib + 120, "the model must show"
    assert 1 / 1.25 < planned / taken < 1.25
    assert 1 / 1.5 < (planned - _PROCESS_MIB) / (taken - process_mib) < 1.5
