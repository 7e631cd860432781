"""Commands of this process whose configuration Hydra composes once a session for each verb and choice of files.

What is typed as KEY=VALUE is set in a copy of that by Hydra itself, so that a test sees the same requests and the same
refusals in a third of the time. What configures Hydra or names a study is composed anew, as ever; a test that is about
how files of conf/ are read has `commands.here`.
"""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support import commands

_GROUP = re.compile(r"\+?(model|dataset|protocol|engine|parallel)=")
_ANEW = re.compile(r"[~]|\+?experiment=|\+*hydra[./]|[^=]*@|\+?(model|dataset|protocol|engine)/")
_composed: dict[Any, Any] = {}


def here(*args: object, **options: Any) -> commands.Answer:
    """As `commands.here`."""
    with composed_once():
        return commands.here(*args, **options)


def rows_of(*words: object, **options: Any) -> list[dict[str, Any]]:
    """The rows of a command, as it prints them with --format json."""
    found: list[dict[str, Any]] = json.loads(here(*words, "--format", "json", check=0, **options).stdout)
    return found


def requests_of(words: Sequence[str], own: Path | None = None) -> list[Any]:
    """The request of `python -m rbpx WORDS`, of a sweep that of its first job; none where a page of help is asked for.

    Args:
        words: what is typed behind `rbpx`.
        own: a folder of configuration of the reader's, who has the files that the documentation lets them write.

    Raises:
        RbpxError: something in the line is wrong.
    """
    from rbpx.cli.argv import parse
    from rbpx.cli.registry import asking
    from rbpx.config import compose as module

    with_own = [
        str(own) if own and before == "--config-dir" else word
        for before, word in zip(["", *words], words, strict=False)
    ]
    line, every = parse(with_own), module._jobs
    if line.help is not None or line.version:
        return []
    with composed_once(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_jobs", lambda words: every(words)[:1])
        return module.compose(asking(line.verb), line.overrides, line.own or own, line.sweeps).requests


@contextmanager
def composed_once() -> Iterator[None]:
    """Compose each verb and choice of files once while a session lasts."""
    from rbpx.config import compose

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compose, "_composed", partial(_compose, compose._composed))
        yield


def _compose(compose: Any, asking: Any, words: Sequence[str]) -> Any:
    from hydra._internal.config_loader_impl import ConfigLoaderImpl
    from hydra.core.override_parser.overrides_parser import OverridesParser

    from rbpx.config.compose import _by_name, _own

    words = _by_name(asking, words)
    values = OverridesParser.create().parse_overrides([word for word in words if not _GROUP.match(word)])
    if any(map(_ANEW.match, words)) or any(value.is_sweep_override() for value in values):
        return compose(asking, words)
    groups = [word for word in words if _GROUP.match(word)]
    key = (asking.verb, *_own, *groups)
    if key not in _composed:
        _composed[key] = compose(asking, groups)
    config = deepcopy(_composed[key])
    ConfigLoaderImpl._apply_overrides_to_config(values, config)
    return config
