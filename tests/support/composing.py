"""The request of one job that words make, as the command line and as Python compose it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rbpx.cli.registry import asking
from rbpx.config.compose import compose
from rbpx.spelling import speaking_shell


def request_of(verb: str, words: Sequence[str], own: Path | None = None) -> Any:
    """The request of KEY=VALUE words; raises RbpxError, in the words of a command line."""
    with speaking_shell():
        (request,) = compose(asking(verb), words, own).requests
    return request
