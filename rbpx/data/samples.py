"""Samples: the drawn documents of a dataset; those of a hub's dataset are drawn once and stored.

samples/<key>.parquet contains the documents, and in its metadata the request, the commit of the hub and the time.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from filelock import FileLock

from rbpx.config.options import Chunk, Draw, FewshotDraw
from rbpx.config.text.dataset import DatasetConfig
from rbpx.config.text.items import FEWSHOT_BORDER, Task
from rbpx.data.chat import context_of, turns_of
from rbpx.data.corpus import Document, draw, read_source
from rbpx.data.hub_texts import Sample, named_hub, read_hub
from rbpx.data.items import Part
from rbpx.data.parquet_parts import Tell
from rbpx.errors import RbpxError, reason
from rbpx.files.digest import digest
from rbpx.files.folders import folder_and_pattern
from rbpx.store.parquet import read_whole
from rbpx.store.schema import columns_of
from rbpx.store.store import Record, Store, now

SAMPLE_FACTS: Final = b"rbpx"  # metadata key: request, commit of the hub, time
SAMPLE = columns_of("doc_id int32, source_id", pa.field("text", pa.large_string()))
_OF_PARTS: Final = columns_of(
    "item int32, choice int32, correct bool, n_context int32, n_characters int32, n_answer_bytes int32, category, "
    "domain, description"
)

Begin = Callable[[str], Tell]  # what is loaded -> a function to report progress to


def sample(dataset: DatasetConfig, limit: int, seed: int, store: Store, begin: Begin) -> Sample:
    """Draw at most `limit` documents, from the store or else the hub, before which `begin` is called.

    Raises:
        RbpxError: there is no such text, or it is empty.
        MeasureError: the hub fails, or the store cannot be written.
    """
    drawn = keep_sample(dataset, limit, seed, store, begin)
    if not dataset.fewshot:
        return with_examples(dataset, drawn, [])
    return with_examples(dataset, drawn, keep_sample(*examples_of(dataset), store, begin).documents)


def sample_here(dataset: DatasetConfig, limit: int, seed: int, store: Store) -> Sample | None:
    """The sample without contacting a hub; None where that would be needed; RbpxError for no text, or an empty one."""
    drawn = _sample_here(dataset, limit, seed, store)
    examples = _sample_here(*examples_of(dataset), store) if dataset.fewshot else Sample([], None)
    return None if drawn is None or examples is None else with_examples(dataset, drawn, examples.documents)


def draws_from_hub(
    dataset: DatasetConfig, limit: int, seed: int, store: Store
) -> list[tuple[DatasetConfig, int, int | None, Sample | None]]:
    """What `sample` draws from a hub: dataset, limit, seed and the store's sample of its texts and examples."""
    draws = [(dataset, limit, seed), *([examples_of(dataset)] if dataset.fewshot else [])]
    of_hub = [draw for draw in draws if draw[0].kind == "hub" and draw[0].path is None]
    return [(*draw, _sample_here(*draw, store)) for draw in of_hub]


def keep_sample(dataset: DatasetConfig, limit: int, seed: int | None, store: Store, begin: Begin) -> Sample:
    """Draw texts, or examples, as `sample` does each of them."""
    here = _sample_here(dataset, limit, seed, store)
    if here is not None:
        return here
    request = sample_request(dataset, limit, seed)
    path = store.file("samples", digest(request))
    store.prepare()
    path.parent.mkdir(exist_ok=True)
    with FileLock(path.with_name(f".{path.stem}.lock")):  # other processes with the same request wait for the first
        if not path.is_file():
            from_hub = read_hub(dataset, limit, seed, begin(f"{dataset.name} from the hub: {named_hub(dataset)}"))
            if not from_hub.documents:
                raise _empty(dataset, str(dataset.hub))
            facts = {SAMPLE_FACTS: json.dumps({"request": request, "commit": from_hub.commit, "at": now()})}
            store.write_file("samples", path.stem, _table(from_hub.documents).replace_schema_metadata(facts))
    return _read(path)


def _sample_here(dataset: DatasetConfig, limit: int, seed: int | None, store: Store) -> Sample | None:
    path = None if dataset.path is None else Path(dataset.path)
    if dataset.hub is not None and dataset.kind != "hub":
        raise RbpxError(f"dataset.hub={dataset.hub} cannot be combined with dataset={dataset.name}; use dataset=hub")
    if path is not None or dataset.kind != "hub":
        source = read_source(dataset.kind, path, dataset)
        if all(content == "" for _, content in source):
            raise _empty(dataset, str(path))
        return Sample(draw(source, limit, seed), None, path is not None and folder_and_pattern(path) is not None)
    sample_path = store.file("samples", digest(sample_request(dataset, limit, seed)))
    return _read(sample_path) if sample_path.is_file() else None


def _table(documents: list[Document]) -> pa.Table:
    table = pa.table({name: [getattr(d, name) for d in documents] for name in SAMPLE.names}, schema=SAMPLE)
    for column in _OF_PARTS if documents[0].part is not None else ():
        table = table.append_column(column, pa.array([getattr(d.part, column.name) for d in documents], column.type))
    return table


def _document(row: Record) -> Document:
    own = {name: row.pop(name) for name in SAMPLE.names}
    return Document(**own, part=Part(**row) if row else None)


def _read(path: Path) -> Sample:
    try:
        table = read_whole(path)
    except (OSError, pa.ArrowException) as problem:
        raise RbpxError(f"the sample {path} cannot be read: {reason(problem)}; delete it to draw it again") from None
    commit = json.loads(table.schema.metadata[SAMPLE_FACTS])["commit"]
    return Sample([_document(row) for row in table.to_pylist()], commit)


def sample_request(dataset: DatasetConfig, limit: int, seed: int | None) -> dict[str, Any]:
    """What determines the documents; the three ways to draw a shuffled sample give the same."""
    task = dataset.task
    return {
        "hub": dataset.hub,
        "subset": dataset.subset,
        "split": dataset.split,
        "revision": dataset.revision,
        "draw": "first" if dataset.draw is Draw.first else "shuffled",
        "fields": list(dataset.fields),
        "articles": dataset.articles,
        "where": dataset.where or {},
        "longer_than": dataset.longer_than,
        "limit": limit,
        "seed": seed,
        **({} if task is None else {"task": _asked(task)}),
    }


def _asked(task: Task) -> Record:
    """How rows become items, as samples of versions before conversations have it."""
    return {name: value for name, value in asdict(task).items() if name != "messages" or value is not None}


def _empty(dataset: DatasetConfig, place: str) -> RbpxError:
    rules = [f"{name}={getattr(dataset, name)}" for name in ("where", "longer_than") if getattr(dataset, name)]
    rules += ["articles=true"] if dataset.articles else []
    rules += [f"chunk={dataset.chunk.value}"] if dataset.chunk is not Chunk.none else []
    meets = " and ".join(f"dataset.{rule}" for rule in rules)
    return RbpxError(
        f"dataset {dataset.name} ({place}) has no text{f' that meets {meets}' if meets else ''}; change that"
    )


_ALL = 2**31 - 1


def examples_of(dataset: DatasetConfig) -> tuple[DatasetConfig, int, int | None]:
    """The dataset that the examples are drawn from, their greatest number, and the seed.

    They come from their own file or split if one is named, else from that of the items: one more than wanted, or all of
    them, in order, where each item draws its own.
    """
    path = dataset.fewshot_path or dataset.path
    source = replace(
        dataset,
        path=path,
        split=dataset.split if path is not None or dataset.fewshot_split is None else dataset.fewshot_split,
        fewshot=0,
    )
    if dataset.fewshot_draw is FewshotDraw.item:
        return source, _ALL, None
    limit = dataset.fewshot + 1 if dataset.category is None else _ALL
    return source, limit, dataset.fewshot_seed


def with_examples(dataset: DatasetConfig, sample: Sample, drawn: Sequence[Document]) -> Sample:
    """The documents of items with their description and examples in front; texts are unchanged.

    `drawn` are examples in order, with their wrong choices; those of a category serve only its items.

    Raises:
        RbpxError: there are too few examples.
    """
    if all(document.part is None for document in sample.documents):
        return sample
    own = dataset.fewshot_path is None and (dataset.path is not None or dataset.fewshot_split in (None, dataset.split))
    by_category: dict[str | None, list[Document]] = defaultdict(list)
    for example in drawn:
        if example.is_true and example.part is not None:
            by_category[example.part.category].append(example)
    documents = []
    for document in sample.documents:
        part = document.part
        assert part is not None, "all rows of a task are items"
        offered = _offered(dataset, by_category[part.category], document.source_id)
        fitting = [one for one in offered if not (own and one.source_id == document.source_id)]
        if len(fitting) < dataset.fewshot:
            of = "" if part.category is None else f" of category {part.category}"
            raise RbpxError(
                f"dataset.fewshot={dataset.fewshot} asks for more examples than there are for item "
                f"{document.source_id}: {len(fitting)}{of}; ask for fewer, or name others with dataset.fewshot_path or "
                "dataset.fewshot_split"
            )
        shown = fitting[: dataset.fewshot]
        turns = json.loads(context_of(document)) if dataset.messages else turns_of(document, part.description, shown)
        before = part.description + "".join(one.text + FEWSHOT_BORDER for one in shown)
        documents.append(
            replace(
                document,
                text=before + document.text,
                part=replace(part, n_context=part.n_context + len(before), description=""),
                turns=tuple((role, text) for role, text in turns),
            )
        )
    return replace(sample, documents=documents)


def _offered(dataset: DatasetConfig, examples: Sequence[Document], source_id: str) -> Sequence[Document]:
    """The examples of an item in order, one more than it shows, since it may be one of them itself.

    An item's own draw depends only on the seed and on its name in the source.
    """
    if dataset.fewshot_draw is FewshotDraw.fixed:
        return examples
    words = np.frombuffer(hashlib.sha256(source_id.encode()).digest(), "<u4")
    rng = np.random.default_rng([dataset.fewshot_seed, *words.tolist()])
    drawn = rng.choice(len(examples), min(len(examples), dataset.fewshot + 1), replace=False)
    return [examples[at] for at in drawn]
