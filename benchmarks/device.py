"""Everything of rbpx that wants a GPU, in one command of at most nine minutes, and one table.

    ranks    12 architectures with tiny random weights, float32 and bfloat16, Triton's kernel and torch's operations:
             tokens of another rank than on the CPU in float32, and how far log-probabilities are off
    tests    the tests that are marked gpu
    head     the heads of gpt2, pythia-1b and Llama-3-8B in bfloat16, 16,384 positions: ranks beside the product alone,
             by the size of a chunk of logits, and what the kernel reads a second, by its block
    speed    shapes of pythia-160m, pythia-1b and Llama-3-8B with random weights: tokens a second and peak memory beside
             the floor (backbone and head's product) and beside a harness's way, as `extraction.py` has them
    tensor   one model held by two processes on this one device (gloo, since NCCL refuses that), two batches
    job      three sizes of the ladder on one text from the command line, killed, continued, fitted and reported
    vllm     a server of vLLM, where there is one: measured with, and audited against rbpx's float32

Each step is a process of its own with so many seconds; what is over or breaks costs its own rows, and the table says
which. float32 may differ as two runs of rbpx may. In bfloat16 the device may be half as far again from float32 as the
CPU's bfloat16 is in root mean square, and twice as far at the furthest token, since two right ones round apart.

A machine without a network needs torch, transformers and what device-requirements.txt beside this file names.

    python benchmarks/device.py
    python benchmarks/device.py --device cpu --tiny        # whether the program works, without a GPU
"""

import argparse
import copy
import dataclasses
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch
from urllib.request import urlopen

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import torch

from rbpx.data.windows import Window
from rbpx.measure.distributed import compute_exactly

ROOT: Final = Path(__file__).resolve().parent.parent
ARCHITECTURES: Final = ("gpt2", "opt", "gpt_neox", "gpt_neo", "bloom", "llama", "qwen2", "qwen3", "gemma2", "olmo2")
ARCHITECTURES += ("mixtral", "mamba")  # type: ignore[misc]
SPLIT: Final = ("gpt_neox", "opt", "qwen2")
SHAPES: Final = {"pythia-160m": ("pythia", "160m"), "pythia-1b": ("pythia", "1b"), "Llama-3-8B": ("llama-3", "8B")}
GOALS: Final = {"pythia-160m": 0.7, "pythia-1b": 0.9, "Llama-3-8B": 0.9}  # of the floor's rate, in bfloat16
HEADS: Final = {"gpt2": (768, 50_257), "pythia-1b": (2048, 50_304), "Llama-3-8B": (4096, 128_256)}  # width, vocabulary
SIXTEEN_BITS: Final = ("Llama-3-8B",)  # whose float32 weights are not asked for
WIDTH: Final = 9001  # entries of the tiny vocabularies: three blocks of the kernel, the last one short
TWINS: Final = 8  # of them repeat others, and tie
TINY: Final = {
    **{"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64},
    **{"vocab_size": 500, "max_position_embeddings": 64},
}
Row = tuple[str, str, str]  # case, what was measured, what it is held against
Columns = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Step:
    """A part of the program: what it prints, and how many seconds it may take."""

    name: str
    cases: tuple[str, ...]
    limit_s: float


def steps(device: str) -> list[Step]:
    """All of them; 590 s together at the most, of which most take a third."""
    ranks = [f"{arch}, {dtype}, {kernel}" for arch in ARCHITECTURES for dtype in DTYPES for kernel in kernels(device)]
    speed = [Step(f"speed-{name}", tuple(f"{name}, {dtype}" for dtype in dtypes_of(name)), 80) for name in SHAPES]
    return [
        Step("ranks", tuple(ranks), 110),
        *speed,
        Step("head", tuple(HEADS), 30),
        Step("tests", ("tests marked gpu",), 50),
        Step("tensor", SPLIT, 60),
        Step("job", ("three sizes, one text",), 60),
        Step("vllm", ("vLLM",), 40 if shutil.which("vllm") is None else 120),
    ]


DTYPES: Final = ("float32", "bfloat16")


def dtypes_of(name: str) -> Sequence[str]:
    """The precisions in which a shape is timed."""
    return DTYPES[1:] if name in SIXTEEN_BITS else DTYPES


def kernels(device: str) -> tuple[str, str]:
    """How logits are counted on a device: the fast way, and torch's own operations."""
    return ("tiles" if device == "cpu" else "Triton"), "plain"


# ------------------------------------------------------------------------------------------------------------ a model


def loaded_of(model: Any, name: str) -> Any:
    """A model with weights but without a tokenizer, as it is measured."""
    from rbpx.models.architecture import active_params, context_of, non_embedding_params, total_params
    from rbpx.models.head import open_head
    from rbpx.models.lengths import lengths_of
    from rbpx.models.load import LoadedModel, in_one_pass

    in_one_pass(model.eval())
    head = open_head(model)
    S, active, n_params = non_embedding_params(model), active_params(model), total_params(model)
    counts = {"non_embedding_params": S, "active_params": active, "total_params": n_params}
    facts: dict[str, Any] = {
        "context": context_of(model),
        "commit": None,
        "weights_hash": None,
        "tokenizer_hash": "none",
    }
    facts["lengths"] = lengths_of(model, facts["context"])
    return LoadedModel(
        name=name, tokenizer=None, model=model, n_token_ids=head.vocab_size, head=head, **counts, **facts
    )


def windows_of(n: int, length: int, width: int) -> list[Window]:
    """Windows of random tokens; every tenth token is one of those that have a twin."""
    draws = np.random.default_rng(0)
    scored = np.arange(length) > 0
    windows = []
    for doc_id in range(n):
        ids = np.where(
            draws.random(length) < 0.1, draws.integers(TWINS, size=length), draws.integers(width, size=length)
        )
        windows.append(Window(doc_id, ids.astype(np.int32), scored, length, length))
    return windows


def measured(loaded: Any, windows: Sequence[Window], kernel: str) -> Columns:
    """The rows of rbpx, counted in one way."""
    from rbpx.measure import extract
    from rbpx.measure.distributed import ProcessGroup
    from rbpx.ranks import definition

    fewest = 1 << 62 if kernel == "plain" else 0
    has_triton = kernel != "plain" and definition._HAS_TRITON
    alone = ProcessGroup(0, 1, loaded.model.device)
    reading = extract.Reading(loaded, windows, alone, 4096, lambda n: None)
    with patch.object(extract, "_MIN_LOGITS_FOR_TILES", fewest), patch.object(definition, "_HAS_TRITON", has_triton):
        return extract.measure_windows(reading)


@dataclasses.dataclass(frozen=True)
class Apart:
    """How far the rows of one measurement are from those of another, or may be.

    Attributes:
        share: of the tokens, whose counts differ.
        nats: by which a log-probability differs at most.
        rms_nats: the root mean square of these differences.
    """

    share: float
    nats: float
    rms_nats: float

    def told(self) -> str:
        """In words."""
        return f"{self.share:.2%} of other counts, {self.nats:.1e} nats at most, {self.rms_nats:.1e} rms"


EXACT: Final = Apart(1e-3, 1e-4, 1e-4)  # between two measurements in float32


def apart(one: Columns, other: Columns) -> Apart:
    """How far some rows are from others, about the same tokens in the same order."""
    differ = (one["greater"] != other["greater"]) | (one["ties"] != other["ties"])
    nats = one["logprob"].astype(float) - other["logprob"]
    return Apart(float(differ.mean()), float(np.abs(nats).max()), float(np.sqrt(np.mean(nats**2))))


def judged(found: Apart, allowed: Apart) -> tuple[str, str]:
    """What was found beside what is allowed."""
    holds = found.share <= allowed.share and found.nats <= allowed.nats and found.rms_nats <= allowed.rms_nats
    return found.told(), f"{allowed.told()}: {'met' if holds else 'MISSED'}"


# -------------------------------------------------------------------------------------------------------------- steps


def ranks(device: str, tiny: bool) -> Iterator[Row]:
    """Ranks on the device beside those of the CPU in float32 by whole logits."""
    from transformers import AutoModelForCausalLM

    from tests.support.architectures import tiny_config
    from tests.support.checkpoints import CONTEXT

    windows = windows_of(40, CONTEXT, WIDTH)
    for arch in ARCHITECTURES:
        torch.manual_seed(0)
        model = AutoModelForCausalLM.from_config(tiny_config(arch, vocab_size=WIDTH), dtype=torch.float32)
        with torch.no_grad():
            weight_VD = model.get_output_embeddings().weight
            weight_VD[-TWINS:] = weight_VD[:TWINS]
        exact = measured(loaded_of(copy.deepcopy(model), arch), windows, "plain")
        assert exact["ties"].max() > 0, "nothing ties, so ties are not tried"
        for dtype in DTYPES:
            there = copy.deepcopy(model).to(getattr(torch, dtype))
            allowed = EXACT
            if dtype != "float32":
                own = apart(measured(loaded_of(copy.deepcopy(there), arch), windows, "plain"), exact)
                allowed = Apart(1.0, 2 * own.nats, 1.5 * own.rms_nats)
            loaded = loaded_of(there.to(device), arch)
            for kernel in kernels(device):
                yield f"{arch}, {dtype}, {kernel}", *judged(apart(measured(loaded, windows, kernel), exact), allowed)


def rank_states(states: torch.Tensor, targets: torch.Tensor, loaded: Any, windows: Sequence[Window]) -> None:
    """Count what a head makes of states; the windows are not read."""
    loaded.head.rank(states, targets)()


def speed(name: str, device: str, tiny: bool) -> Iterator[Row]:
    """Tokens a second and peak memory of rbpx, of the floor and of a harness's way, in turns."""
    from transformers import AutoConfig, AutoModelForCausalLM

    from benchmarks import extraction
    from tests.support.families import read_family

    family, size = SHAPES[name]
    shape = dict(read_family(family).shape_of(size)) | (TINY if tiny else {})
    if tiny and "num_key_value_heads" in shape:
        shape["num_key_value_heads"] = 1
    config = AutoConfig.for_model(shape.pop("model_type"), **shape)
    length, batches = (64, (256,)) if tiny else (512, (4096, 32768))
    for dtype in dtypes_of(name):
        with torch.device(device):
            model = AutoModelForCausalLM.from_config(config, dtype=getattr(torch, dtype))
        loaded = loaded_of(model, name)
        few = windows_of(16, length, shape["vocab_size"])
        for way in (extraction.floor, extraction.rbpx, extraction.harness):
            way(loaded, few)  # kernels are compiled, and memory is allocated
        seconds = 0.05 if tiny else 2.0
        rate = len(few) / extraction.run(extraction.floor, loaded, few).wall_s
        windows = windows_of(int(min(4000, max(16, seconds * rate))), length, shape["vocab_size"])
        told = []
        for per_batch in batches:
            ways = {"floor": extraction.floor, "rbpx": extraction.rbpx, "harness": extraction.harness}
            with patch.object(extraction, "PER_BATCH", per_batch):
                rounds = [{way: extraction.run(do, loaded, windows) for way, do in ways.items()} for _ in range(2)]
            costs = {way: extraction.best(*(costs[way] for costs in rounds)) for way in ways}
            rates = ", ".join(f"{way} {cost.n / cost.wall_s:,.0f}" for way, cost in costs.items())
            peaks = ", ".join(f"{cost.peak_mib:,.0f}" for cost in costs.values())
            told.append(f"batches of {per_batch:,}: {rates} tokens/s; peaks {peaks} MiB")
            slower = costs["rbpx"].wall_s / costs["floor"].wall_s
            harness = costs["harness"].wall_s / costs["rbpx"].wall_s
        width = config.hidden_size
        states = torch.randn(8192, width, dtype=getattr(torch, dtype), device=device)
        targets = torch.randint(shape["vocab_size"], (8192,), device=device)
        of_head = partial(rank_states, states, targets)
        head = extraction.run(of_head, loaded, windows)
        told.append(f"8,192 positions of the head alone: {head.peak_mib:,.0f} MiB")
        goal = GOALS[name]
        verdict = "tiny" if tiny else "no goal" if dtype == "float32" else "met" if 1 / slower >= goal else "MISSED"
        against = f"{goal} of the floor's rate: {1 / slower:.2f}, {verdict}; of the harness's: {harness:.2f}"
        yield f"{name}, {dtype}", "; ".join(told), against
        del model, loaded
        if device == "cuda":
            torch.cuda.empty_cache()


def heads(device: str, tiny: bool) -> Iterator[Row]:
    """What ranks cost beside the product alone, by the size of a chunk, and what the kernel reads a second."""
    from torch import nn

    from rbpx.models.head import float32_product
    from rbpx.ranks import definition

    for name, (width, vocab_size) in HEADS.items():
        n, D, V = (64, 32, 9001) if tiny else (16_384, width, vocab_size)
        module = nn.Linear(D, V, bias=False, device=device, dtype=torch.bfloat16).requires_grad_(False)
        states = torch.randn(n, D, device=device, dtype=torch.bfloat16)
        targets = torch.randint(V, (n,), device=device)
        product = float32_product(module, torch.bfloat16).logits
        told = [f"product in bfloat16 {timed(device, multiplied, module, states, 1024):.1f} ms"]
        for mib in (32, 64, 128, 256, 512):
            alone = timed(device, multiplied, product, states, max(1, (mib << 20) // (4 * V)))
            whole = timed(device, definition.rank_hidden, states, targets, product, V, mib << 20)
            told.append(f"{mib} MiB: product {alone:.1f}, ranks {whole:.1f} ms")
        if device == "cuda" and definition._HAS_TRITON:
            told += blocks(product(states[:1024]))
        yield name, "; ".join(told), "no goal"


def multiplied(product: Callable[[torch.Tensor], torch.Tensor], states: torch.Tensor, rows: int) -> None:
    """Form all logits, so many rows at a time."""
    for part in states.split(rows):
        product(part)


def blocks(logits: torch.Tensor) -> Iterator[str]:
    """What the kernel reads a second, by the logits that it holds and its warps."""
    from rbpx.ranks import gpu_kernel

    for block in (1024, 2048, 4096, 8192):
        for warps in (4, 8, 16):
            with patch.object(gpu_kernel, "_BLOCK", block), patch.object(gpu_kernel, "_WARPS", warps):
                ms = timed("cuda", gpu_kernel.count_rows, logits, logits[:, 0])
            yield f"block {block}, {warps} warps: {logits.numel() * 4 / ms / 1e6:,.0f} GB/s"


def timed(device: str, work: Callable[..., Any], *values: Any) -> float:
    """Milliseconds, the median of five after one that warms up."""
    seconds = []
    for _ in range(6):
        began = time.perf_counter()
        work(*values)
        if device == "cuda":
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - began)
    return 1e3 * float(np.median(seconds[1:]))


def gpu_tests(device: str, tiny: bool) -> Iterator[Row]:
    """The project's own tests of a GPU."""
    words = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-m", "gpu", "-p", "no:cacheprovider"]
    words += ["tests/ranks", "tests/models/test_head.py"]
    done = subprocess.run([*words, "--override-ini=addopts="], cwd=ROOT, capture_output=True, text=True)
    last = (done.stdout.strip() or done.stderr.strip() or "nothing was said").splitlines()[-1]
    verdict = "MISSED" if done.returncode else "met" if " passed" in last else "unmeasured"
    yield "tests marked gpu", last.strip("= "), f"all pass: {verdict}"


def tensor(device: str, tiny: bool) -> Iterator[Row]:
    """Ranks of a model that two processes hold, beside those of one process on the CPU."""
    from rbpx.models.load import load_model
    from tests.support.checkpoints import CONTEXT, VOCAB_ROWS, build_checkpoint

    windows = windows_of(32, CONTEXT, VOCAB_ROWS - TWINS)
    with tempfile.TemporaryDirectory() as place:
        folders = {arch: build_checkpoint(arch, Path(place) / arch, twins=TWINS) for arch in SPLIT}
        words = [sys.executable, __file__, "--device", device, "--part", place, str(free_port())]
        env = os.environ | {"OMP_NUM_THREADS": "1"}  # threads of both would wait for each other
        both = [
            subprocess.Popen([*words, str(rank)], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            for rank in range(2)
        ]
        for arch, folder in folders.items():
            alone = measured(load_model(str(folder), None, "float32", torch.device("cpu")), windows, "plain")
            found = folder.with_suffix(".npz")
            while not found.is_file() and all(process.poll() is None for process in both):
                time.sleep(0.1)
            if not found.is_file():  # a process ended, and the other may wait for it for ever
                for process in both:
                    process.terminate()
                said = [line for process in both for line in process.communicate()[0].strip().splitlines()[-1:]]
                raise RuntimeError(" / ".join(said) or "nothing was said")
            with np.load(found) as read:
                by_two = {name: read[name] for name in read.files}
            order = np.lexsort((by_two["position"], by_two["doc_id"]))
            yield arch, *judged(apart({name: column[order] for name, column in by_two.items()}, alone), EXACT)


def part(device: str, place: str, port: str, rank: str) -> None:
    """One of the two processes of `tensor`."""
    from rbpx.measure.reading.batches import batch_windows
    from rbpx.measure.reading.reading import Batch, read_batch
    from rbpx.models.load import load_model
    from rbpx.models.tensor_parallel import tensor_group
    from tests.support.checkpoints import CONTEXT, VOCAB_ROWS

    meeting = f"tcp://127.0.0.1:{port}"
    torch.distributed.init_process_group("gloo", init_method=meeting, rank=int(rank), world_size=2)
    here = torch.device("cuda:0" if device == "cuda" else device)
    group = tensor_group(2, here)
    batches = list(batch_windows(windows_of(32, CONTEXT, VOCAB_ROWS - TWINS), 16 * CONTEXT))
    assert len(batches) == 2
    for arch in SPLIT:
        loaded = load_model(str(Path(place) / arch), None, "float32", here, split=group)
        columns = list[Columns]()
        for batch in batches:
            places, found = read_batch(loaded, Batch(batch), loaded.head.rank, loaded.head.rank)()
            columns.append({"doc_id": places.doc_id_N, "position": places.position_N, "greater": found.greater})
            columns[-1] |= {"ties": found.ties, "logprob": found.logprob}
        if rank == "0":
            unfinished = Path(place) / f"unfinished-{arch}.npz"
            np.savez(unfinished, **{name: np.concatenate([each[name] for each in columns]) for name in columns[0]})
            unfinished.rename(Path(place) / f"{arch}.npz")
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


def job(device: str, tiny: bool) -> Iterator[Row]:
    """The main job from the command line: killed while it measures, continued, and nothing left to do."""
    if find_spec("duckdb") is None:
        yield "three sizes, one text", "skipped: duckdb is not here", "unmeasured"
        return
    with tempfile.TemporaryDirectory() as place:
        store = ["--store", f"{place}/store"]
        cells = ["model=ladder", "size=[3k,7k,25k]", "dataset=pydoc", f"device={device}", *store]
        rbpx = [sys.executable, "-m", "rbpx"]
        env = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
        ask = partial(subprocess.run, cwd=place, env=env, capture_output=True, text=True)
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        first = subprocess.Popen([*rbpx, "measure", *cells, "tokens_per_batch=256"], cwd=place, env=env, **quiet)
        with suppress(subprocess.TimeoutExpired):
            first.wait(12)
        first.kill()
        first.wait()
        questions = [["measure", *cells], ["measure", *cells], ["fit", "model=ladder", "resamples=20", *store]]
        if find_spec("vl_convert") is not None:
            questions.append(["report", "model=ladder", "resamples=20", *store])
        answers = [ask([*rbpx, *question]) for question in questions]
        again = "nothing to measure" in answers[1].stderr
        problem = next((answer.stderr.strip().splitlines()[-1] for answer in answers if answer.returncode), "")
        said = problem or f"{answers[0].stderr.strip().splitlines()[-1]}; {len(answers)} commands"
        yield "three sizes, one text", said, f"all end well: {'met' if again and not problem else 'MISSED'}"


def free_port() -> int:
    """A port of this machine that nothing listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def vllm(device: str, tiny: bool) -> Iterator[Row]:
    """A tiny model measured with vLLM, and what `audit` says of it."""
    from tests.support.checkpoints import TINY_TEXT, build_checkpoint

    program = shutil.which("vllm")
    if program is None:
        yield "vLLM", "skipped: there is no program vllm on the PATH", "unmeasured"
        return
    with tempfile.TemporaryDirectory() as place:
        folder = build_checkpoint("qwen2", Path(place) / "model")
        text = Path(place) / "texts.jsonl"
        text.write_text("".join(json.dumps({"text": each}) + "\n" for each in TINY_TEXT), encoding="utf-8")
        port = free_port()
        options = ["--dtype", "float32", "--no-enable-prefix-caching", "--enforce-eager"]
        options += ["--gpu-memory-utilization", "0.3"]
        with (Path(place) / "log").open("w+") as log:
            words = [program, "serve", str(folder), "--port", str(port), *options]
            server = subprocess.Popen(words, stdout=log, stderr=subprocess.STDOUT)
            try:
                yield "vLLM", *_audited(server, port, folder, text, Path(place), log)
            finally:
                server.terminate()
                with suppress(subprocess.TimeoutExpired):
                    server.wait(5)
                server.kill()


def _audited(
    server: "subprocess.Popen[bytes]", port: int, folder: Path, text: Path, place: Path, log: Any
) -> tuple[str, str]:
    while server.poll() is None:
        with suppress(OSError), urlopen(f"http://127.0.0.1:{port}/version", timeout=2) as answer:
            version = json.load(answer)["version"]
            break
        time.sleep(0.5)
    else:
        log.seek(0)
        return f"the server ended: {log.read().strip().splitlines()[-1][:300]}", "audit: MISSED"
    rbpx = [sys.executable, "-m", "rbpx"]
    store = ["--store", str(place / "store")]
    cell = ["model=hub", f"model.id={folder}", "dataset=file", f"dataset.path={text}", "dtype=float32"]
    cell += ["engine=vllm", f"engine.url=http://127.0.0.1:{port}/v1", "protocol.window=32"]
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    ask = partial(subprocess.run, cwd=place, env=env, capture_output=True, text=True)
    done = ask([*rbpx, "measure", *cell, *store])
    if done.returncode == 0:
        done = ask([*rbpx, "audit", *store, "resamples=20", "k=1", "--format", "json"])
    if not done.stdout:
        return f"{version}: {(done.stderr.strip().splitlines() or ['nothing was said'])[-1][:300]}", "audit: MISSED"
    row = next(row for row in json.loads(done.stdout) if row["kind"] == "run")
    moved = f"{row['n_changed'] / row['n_tokens']:.2%} of other ranks, {row['largest_logprob_move']:.1e} nats at most"
    allowed = f"{row['allowed_share']:.2%}, {row['allowed_nats']:.1e} nats"
    return f"{version}: {moved}", f"{allowed}: {'met' if row['is_same'] else 'MISSED'}"


STEPS: Final[dict[str, Callable[[str, bool], Iterator[Row]]]] = {
    "ranks": ranks,
    **{f"speed-{name}": partial(speed, name) for name in SHAPES},
    "head": heads,
    "tests": gpu_tests,
    "tensor": tensor,
    "job": job,
    "vllm": vllm,
}


# ---------------------------------------------------------------------------------------------------------- the table


def run_step(step: Step, limit_s: float, device: str, tiny: bool) -> Iterator[Row]:
    """The rows of a step, and one for what it did not come to and why."""
    words = [sys.executable, __file__, "--device", device, "--step", step.name, *(["--tiny"] if tiny else [])]
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(words, stdout=out, stderr=err, start_new_session=True)
        reason = ""
        try:
            if process.wait(limit_s) != 0:
                reason = "it broke"
        except subprocess.TimeoutExpired:
            reason = f"its {limit_s:.0f} s were over"
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # and what it started
            process.wait()
        out.seek(0), err.seek(0)
        rows = [tuple(json.loads(line)) for line in out.read().splitlines() if line.endswith("]")]
        said = err.read().strip().splitlines()
    yield from rows
    missing = [case for case in step.cases if case not in {row[0] for row in rows}]
    if missing:
        why = f"{reason or 'it said nothing'}{f': {said[-1][:300]}' if reason == 'it broke' and said else ''}"
        yield ", ".join(missing) if len(missing) < 4 else f"{missing[0]} and {len(missing) - 1} more", why, "unmeasured"


def main() -> int:
    """Print the table; 1 where something is missed, 0 else."""
    began = time.monotonic()
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    words.add_argument("--tiny", action="store_true", help="models and texts so small that a CPU does")
    words.add_argument("--minutes", type=float, default=9.0, help="that all of it may take")
    words.add_argument("--patience", type=float, default=1.0, help="times that all limits are multiplied by")
    words.add_argument("--steps", nargs="+", choices=list(STEPS), default=list(STEPS))
    words.add_argument("--step", choices=list(STEPS), help=argparse.SUPPRESS)
    words.add_argument("--part", nargs=3, help=argparse.SUPPRESS)
    options = words.parse_args()
    if options.part:
        part(options.device, *options.part)
        return 0
    if options.device == "cpu" and not options.tiny:
        words.error("on a CPU the shapes are tiny: --device cpu --tiny")
    if options.device == "cuda" and not torch.cuda.is_available():
        words.error("torch finds no CUDA device; --device cpu --tiny tries the program without one")
    compute_exactly()
    if options.step:
        for row in STEPS[options.step](options.device, options.tiny):
            print(json.dumps(row), flush=True)
        return 0
    from rbpx.measure.cell import device_names

    name = device_names(["cuda:0" if options.device == "cuda" else "cpu"])[0]
    libraries = ", ".join(f"{library} {version(library)}" for library in ("torch", "transformers"))
    print(f"{name}, {libraries}, CUDA {torch.version.cuda}{', tiny' if options.tiny else ''}\n")
    print("| step | case | measured | held against |\n|---|---|---|---|", flush=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # and so end the step that runs
    missed = False
    for step in steps(options.device):
        if step.name in options.steps:
            left_s = options.minutes * options.patience * 60 - (time.monotonic() - began) - 5
            limit_s = max(1.0, min(step.limit_s * options.patience, left_s))
            for row in run_step(step, limit_s, options.device, options.tiny):
                print(f"| {step.name.split('-')[0]} | " + " | ".join(cell.replace("|", "/") for cell in row) + " |")
                missed |= "MISSED" in row[2]
            sys.stdout.flush()
    print(f"\n{time.monotonic() - began:.0f} s")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
