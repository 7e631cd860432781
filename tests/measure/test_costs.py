"""What a cell costs: FLOPs as torch counts them, memory as real runs tell it, what fits into a made-up machine."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from rbpx.measure.plan.memory import FreeMemory, what_fits
from rbpx.models.architecture import Architecture, architecture_of, read_architecture, total_params
from rbpx.models.costs import _PROCESS_MIB, TokensRead, flops, peak_mib, tokens_read
from tests.models.test_families import read_family
from tests.support.checkpoints import build_tokenizer
from tests.support.commands import command_environment, here
from tests.support.stores import manifests, write_jsonl

PLAIN: dict[str, Any] = {"vocab_size": 1000, "bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
SMALL: dict[str, dict[str, Any]] = {
    "gpt2": {"n_embd": 256, "n_layer": 3, "n_head": 4, "n_positions": 64},
    "opt": {"hidden_size": 256, "num_hidden_layers": 3, "num_attention_heads": 4, "ffn_dim": 1024},
    "gpt_neox": {"hidden_size": 256, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 1024},
    "qwen2": {
        "hidden_size": 256, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2,
        "intermediate_size": 700,
    },
}  # fmt: skip


def build(shape: dict[str, Any], **how: Any) -> Any:
    from transformers import AutoConfig, AutoModelForCausalLM

    return AutoModelForCausalLM.from_config(AutoConfig.for_model(**shape), **how)


@pytest.mark.parametrize("model_type", SMALL)
def test_flops_are_those_that_torch_counts(model_type: str) -> None:
    """But for norms and biases, which are additions that torch does not count."""
    model = build({"model_type": model_type, **PLAIN, **SMALL[model_type]}, attn_implementation="eager").eval()
    ids_BT = torch.zeros((3, 48), dtype=torch.int64)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(input_ids=ids_BT, use_cache=False)
    shape = architecture_of(model)
    assert shape is not None
    n_flops = flops(shape, tokens_read([48] * 3, ids_BT.numel()))
    assert counter.get_total_flops() <= n_flops <= 1.015 * counter.get_total_flops()


def test_the_shape_of_a_configuration_is_that_of_the_model_made_of_it() -> None:
    shape = {"model_type": "qwen2", **PLAIN, **SMALL["qwen2"], "tie_word_embeddings": False}
    model, read = build(shape), read_architecture(shape)
    assert read is not None
    assert read.total_params == total_params(model)
    assert read.total_params - read.non_embedding_params == 2 * 1000 * 256
    assert (read.vocab_size, read.head_width, read.layers, read.inner) == (1000, 256, 3, 700)
    assert (read.heads, read.attention_width, read.eager) == (4, 256, False)


def test_the_shape_of_opt_350m_has_a_narrow_head() -> None:
    read = read_architecture(read_family("opt").shape_of("350m"))
    assert read is not None
    assert (read.width, read.head_width, read.context) == (1024, 512, 2048)


def test_an_architecture_that_nobody_knows_has_no_shape(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "from_the_future", "hidden_size": 8}')
    assert read_architecture(tmp_path) is None
    assert read_architecture({"model_type": "from_the_future"}) is None


def test_a_load_sums_windows_and_their_squares() -> None:
    assert tokens_read([3, 5], 6) == TokensRead(n_scored=6, n_read=8, n_pairs=34)


# --------------------------------------------------------------------------------------------------------- memory

# What a run holds besides the process itself is weights here, activations there, or scores of eager attention.
HEAVY = {
    "weights": ({"model_type": "gpt2", "n_embd": 1024, "n_layer": 5, "n_head": 8}, "float32", 64),
    "activations": ({"model_type": "gpt2", "n_embd": 768, "n_layer": 1, "n_head": 12}, "float32", 3072),
    "scores": ({"model_type": "gpt_neo", "hidden_size": 192, "num_layers": 1, "num_heads": 24,
                "attention_types": [[["global"], 1]]}, "float32", 2048),
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
    for what, (shape, dtype, batch) in HEAVY.items():
        folder = tmp_path_factory.mktemp(what)
        build({**shape, **PLAIN, "vocab_size": 2000}).save_pretrained(folder / "model")
        build_tokenizer("gpt2").save_pretrained(folder / "model")
        long = [f"{n} the sea reads nothing. " * 90 for n in range(batch // 512)]
        text = write_jsonl(folder / "text.jsonl", *(long or ["The sea reads nothing."]))
        lines[what] = ["model=hub", f"model.id={folder / 'model'}", "dataset=file", f"dataset.path={text}"]
        lines[what] += [f"tokens_per_batch={batch}", f"dtype={dtype}", "device=cpu", "--store", str(folder / "store")]
        if not long:
            lines[what].append("protocol.window=64")
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


SHAPE = Architecture(
    non_embedding_params=800 * 2**20, active_params=800 * 2**20, total_params=1000 * 2**20,
    vocab_size=50_000, head_width=1024,
    width=1024, layers=24, inner=4096, heads=16, attention_width=1024, eager=False, state=0,
    context=2048,
)  # fmt: skip


def test_memory_on_a_gpu_has_no_process_and_halves_in_16_bits() -> None:
    whole, half = (peak_mib(SHAPE, dtype, "cuda", 4096, 512) for dtype in ("float32", "bfloat16"))
    chunk_mib = 2.5 * 256
    assert 4000 < whole < 4000 + 600 + chunk_mib
    assert half - chunk_mib == pytest.approx((whole - chunk_mib) / 2)


def test_a_window_longer_than_the_batch_is_read_whole() -> None:
    small, large = (peak_mib(SHAPE, "float32", "cuda", batch, 2048) for batch in (16, 4096))
    assert small < large
    assert small == peak_mib(SHAPE, "float32", "cuda", 2048, 2048)


@pytest.mark.parametrize(
    ("gpus", "cpu", "disk", "fits"),
    [
        ((6000.0,), 8000.0, 0.0, "float32"),
        ((3000.0,), 8000.0, 0.0, "bfloat16"),
        ((1500.0, 1500.0), 2000.0, 0.0, "split"),
        ((1500.0,), 100.0, 9000.0, "split"),
        ((1500.0,), 1000.0, 100.0, "no"),
        ((500.0,), 99000.0, 0.0, "no"),  # a layer's activations do not fit
    ],
)
def test_what_fits_is_the_least_change(gpus: tuple[float, ...], cpu: float, disk: float, fits: str) -> None:
    peaks = {"float32": 5000.0, "bfloat16": 2500.0}
    assert what_fits("float32", peaks, 4000.0, FreeMemory("cuda", cpu, gpus, disk)) == fits


def test_nothing_is_said_where_the_system_does_not_tell_its_memory() -> None:
    peaks = {"float32": 5000.0, "bfloat16": 2500.0}
    assert what_fits("float32", peaks, 4000.0, FreeMemory("cpu", None, (), 1e6)) is None
