"""Measure one cell by another engine: cut its text here, ask a server about its tokens, write the run.

The texts, windows and scored positions are those of rbpx, so the engine's run can be compared with one of rbpx token by
token. vLLM's rank counts the log-probabilities that are at least the token's own (vllm/v1/sample/ops/logprobs.py), so
it is a pessimistic rank; the server does not say how many tokens are more probable and how many tie.
"""

import time
from collections.abc import Callable, Iterator, Sequence
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
from rbpx.measure.protocol import resolve_described
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
) -> dict[str, pa.Array]:
    """The columns of `tokens` for the scored tokens of windows, in their order; null where the engine says nothing.

    Args:
        server: of the engine.
        model: the name under which it serves the model.
        windows: in order of (doc_id, start); those without a scored position are not sent.
        vocab_size: V.
        tokens_per_request: tokens that are sent at once, or one window.
        advance: called with the number of tokens just scored.

    Raises:
        MeasureError: the server fails, or answers with other tokens, too few of them, no probability of one, or a rank
            that its log-probability excludes.
    """
    tokens = list[EngineToken]()
    for batch in _batches([window for window in windows if window.n_scored], tokens_per_request):
        answers = server.prompt_logprobs(model, [window.ids.tolist() for window in batch])
        for window, answer in zip(batch, answers, strict=True):
            tokens += _scored(window, answer, vocab_size)
        advance(sum(window.n_scored for window in batch))
    return {name: pa.array([getattr(t, name) for t in tokens], schema.TOKENS.field(name).type) for name in COLUMNS}


def _batches(windows: Sequence[Window], n_tokens: int) -> Iterator[list[Window]]:
    batch = list[Window]()
    for window in windows:
        if batch and sum(len(each.ids) for each in batch) + len(window.ids) > n_tokens:
            yield batch
            batch = []
        batch.append(window)
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


_LONGEST = 300  # characters of models' names in an error


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
    server = Server(engine)
    version = server.version()
    if engine.version not in (None, version):
        raise MeasureError(
            f"engine={engine.name} at {engine.root} is version {version}, not engine.version={engine.version}; start "
            "a server of that version, or drop the key"
        )
    described = describe_model(cell.model, cell.revision, store.hashes, cell.pickled)
    served = _served(server, engine, cell, described)
    protocol = resolve_described(cell, described)
    windows = scored_windows(cell, protocol, sample.documents)
    longest = max(len(window.ids) for window in windows if window.n_scored)
    if served.context is not None and longest >= served.context:
        raise MeasureError(
            f"engine={engine.name} at {engine.root} takes {served.context:,} tokens, one of which it generates itself, "
            f"but a window has {longest:,}; start it with --max-model-len {longest + 1}, or give "
            f"protocol.window={protocol.window - (longest + 1 - served.context)}"
        )
    weights = described.weights_hash or [cell.model, cell.revision, described.commit]
    identity = [schema.FORMAT, engine.name, version, weights, described.tokenizer_hash, cell.text_hash, cell.protocol]
    run_id = digest([*identity, protocol.window, cell.dtype, *protocol.departures()])
    new: tuple[Record, Columns] | None = None
    if not store.has_run(run_id):
        advance = begin(sum(window.n_scored for window in windows))
        wall_from = time.monotonic()
        once = distinct_windows(windows)
        of_once = engine_columns(server, served.name, once.windows, described.vocab_size, tokens_per_request, advance)
        columns = once.columns_of_all(of_once)
        wall_s = time.monotonic() - wall_from
        if (since := server.version()) != version:  # it was started anew while a question was asked again
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
