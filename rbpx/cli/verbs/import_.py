"""The verb `import`: other people's results into a store."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rbpx.cli.verb import Job, Verb
from rbpx.counts import number_of
from rbpx.errors import RbpxError

if TYPE_CHECKING:
    from rbpx.config.imports import ImportConfig
    from rbpx.config.request import Request
    from rbpx.store.imports import Imported
    from rbpx.store.store import Store

VERB = Verb(
    order=320,
    summary="bring other people's results into `observations`",
    help="""\
Reads RBP_k, or shares of windows of n hits, from CSV, JSON, JSONL or Parquet: one row per model, text and k, or
columns rbp_1, rbp_10, ... Columns are recognised by name (model, S or non_embedding_params, dataset, k, rbp, n,
n_tokens, cross_entropy_nats ...); columns='{rbp: their_name}' maps others. Every row is checked; an invalid one
is reported with its line, and then nothing is imported. Analyses select imported rows with source=NAME and the
tie rule they came with.""",
    examples=(
        "python -m rbpx import FILE.csv source=NAME ties=optimistic family=gpt2 dataset=wikipedia",
        "python -m rbpx fit source=NAME ties=optimistic",
    ),
    primary="import",
    takes_words=True,
)


def start(job: Job) -> None:
    """Bring one file into the store, and say what it brought."""
    from rbpx.store.imports import import_file
    from rbpx.store.index import refresh_index
    from rbpx.store.remote import own_store

    request = job.request
    files = [*job.words, *([] if request.file is None else [request.file])]
    if len(files) != 1:
        raise RbpxError(
            f"import takes one file, got {len(files)}: python -m rbpx import FILE source=NAME ties=optimistic"
        )
    store = own_store(request.store)
    _report(import_file(store, Path(files[0]).expanduser(), request), store, request, files[0])
    refresh_index(store)


def import_study(request: "Request") -> None:
    """Bring in the files of a named study; paths start at the folder of the studies.

    Processes that measure together all come here: the first brings in, the others find nothing new, and a file that is
    wrong stops them all.
    """
    from rbpx.config.places import folder
    from rbpx.config.process import is_main_process
    from rbpx.store.imports import import_file
    from rbpx.store.index import refresh_index
    from rbpx.store.remote import own_store

    store = own_store(request.store)
    for number, config in enumerate(request.imports, 1):
        if config.file is None:
            raise RbpxError(f"import {number} of the study names no file; give it file: PATH")
        path = folder("experiments") / Path(config.file).expanduser()
        imported = import_file(store, path, config)
        if is_main_process():
            _report(imported, store, config, path.name)
    refresh_index(store)


def _report(imported: "Imported", store: "Store", config: "ImportConfig", file: str) -> None:
    models, datasets = number_of(imported.n_models, "model"), number_of(imported.n_datasets, "dataset")
    at_k = f" at {imported.n_k} k" if imported.n_k else ""
    brought = f"{number_of(imported.n, 'observation')} of {models} on {datasets}{at_k}"
    n_known = imported.n - imported.n_new
    already = f" ({n_known:,} of them were there already)" if n_known else ""
    if imported.ignored:
        print(f"ignored columns of {file}: {', '.join(imported.ignored)}", file=sys.stderr)
    if imported.n_new:
        print(f"imported {brought} from {file} into {store.root} as {config.source}{already}", file=sys.stderr)
    else:
        print(f"nothing new in {file}: its {brought} are in {store.root} as {config.source}", file=sys.stderr)
