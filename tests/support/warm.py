"""Commands in processes of their own that need not read the libraries: forked from one that has, a second or two each.

For tests that kill commands, or run several at once; what only a new interpreter shows is for `start`.
"""

import multiprocessing
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.commands import command_environment

_READ_ONCE = ["accelerate", "hydra.compose", "lmfit", "scipy.stats", "transformers.tokenization_utils_tokenizers"]
_READ_ONCE += ["transformers.models.gpt2.modeling_gpt2", "transformers.models.gpt_neox.modeling_gpt_neox"]
_READ_ONCE += ["rbpx.cli.launch", "rbpx.measure.cell", "rbpx.measure.runner", "rbpx.models.load"]


class Warm:
    """A command that was started: the interface of `subprocess.Popen`, as far as tests need it."""

    def __init__(self, *args: object, cwd: Path, env: Mapping[str, str] | None = None) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(_READ_ONCE)
        self._output = TemporaryDirectory(prefix="warm-")
        words = [str(arg) for arg in args]
        self._process = context.Process(
            target=_command, args=(words, cwd, command_environment(env), Path(self._output.name)), daemon=True
        )
        self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """Its exit status, the negative number of a signal that ended it, None while it runs."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """As `returncode`."""
        return self.returncode

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float = 300.0) -> tuple[str, str]:
        """Wait for its end; what it wrote to both streams."""
        self._process.join(timeout)
        assert self.returncode is not None, f"it runs for more than {timeout:.0f} s"
        stdout, stderr = ((Path(self._output.name) / name).read_text() for name in ("stdout", "stderr"))
        self._output.cleanup()
        return stdout, stderr


def _command(words: list[str], cwd: Path, environment: dict[str, str], output: Path) -> None:
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # as on a terminal, though the tests may be in the background
    for number, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(output / name, os.O_WRONLY | os.O_CREAT), number)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    from rbpx.__main__ import cli

    sys.argv = ["rbpx", *words]
    cli()
