"""The processes of a launch without a launcher, each told of the others as torchrun tells it."""

import socket
from pathlib import Path

from tests.support.warm import Warm


def launch(words: list[str], folder: Path, n_processes: int = 2) -> list[Warm]:
    """Processes of one command in an empty directory; none of them is stopped when another one fails."""
    (folder / "cwd").mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    of_all = {"WORLD_SIZE": str(n_processes), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    ranks = [{"RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(n_processes)]
    return [Warm(*words, cwd=folder / "cwd", env=of_all | rank) for rank in ranks]
