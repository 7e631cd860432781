"""Examples before the context of an item: which ones are drawn, and the documents that they stand in front of."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from rbpx.config.dataset import DatasetConfig
from rbpx.config.items import FEWSHOT_BORDER
from rbpx.data.corpus import Document
from rbpx.data.hub_texts import Sample
from rbpx.errors import RbpxError

_ALL = 2**31 - 1


def examples_of(dataset: DatasetConfig) -> tuple[DatasetConfig, int, int | None]:
    """What the examples are drawn from, how many of it at most, and the seed: one more than wanted, of any category.

    They come from the file or the split that is named for them, else from where the items come from.
    """
    path = dataset.fewshot_path or dataset.path
    source = replace(
        dataset,
        path=path,
        split=dataset.split if path is not None or dataset.fewshot_split is None else dataset.fewshot_split,
        fewshot=0,
    )
    limit = dataset.fewshot + 1 if dataset.category is None else _ALL
    return source, limit, dataset.fewshot_seed


def with_examples(dataset: DatasetConfig, sample: Sample, drawn: Sequence[Document]) -> Sample:
    """The documents of items with their description and examples in front; texts stay as they are.

    Args:
        dataset: that they are of.
        sample: its drawn documents.
        drawn: examples in order, wrong choices among them; those of a category are for its items alone.

    Raises:
        RbpxError: there are fewer examples than asked for.
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
        fitting = [one for one in by_category[part.category] if not (own and one.source_id == document.source_id)]
        if len(fitting) < dataset.fewshot:
            of = "" if part.category is None else f" of category {part.category}"
            raise RbpxError(
                f"dataset.fewshot={dataset.fewshot} asks for more examples than there are for item "
                f"{document.source_id}: {len(fitting)}{of}; ask for fewer, or name others with dataset.fewshot_path or "
                "dataset.fewshot_split"
            )
        shown = fitting[: dataset.fewshot]
        before = part.description + "".join(one.text + FEWSHOT_BORDER for one in shown)
        documents.append(
            replace(
                document,
                text=before + document.text,
                part=replace(part, n_context=part.n_context + len(before), description=""),
            )
        )
    return Sample(documents, sample.commit)
