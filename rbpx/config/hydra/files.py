"""A YAML file of configuration in, its values out: checked, with absolute paths, a study with its name."""

from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from rbpx.config.hydra.trust import load_trusted
from rbpx.config.yaml_paths import with_absolute_paths

__all__ = ["read", "read_study"]


def read(path: Path, trusts: bool, package: str) -> Any:
    """The configuration in a file.

    Args:
        path: the file.
        trusts: whether it may name code.
        package: where Hydra puts its values, such as `dataset`; empty for the top.

    Raises:
        RbpxError: it cannot be read, exceeds a bound, or names code and `trusts` is not set.
    """
    node = load_trusted(path, trusts, package)
    return OmegaConf.create(with_absolute_paths(OmegaConf.to_container(node, resolve=False), path, package))


def read_study(path: Path, trusts: bool) -> Any:
    """The configuration in the file of a named study; raises as `read`."""
    node = read(path, trusts, "")
    OmegaConf.update(node, "study.name", path.stem)
    return node
