"""The configuration of a family of models, as a file of conf/model or overrides give it."""

from dataclasses import dataclass, field
from typing import Any

from rbpx.config.options import Bos


@dataclass
class SizeConfig:
    """One size of a family.

    Attributes:
        id: hub id, folder or bundled name.
        non_embedding_params: S, counted from the shape if there is one; counted again when the model is loaded.
        shape: keys of a transformers configuration that S depends on, in addition to those of the family.
        source: where the shape is published, if not in the family's source.
        verified: whether S was checked against a count of the released weights, not only computed from the shape.
    """

    id: str
    non_embedding_params: int | None = None
    shape: dict[str, Any] = field(default_factory=dict)
    source: str | None = None
    verified: bool = False


@dataclass
class ModelConfig:
    """A family of models (conf/model/*.yaml).

    Attributes:
        family: its name.
        id: hub ids or folders in place of the sizes.
        revision: branch, tag or commit on the hub, such as Pythia's step1000.
        bos: which special tokens begin a document.
        pickled: whether tensors may be read from pytorch_model.bin where there are no safetensors; no code is run.
        shape: keys of a transformers configuration that all sizes share, `model_type` among them.
        source: where the shapes are published.
        sizes: label -> model, from the smallest.
    """

    family: str | None = None
    id: Any = None
    revision: Any = None
    bos: Bos = Bos.tokenizer
    pickled: bool = False
    shape: dict[str, Any] = field(default_factory=dict)
    source: str | None = None
    sizes: dict[str, SizeConfig] = field(default_factory=dict)

    def shape_of(self, size: str) -> dict[str, Any]:
        """The complete shape of one size, as `AutoConfig.for_model(**shape)` takes it; empty if none is known."""
        return {**self.shape, **self.sizes[size].shape}
