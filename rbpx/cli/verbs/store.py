"""Maintain the store: verify, merge, rebuild, clean up.

`verify` reads every byte: each run is checked against the sha256 and the counts of its manifest, requests and fits
against the runs that they name. It prints a line for each fault with what to do, and exits 1. Meanwhile corrupt files
are left out of every answer, with a line that names them. `merge OTHER` copies what another store holds and this one
lacks, verified on the way; a run that both hold with different bytes is named and stays as it is here. `push TARGET`
copies this store into another in the same way, `pull SOURCE` copies like merge; any of them may be a folder or
s3://BUCKET/PATH (gs://, az://). `publish hf://datasets/ORG/NAME` makes it a dataset on a hub, with a card, for
`datasets` and DuckDB. `rebuild` builds the index rbpx.duckdb again, `gc` drops orphaned fits and forgets files that
were deleted by hand, `rm RUN` removes a run, `rm SOURCE` removes what was imported, `rm FAMILY` or `rm DATASET` forgets
its failures, such as those of a name that was mistyped.
"""

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

from rbpx.cli.registry import Job, Verb
from rbpx.config.options import Format
from rbpx.errors import MeasureError, RbpxError, number_of

if TYPE_CHECKING:
    from rbpx.config.request import Request
    from rbpx.store.store import Store

VERB = Verb(
    order=360,
    theme="store",
    examples=(
        "python -m rbpx store verify",
        "python -m rbpx store merge OTHER",
        "python -m rbpx store push s3://BUCKET/PATH",
        "python -m rbpx store rebuild",
        "python -m rbpx store gc",
    ),
    takes_words=True,
    keys=("format",),
)

_KINDS = {"rank_fits": "rank_fits", "vocab": "vocab", "best": "best"}  # whose singular is not the plural without its s
_KNOWN = "verify, merge OTHER, push TARGET, pull SOURCE, publish hf://datasets/ORG/NAME, rebuild, gc, rm NAME"


def start(job: Job) -> None:
    """Verify, merge, rebuild the index, drop orphaned fits, or remove a run or an imported source.

    Raises:
        RbpxError: an unknown action, or something that is not in the store.
        MeasureError: the store cannot be written, `verify` found faults, or `merge` could not take everything in.
    """
    from rbpx.store.files.inside import inside
    from rbpx.store.index import refresh_index
    from rbpx.store.named import open_store, own_store
    from rbpx.store.sql.relations import INDEX

    request, (action, *rest) = job.request, job.words or ("",)
    if action in ("merge", "pull") and len(rest) == 1:
        _copy(rest[0], request.store)
        return
    if action == "push" and len(rest) == 1:
        _copy(request.store, rest[0])
        return
    if action == "publish" and len(rest) == 1:
        _publish(open_store(request.store), rest[0])
        return
    store = (open_store if action == "verify" else own_store)(request.store)
    if not store.root.is_dir():
        raise RbpxError(f"store={request.store} does not exist; measure first, or name the store with --store DIR")
    if action == "verify" and not rest:
        _verify(store, request)
        return
    if action == "rebuild" and not rest:
        store.prepare()
        inside(store.root, INDEX).unlink(missing_ok=True)
    elif action == "gc" and not rest:
        store.prepare()
        print(f"dropped {number_of(_collect_garbage(store), 'fit')} whose runs are gone", file=sys.stderr)
        _forget_losses(store)
    elif action == "rm" and len(rest) == 1:
        store.prepare()
        _remove(store, rest[0], request)
    else:
        raise RbpxError(f"store {' '.join(job.words)!r} is unknown; known: {_KNOWN}")
    refresh_index(store)


def _remove(store: "Store", name: str, request: "Request") -> None:
    from rbpx.store.imports.kept import remove_source

    if name in store.run_ids():
        store.drop_run(name)
    elif not remove_source(store, name) and not _forget_failures(store, name):
        raise RbpxError(
            f"{name} is neither a run_id nor an imported source, and nothing of that name has failed, "
            f"in store={request.store}; see rbpx status"
        )
    _collect_garbage(store)


def _forget_failures(store: "Store", name: str) -> int:
    """Forget the cells of a family, or of a dataset, that failed; returns how many there were."""
    forgotten = 0
    for path in store.record_files("failures"):
        record = store.record("failures", path.stem)
        if record is not None and name in (record["family"], record["dataset"]):
            store.drop_record("failures", path.stem)
            forgotten += 1
    if forgotten:
        print(f"forgot {number_of(forgotten, 'failure')} of {name}", file=sys.stderr)
    return forgotten


def _collect_garbage(store: "Store") -> int:
    from rbpx.store.checks.integrity import left_beside
    from rbpx.store.imports.kept import imported_run_ids

    whole = set(store.run_ids()) | imported_run_ids(store)
    gone = [fit["fit_id"] for fit in store.records("fits") if not whole.issuperset(fit["run_ids"])]
    for fit_id in gone:
        store.drop_record("fits", fit_id)
    for path in left_beside(store):
        store.remove(path)
    for fit in [fit for fit in store.records("rank_fits") if fit["run_id"] not in whole]:
        store.drop_record("rank_fits", f"{fit['run_id']}-{fit['ties']}-{fit['distribution']}")
    return len(gone)


def _forget_losses(store: "Store") -> None:
    """Forget files that were deleted by hand."""
    from rbpx.store.files import ledger

    lost = [path for path in ledger.missing(store.root) if not ledger.is_evicted(path)]
    for path in lost:
        ledger.forget(path)
    if lost:
        print(
            f"{number_of(len(lost), 'file')} deleted by hand {'is' if len(lost) == 1 else 'are'} no longer missed",
            file=sys.stderr,
        )


def _verify(store: "Store", request: "Request") -> None:
    """Print a line for each fault, then what was checked."""
    from rbpx.display.progress import counted
    from rbpx.display.records import print_records
    from rbpx.display.terminal import console
    from rbpx.store.checks.verify import verify

    n_bytes = sum(path.stat().st_size for path in store.root.glob("runs/[!.]*/*") if path.is_file())
    with counted("verifying, MiB", n_bytes / 2**20) as advance:
        result = verify(store, lambda read: advance(read / 2**20))
    counts = (
        number_of(result.n_runs, "run"),
        number_of(result.n_tokens, "token"),
        f"{result.n_bytes / 2**20:,.1f} MiB",
        number_of(result.n_cells, "cell"),
        number_of(result.n_records, "fit, forecast or failure", "fits, forecasts and failures"),
        number_of(result.n_files, "file beside them", "files beside them"),
    )
    summary = f"store {store.name}: {', '.join(counts)}"
    notes = []
    if result.n_orphaned:
        notes.append(
            f"{number_of(result.n_orphaned, 'orphaned run')}, to which no cell refers: the command that measured it "
            "links it again"
        )
    if result.leftovers:
        notes.append(
            f"{number_of(len(result.leftovers), 'unfinished file')} of processes that are writing or were stopped, "
            "harmless: measuring clears such files away after a day"
        )
    if request.format is Format.table:
        screen = console()
        for one in result.faults:
            screen.print(f"{one.kind} {one.name}: {one.fault}; {one.remedy}", markup=False, soft_wrap=True)
        for line in (summary, *notes):
            screen.print(line, markup=False, soft_wrap=True)
    else:
        print_records([asdict(one) for one in result.faults], request.format)
        for line in (summary, *notes):
            print(line, file=sys.stderr)
    if result.faults:
        raise MeasureError(f"{number_of(len(result.faults), 'fault')} in store={request.store}")


def _publish(store: "Store", place: str) -> None:
    """Publish the store, and say where."""
    from rbpx.display.progress import counted
    from rbpx.store.publish import publish

    with counted("publishing, runs", len(store.run_ids())) as advance:
        sent = publish(store, place, lambda: advance(1))
    told = f"{number_of(sent.n_runs, 'run')}, {number_of(sent.n_tokens, 'token')}, {sent.n_bytes / 2**20:,.1f} MiB"
    print(f"published {told} as hf://datasets/{sent.repo}", file=sys.stderr)


def _copy(source: str, target: str) -> None:
    """Copy what one store has and another lacks, and say what came."""
    from rbpx.display.progress import counted
    from rbpx.store.index import refresh_index
    from rbpx.store.merge import merge
    from rbpx.store.named import open_store, own_store

    other, store = open_store(source), own_store(target)
    if not other.run_ids() and not other.import_files():
        raise RbpxError(f"{source} is not a store: it has no runs and no imports; name another store")
    if other.root == store.root:
        raise RbpxError(f"{source} is store={target} itself; name another store")
    with counted("merging, runs", len(other.run_ids())) as advance:
        merged = merge(store, other, lambda: advance(1))
    refresh_index(store)
    for line in merged.skipped:
        print(f"kept out: {line}", file=sys.stderr)
    came, there = (
        ", ".join(number_of(n, _KINDS.get(kind, kind.removesuffix("s")), _KINDS.get(kind, kind)) for kind, n in each)
        for each in ([(kind, n) for kind, n in of.items() if n] for of in (merged.copied, merged.already_here))
    )
    print(
        f"brought from {other.name}: {came or 'nothing'}" + (f" (here already: {there})" if there else ""),
        file=sys.stderr,
    )
    if merged.skipped:
        raise MeasureError(f"kept out of store={target}: {number_of(len(merged.skipped), 'thing')} of {source}")
