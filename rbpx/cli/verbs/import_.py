"""Bring other people's results into `observations`.

Reads RBP_k, shares of windows of n hits, losses and accuracies from CSV, JSON, JSONL or Parquet: one row per model,
text and k, columns rbp_1, rbp_10, ..., a column for each text and quantity (texts=) or for each run (runs=), or rows
with a quantity and its value. Columns are recognised by name: model, S (any positive number), D (tokens), C (FLOPs),
active_params, step, tokens_per_step, unique_tokens, training_seed, variant, weight, vary_NAME (what a sweep varies),
schedule, schedule_tokens and lr (of losses by step, which say where decays end), dataset, k, rbp, n, n_tokens,
loss_nats and loss_bits (a token), bits_per_byte, accuracy, NAME_stderr, and item, n_samples and n_correct (attempts at
an item, and how many were right); columns='{rbp: their_name}' maps others. Counts may be written 1.2B, 60M, 3e9 or
1,000. The unit of a loss is stated, never assumed. Losses and accuracies that are empty or NaN, and rows that repeat
others, are left out and counted. Everything else that is wrong is listed by its line, and then nothing is imported.
--dry-run says what would come in. Analyses select imported rows with source=NAME and the tie rule they came with.

`import tokens FILE` brings rows of another engine into `tokens` as a run: doc_id, position, token_id, logprob, and rank
(ties= is its rule) or greater and ties; or what vLLM and SGLang return for the logprobs of prompts. `import samples
FILE` brings the samples that lm-evaluation-harness logs of a task (--log_samples): accuracy (acc, or
columns='{accuracy: acc_norm}') and bits per byte of the right targets, as one observation.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from rbpx.cli.registry import Asked, Verb
from rbpx.config.options import Format
from rbpx.display.records import print_records
from rbpx.display.terminal import console, grid, put
from rbpx.display.vocabulary import UNKNOWN, short
from rbpx.errors import RbpxError, number_of

_COUNTS = ("rows", "new", "models", "runs")


def print_preview(rows: Sequence[dict[str, Any]], title: str, format: Format) -> None:
    """Print a row for each family, text and quantity: how many, and between which S, D and C."""
    if format is not Format.table:
        print_records(rows, format)
        return
    shown = grid(title, ["family", "dataset", "quantity", *_COUNTS, "S", "D", "C"], left=3)
    for row in rows:
        names = [escape(str(row[name])) for name in ("family", "dataset", "quantity")]
        ends = [(row[f"{axis}_min"], row[f"{axis}_max"]) for axis in ("S", "D", "C")]
        ranges = [UNKNOWN if lo is None else f"{short(lo)}..{short(hi)}" for lo, hi in ends]
        shown.add_row(*names, *(f"{row[name]:,}" for name in _COUNTS), *ranges)
    put(console(), shown)


if TYPE_CHECKING:
    from collections.abc import Sequence

    from rbpx.config.imports import ImportConfig, ImportRequest
    from rbpx.config.request import Request
    from rbpx.store.imports.table import Imported
    from rbpx.store.store import Store


def _kind() -> type:
    from rbpx.config.imports import ImportRequest

    return ImportRequest


VERB = Verb(
    order=320,
    theme="store",
    examples=(
        "python -m rbpx import FILE.csv source=NAME ties=optimistic family=gpt2 dataset=wikipedia",
        "python -m rbpx import FILE.csv source=NAME family=mine dataset=c4 columns='{S: params, D: tokens}' --dry-run",
        "python -m rbpx import STEPS.csv source=NAME family=mine dataset=c4 runs='{loss_nats: {a: 60M, b: 1.2B}}'",
        "python -m rbpx import FILE.csv source=NAME family=mine dataset=c4 where='NOT outlier AND step >= 1000'",
        "python -m rbpx fit source=NAME ties=optimistic",
        "python -m rbpx import samples samples_arc_easy_TIME.jsonl source=NAME family=mine size=7b S=6500000000",
        "python -m rbpx import tokens FILE.jsonl engine=vllm engine_version=0.11.0 family=mine size=7b S=6.5e9 ...",
    ),
    primary="import",
    takes_words=True,
    kind=_kind,
)


def perform(asked: Asked) -> None:
    """Bring one file into the store, and say what it brought."""
    from rbpx.store.imports.table import import_file
    from rbpx.store.relations import write_views
    from rbpx.store.store import Store

    request = asked.request
    if asked.words[:1] in (("tokens",), ("samples",)):
        given = next((key for key in ("where", "runs") if getattr(request, key) is not None), None)
        if given is not None:
            raise RbpxError(
                f"{given}= is of import FILE, and import {asked.words[0]} takes all that its file has; drop it"
            )
    if asked.words[:1] == ("tokens",):
        _import_tokens(asked.words[1:], request)
        return
    if asked.words[:1] == ("samples",):
        _import_samples(asked.words[1:], request)
        return
    file = _only(
        [*asked.words, *([] if request.file is None else [request.file])], "import", "source=NAME ties=optimistic"
    )
    store = Store(request.store)
    imported = import_file(store, Path(file).expanduser(), request, request.dry_run)
    if request.dry_run:
        _preview(imported, request, file)
        return
    _report(imported, store, request, file)
    write_views(store)


def _only(files: "Sequence[str]", words: str, keys: str) -> str:
    """The one file that is named.

    Raises:
        RbpxError: there are none or several.
    """
    if len(files) != 1:
        raise RbpxError(f"{words} takes one file, got {len(files)}: python -m rbpx {words} FILE {keys}")
    return files[0]


def _import_tokens(files: "Sequence[str]", request: "ImportRequest") -> None:
    """Bring the tokens of one file into the store, as a run."""
    from rbpx.store.imports.engine_tokens import import_tokens
    from rbpx.store.relations import write_views
    from rbpx.store.store import Store

    file = _only(files, "import tokens", "engine=NAME")
    store = Store(request.store)
    run = import_tokens(store, Path(file).expanduser(), request)
    told = f"{number_of(run.n_tokens, 'token')} of {number_of(run.n_documents, 'document')} from {file}"
    if request.dry_run:
        print(
            f"{told} would come into {store.name} as run {run.run_id}; drop --dry-run to import them", file=sys.stderr
        )
        return
    already = "" if run.is_new else " (it was there already)"
    print(f"imported {told} into {store.name} as run {run.run_id}{already}: {run.told}", file=sys.stderr)
    write_views(store)


def _import_samples(files: "Sequence[str]", request: "ImportRequest") -> None:
    """Bring the samples of one task into the store, as an observation."""
    from rbpx.store.imports.table import import_samples
    from rbpx.store.relations import write_views
    from rbpx.store.store import Store

    file = _only(files, "import samples", "source=NAME")
    store = Store(request.store)
    imported, scored = import_samples(store, Path(file).expanduser(), request)
    told = [f"{scored.metric} {scored.accuracy:.4f}"] if scored.accuracy is not None else []
    told += [f"{scored.bits_per_byte:.4f} bits per byte"] if scored.bits_per_byte is not None else []
    items = f"{number_of(scored.n_items, 'item')}: {', '.join(told)}"
    if request.dry_run:
        _preview(imported, request, file)
        return
    _report(imported, store, request, file)
    print(f"of {items}; such samples have no ranks, so no tokens were imported", file=sys.stderr)
    write_views(store)


def import_study(request: "Request") -> None:
    """Bring in the files of a named study.

    Processes that measure together all come here: the first brings in, the others find nothing new, and a file that is
    wrong stops them all.
    """
    from rbpx.cores import is_main_process
    from rbpx.store.imports.table import import_file
    from rbpx.store.relations import write_views
    from rbpx.store.store import Store

    store = Store(request.store)
    for number, config in enumerate(request.imports, 1):
        if config.file is None:
            raise RbpxError(f"import {number} of the study names no file; give it file: PATH")
        path = Path(config.file)
        imported = import_file(store, path, config)
        if is_main_process():
            _report(imported, store, config, path.name)
    write_views(store)


def _preview(imported: "Imported", request: "ImportRequest", file: str) -> None:
    """Print what a file would bring, and what would be left out."""
    from rbpx.cli.verbs.import_ import print_preview
    from rbpx.store.imports.preview import preview

    _say_left_out(imported, file)
    print_preview(
        preview(imported.judged.read, imported.judged.new), f"{file} would bring, as {request.source}", request.format
    )
    print("nothing was written; drop --dry-run to import it", file=sys.stderr)


def _say_left_out(imported: "Imported", file: str) -> None:
    """Say what in a file is left out, or changed, on the way in."""
    lines = [f"ignored columns of {file}: {', '.join(imported.ignored)}"] if imported.ignored else []
    for n, noun, why in (
        (imported.n_not_chosen, "row", "that where= does not choose"),
        (imported.reading.n_empty, "row", "without a value, empty or NaN"),
        (imported.judged.n_repeated, "row", "that an earlier row says already"),
        (imported.n_missing, "value", "that are empty or NaN"),
    ):
        lines += [f"left out {number_of(n, noun)} of {file} {why}"] if n else []
    counts = ", ".join(f"{n:,} of {column}" for column, n in imported.reading.rounded.items())
    if imported.reading.steps is not None:
        first, last = imported.reading.steps
        lines.append(f"took rows {first:,} to {last:,} of {file} as steps, since no column says step, D or C")
    for axis, most in imported.few.items():
        nouns, many, letter = ("parameters", "millions", "M") if axis == "S" else ("tokens", "billions", "B")
        lines.append(f"{axis} of {file} is at most {most:,g} {nouns}; if it counts {many}, write {most:g}{letter}")
    lines += [f"rounded counts of {file} to whole numbers: {counts}"] if counts else []
    for line in lines:
        print(line, file=sys.stderr)


def _report(imported: "Imported", store: "Store", config: "ImportConfig", file: str) -> None:
    from rbpx.store.imports.preview import n_different

    read, n_new = imported.judged.read, imported.judged.new.num_rows
    models = number_of(n_different(read, "family", "size", "model"), "model")
    datasets = number_of(n_different(read, "dataset"), "dataset")
    n_k = len(read["k"].drop_null().unique())
    at_k = f" at {n_k} k" if n_k else ""
    brought = f"{number_of(read.num_rows, 'observation')} of {models} on {datasets}{at_k}"
    n_known = read.num_rows - n_new
    already = f" ({n_known:,} of them were there already)" if n_known else ""
    _say_left_out(imported, file)
    if n_new:
        print(f"imported {brought} from {file} into {store.name} as {config.source}{already}", file=sys.stderr)
    else:
        print(f"nothing new in {file}: its {brought} are in {store.name} as {config.source}", file=sys.stderr)
