"""Opens a stored run to measure it again: repeats its request, and checks its model and text by hash."""

from dataclasses import asdict, astuple, dataclass, field, replace

import pyarrow.parquet as pq

from rbpx.config.compose import restored
from rbpx.config.grid import Cell
from rbpx.config.model.placement import EngineConfig, Split
from rbpx.config.options import Dtype
from rbpx.data.corpus import Document
from rbpx.data.hub_texts import Sample
from rbpx.errors import RbpxError, UnexpectedError
from rbpx.files.digest import digest
from rbpx.measure.cell import load_cell
from rbpx.measure.distributed import ProcessGroup
from rbpx.measure.engine import ServedCell, reach
from rbpx.measure.grid import open_grid
from rbpx.measure.protocol import ResolvedProtocol, resolve_protocol
from rbpx.measure.results import Failure, note_failure
from rbpx.measure.runner import draw_sample
from rbpx.models.description import Model
from rbpx.models.load import LoadedModel
from rbpx.store.store import Record, Store

_ASKED = ("model", "dataset", "protocol", "limit", "seed", "dtype")  # keys that decide which tokens are scored


@dataclass(frozen=True)
class RunNames:
    """The id of a measured run, and the names under which it was requested."""

    run_id: str
    family: str
    size: str
    dataset: str


@dataclass
class Reopener:
    """Opens the runs of a store again; keeps texts, and the last model."""

    store: Store
    processes: ProcessGroup
    _texts: dict[str, Sample] = field(default_factory=dict)
    _loaded: dict[object, LoadedModel] = field(default_factory=dict)

    def reopen(
        self, run: RunNames, split: Split | None, dtype: Dtype | None = None
    ) -> tuple[ResolvedProtocol[LoadedModel], list[Document]]:
        """The protocol of a run, resolved for its model, and its documents that have a scored token.

        `dtype` is a precision to load the model in, without rounding its weights further; None for the run's own.

        Raises:
            RbpxError: the run's record lacks a part of the request, its model or text is not available, or either is
                not the one that was measured.
        """
        cell, commit, documents = self._cell(run, dtype)
        loaded = self._load(cell, commit or cell.revision, split)
        self._check_model(run, loaded)
        return resolve_protocol(cell, loaded), documents

    def reach(self, run: RunNames, engine: EngineConfig) -> tuple[ServedCell, list[Document]]:
        """The server that measured a run, with the protocol resolved for its model, and documents; raises as `reopen`.

        So it does where the server fails, or its model or version differs.
        """
        cell, commit, documents = self._cell(run)
        version = self.store.manifest(run.run_id)["engine_version"]
        asked = reach(replace(cell, revision=commit or cell.revision), engine, self.store, version)
        self._check_model(run, asked.protocol.loaded)
        return asked, documents

    def failed(self, verb: str, run: RunNames, raised: Exception) -> Failure:
        """Why a run was not measured again; writes the traceback of an unexpected error to `failures`.

        Raises:
            Exception: the unexpected error itself, where other processes wait for this one.
        """
        name = f"{run.family} {run.size} on {run.dataset}"
        if isinstance(raised, RbpxError):
            return Failure(name, str(raised), request_is_wrong=False)
        if self.processes.world_size > 1:
            raise raised
        problem = UnexpectedError.of(raised, f"{verb} failed")
        record = self._record(run)
        names = {key: record[key] for key in ("cell_key", "family", "size", "dataset")}
        return note_failure(self.store, _failure_key(verb, run), names, name, problem, str(problem))

    def succeeded(self, verb: str, run: RunNames) -> None:
        """Forget an earlier failure of the same run."""
        key = _failure_key(verb, run)
        if self.processes.is_main and self.store.record("failures", key) is not None:
            self.store.drop_record("failures", key)

    def _cell(self, run: RunNames, dtype: Dtype | None = None) -> tuple[Cell, str | None, list[Document]]:
        """With the commit of its model, and its documents that have a scored token."""
        record = self._record(run)
        cell, documents = self._ask_again(record, dtype)
        self._check(run, f"dataset {run.dataset}", text_hash=cell.text_hash)
        table = pq.read_table(
            self.store.part(run.run_id, "documents"), columns=["doc_id"], filters=[("n_scored", ">", 0)]
        )
        scored = set(table["doc_id"].to_pylist())  # an item may be left out because of another of its choices
        return cell, record["commit"], [document for document in documents if document.doc_id in scored]

    def _check(self, run: RunNames, name: str, **hashes: str | None) -> None:
        """Weights that are not here have no hash."""
        facts = self.store.manifest(run.run_id)
        for what, now_is in hashes.items():
            if None not in (facts[what], now_is) and now_is != facts[what]:
                raise RbpxError(
                    f"{name} is not what was measured ({what} {now_is}, the run has {facts[what]}); bring that "
                    "back, or measure the run anew"
                )

    def _check_model(self, run: RunNames, model: Model) -> None:
        self._check(run, model.name, weights_hash=model.weights_hash, tokenizer_hash=model.tokenizer_hash)

    def _load(self, cell: Cell, revision: str | None, split: Split | None) -> LoadedModel:
        key = (cell.model, revision, cell.precision, cell.pickled, cell.adapter, split)
        if key not in self._loaded:
            self._loaded.clear()  # first, so that two models are never in memory
            self._loaded[key] = load_cell(cell, revision, self.processes.device, self.store, split)
        return self._loaded[key]

    def _record(self, run: RunNames) -> Record:
        names = asdict(run)
        answered = [
            cell for cell in self.store.records("cells") if all(cell[name] == own for name, own in names.items())
        ]
        return max(answered, key=lambda cell: str(cell["asked_at"]))

    def _ask_again(self, record: Record, dtype: Dtype | None) -> tuple[Cell, list[Document]]:
        """The cell of a record, in another precision if `dtype` is set, and the documents of its text."""
        values = {name: record["config"].get(name) for name in _ASKED}
        if None in values.values():
            raise RbpxError("its record lacks a part of the request, as where tokens were imported; measure it anew")
        request = restored(values)
        if dtype is not None:
            assert request.model is not None, "a run is of a model"
            request = request.but(dtype=dtype, model=replace(request.model, quantise=None))
        request = request.but(size=[record["size"]], store=str(self.store.root))
        key = digest([values["dataset"], values["limit"], values["seed"]])

        def draw(store: Store) -> Sample:
            if key not in self._texts:
                self._texts[key] = draw_sample(request, store)
            return self._texts[key]

        found = open_grid(request, draw).cells
        if len(found) > 1:  # models of one size, as the files of one model in several quantisations
            own = record["model"], record["revision"], record.get("adapter")
            found = [cell for cell in found if (cell.model, cell.revision, cell.adapter) == own]
        (cell,) = found
        return cell, self._texts[key].documents


def _failure_key(verb: str, run: RunNames) -> str:
    return digest([verb, *astuple(run)])
