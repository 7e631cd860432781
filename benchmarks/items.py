"""Compares the cost of measuring items with lm-evaluation-harness, and with reading every choice whole.

Models with the shapes of pythia-14m and gpt2 and random weights, one of the ladder, and GGUF files, read questions of
GSM8K with their own tokenizers: four choices after 0, 5 and 25 examples that all items share, and answers of some
hundred tokens after 5.

    floor    the head's product of every scored position, and the forward pass of every token of the trie once
    rbpx     greater, ties and logprob of every scored position
    whole    the same, where every choice is read from its first token
    harness  loglikelihood of lm_eval's HFLM, if it is installed: the same pairs of context and choice

Times are those of this process in CPU seconds, without loading; log-probabilities of the last three are compared.

    python benchmarks/items.py --data ../shared/data
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import torch

from benchmarks.extraction import random_model
from rbpx.data.corpus import Document
from rbpx.data.harness_windows import cut_as_harness
from rbpx.data.items import Part
from rbpx.data.windows import Window
from rbpx.measure.distributed import ProcessGroup
from rbpx.measure.extract import distinct_windows, measure_windows
from rbpx.measure.reading import reading as reading_module
from rbpx.measure.reading.reading import Reading
from rbpx.models.head import head_input
from rbpx.models.load import LoadedModel, load_model
from tests.support.ladder import bundled_id

ALONE = ProcessGroup(0, 1, torch.device("cpu"))
PER_BATCH, PER_HARNESS_BATCH = 4096, 8
CHOICES = 4


def question(row: dict[str, str]) -> str:
    """The context of an item."""
    return f"Question: {row['question']}\nAnswer:"


def first_sentence(row: dict[str, str]) -> str:
    """A choice: the first line of an answer, without the calculator's notes."""
    return " " + row["answer"].split("\n")[0].split("<<")[0][:60].strip()


def documents(rows: Sequence[dict[str, str]], n_items: int, n_examples: int, whole_answers: bool) -> list[Document]:
    """Items of the first rows, with examples from the last ones."""
    answer = (lambda row: " " + row["answer"]) if whole_answers else first_sentence
    before = "".join(f"{question(row)}{answer(row)}\n\n" for row in rows[len(rows) - n_examples :])
    drawn = []
    for item, row in enumerate(rows[:n_items]):
        context = before + question(row)
        targets = [answer(rows[(item + 7 * n) % n_items]) for n in range(1 if whole_answers else CHOICES)]
        for n, target in enumerate(targets):
            part = Part(item, n, n == 0, len(context), len(target), len(target.encode()))
            drawn.append(Document(len(drawn), str(item), context + target, part))
    return drawn


def seconds(work: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    """CPU seconds of a call, and what it returns."""
    begun = time.process_time()
    result = work(*arguments)
    return time.process_time() - begun, result


def trie_tokens(windows: Sequence[Window]) -> int:
    """Tokens of the trie of what is read: those that no window before, in the order of the tokens, begins with too."""
    reads = sorted(window.ids[: window.n_read].tolist() for window in windows)
    total = len(reads[0])
    for one, other in pairwise(reads):
        n_alike = next(
            (n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
        )
        total += len(other) - n_alike
    return total


def floor(loaded: LoadedModel, windows: Sequence[Window], context: int) -> None:
    """As many tokens as the trie has, in rows as long as the model reads, and the product of the scored positions."""
    n_read, n_scored = trie_tokens(windows), sum(window.n_scored for window in windows)
    length = min(context, 256)
    with torch.inference_mode():
        states = torch.empty(0)
        for begin in range(0, n_read, PER_BATCH):
            n_rows = max(1, min(PER_BATCH, n_read - begin) // length)
            states = head_input(loaded.model, torch.ones(n_rows, length, dtype=torch.int64))[0]
        assert loaded.head.logits is not None, "these models have a product"
        for begin in range(0, n_scored, 128):
            loaded.head.logits(states[:1].expand(min(128, n_scored - begin), -1))


def sums(windows: Sequence[Window], rows: Any) -> np.ndarray:
    """Log-probability of each document, nats."""
    total = np.zeros(len(windows))
    np.add.at(total, rows["doc_id"], rows["logprob"].astype(float))
    return total


def harness(loaded: LoadedModel, drawn: Sequence[Document], context: int) -> np.ndarray:
    """Log-probability of each target as lm-evaluation-harness has it, nats."""
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    lm = HFLM(
        pretrained=loaded.model,
        tokenizer=loaded.tokenizer,
        batch_size=PER_HARNESS_BATCH,
        max_length=context,
        device="cpu",
    )
    pairs = [(d.text[: d.part.n_context], d.text[d.part.n_context :]) for d in drawn if d.part is not None]
    asked = [Instance("loglikelihood", {}, pair, at) for at, pair in enumerate(pairs)]
    return np.asarray([answer[0] for answer in lm.loglikelihood(asked, disable_tqdm=True)])


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--models", default="pythia-14m,gpt2,ladder 1.2m")
    parser.add_argument("--examples", default="0,5,25,answers")
    parser.add_argument("--items", type=int, default=100)
    given = parser.parse_args()
    torch.set_num_threads(1)
    rows = [json.loads(line) for line in (given.data / "gsm8k_test.jsonl").read_text(encoding="utf-8").splitlines()]
    has_harness = find_spec("lm_eval") is not None
    names = [
        "model",
        "examples",
        "items",
        "tokens of all",
        "of the trie",
        "floor, s",
        "rbpx, s",
        "whole, s",
        "harness, s",
    ]
    names += ["rbpx / floor, time", "whole / rbpx, time", "harness / rbpx, time", "largest difference, nats"]
    print(f"| {' | '.join(names)} |\n|{'---|' * len(names)}")
    with tempfile.TemporaryDirectory() as place:
        for name in given.models.split(","):
            if name.startswith("ladder") or name.endswith(".gguf"):
                known = bundled_id(name.split()[1]) if name.startswith("ladder") else name
                loaded = load_model(known, None, "float32", torch.device("cpu"))
            else:
                loaded = random_model(name, given.data, Path(place), "float32", torch.device("cpu"))
            context = {"pythia-14m": 2048, "gpt2": 1024}.get(name, loaded.context or 2048)
            for examples in given.examples.split(","):
                is_whole = examples == "answers"
                drawn = documents(rows, given.items, 5 if is_whole else int(examples), is_whole)
                windows = cut_as_harness(drawn, loaded.tokenizer, context)
                once = distinct_windows(windows).windows
                reading = Reading(loaded, windows, ALONE, PER_BATCH, lambda n: None)
                measure_windows(Reading(loaded, windows[:CHOICES], ALONE, PER_BATCH, lambda n: None))
                floor_s, _ = seconds(floor, loaded, once, context)
                own_s, own = seconds(measure_windows, reading)
                with patch.object(reading_module, "empty_past", lambda model: None):
                    whole_s, whole = seconds(measure_windows, reading)
                apart = float(np.abs(sums(windows, own) - sums(windows, whole)).max())
                told, times = "not installed", ""
                if has_harness:
                    harness_s, theirs = seconds(harness, loaded, drawn, context)
                    apart = max(apart, float(np.abs(sums(windows, own) - theirs).max()))
                    told, times = f"{harness_s:.2f}", f"{harness_s / own_s:.1f}"
                cells = [Path(name).name, "5, whole answers" if is_whole else examples, given.items]
                cells += [f"{sum(w.n_read for w in windows):,}", f"{trie_tokens(once):,}"]
                cells += [f"{floor_s:.2f}", f"{own_s:.2f}", f"{whole_s:.2f}", told]
                cells += [f"{own_s / floor_s:.2f}", f"{whole_s / own_s:.1f}", times, f"{apart:.1e}"]
                print(f"| {' | '.join(map(str, cells))} |", flush=True)


if __name__ == "__main__":
    main()
