"""Compares the cost of measuring with that of the bare products, and with other ways in which people measure.

Models with the shapes of pythia-14m, gpt2 and Qwen2.5-0.5B and random weights, and the largest model of the ladder,
read HotpotQA, HumanEval and WikiText with their own tokenizers, 512 tokens a document:

    floor  the forward pass up to the head and the head's product of every scored position, nothing after it
    rbpx   greater, ties and logprob of every scored position
    (c)    log_softmax of [B, T, V] and a gather: how harnesses score; no ranks
    (b)    log_softmax and argsort of all, and the place of the target: exact ranks where nothing ties
    (a)    the published recipe: each text padded to 512, softmax, the 10,000 likeliest, a strictly-greater count, and a
           Python loop over tokens; ranks beyond 10,000 are unknown

All of them get the same windows; (a) and (b), which are slow, only the first few. Their ranks are compared before
anything is timed. The memory is the peak beyond the loaded model. The share is the rate in FLOPs, 2 S + 2 V D a token
without attention, divided by that of torch's 2,048-cubed float32 product in the same turns.

    python benchmarks/extraction.py --data ../shared/data
    python benchmarks/extraction.py --data ../shared/data --device cuda --peak-tflops 67 --peak-gb-s 4800

With the peaks of a device, it also prints the limits that arithmetic (2 S + 2 V D FLOPs a token) and memory (the
weights once a batch) alone would set.
"""

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from rbpx.data.corpus import Document
from rbpx.data.windows import Window, cut_windows
from rbpx.measure import extract
from rbpx.measure.distributed import ProcessGroup
from rbpx.measure.extract import measure_windows
from rbpx.measure.reading.batches import batch_windows
from rbpx.measure.reading.reading import Reading
from rbpx.models.head import head_input
from rbpx.models.load import LoadedModel, load_model
from tests.support.families import read_family
from tests.support.ladder import bundled_id
from tests.support.published_texts import FILES, published
from tests.support.real_tokenizers import real_config, write_tokenizer

WINDOW, PER_BATCH, TOP = 512, 4096, 10_000
SHAPES = {
    "pythia-14m": ("pythia", "14m", 20_000),
    "gpt2": ("gpt2", "gpt2", 6_000),
    "Qwen2.5-0.5B": ("qwen2.5", "0.5B", 3_000),
}
TEXTS = {"HotpotQA": "hotpotqa", "HumanEval": "humaneval", "WikiText": "wikitext"}

Way = Callable[[LoadedModel, Sequence[Window]], "np.ndarray[Any, Any] | None"]  # ranks in order of the windows given


def build_real(arch: str, tokenizers: Path, folder: Path, context: int = 128) -> Path:
    """A model of one layer, 16 wide; OPT's weights are a pickle, as on the hub."""
    from transformers import AutoModelForCausalLM

    config = real_config(arch, 16, context, **{"init_std" if arch == "opt" else "initializer_range": 0.3})
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = AutoModelForCausalLM.from_config(config)
    folder.mkdir(parents=True)
    if arch == "opt":
        config.save_pretrained(folder)
        torch.save(model.state_dict(), folder / "pytorch_model.bin")
    else:
        model.save_pretrained(folder)
    write_tokenizer(arch, tokenizers, folder)
    return folder


def random_model(size: str, data: Path, place: Path, dtype: str, device: torch.device) -> LoadedModel:
    """A model of a published shape with random weights and its own tokenizer."""
    from transformers import AutoConfig, AutoModelForCausalLM

    family, name, _ = SHAPES[size]
    arch = {"pythia": "gpt_neox", "gpt2": "gpt2", "qwen2.5": "qwen2"}[family]
    folder = build_real(arch, data / "tokenizers", place / size)
    shape = dict(read_family(family).shape_of(name))
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(shape.pop("model_type"), **shape))
    model.save_pretrained(folder)
    return load_model(str(folder), None, dtype, device)


def windows_of(loaded: LoadedModel, texts: Sequence[str], n_tokens: int) -> list[Window]:
    """Windows of the first texts, up to some number of scored tokens."""
    windows = cut_windows([Document(i, str(i), text) for i, text in enumerate(texts[:2000])], loaded.tokenizer, WINDOW)
    upto = np.cumsum([w.n_scored for w in windows])
    return [w for w, n in zip(windows, upto, strict=True) if w.n_scored and n <= n_tokens + windows[0].n_scored]


# ------------------------------------------------------------------------------------------------------------- ways


def padded(loaded: LoadedModel, batch: Sequence[Window]) -> tuple[Tensor, list[tuple[int, int]]]:
    """Ids [B, T] padded on the right, and the (row, position) of each scored token, window by window."""
    ids_BT = torch.zeros(len(batch), max(len(w.ids) for w in batch), dtype=torch.int64)
    for row, window in enumerate(batch):
        ids_BT[row, : len(window.ids)] = torch.as_tensor(np.asarray(window.ids))
    return ids_BT.to(loaded.model.device), [
        (row, int(t)) for row, w in enumerate(batch) for t in np.flatnonzero(w.scored)
    ]


def floor(loaded: LoadedModel, windows: Sequence[Window]) -> None:
    """Backbone and product, with the logits of a whole batch in memory."""
    head = loaded.model.get_output_embeddings()
    for batch in batch_windows(windows, PER_BATCH):
        ids_BT, places = padded(loaded, batch)
        row, position = torch.tensor(places).T
        with torch.inference_mode():
            states_ND = head_input(loaded.model, ids_BT)[row, position - 1]
            for states_nD in torch.split(states_ND, 1024):
                head(states_nD)


def rbpx(loaded: LoadedModel, windows: Sequence[Window]) -> "np.ndarray[Any, Any]":
    """Ranks by rbpx."""
    alone = ProcessGroup(0, 1, loaded.model.device)
    columns = measure_windows(Reading(loaded, windows, alone, PER_BATCH, lambda n: None))
    return 1 + columns["greater"] + columns["ties"]


def harness(loaded: LoadedModel, windows: Sequence[Window]) -> None:
    """(c): batches of 8 padded texts, all logits, log_softmax, gather."""
    for start in range(0, len(windows), 8):
        ids_BT, _ = padded(loaded, windows[start : start + 8])
        with torch.inference_mode():
            logprob_BTV = F.log_softmax(loaded.model(ids_BT, use_cache=False).logits[:, :-1].float(), dim=-1)
            logprob_BTV.gather(2, ids_BT[:, 1:, None])


def sorted_whole(loaded: LoadedModel, windows: Sequence[Window]) -> "np.ndarray[Any, Any]":
    """(b): one text at a time, log_softmax, argsort, the place of the target."""
    ranks = []
    for window in windows:
        ids_BT, places = padded(loaded, [window])
        with torch.inference_mode():
            logprob_TV = F.log_softmax(loaded.model(ids_BT, use_cache=False).logits[0].float(), dim=-1)
            order_TV = logprob_TV.argsort(dim=-1, descending=True)
            ranks += [int((order_TV[t - 1] == ids_BT[0, t]).nonzero()) + 1 for _, t in places]
    return np.asarray(ranks)


def recipe(loaded: LoadedModel, windows: Sequence[Window]) -> "np.ndarray[Any, Any]":
    """(a): one text at a time padded to 512, softmax, top 10,000, a loop over tokens."""
    ranks = []
    for window in windows:
        ids_BT = torch.zeros(1, WINDOW, dtype=torch.int64)
        ids_BT[0, : len(window.ids)] = torch.as_tensor(np.asarray(window.ids))
        ids_BT = ids_BT.to(loaded.model.device)
        with torch.inference_mode():
            p_TV = torch.softmax(loaded.model(ids_BT, use_cache=False).logits[0].float(), dim=-1)
            top_TK = torch.topk(p_TV, min(TOP, p_TV.shape[-1]), dim=-1).values
            for t in np.flatnonzero(window.scored):
                target = p_TV[t - 1, ids_BT[0, t]]
                ranks.append(int((top_TK[t - 1] > target).sum()) + 1)
    return np.asarray(ranks)


WAYS: dict[str, Way] = {"floor": floor, "rbpx": rbpx, "(c)": harness, "(b)": sorted_whole, "(a)": recipe}
SLOW = ("(a)", "(b)")


# --------------------------------------------------------------------------------------------------------- measuring


@dataclass
class Cost:
    """The cost of one way over n scored tokens."""

    n: int
    wall_s: float
    peak_mib: float


def resident_mib() -> float:
    """The memory that this process holds now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20


def run(way: Way, loaded: LoadedModel, windows: Sequence[Window]) -> Cost:
    """Time one pass, and watch the memory from a second thread."""
    on_gpu = loaded.model.device.type == "cuda"
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated() / 2**20 if on_gpu else resident_mib()
    peak, done = [0.0], threading.Event()

    def watch() -> None:
        while not done.wait(0.002):
            peak[0] = max(peak[0], resident_mib())

    watcher = threading.Thread(target=watch)
    watcher.start()
    began = time.perf_counter()
    way(loaded, windows)
    if on_gpu:
        torch.cuda.synchronize()
    wall_s = time.perf_counter() - began
    done.set()
    watcher.join()
    if on_gpu:
        peak[0] = torch.cuda.max_memory_allocated() / 2**20
    return Cost(sum(w.n_scored for w in windows), wall_s, max(0.0, peak[0] - before))


def best(first: Cost, second: Cost) -> Cost:
    """The time of the faster of two passes, and the larger of their memories."""
    return replace(min(first, second, key=lambda c: c.wall_s), peak_mib=max(first.peak_mib, second.peak_mib))


def check(loaded: LoadedModel, windows: Sequence[Window]) -> None:
    """Check that the ways give the same ranks, except where the rounding of a product confuses two logits."""
    ours = rbpx(loaded, windows)
    sorting, top = sorted_whole(loaded, windows), recipe(loaded, windows)
    moved = np.abs(ours - sorting)
    assert (moved <= np.maximum(3, 1e-3 * sorting)).all(), "ranks differ by more than rounding can move them"
    assert (moved == 0).mean() > 0.9, "ranks differ"
    within_top = top < TOP // 2  # softmax in float32 makes ties of its own further down, and the recipe stops at 10,000
    assert (np.abs(ours - top)[within_top] <= np.maximum(3, 1e-3 * ours[within_top])).all(), (
        "ranks differ from the recipe's"
    )


def product_flops(device: torch.device) -> float:
    """FLOPs a second of torch's 2,048-cubed float32 product."""
    left, right = (torch.randn(2048, 2048, device=device) for _ in range(2))
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        float((left @ right)[0, 0])  # waits for a GPU
        seconds.append(time.perf_counter() - began)
    return 2 * 2048**3 / min(seconds)


def flops_of_a_token(loaded: LoadedModel) -> int:
    """2 S + 2 V D."""
    return int(2 * (loaded.non_embedding_params + loaded.model.get_output_embeddings().weight.numel()))


def compare(loaded: LoadedModel, windows: list[Window], rounds: int) -> tuple[dict[str, Cost], float]:
    """The best of some rounds for each way over the same windows, in turns so that the machine is the same for all.

    Returns the costs, and the share of the product's peak that rbpx reaches.
    """
    few = windows[: max(2, len(windows) // 20)]
    check(loaded, sorted(few, key=lambda w: w.doc_id))
    costs: dict[str, Cost] = {}
    peak = 0.0
    for _ in range(rounds):
        peak = max(peak, product_flops(loaded.model.device))
        for name, way in WAYS.items():
            cost = run(way, loaded, few if name in SLOW else windows)
            costs[name] = best(costs[name], cost) if name in costs else cost
    return costs, flops_of_a_token(loaded) * costs["rbpx"].n / costs["rbpx"].wall_s / peak


def line(model: str, text: str, costs: dict[str, Cost], share: float) -> str:
    """A row of the table."""
    rate = {name: cost.n / cost.wall_s for name, cost in costs.items()}
    cells = [f"{rate[name]:,.0f}" for name in WAYS]
    cells += [
        f"{rate['floor'] / rate['rbpx']:.2f}",
        *(f"{rate['rbpx'] / rate[name]:.1f}" for name in ("(c)", "(b)", "(a)")),
    ]
    cells += [f"{costs[name].peak_mib:,.0f}" for name in ("floor", "rbpx", "(c)", "(a)")] + [f"{share:.2f}"]
    return f"| {model} | {text} | " + " | ".join(cells) + " |"


def limits(loaded: LoadedModel, peak_tflops: float, peak_gb_s: float) -> str:
    """The tokens a second that a device's arithmetic alone, and its memory alone, would allow."""
    head = loaded.model.get_output_embeddings().weight
    flops = flops_of_a_token(loaded)
    read_bytes = (loaded.non_embedding_params + head.numel()) * head.element_size() / PER_BATCH
    return f"{peak_tflops * 1e12 / flops:,.0f} by arithmetic, {peak_gb_s * 1e9 / read_bytes:,.0f} by memory"


def main() -> None:
    """Print the table."""
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--data", type=Path, required=True, help="folder with the texts and tokenizers/")
    words.add_argument("--models", nargs="+", default=[*SHAPES, "ladder 3.2m"])
    words.add_argument("--texts", nargs="+", default=list(TEXTS))
    words.add_argument("--rounds", type=int, default=3)
    words.add_argument("--share", type=float, default=1.0, help="share of each model's tokens to measure")
    words.add_argument("--device", default="cpu")
    words.add_argument("--dtype", default="float32")
    words.add_argument("--peak-tflops", type=float, help="peak of the device with this dtype")
    words.add_argument("--peak-gb-s", type=float, help="peak bandwidth of its memory")
    options = words.parse_args()
    device = torch.device(options.device)
    extract._MIN_LOGITS_FOR_TILES = 0  # a benchmark compiles once, however short its texts are
    print(
        f"{torch.get_num_threads()} threads, {options.device}, {options.dtype}, torch {torch.__version__}\n", flush=True
    )
    print("| model | text | " + " | ".join(f"{name}, tokens/s" for name in WAYS) + " | rbpx / floor, time |", end="")
    print(" rbpx / (c) | rbpx / (b) | rbpx / (a) | floor, MiB | rbpx, MiB | (c), MiB | (a), MiB |", end="")
    print(" share of the product peak |")
    print("|---" * (len(WAYS) + 11) + "|", flush=True)
    with tempfile.TemporaryDirectory() as place:
        for model in options.models:
            if model in SHAPES:
                loaded, n_tokens = (
                    random_model(model, options.data, Path(place), options.dtype, device),
                    SHAPES[model][2],
                )
            else:
                loaded = load_model(bundled_id(model.split()[1]), None, options.dtype, device)
                n_tokens = 40_000
            if options.peak_tflops and options.peak_gb_s:
                print(f"{model}: {limits(loaded, options.peak_tflops, options.peak_gb_s)}", file=sys.stderr)
            for text in options.texts:
                texts = published(TEXTS[text], options.data / FILES[TEXTS[text]][0])
                windows = windows_of(loaded, texts, int(n_tokens * options.share))
                print(line(model, text, *compare(loaded, windows, options.rounds)), flush=True)


if __name__ == "__main__":
    main()
