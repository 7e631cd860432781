"""After the last job: its verb finishes for all of them, failures are listed, and the exit status is returned."""

import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from rbpx.cli.argv import CommandLine
from rbpx.cli.registry import Outcome, module
from rbpx.files.visible import visible_line

_LOGGER = logging.getLogger(__name__)


def finish(line: CommandLine, outcomes: Sequence[Outcome]) -> int:
    """Finish the verb over all of a sweep, and say what failed.

    Returns:
        0 done; 1 something failed while running; 2 the request was wrong, and nothing was done.
    """
    done = [outcome for outcome in outcomes if outcome.request is not None]
    if any(getattr(outcome.request, "fresh", False) for outcome in done):
        _LOGGER.info("fresh= does nothing any more: every answer is computed")
    finish_verb = getattr(module(line.verb), "finish", None)
    measured = (finish_verb(done, line) or []) if done and finish_verb is not None else []
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        from rbpx.measure.distributed import destroy_process_group

        destroy_process_group()
    errors = [(each.error, each.status) for each in (*outcomes, *measured) if each.error is not None]
    failures = [failure for grid in measured for failure in grid.failures]
    if int(os.environ.get("RANK", "0")) == 0:
        for failure in failures:
            print(f"rbpx: {visible_line(failure.cell)} failed: {visible_line(failure.error)}", file=sys.stderr)
        for error in dict.fromkeys(error for error, _ in errors):
            print(f"rbpx: {visible_line(error)}", file=sys.stderr)
        for folder, names in _logs(outcomes).items():
            print(f"rbpx: logs of what failed, in {folder}: {', '.join(names)}", file=sys.stderr)
    if not errors and not failures:
        return 0
    wrong = all(f.request_is_wrong for f in failures) and all(status == 2 for _, status in errors)
    return 2 if wrong and not any(grid.cell_keys for grid in measured) else 1


def _logs(outcomes: Sequence[Outcome]) -> dict[Path, list[str]]:
    """The logs that are kept, by the folder of their sweep."""
    logs: dict[Path, list[str]] = {}
    for path in dict.fromkeys(outcome.log for outcome in outcomes if outcome.log is not None):
        logs.setdefault(path.parent.parent, []).append(f"{path.parent.name}/{path.name}")
    return logs
