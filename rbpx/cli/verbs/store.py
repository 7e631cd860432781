"""Maintain the store: verify, merge, copy to and from object storage, clean up.

`verify` reads every byte, names each fault with what to do, and exits 1. `merge OTHER` copies what another store holds
and this one lacks, `push URL` and `pull URL` to and from a folder or s3://BUCKET/PATH (gs://, az://). `gc` drops fits
whose runs are gone; `rm` removes a RUN, a SOURCE, or the failures of a FAMILY or DATASET.

`push` and `pull` continue where they were stopped. `verify` checks each record against its SHA-256, each run against
the SHA-256 and the counts of its manifest and its tables against one another, cells and fits against their runs;
`merge` does so first, and names a run that both hold with different bytes, which stays.
"""

from dataclasses import asdict
from typing import TYPE_CHECKING

from rbpx.cli.registry import Command, Verb
from rbpx.config.keys.output import RowKeys
from rbpx.config.options import Format
from rbpx.errors import MeasureError, RbpxError, number_of
from rbpx.files.escapes import say
from rbpx.spelling import typed

if TYPE_CHECKING:
    from rbpx.store.store import Store

VERB = Verb(
    order=360,
    theme="store",
    examples=(
        "python -m rbpx store verify",
        "python -m rbpx store merge OTHER",
        "python -m rbpx store push s3://BUCKET/PATH",
        "python -m rbpx store gc",
    ),
    takes_words=True,
    keys=RowKeys,
)


def perform(asked: Command) -> None:
    """Performs the action; raises MeasureError where `verify` found faults, or `merge` could not copy everything."""
    from rbpx.store.relations import write_views
    from rbpx.store.store import Store

    match asked.line.words:
        case ("merge" | "pull" | "push") as action, place:
            _copy(action, place, asked.request.store)
            return
    store = Store(asked.request.store)
    if not store.root.is_dir():
        raise RbpxError(f"store={store.name} does not exist; name another with {typed(store='DIR')}")
    match asked.line.words:
        case ("verify",):
            _verify(store, asked.request.format)
            return
        case ("gc",):
            store.prepare()
            say(f"dropped {number_of(_collect_garbage(store), 'fit')} whose runs are gone")
        case "rm", name:
            store.prepare()
            _remove(store, name)
        case words:
            known = "verify, merge OTHER, push URL, pull URL, gc, rm NAME"
            raise RbpxError(f"store {' '.join(words)!r} is unknown; known: {known}")
    write_views(store)


def _remove(store: "Store", name: str) -> None:
    from rbpx.store.imports.storage import remove_source
    from rbpx.store.records import is_name

    if is_name(name) and store.run_folder(name).is_dir():
        cells = [
            f"{cell['family']} {cell['size']} on {cell['dataset']}"
            for cell in store.records("cells")
            if cell["run_id"] == name
        ]
        store.drop_run(name)
        say(f"removed run {name}: {', '.join(cells) or 'no cell named it'}")
    elif n_files := remove_source(store, name):
        say(f"removed {number_of(n_files, 'imported file')} of {name}")
    elif not _forget_failures(store, name):
        raise RbpxError(
            f"{name} is neither a run_id nor an imported source, and nothing of that name has failed, in "
            f"store={store.name}; see {typed('status')}"
        )
    _collect_garbage(store)


def _forget_failures(store: "Store", name: str) -> bool:
    records = {path.stem: store.record("failures", path.stem) for path in store.paths("failures")}
    named = [key for key, of in records.items() if of is not None and name in (of["family"], of["dataset"])]
    for key in named:
        store.drop_record("failures", key)
    if named:
        say(f"forgot {number_of(len(named), 'failure')} of {name}")
    return bool(named)


def _collect_garbage(store: "Store") -> int:
    from rbpx.store.records import BESIDE
    from rbpx.store.verify import imported_runs

    whole = set(store.run_ids()) | imported_runs(store)
    gone = [fit["fit_id"] for fit in store.records("fits") if not whole.issuperset(fit["run_ids"])]
    for fit_id in gone:
        store.drop_record("fits", fit_id)
    for path in (path for kind in BESIDE for path in store.files(kind) if path.stem not in whole):
        path.unlink(missing_ok=True)
    for fit in [fit for fit in store.records("rank_fits") if fit["run_id"] not in whole]:
        store.drop_record("rank_fits", f"{fit['run_id']}-{fit['ties']}-{fit['distribution']}")
    return len(gone)


def _verify(store: "Store", format: Format) -> None:
    from rbpx.display.progress import counted
    from rbpx.display.records import print_records
    from rbpx.display.terminal import console, print_under
    from rbpx.store.verify import verify

    n_bytes = sum(path.stat().st_size for path in store.root.glob("runs/[!.]*/*") if path.is_file())
    with counted("verifying, MiB", n_bytes / 2**20) as advance:
        result = verify(store, lambda read: advance(read / 2**20))
    lines = [
        f"store {store.name}: {number_of(result.n_runs, 'run')}, {number_of(result.n_tokens, 'token')}, "
        f"{result.n_bytes / 2**20:,.1f} MiB, {number_of(result.n_records, 'record')}, "
        f"{number_of(result.n_files, 'file beside them', 'files beside them')}"
    ]
    if result.leftovers:
        unfinished = number_of(len(result.leftovers), "unfinished file")
        lines.append(f"{unfinished}, of processes that write or were stopped: harmless, gone after a day")
    if format is Format.table:
        faults = [f"{one.kind} {one.name}: {one.fault}; {one.remedy}" for one in result.faults]
        print_under(console(), (), (), [*faults, *lines])
    else:
        print_records([asdict(one) for one in result.faults], format)
        for line in lines:
            say(line)
    if result.faults:
        raise MeasureError(f"{number_of(len(result.faults), 'fault')} in store={store.name}")


def _copy(action: str, place: str, name: str) -> None:
    from rbpx.display.progress import counted
    from rbpx.store.merge import Folder, merge
    from rbpx.store.relations import write_views
    from rbpx.store.store import Store, is_remote
    from rbpx.store.transfer import Bucket, push

    source, target = (name, place) if action == "push" else (place, name)
    sends = action == "push" and is_remote(place)
    other = Bucket(source) if is_remote(source) else Folder(Store(source))
    if not other.names("runs") and not other.names("imports"):
        raise RbpxError(f"{source} is not a store: it has no runs and no imports; name another store")
    with counted(f"{action}: runs", len(other.names("runs"))) as advance:
        if sends:
            merged = push(Store(source), Bucket(target), lambda: advance(1))
        else:
            merged = merge(Store(target), other, lambda: advance(1))
            write_views(Store(target))
    for line in merged.skipped:
        say(f"kept out: {line}")
    came, there = (
        ", ".join(number_of(n, kind.removesuffix("s"), kind) for kind, n in of.items() if n)
        for of in (merged.copied, merged.already_here)
    )
    already = f" (there already: {there})" if there else ""
    say(f"copied from {other.name}: {came or 'nothing'}{already}")
    if merged.skipped:
        raise MeasureError(f"kept out of {target}: {number_of(len(merged.skipped), 'thing')} of {source}")
