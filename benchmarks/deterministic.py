"""Measures what deterministic=true costs and what it gains, by measuring one cell with and without it in turn.

    python benchmarks/deterministic.py [SIZE] [ROUNDS]

The two alternate in the same process and their medians are compared, so that other work of the machine affects both
alike. Loading the model and cutting the text are not timed.
"""

import statistics
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import torch

from rbpx.cli.registry import asking
from rbpx.config.compose import compose
from rbpx.data.windows import cut_windows
from rbpx.measure.distributed import ProcessGroup, repeatable
from rbpx.measure.extract import TokenColumns, measure_windows
from rbpx.measure.reading.reading import Reading
from rbpx.measure.runner import draw_sample
from rbpx.models.load import load_model
from rbpx.store.store import Store

BUDGETS = (512, 4096)  # of tokens a batch


def main(size: str, n_rounds: int) -> None:
    """Print a line for each of the two, with the difference between two budgets."""
    request = compose(asking("measure"), ["model=ladder", f"size={size}", "dataset=pydoc", "device=cpu"]).requests[0]
    assert request.model is not None
    documents = draw_sample(request, Store(Path("store")), quiet=True).documents
    device = torch.device("cpu")
    loaded = load_model(request.model.sizes[size].id, None, "float32", device)
    windows = cut_windows(documents, loaded.tokenizer, 512)
    wall_s: dict[bool, list[float]] = {False: [], True: []}
    cpu_s: dict[bool, list[float]] = {False: [], True: []}
    rows: dict[tuple[bool, int], TokenColumns] = {}
    for _ in range(n_rounds):
        for deterministic in (False, True):
            for budget in BUDGETS:
                with repeatable() if deterministic else nullcontext():
                    wall_from, cpu_from = time.monotonic(), time.process_time()
                    used = 1 if deterministic else budget
                    alone = ProcessGroup(0, 1, device)
                    rows[deterministic, budget] = measure_windows(Reading(loaded, windows, alone, used, lambda n: None))
                    if budget == BUDGETS[-1]:
                        wall_s[deterministic].append(time.monotonic() - wall_from)
                        cpu_s[deterministic].append(time.process_time() - cpu_from)
    n_tokens = len(rows[False, BUDGETS[0]])
    print(f"ladder {size} on pydoc: {n_tokens:,} tokens, {torch.get_num_threads()} threads, median of {n_rounds}")
    for deterministic in (False, True):
        one, other = (rows[deterministic, budget] for budget in BUDGETS)
        moved = int(((one["greater"] != other["greater"]) | (one["ties"] != other["ties"])).sum())
        apart = float(np.abs(one["logprob"] - other["logprob"]).max())
        wall, cpu = statistics.median(wall_s[deterministic]), statistics.median(cpu_s[deterministic])
        print(
            f"deterministic={str(deterministic).lower():5}  {wall:7.2f} s wall  {cpu:7.2f} s CPU  between budgets "
            f"{BUDGETS[0]} and {BUDGETS[1]}: {moved} ranks changed, logprob by {apart:.1e}"
        )
    ratio_wall, ratio_cpu = (statistics.median(s[True]) / statistics.median(s[False]) for s in (wall_s, cpu_s))
    print(f"ratio: {ratio_wall:.2f} in wall time, {ratio_cpu:.2f} in CPU time")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "1.2m", int(sys.argv[2]) if len(sys.argv) > 2 else 3)
