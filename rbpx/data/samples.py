"""A dataset as asked in, its drawn documents out; those of a hub's dataset are kept in the store, drawn once.

samples/<key>.parquet holds the documents, and in its metadata the request, the commit of the hub and the time.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock

from rbpx.config.dataset import DatasetConfig
from rbpx.config.options import Draw
from rbpx.data.corpus import Document, draw, read_source
from rbpx.data.hub_texts import Sample, read_hub
from rbpx.data.parquet_parts import Tell
from rbpx.errors import RbpxError
from rbpx.files.digest import digest
from rbpx.store.store import Record, Store, now

_COLUMNS = pa.schema([("doc_id", pa.int32()), ("source_id", pa.string()), ("text", pa.large_string())])
_FACTS = b"rbpx"

Begin = Callable[[str], Tell]  # what is loaded -> called with how far it is


def sample(asked: DatasetConfig, limit: int, seed: int, store: Store, begin: Begin) -> Sample:
    """Draw at most `limit` documents; of a hub's dataset, take those that the store has kept.

    Args:
        asked: the dataset.
        limit: documents at most.
        seed: of the draw.
        store: keeps what was drawn from a hub, so that the same request needs no hub again.
        begin: called before a hub is asked.

    Raises:
        RbpxError: there is no such text, or it is empty.
        MeasureError: the hub fails, or the store cannot be written.
    """
    found = sample_here(asked, limit, seed, store)
    if found is not None:
        return found
    request = _request(asked, limit, seed)
    kept = store.sample_file(digest(request))
    _draw_once(asked, limit, seed, request, kept, store, begin)
    return _read(kept)


def sample_here(asked: DatasetConfig, limit: int, seed: int, store: Store) -> Sample | None:
    """The same without asking a hub; None where it would have to be asked.

    Raises:
        RbpxError: there is no such text on this machine, or it is empty.
    """
    path = None if asked.path is None else Path(asked.path)
    if asked.hub is not None and asked.kind != "hub":
        raise RbpxError(f"dataset.hub={asked.hub} does not go with dataset={asked.name}; use dataset=hub")
    if path is not None or asked.kind != "hub":
        source = read_source(asked.kind, path, asked.fields, asked.row_choice())
        if not source:
            raise RbpxError(_empty(asked, str(path)))
        return Sample(draw(source, limit, seed), None)
    kept = store.sample_file(digest(_request(asked, limit, seed)))
    return _read(kept) if kept.is_file() else None


def _draw_once(
    asked: DatasetConfig, limit: int, seed: int, request: Record, kept: Path, store: Store, begin: Begin
) -> None:
    """Draw from the hub and keep it; processes that want the same at the same time wait for the first."""
    store.prepare()
    kept.parent.mkdir(exist_ok=True)
    with FileLock(kept.with_name(f".{kept.stem}.lock")):
        if kept.is_file():
            return
        found = read_hub(asked, limit, seed, begin(f"{asked.name} from the hub: {asked.hub}"))
        if not found.documents:
            raise RbpxError(_empty(asked, str(asked.hub)))
        columns = {name: [getattr(d, name) for d in found.documents] for name in _COLUMNS.names}
        facts = {"request": request, "commit": found.commit, "at": now()}
        store.write_sample(
            kept.stem, pa.table(columns, schema=_COLUMNS).replace_schema_metadata({_FACTS: json.dumps(facts)})
        )


def _read(kept: Path) -> Sample:
    try:
        table = pq.read_table(kept)
        facts = json.loads(table.schema.metadata[_FACTS])
        documents = [Document(**row) for row in table.to_pylist()]
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise RbpxError(f"the sample {kept} cannot be read: {problem}; delete it to draw it again") from None
    return Sample(documents, facts["commit"])


def _request(asked: DatasetConfig, limit: int, seed: int) -> dict[str, Any]:
    """What decides the documents: three ways of coming by a shuffled sample are one."""
    return {
        "hub": asked.hub,
        "subset": asked.subset,
        "split": asked.split,
        "revision": asked.revision,
        "draw": "first" if asked.draw is Draw.first else "shuffled",
        "fields": list(asked.fields),
        "articles": asked.articles,
        "where": asked.where or {},
        "longer_than": asked.longer_than,
        "limit": limit,
        "seed": seed,
    }


def _empty(asked: DatasetConfig, place: str) -> str:
    rules = [f"{name}={getattr(asked, name)}" for name in ("where", "longer_than") if getattr(asked, name)]
    rules += ["articles=true"] if asked.articles else []
    if rules:
        return (
            f"dataset {asked.name} ({place}) has no text that meets dataset.{' and dataset.'.join(rules)}; change that"
        )
    return f"dataset {asked.name} ({place}) is empty; give one with at least one document"
