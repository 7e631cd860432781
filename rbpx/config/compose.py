"""Hydra: overrides in, the checked request of one job out."""

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from rbpx.config.explain import explain
from rbpx.config.imports import ImportRequest
from rbpx.config.places import _PACKAGE, experiments, folder
from rbpx.config.request import Request
from rbpx.errors import RbpxError


def compose(primary: str, overrides: Sequence[str]) -> Any:
    """The request that overrides make, as a job of a command line would get it.

    Args:
        primary: the file of conf/ that it begins from.
        overrides: key=value, as typed.

    Raises:
        RbpxError: the overrides name something that does not exist or has the wrong type.
    """
    import hydra
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    register(primary, overrides)
    try:
        with hydra.initialize_config_dir(str(folder("conf")), version_base="1.3"):
            return OmegaConf.to_object(hydra.compose(primary, overrides=list(overrides)))
    except (HydraException, OmegaConfBaseException, ValueError) as problem:
        if is_ours(problem):
            raise
        raise RbpxError(explain(problem, primary, overrides)) from None


def is_ours(problem: BaseException) -> bool:
    """Whether an exception began in our own task: then it is a defect, not a wrong override."""
    trace = problem.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and Path(trace.tb_frame.f_code.co_filename).is_relative_to(_PACKAGE)


def register(primary: str, overrides: Sequence[str]) -> None:
    """The schema, and one option of the group `experiment` for each study of this kind.

    Studies are read only where one may be asked for, or what there is: that is a third of the time to start. A ladder
    is always trained by a study.
    """
    from hydra.core.config_store import ConfigStore
    from omegaconf import OmegaConf

    _register_schema()
    store = ConfigStore.instance()
    asks = re.compile(r"experiment|^-")  # --info and completion list them
    needed = primary == "train" or any(asks.search(word) for word in overrides)
    for path in experiments(primary) if needed else ():
        node = OmegaConf.load(path)
        if primary != "train":
            OmegaConf.update(node, "study.name", path.stem)
        store.store(group="experiment", name=path.stem, node=node, package="_global_")


@cache
def _register_schema() -> None:
    from hydra.core.config_store import ConfigStore

    from rbpx.config.recipe import TrainRequest

    store = ConfigStore.instance()
    store.store(name="request", node=Request)
    store.store(name="train_request", node=TrainRequest)
    store.store(name="import_request", node=ImportRequest)
