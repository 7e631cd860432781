"""Measure one cell by another engine: cut its text here, ask a server about its tokens, write the run.

The texts, windows and scored positions are those of rbpx, so the engine's run can be compared with one of rbpx token by
token. vLLM's rank counts the log-probabilities that are at least the token's own (vllm/v1/sample/ops/logprobs.py), so
it is a pessimistic rank; the server does not say how many tokens are more probable and how many tie.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from rbpx.config.grid import Cell
from rbpx.config.model.placement import EngineConfig
from rbpx.data.hub_texts import Sample
from rbpx.data.windows import Window
from rbpx.errors import MeasureError, RbpxError
from rbpx.files.digest import digest
from rbpx.measure.cell import Begin, cell_record, scored_windows, versions, write_cell
from rbpx.measure.engines.server import ServedModel, Server
from rbpx.measure.extract import COLUMNS, distinct_windows
from rbpx.measure.facts import run_facts
from rbpx.measure.protocol import ResolvedProtocol, resolve_described
from rbpx.measure.run_tables import Columns
from rbpx.models.described import DescribedModel, describe_model
from rbpx.store import schema
from rbpx.store.imports.engine_rows import EngineToken, exclusion, tokens_of_prompt
from rbpx.store.store import Record, Store, now

_CLAMPED: Final = -9999.0  # what vLLM puts in the place of an infinite log-probability


def engine_columns(
    server: Server,
    model: str,
    windows: Sequence[Window],
    vocab_size: int,
    tokens_per_request: int,
    advance: Callable[[int], None],
    order: Sequence[int] | None = None,
) -> dict[str, pa.Array]:
    """The columns of `tokens` for the scored tokens of windows, in their order; null where the engine says nothing.

    Args:
        server: of the engine.
        model: the name under which it serves the model.
        windows: in order of (doc_id, start); those without a scored position are not sent.
        vocab_size: V.
        tokens_per_request: tokens that are sent at once, or one window.
        advance: called with the number of tokens just scored.
        order: places of the windows in the order in which they are sent; None sends them as they stand.

    Raises:
        MeasureError: the server fails, or answers with other tokens, too few of them, no probability of one, or a rank
            that its log-probability excludes.
    """
    told: dict[int, list[EngineToken]] = {}
    places = [at for at in (order if order is not None else range(len(windows))) if windows[at].n_scored]
    for batch in _batches(places, windows, tokens_per_request):
        answers = server.prompt_logprobs(model, [windows[at].ids.tolist() for at in batch])
        for at, answer in zip(batch, answers, strict=True):
            told[at] = list(_scored(windows[at], answer, vocab_size))
        advance(sum(windows[at].n_scored for at in batch))
    tokens = [token for at in sorted(told) for token in told[at]]
    return {name: pa.array([getattr(t, name) for t in tokens], schema.TOKENS.field(name).type) for name in COLUMNS}


def _batches(places: Sequence[int], windows: Sequence[Window], n_tokens: int) -> Iterator[list[int]]:
    batch, in_batch = list[int](), 0
    for at in places:
        n = len(windows[at].ids)
        if batch and in_batch + n > n_tokens:
            yield batch
            batch, in_batch = [], 0
        batch.append(at)
        in_batch += n
    if batch:
        yield batch


def _scored(window: Window, answer: dict[str, Any], vocab_size: int) -> Iterator[EngineToken]:
    """The scored tokens of a window, each at its place in the document."""
    ids, place = window.ids.tolist(), f"the engine's answer to document {window.doc_id}"
    told, read = answer.get("prompt_logprobs"), answer.get("prompt_token_ids")
    if not isinstance(told, list) or len(told) != len(ids):
        n_told = len(told) if isinstance(told, list) else 0
        raise MeasureError(f"{place} has {n_told:,} of its {len(ids):,} tokens; nothing was written")
    if read is not None and read != ids:
        raise MeasureError(f"{place} is about other tokens than were sent; nothing was written")
    try:
        found = {token.position: token for token in tokens_of_prompt({**answer, "prompt_token_ids": ids}, 0, place)}
    except RbpxError as problem:
        raise MeasureError(f"{problem}; nothing was written") from None
    for column in np.flatnonzero(window.scored).tolist():
        token = found.get(column)
        if token is None or token.logprob <= _CLAMPED:
            raise MeasureError(f"{place} has no probability of token {column}; its logits may not be finite")
        if token.ties is not None and token.ties >= vocab_size:
            raise MeasureError(
                f"{place} has the rank {token.ties + 1:,} of {vocab_size:,} tokens; is it of another model?"
            )
        excluded = exclusion(token, vocab_size)
        if excluded is not None:
            raise MeasureError(f"{place}, token {column}: {excluded}; nothing was written")
        yield EngineToken(window.doc_id, window.start + column, ids[column], token.logprob, None, token.ties)


_LONGEST: Final = 300  # characters of models' names in an error


@dataclass(frozen=True, eq=False)
class Asked:
    """A server that has the model of a cell, and how the cell's text is cut for it.

    Attributes:
        engine: where the server is.
        server: itself.
        version: of its engine.
        served: the model, as the server has it.
        protocol: resolved for the model as its files here describe it.
    """

    engine: EngineConfig
    server: Server
    version: str
    served: ServedModel
    protocol: ResolvedProtocol[DescribedModel]

    def columns(
        self,
        windows: Sequence[Window],
        tokens_per_request: int,
        advance: Callable[[int], None],
        rng: np.random.Generator | None = None,
    ) -> dict[str, pa.Array]:
        """The columns of `tokens` for windows; equal choices are asked for once.

        Args:
            windows: of documents.
            tokens_per_request: tokens that are sent at once.
            advance: called with the number of tokens just scored.
            rng: shuffles the windows before they are sent; None sends them in order.

        Raises:
            MeasureError: the server reads less than a window, or as in `engine_columns`.
        """
        longest = max(len(window.ids) for window in windows if window.n_scored)
        if self.served.context is not None and longest >= self.served.context:
            raise MeasureError(
                f"engine={self.engine.name} at {self.engine.root} takes {self.served.context:,} tokens, one of which "
                f"it generates itself, but a window has {longest:,}; start it with --max-model-len {longest + 1}, or "
                f"give protocol.window={self.protocol.window - (longest + 1 - self.served.context)}"
            )
        once, V = distinct_windows(windows), self.protocol.loaded.vocab_size
        order = None if rng is None else _another_order(len(once.windows), rng)
        of_once = engine_columns(self.server, self.served.name, once.windows, V, tokens_per_request, advance, order)
        return once.columns_of_all(of_once)


def _another_order(n: int, rng: np.random.Generator) -> list[int]:
    """The places of n windows, shuffled; of few that came out as they were, backwards."""
    order: list[int] = rng.permutation(n).tolist()
    return order[::-1] if order == sorted(order) else order


def reach(cell: Cell, engine: EngineConfig, store: Store, version: str | None = None) -> Asked:
    """Find the model of a cell on a server, and resolve the cell's protocol for it.

    Args:
        cell: the cell.
        engine: the server.
        store: whose hashes of files are known.
        version: that the engine must have; None takes `engine.version`, or any.

    Raises:
        RbpxError: the model or its tokenizer does not match the request, or its family's file.
        MeasureError: the server fails, or serves another model or version.
    """
    server = Server(engine)
    has = server.version()
    if engine.version not in (None, has):
        raise MeasureError(
            f"engine={engine.name} at {engine.root} is version {has}, not engine.version={engine.version}; start a "
            "server of that version, or drop the key"
        )
    if version not in (None, has):
        raise MeasureError(
            f"engine={engine.name} at {engine.root} is version {has}, and the run was measured by {version}; start a "
            "server of that version, or measure the run anew"
        )
    described = describe_model(cell.model, cell.revision, store.hashes, cell.pickled)
    served = _served(server, engine, cell, described)
    return Asked(engine, server, has, served, resolve_described(cell, described))


def measure_by_engine(
    cell: Cell,
    engine: EngineConfig,
    sample: Sample,
    store: Store,
    tokens_per_request: int,
    config: Record,
    begin: Begin,
) -> Record:
    """Measure one cell that the store does not hold yet, and return the record that links it to its run.

    The identity of the run is made as that of a run of rbpx, with the engine and its version added. Where the weights
    are not on this machine, the model's name and commit stand in their place.

    Args:
        cell: the cell.
        engine: the server.
        sample: the documents of its dataset.
        store: where the run is written, whole or not at all.
        tokens_per_request: tokens that are sent at once.
        config: the whole request, stored with the run.
        begin: as in `measure_cell`.

    Raises:
        RbpxError: the model or its tokenizer does not match the request, or its family's file.
        MeasureError: the server fails, serves another model or version, or reads less than a window.
    """
    started_at = now()
    asked = reach(cell, engine, store)
    protocol, described, version = asked.protocol, asked.protocol.loaded, asked.version
    windows = scored_windows(cell, protocol, sample.documents)
    weights = described.weights_hash or [cell.model, cell.revision, described.commit]
    identity = [schema.FORMAT, engine.name, version, weights, described.tokenizer_hash, cell.text_hash, cell.protocol]
    run_id = digest([*identity, protocol.window, cell.dtype, *protocol.departures()])
    new: tuple[Record, Columns] | None = None
    if not store.has_run(run_id):
        advance = begin(sum(window.n_scored for window in windows))
        wall_from = time.monotonic()
        columns = asked.columns(windows, tokens_per_request, advance)
        wall_s = time.monotonic() - wall_from
        if (since := asked.server.version()) != version:  # it was started anew while a question was asked again
            raise MeasureError(
                f"engine={engine.name} at {engine.root} became version {since} after {version} had begun this cell; "
                "nothing was written; measure it again"
            )
        went = {
            "engine": engine.name,
            "engine_version": version,
            "device": f"{engine.name} {version}",
            "n_processes": 1,
            "tokens_per_s": len(columns["doc_id"]) / wall_s,
            "wall_s": wall_s,
            "started_at": started_at,
            "versions": versions() | {engine.name: version},
        }
        new = run_facts(run_id, cell, protocol, windows, sample.documents, columns, {}, went), columns
    record = cell_record(cell, run_id, described.commit, sample.commit, started_at, config)
    write_cell(cell, record, protocol, windows, sample.documents, store, new)
    return record


def _served(server: Server, engine: EngineConfig, cell: Cell, described: DescribedModel) -> ServedModel:
    """The model of a cell among those that the server has: found by engine.model, else by its id or its folder.

    Raises:
        MeasureError: the server has only other models.
    """
    models = server.models()
    for model in models:
        if engine.model is not None and model.name == engine.model:
            return model
        if engine.model is None and (cell.model in (model.name, model.root) or _is_folder(model.root, described)):
            return model
    names = ", ".join(model.name for model in models)[:_LONGEST] or "nothing"
    asked = cell.model if engine.model is None else f"engine.model={engine.model}"
    raise MeasureError(
        f"engine={engine.name} at {engine.root} serves {names}, not {asked}; measure that size alone with size=, or "
        "name the model as the server does with engine.model="
    )


def _is_folder(root: str | None, described: DescribedModel) -> bool:
    """Whether a server on this machine loaded its model from the folder of this one."""
    if root is None or described.commit is not None:
        return False
    try:
        return Path(root).resolve() == described.folder
    except ValueError:  # a NUL in it, or half a surrogate pair
        return False
