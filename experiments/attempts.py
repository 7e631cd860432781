"""The study `attempts`: samples the items of a store's runs, and counts the attempts that give the exact answer.

    python experiments/attempts.py STORE | gzip -9n > experiments/attempts.csv.gz

Each attempt draws token after token from the softmax of the logits and ends at the first that is not the answer's;
attempts that have not ended read the same tokens, so one pass over context and answer serves them all. Draws of torch,
from logits that are computed anew: nothing that the store says of a run's tokens is used.
"""

import csv
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rbpx.measure.distributed import init_process_group
from rbpx.measure.reopen import Reopener, RunNames
from rbpx.store.sql import connect
from rbpx.store.store import Store

COLUMNS: Final = ("family", "size", "S", "dataset", "item", "n_samples", "n_correct")
N_SAMPLES: Final = 100
SEED: Final = 42


def attempts(logits_TV: torch.Tensor, target_T: torch.Tensor, n_samples: int, generator: torch.Generator) -> int:
    """How many of so many attempts draw all tokens of a target, each from the softmax of its logits."""
    left = n_samples
    for logits_V, target in zip(logits_TV.double(), target_T.tolist(), strict=True):
        if not left:
            break
        drawn = torch.multinomial(logits_V.softmax(-1), left, replacement=True, generator=generator)
        left = int((drawn == target).sum())
    return left


def rows(store: str, n_samples: int = N_SAMPLES) -> Iterator[tuple[Any, ...]]:
    """A row, as `COLUMNS`, for each run on items and each item."""
    opened = Store(store)
    with connect(opened, with_fits=False) as connection:
        columns = "run_id, family, size, dataset, non_embedding_params"
        runs = connection.sql(
            f"SELECT {columns} FROM runs WHERE protocol = 'harness' ORDER BY size, dataset"
        ).fetchall()
    reopener = Reopener(opened, init_process_group("cpu"))
    for run_id, family, size, dataset, S in runs:
        protocol, documents = reopener.reopen(RunNames(run_id, family, size, dataset), None)
        generator = torch.Generator().manual_seed(SEED)
        true = [document for document in documents if document.is_true]
        for window in protocol.windows(true):
            ids_T = torch.from_numpy(window.ids).long()
            scored_T = torch.from_numpy(window.scored).nonzero().ravel()
            with torch.inference_mode():
                logits_TV = protocol.loaded.model(input_ids=ids_T[None]).logits[0].float()
            n_right = attempts(logits_TV[scored_T - 1], ids_T[scored_T], n_samples, generator)
            yield family, size, S, dataset, window.doc_id, n_samples, n_right
        print(f"{size} on {dataset}", file=sys.stderr)


def main(words: list[str]) -> None:
    """Print the counts of a store's runs."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(rows(words[0]))


if __name__ == "__main__":
    main(sys.argv[1:])
