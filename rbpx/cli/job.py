"""A job of a sweep: a configuration in, what its verb does with it out; the verbs are imported when the first one runs.

So what runs no job, as --cfg, --info and completion, waits for no library of the verbs.
"""

from typing import Any


def perform(config: Any) -> None:
    """Do what the verb of this command line does, in whatever process a launcher chose."""
    from rbpx.cli import commands

    commands.perform(config)
