"""`python -m rbpx`: runs a command line and returns its exit status."""

import errno
import os
import signal
import sys

from rbpx.cli.argv import parse
from rbpx.cli.stopped import Stopped, leave_no_heartbeat, stop_in_order, stop_no_more
from rbpx.cores import is_main_process, share_cores
from rbpx.errors import MeasureError, RbpxError, first_line
from rbpx.files.visible import visible_line
from rbpx.typed import speaking_shell
from rbpx.version import __version__

# Runs are counted and resampled side by side, each in a thread; numpy's OpenBLAS would divide each of their products
# again, and its threads wait for each other longer than they save. It is read when numpy is imported, by a verb.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
share_cores()


def main(argv: list[str]) -> int:
    """Do what was typed.

    Returns:
        0 done, 1 something failed while running, 2 the request is wrong; stopped by a signal 128 and its number.
    """
    try:
        with speaking_shell():
            return _status(argv)
    except KeyboardInterrupt as stop:
        stop_no_more()
        leave_no_heartbeat()
        number = stop.signal if isinstance(stop, Stopped) else signal.SIGINT
        if is_main_process():
            by = f" by {number.name}" if number != signal.SIGINT else ""
            notes = "".join(f"; {note}" for note in getattr(stop, "__notes__", ()))
            print(
                f"rbpx: stopped{by}; what was finished is kept, and the same command continues{notes}", file=sys.stderr
            )
        return 128 + number


def _status(argv: list[str]) -> int:
    try:
        status = _do(argv)
        sys.stdout.flush()  # where it cannot be written, that is known here
        return status
    except RbpxError as problem:
        print(f"rbpx: {visible_line(str(problem))}", file=sys.stderr)
        return 1 if isinstance(problem, MeasureError) else 2
    except ModuleNotFoundError as problem:
        name = (problem.name or "").partition(".")[0]
        if name == "rbpx":
            raise
        advice = "install rbpx again: python -m pip install rbpx"
        print(f"rbpx: the package {name} is not installed in this Python; {advice}", file=sys.stderr)
        return 2
    except MemoryError as problem:
        advice = "ask for less at once (dataset=, size=, limit=, resamples=), or give this process more memory"
        print(f"rbpx: {visible_line(first_line(problem))}; {advice}", file=sys.stderr)
        return 1
    except RuntimeError as problem:
        if "home directory" not in str(problem):  # of pathlib, for ~NAME
            raise
        print("rbpx: a path begins with ~, and this machine has no such user; write its folder out", file=sys.stderr)
        return 2
    except BrokenPipeError:
        from rbpx.cli.launch import close_output

        close_output()
        return 0
    except PermissionError as problem:
        if problem.filename is None:
            raise
        path, says = visible_line(os.fsdecode(problem.filename)), problem.strerror
        advice = "ask its owner for the right to it (chmod), or name another"
        print(f"rbpx: {path} cannot be used: {says}; {advice}", file=sys.stderr)
        return 2
    except OSError as problem:
        if problem.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
            raise
        from rbpx.cli.launch import close_output

        close_output()
        print(f"rbpx: the output cannot be written: {problem.strerror}; run the same line again", file=sys.stderr)
        return 1


def _do(argv: list[str]) -> int:
    line = parse(argv)
    if line.version:
        print(f"rbpx {__version__}")
        return 0
    if line.help:
        from rbpx.cli.help import help_text
        from rbpx.config.overrides import config_folders

        print(help_text(line.verb if line.verb in argv else None, config_folders(line.hydra)))
        return 0
    _check_folder()
    from rbpx.cli.messages import messages_on_stderr

    with messages_on_stderr():
        from rbpx.cli.launch import launch

        outcomes = launch(line)
        if outcomes:
            from rbpx.cli.finish import finish

            return finish(line, outcomes)
    if line.sweeps:
        raise RbpxError("the sweep has no jobs; check its lists and globs with --cfg job for one of them")
    return 0  # --cfg, --info and completion print, and run no job


def _check_folder() -> None:
    """Refuse to work in a folder that somebody has removed: no path could be read there."""
    try:
        os.getcwd()
    except FileNotFoundError:
        raise RbpxError(
            "the working directory was deleted; cd to one that is there, and run the same line again"
        ) from None


def cli() -> None:
    """The console script."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started this
            setattr(sys, name, open(os.devnull, "r+", encoding="utf-8"))
    stop_in_order()
    status = main(sys.argv[1:])
    if status <= 128:  # nothing is under way that SIGTERM would have to end in order
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    sys.exit(status)


if __name__ == "__main__":
    cli()
