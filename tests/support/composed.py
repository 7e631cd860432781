"""Commands of this process whose configuration Hydra composes once a session for each verb and choice of files.

What is typed as KEY=VALUE is set in a copy of that by Hydra itself, so that a test sees the same requests and the same
refusals in a third of the time. What configures Hydra, names a study or sweeps is composed anew, as ever; a test that
is about how files of conf/ are read has `commands.here`.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from typing import Any

import pytest

from tests.support import commands

_GROUP = re.compile(r"\+?(model|dataset|protocol|engine)=")
_ANEW = re.compile(r"[~]|\+?experiment=|\+*hydra[./]|[^=]*@|\+?(model|dataset|protocol|engine)/")
_composed: dict[Any, Any] = {}


def here(*args: object, **options: Any) -> commands.Answer:
    """As `commands.here`."""
    with composed_once():
        return commands.here(*args, **options)


@contextmanager
def composed_once() -> Iterator[None]:
    """Compose each verb and choice of files once while a session lasts."""
    from rbpx.config.hydra import adapter

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(adapter, "composed", partial(_compose, adapter.composed))
        yield


def _compose(compose: Any, primary: str, overrides: Sequence[str]) -> Any:
    from hydra._internal.config_loader_impl import ConfigLoaderImpl
    from hydra.core.config_store import ConfigStore
    from hydra.core.override_parser.overrides_parser import OverridesParser

    groups = [word for word in overrides if _GROUP.match(word) and primary != "import"]
    values = OverridesParser.create().parse_overrides([word for word in overrides if word not in groups])
    if any(map(_ANEW.match, overrides)) or any(value.is_sweep_override() for value in values):
        return compose(primary, overrides)
    repo = ConfigStore.instance().repo
    held = {name: node.node for name, node in repo.get("dataset", {}).items()}
    key = (primary, str(repo["request.yaml"].node), str(held), *groups)
    if key not in _composed:
        _composed[key] = compose(primary, groups)
    config = deepcopy(_composed[key])
    ConfigLoaderImpl._apply_overrides_to_config(values, config)
    return config
