"""`python -m rbpx`: from the words of a command line to an exit status."""

import json
import os
import sys

from rbpx.display.visible import visible_line
from rbpx.errors import MeasureError, RbpxError
from rbpx.version import __version__


def main(argv: list[str]) -> int:
    """Do what was typed. Returns 0 done, 1 something failed while running, 2 the request is wrong."""
    from rbpx.cli.argv import parse

    try:
        line = parse(argv)
        if line.version:
            print(f"rbpx {__version__}")
            return 0
        if line.help:
            from rbpx.cli.help import help_text

            print(help_text(line.verb if line.verb in argv else None))
            return 0
        return _launch(line.verb, line.words, line.hydra, line.sweeps)
    except RbpxError as problem:
        print(f"rbpx: {visible_line(str(problem))}", file=sys.stderr)
        return 1 if isinstance(problem, MeasureError) else 2
    except BrokenPipeError:
        from rbpx.cli.finish import close_output

        close_output()
        return 0
    except KeyboardInterrupt:
        print("rbpx: stopped; what was finished is kept, and the same command continues", file=sys.stderr)
        return 130


def _launch(verb: str, words: tuple[str, ...], hydra: tuple[str, ...], sweeps: bool) -> int:
    from rbpx.cli.argv import OVERRIDES, VERB, WORDS
    from rbpx.cli.job import perform
    from rbpx.cli.launch import launch
    from rbpx.store import notice

    notice.begin()

    os.environ[VERB], os.environ[WORDS] = verb, json.dumps(words)
    os.environ[OVERRIDES] = json.dumps(hydra)
    outcomes = launch(verb, hydra, perform)
    if not outcomes:  # --cfg, --info and completion print, and run no job
        if sweeps:
            raise RbpxError("the sweep has no jobs; check its lists and globs with --cfg job for one of them")
        return 0
    from rbpx.cli.finish import finish

    return finish(verb, outcomes)


def cli() -> None:
    """The console script."""
    sys.exit(main(sys.argv[1:]))


if __name__ == "__main__":
    cli()
