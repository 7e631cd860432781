"""Kernels give the same bits in the process that compiles them as in later ones, which read them from numba's cache."""

import os
import subprocess
import sys
from pathlib import Path

from tests.support.places import PROJECT

RANKED = """
import hashlib, torch
from rbpx.ranks.tiles import rank_tiles
drawn = torch.Generator().manual_seed(0)
hidden, weights = torch.randn(3000, 16, generator=drawn), torch.randn(4096, 16, generator=drawn)
ranks = rank_tiles(hidden, torch.randint(0, 4096, (3000,), generator=drawn), weights)
print(hashlib.sha256(ranks.logprob.tobytes()).hexdigest())
"""


def test_the_process_that_compiles_the_kernels_has_the_log_probabilities_of_later_ones(tmp_path: Path) -> None:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(PROJECT), "OMP_NUM_THREADS": "1"}
    words = [sys.executable, "-c", RANKED]
    done = [subprocess.run(words, env=environment, capture_output=True, text=True, check=True) for _ in range(2)]
    assert list(tmp_path.rglob("cpu_kernel.add_tile*"))
    assert done[0].stdout == done[1].stdout
