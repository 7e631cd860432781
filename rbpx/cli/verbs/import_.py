"""Bring other people's results into `observations`.

Reads RBP_k, losses, accuracies and attempts from .csv, .tsv, .json, .jsonl, .parquet or .xlsx: one row per model, text
and k, a column for each text (texts=) or run (runs=), or rows with a quantity and its value. `import tokens FILE`
brings tokens of another engine, `import samples FILE` items of lm-evaluation-harness.

Files may be gzipped. Columns are recognised by name: model, S (any positive number), D (tokens), C (FLOPs),
active_params, step, tokens_per_step, unique_tokens, training_seed, variant, weight, vary_NAME (what a sweep varies), lr
(rows that have it and no loss are the plan of a run), schedule, schedule_tokens, warmup_tokens, decay_tokens, lr_decay
and final_lr (of losses by step), dataset, k, rbp or rbp_1, rbp_10, ..., n, n_tokens, loss_nats and loss_bits (a token),
bits_per_byte, accuracy, NAME_stderr, and item, n_samples and n_correct (attempts at an item). Where these are not
there, headings that people write are read and said: params, n_params, tokens, flops, val_loss, loss, ppl, bpb.
columns='{rbp: their_name}' maps others, nested ones by dots (train.lr). JSON may also be results_*.json of
lm-evaluation-harness, a trainer_state.json, or of pandas; S=6.5B is of a file of one model.

Counts may be written 1.2B, 1,100M, 3e9 or 1,000; a heading gives its unit, as "params (M)", or columns='{S: {column:
Size, times: 1e9}}' does. S of 7, 13 and 70 without a unit are refused. Losses and accuracies that are empty or NaN, and
repeated rows, are left out and counted; where anything else is wrong, it is listed by its line and nothing is imported.
Runs that diverged are named; runs whose State is not finished are left out. --dry-run says what would come in.
source=NAME then selects the rows. What a column says comes before a key of its name.

Tokens have doc_id, position, token_id, logprob, and rank (ties= is its rule) or greater and ties; or are what vLLM and
SGLang return for the logprobs of prompts. Samples (--log_samples) give accuracy (acc, or columns='{accuracy:
acc_norm}'; filter=strict-match of several filters) and bits per byte.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rbpx.cli.registry import Command, Verb
from rbpx.config.imports import ImportRequest
from rbpx.config.options import Format
from rbpx.display.records import print_records
from rbpx.display.table import table_of
from rbpx.display.terminal import console, print_tables
from rbpx.display.vocabulary import short, spoken, whole
from rbpx.errors import RbpxError, number_of
from rbpx.files.escapes import say
from rbpx.spelling import typed
from rbpx.ties import Ties

if TYPE_CHECKING:
    from rbpx.config.imports import ImportConfig
    from rbpx.config.keys.output import Study
    from rbpx.store.imports.table import Imported
    from rbpx.store.store import Store

_MOST: Final = 4  # families, texts and quantities that are listed singly
_PREVIEW: Final = table_of(
    "preview",
    *((name, name) for name in ("family", "dataset", "quantity")),
    *((name, name, whole) for name in ("rows", "new", "models", "runs")),
    *((axis, f"{axis}_min {axis}_max", short) for axis in ("S", "D", "C")),
)  # fmt: skip


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
    keys=ImportRequest,
    takes_words=True,
)


def perform(asked: Command) -> None:
    """Imports one file into the store, and reports what it contained."""
    from rbpx.store.relations import write_views
    from rbpx.store.store import Store

    request, words = asked.request, list(asked.line.words)
    kind = words.pop(0) if words[:1] in (["tokens"], ["samples"]) else ""
    of_file = ["where", "runs", "keep", "decimal", "sheet"]
    not_of = {"": ["filter"], "tokens": [*of_file, "filter"], "samples": of_file}[kind]
    not_of += ["replace"] * (kind == "tokens")
    given = next((key for key in not_of if getattr(request, key)), None)
    if given is not None:
        of = "samples" if given == "filter" else f"FILE, and import {kind} takes all that its file has"
        raise RbpxError(f"{given}= is of import {of}; drop it")
    files = [*words, *([] if request.file is None else [request.file])]
    if len(files) != 1:
        raise RbpxError(f"import takes one file, got {len(files)}: {typed('import FILE', source='NAME')}")
    store, path = Store(request.store), Path(files[0]).expanduser()
    imported = {"tokens": _import_tokens, "samples": _import_samples}.get(kind, _import_rows)(store, path, request)
    if request.dry_run:
        if imported is not None:
            _preview(imported, request, path)
        say("nothing was written; drop --dry-run to import it")
    else:
        write_views(store)


def _import_rows(store: "Store", path: Path, request: "ImportRequest") -> "Imported":
    from rbpx.store.imports.table import import_file

    imported = import_file(store, path, request, request.dry_run)
    _report(imported, store, request, str(path), request.dry_run)
    for line in () if request.dry_run else _recognised(imported, request):
        say(line)
    return imported


def _import_tokens(store: "Store", path: Path, request: "ImportRequest") -> None:
    from rbpx.store.imports.engine_tokens import import_tokens

    _say(import_tokens(store, path, request), request.dry_run)


def _import_samples(store: "Store", path: Path, request: "ImportRequest") -> "Imported":
    from rbpx.store.imports.table import import_samples

    imported, scored = import_samples(store, path, request)
    told = [f"{scored.metric} {scored.accuracy:.4f}"] if scored.accuracy is not None else []
    told += [f"{scored.bits_per_byte:.4f} bits per byte"] if scored.bits_per_byte is not None else []
    _report(imported, store, request, str(path), request.dry_run)
    items = f"of {number_of(scored.n_items, 'item')}: {', '.join(told)}"
    say(f"{items}; such samples have no ranks, so no tokens were imported")
    return imported


def import_study(request: "Study") -> None:
    """Imports the files of a study, in every process, so that a wrong file stops them all; the first one reports."""
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


def _report(imported: "Imported", store: "Store", config: "ImportConfig", file: str, dry_run: bool = False) -> None:
    from rbpx.store.imports.preview import n_different, n_measured

    judged = imported.judged
    read, new = judged.read, judged.new
    models, datasets = n_different(read, "family", "size", "model"), n_different(read, "dataset")
    n_k, n_read = len(read["k"].drop_null().unique()), n_measured(read)
    n_known = n_read - n_measured(new)
    brought = f"{number_of(n_read, 'observation')} of {number_of(models, 'model')} on "
    brought += f"{number_of(datasets, 'dataset')}{f' at {n_k} k' if n_k else ''} from {file} into {store.name}"
    known = [f"{n_known:,} of them were there already"] * (n_known > 0)
    known = ["nothing new"] if not new.num_rows and not imported.gone.num_rows else known
    known += [f"{number_of(judged.n_updated, 'row')} updated: {', '.join(judged.updated)}"] * (judged.n_updated > 0)
    already = f" ({'; '.join(known)})" if known else ""
    _say(f"{brought} as {config.source}{already}", dry_run)
    for line in imported.notes():
        say(line)


def _recognised(imported: "Imported", request: "ImportRequest") -> Iterator[str]:
    from rbpx.store.imports.preview import n_different, preview

    read = imported.judged.read
    rows = preview(read, imported.judged.new)
    for row in rows[:_MOST]:
        ends = {axis: [spoken(row[f"{axis}_{end}"], 3) for end in ("min", "max")] for axis in ("S", "D", "C")}
        spans = [
            f"{axis} {' to '.join(dict.fromkeys(of))}" for axis, of in ends.items() if row[f"{axis}_min"] is not None
        ]
        of_models = f"{row['quantity']} of {number_of(row['models'], 'model')}"
        yield f"{row['family']} on {row['dataset']}: {', '.join([of_models, *spans])}"
    if len(rows) > _MOST:
        yield f"and {len(rows) - _MOST} more"
    sizes = n_different(read, "family", "non_embedding_params")
    crossed = n_different(read, "family", "non_embedding_params", "training_tokens") > sizes
    quantities = {row["quantity"] for row in rows}
    verb = "attempts" if quantities == {"n_correct"} else "decide" if crossed else "fit"
    n_underway, lacking = _plans(imported, request)
    verb = "trajectory" if n_underway else verb
    ties = read["ties"].drop_null().unique().to_pylist()
    own = {"ties": ties[0]} if len(ties) == 1 and ties[0] != Ties.pessimistic.value else {}
    yield from lacking
    yield f"next: {typed(verb, source=request.source, **own)}"


def _plans(imported: "Imported", request: "ImportRequest") -> tuple[int, list[str]]:
    """Runs underway by a named schedule, and why others have no plan: the first of each group; only with steps."""
    read = imported.judged.read
    if any(read[name].null_count == len(read) for name in ("schedule_tokens", "training_step")):
        return imported.reading.n_planned, []
    from rbpx.questions.ask import connected
    from rbpx.questions.trajectory import TrajectoryKeys
    from rbpx.questions.trajectory.ask import known_of, select

    asked = TrajectoryKeys(store=request.store, source=[request.source])
    with connected(asked) as connection:
        known = [known_of(group) for group in select(connection, asked)]
    return sum(len(of.underway) for of in known), [line for of in known for line in of.lacking[:1]]


def _preview(imported: "Imported", request: "ImportRequest", path: Path) -> None:
    from rbpx.store.imports.preview import preview

    rows = preview(imported.judged.read, imported.judged.new)
    if request.format is Format.table:
        print_tables(console(), [_PREVIEW.of(f"{path} would bring, as {request.source}", rows)])
    else:
        print_records(rows, request.format)


def _say(brought: str, dry_run: bool) -> None:
    say(f"{'would import' if dry_run else 'imported'} {brought}")
