"""`python -m rbpx`."""

import errno
import os
import signal
import sys
import traceback

from rbpx.cli.argv import parse
from rbpx.cli.signals import Stopped, leave_no_heartbeat, stop_in_order, stop_no_more
from rbpx.cores import is_main_process, share_cores
from rbpx.errors import MeasureError, RbpxError, first_line, raise_stop_behind
from rbpx.files.escapes import out, say
from rbpx.spelling import speaking_shell
from rbpx.version import __version__

# Runs are counted and resampled in parallel, a thread each; numpy's OpenBLAS would divide each product again, and
# its threads wait longer than they save. The variable is read when a verb imports numpy.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
share_cores()


def main(argv: list[str]) -> int:
    """Performs a command line: 0 done, 1 failed while running, 2 the request is wrong, 128 + N stopped by signal N."""
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
            say(f"rbpx: stopped{by}; what was finished is kept, and the same command continues{notes}")
        return 128 + number


def _status(argv: list[str]) -> int:
    try:
        try:
            status = _do(argv)
        except Exception as problem:
            raise_stop_behind(problem)
            raise
        sys.stdout.flush()  # an error of writing appears here
        return status
    except RbpxError as problem:
        return _say(str(problem), 1 if isinstance(problem, MeasureError) else 2)
    except BrokenPipeError:
        _close_output()
        return 0
    except ModuleNotFoundError as problem:
        name = (problem.name or "").partition(".")[0]
        if name == "rbpx":
            raise
        return _say(f"the package {name} is not installed in this Python; install rbpx: python -m pip install rbpx", 2)
    except MemoryError as problem:
        advice = "ask for less at once (dataset=, size=, limit=, resamples=), or give this process more memory"
        return _say(f"{first_line(problem)}; {advice}", 1)
    except OSError as problem:
        if problem.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
            _close_output()
            return _say(f"the output cannot be written: {problem.strerror}; run the same line again", 1)
        name = "" if problem.filename is None else f"{os.fsdecode(problem.filename)}: "
        return _say(f"{name}{problem.strerror or first_line(problem)}", 2)
    except Exception as problem:
        if not _is_of_library(problem):
            raise
        return _say(first_line(problem), 1 if isinstance(problem, RuntimeError) else 2)  # torch's, while it computes


def _say(line: str, status: int) -> int:
    say(f"rbpx: {line}")
    return status


def _is_of_library(problem: Exception) -> bool:
    """Whether a library raised the error; an error of our own code is a bug and shows its traceback."""
    if type(problem).__module__.partition(".")[0] not in ("builtins", "rbpx"):
        return True
    *_, innermost = traceback.walk_tb(problem.__traceback__)
    return not innermost[0].f_code.co_filename.startswith(os.path.dirname(__file__) + os.sep)


def _close_output() -> None:
    """Redirects stdout to null after `| head` closed it or a disk filled up, so that the exit writes no buffer."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _do(argv: list[str]) -> int:
    line = parse(argv)
    if line.version:
        print(f"rbpx {__version__}", file=out())
        return 0
    if line.help is not None:
        from rbpx.cli.help import help_text

        print(help_text(line.help, [] if line.own is None else [line.own]), file=out())
        return 0
    from rbpx.cli.messages import messages_on_stderr

    with messages_on_stderr():
        from rbpx.cli.launch import perform

        return perform(line)


def cli() -> None:
    """Runs the console script."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the parent process
            setattr(sys, name, open(os.devnull, "r+", encoding="utf-8"))
    stop_in_order()
    status = main(sys.argv[1:])
    if status <= 128:  # nothing is left that SIGTERM would have to end in order
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    sys.exit(status)


if __name__ == "__main__":
    cli()
