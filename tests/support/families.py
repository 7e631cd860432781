"""The families of conf/model: those with published shapes, each as Hydra reads it."""

from functools import cache

from omegaconf import OmegaConf

from rbpx.config.model.family import ModelConfig
from tests.support.places import CONF

_LOCAL = ("hub", "ladder", "ladder-seeds")  # without a published shape
NAMES = sorted(path.stem for path in (CONF / "model").glob("*.yaml") if path.stem not in _LOCAL)


@cache
def read_family(name: str) -> ModelConfig:
    """A family as Hydra reads it: its file merged into the schema; not to be changed."""
    family = OmegaConf.to_object(
        OmegaConf.merge(OmegaConf.structured(ModelConfig), OmegaConf.load(CONF / "model" / f"{name}.yaml"))
    )
    assert isinstance(family, ModelConfig)
    return family
