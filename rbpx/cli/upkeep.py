"""The verb `store`: what keeps house in a store, its words in, what was done out."""

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rbpx.cli.outcome import Outcome
from rbpx.config.options import Format
from rbpx.config.request import Request
from rbpx.display.progress import counted
from rbpx.errors import RbpxError
from rbpx.store.imports import imported_run_ids, remove_source
from rbpx.store.index import NAME, refresh_index
from rbpx.store.remote import open_store, own_store
from rbpx.store.store import Store

_KNOWN = "store verify, store merge OTHER, store rebuild, store gc, store rm RUN|SOURCE"


def keep_house(request: Request, words: Sequence[str]) -> Outcome:
    """Verify, merge, rebuild the index, drop what points nowhere, or remove a run or an imported source.

    Raises:
        RbpxError: an unknown action, or something that is not in the store.
        MeasureError: the store cannot be written.
    """
    action, *rest = words or [""]
    store = (open_store if action == "verify" else own_store)(request.store)
    if action == "merge" and len(rest) == 1:
        return _merge(store, rest[0], request)
    if not store.root.is_dir():
        raise RbpxError(f"store={request.store} does not exist; measure first, or name the store with --store DIR")
    if action == "verify" and not rest:
        return _verify(store, request)
    if action == "rebuild" and not rest:
        (store.root / NAME).unlink(missing_ok=True)
    elif action == "gc" and not rest:
        print(f"dropped {_collect_garbage(store)} fit(s) whose runs are gone", file=sys.stderr)
    elif action == "rm" and len(rest) == 1:
        _remove(store, rest[0], request)
    else:
        raise RbpxError(f"store {' '.join(words)!r} is unknown; known: {_KNOWN}")
    refresh_index(store)
    return Outcome(request)


def _remove(store: Store, name: str, request: Request) -> None:
    if name in store.run_ids():
        store.drop_run(name)
    elif not remove_source(store, name):
        raise RbpxError(f"{name} is no run_id and no imported source in store={request.store}; see rbpx status")
    _collect_garbage(store)


def _collect_garbage(store: Store) -> int:
    whole = set(store.run_ids()) | imported_run_ids(store)
    gone = [fit["fit_id"] for fit in store.records("fits") if not whole.issuperset(fit["run_ids"])]
    for fit_id in gone:
        store.drop_record("fits", fit_id)
    for fit in [fit for fit in store.records("rank_fits") if fit["run_id"] not in whole]:
        store.drop_record("rank_fits", f"{fit['run_id']}-{fit['ties']}-{fit['distribution']}")
    return len(gone)


def _verify(store: Store, request: Request) -> Outcome:
    """Print a line for each fault, then what was looked at."""
    from rbpx.display.tables import console, print_records
    from rbpx.store.verify import verify

    n_bytes = sum(path.stat().st_size for path in store.root.glob("runs/[!.]*/*") if path.is_file())
    with counted("verifying, MiB", n_bytes / 2**20) as advance:
        found = verify(store, lambda read: advance(read / 2**20))
    summary = (
        f"store {store.root}: {found.n_runs:,} runs, {found.n_tokens:,} tokens, {found.n_bytes / 2**20:,.1f} MiB, "
        f"{found.n_cells:,} cells, {found.n_records:,} fits and failures, {found.n_files:,} vocabularies and imports"
    )
    notes = []
    if found.n_unasked:
        notes.append(f"{found.n_unasked:,} run(s) that no cell names: the line that measured them links them again")
    if found.leftovers:
        notes.append(
            f"{len(found.leftovers):,} unfinished file(s) of processes that are writing or were stopped, which do no "
            "harm: measuring clears them away after a day"
        )
    if request.format is Format.table:
        screen = console()
        for one in found.faults:
            screen.print(f"{one.kind} {one.name}: {one.fault}; {one.remedy}", markup=False, soft_wrap=True)
        for line in (summary, *notes):
            screen.print(line, markup=False, soft_wrap=True)
    else:
        print_records([asdict(one) for one in found.faults], request.format)
        for line in (summary, *notes):
            print(line, file=sys.stderr)
    if not found.faults:
        return Outcome(request)
    return Outcome(request, error=f"{len(found.faults):,} fault(s) in store={request.store}", status=1)


def _merge(store: Store, place: str, request: Request) -> Outcome:
    """Take in another store, and say what came."""
    from rbpx.store.merge import unite

    other = Store(Path(place))
    if not (other.root / "runs").is_dir() and not other.import_files():
        raise RbpxError(f"{place} is no store: it has no runs and no imports; name the folder of another store")
    if other.root == store.root:
        raise RbpxError(f"{place} is store={request.store} itself; name the folder of another store")
    with counted("merging, runs", len(other.run_ids())) as advance:
        union = unite(store, other, lambda: advance(1))
    refresh_index(store)
    for line in union.kept_out:
        print(f"kept out: {line}", file=sys.stderr)
    came = ", ".join(f"{n:,} {kind}" for kind, n in union.brought.items() if n)
    there = ", ".join(f"{n:,} {kind}" for kind, n in union.known.items() if n)
    print(
        f"brought from {other.root}: {came or 'nothing'}" + (f" (here already: {there})" if there else ""),
        file=sys.stderr,
    )
    if not union.kept_out:
        return Outcome(request)
    return Outcome(request, error=f"{len(union.kept_out):,} thing(s) of {place} were kept out", status=1)
