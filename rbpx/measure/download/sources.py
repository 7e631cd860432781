"""The models and dataset samples that cells need from the hub: their files, and how `measure` finds them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from rbpx.config.text.dataset import DatasetConfig
from rbpx.data.hub import HubFile
from rbpx.data.hub_texts import Sample, needed_rows
from rbpx.data.samples import keep_sample
from rbpx.display.progress import tell_loading
from rbpx.models.hub import fetch, needed_files
from rbpx.store.store import Store


@dataclass(frozen=True)
class Found:
    """What the hub says of a model or dataset.

    Attributes:
        commit: of its revision now, or of the sample in the store.
        files: that go whole into the hub's cache.
        n_read_bytes: further bytes that are read, of which only a sample is stored.
    """

    commit: str | None
    files: tuple[HubFile, ...] = ()
    n_read_bytes: int = 0


@dataclass(frozen=True)
class WantedModel:
    """A model of the hub.

    Attributes:
        name: ORG/NAME.
        revision: branch, tag or commit; None is the hub's default.
        pickled: whether its weights may be a pickle.
        weights: whether weights are needed; an inference server has its own.
    """

    kind: ClassVar = "model"
    name: str
    revision: str | None
    pickled: bool
    weights: bool

    @property
    def is_held(self) -> bool:
        """Whether the model is complete once its files are here."""
        return True

    def look_up(self) -> Found:
        """The files that `load_model` reads."""
        commit, files = needed_files(self.name, self.revision, self.pickled, self.weights)
        return Found(commit, tuple(files))

    def settle(self) -> None:
        """Record in the cache which commit its revision names."""
        fetch(self.name, self.revision, self.pickled, self.weights)


@dataclass(frozen=True)
class WantedText:
    """A sample of a dataset of the hub.

    Attributes:
        identity: of the dataset's configuration and of the store that keeps the sample.
        limit: documents at most.
        seed: of the draw; None takes the first documents.
        dataset: its configuration.
        store: the store.
        held: the sample, if the store has it.
    """

    kind: ClassVar = "dataset"
    identity: str
    limit: int
    seed: int | None
    dataset: DatasetConfig = field(compare=False)
    store: Store = field(compare=False)
    held: Sample | None = field(compare=False)

    @property
    def name(self) -> str:
        """ORG/NAME."""
        return str(self.dataset.hub)

    @property
    def revision(self) -> str | None:
        """Branch, tag or commit; None is the hub's default."""
        revision: str | None = self.dataset.revision
        return revision

    @property
    def is_held(self) -> bool:
        """Whether the store has it."""
        return self.held is not None

    def look_up(self) -> Found:
        """The files that drawing the sample reads; none where the store has it."""
        if self.held is not None:
            return Found(self.held.commit)
        needed = needed_rows(self.dataset, self.limit, self.seed)
        return Found(needed.commit, tuple(needed.files), needed.n_read_bytes)

    def settle(self) -> None:
        """Draw it into the store."""
        if self.held is None:
            keep_sample(self.dataset, self.limit, self.seed, self.store, _tell)


Wanted = WantedModel | WantedText


def _tell(what: str) -> Callable[[int, int | None, str], None]:
    return tell_loading(what)
