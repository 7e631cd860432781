"""The verbs: a typed request in, work on the store and printed results out; each verb is thin."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rbpx.analyses.perform import ANALYSES, open_filled, refuse_plot
from rbpx.cli.argv import VERB, WORDS, changes_of_study
from rbpx.cli.finish import close_output
from rbpx.cli.outcome import Outcome, leave, of_measured
from rbpx.config.options import Format
from rbpx.config.request import Request
from rbpx.errors import MeasureError, RbpxError
from rbpx.store.notice import leads
from rbpx.store.remote import open_store, own_store
from rbpx.store.reread import read_again
from rbpx.store.store import Record, Store


def perform(config: Any) -> None:
    """One job, in this process or another: a user's mistake is not raised, it is left as an outcome."""
    from omegaconf import OmegaConf

    verb, words = os.environ[VERB], json.loads(os.environ[WORDS])
    try:
        request: Any = OmegaConf.to_object(config)
        if isinstance(request, Request):
            refuse_plot(request.analyses if verb in ("run", "record") else [verb], request)
        _check_format(verb, request)

        def job() -> Outcome:
            return JOBS[verb](request, words)

        outcome = job() if verb == "train" else read_again(request.store, job)  # a ladder is trained without a store
    except MeasureError as problem:
        outcome = Outcome(error=str(problem), status=1)
    except RbpxError as problem:
        outcome = Outcome(error=str(problem), status=2)
    except BrokenPipeError:
        close_output()
        outcome = Outcome()
    leave(outcome)


def _check_format(verb: str, request: Any) -> None:
    """Pages and pictures are of a report."""
    rows = (Format.table, Format.csv, Format.json)
    if verb != "report" and getattr(request, "format", Format.table) not in rows:
        asked = request.format.value
        raise RbpxError(
            f"format={asked} is of a report: python -m rbpx report --format {asked}; {verb} prints table, csv or json"
        )


def run(request: Request, words: Sequence[str]) -> Outcome:
    """Bring in what a study imports, then measure its grid if it has one."""
    if request.imports:
        from rbpx.cli.exchange import import_study

        import_study(request.imports, own_store(request.store), quiet=not leads())
        if request.model is None:
            return Outcome(request)
    return measure(request, words)


def record(request: Request, words: Sequence[str]) -> Outcome:
    """As `run`, for a named study, whose findings are then written into its file."""
    from rbpx.config.places import folder
    from rbpx.files.atomic import check_output

    if request.study is None:
        raise RbpxError("record needs a named study: python -m rbpx record experiment=NAME; see python -m rbpx --help")
    changed = changes_of_study()
    if changed and request.output is None:
        raise RbpxError(
            f"{changed[0]} makes another study of experiment={request.study.name}, whose file is for its own findings; "
            "name a file for these with --output FILE"
        )
    check_output(request.output or str(folder("experiments") / f"{request.study.name}.yaml"))
    return run(request, words)


def measure(request: Request, words: Sequence[str]) -> Outcome:
    """Measure every cell of the grid that the store does not hold yet; jobs of one process wait for each other.

    So a model is loaded once for all texts of a sweep, unless a launcher runs its jobs in processes of their own.
    """
    from hydra.core.hydra_config import HydraConfig

    if HydraConfig.get().runtime.choices["hydra/launcher"] == "basic":
        return Outcome(request, waits=True)
    from rbpx.measure.runner import measure_grids

    (measured,) = measure_grids([request])
    return of_measured(measured)


def audit(request: Request, words: Sequence[str]) -> Outcome:
    """Measure a sample of what the store holds again, in float32; printed at the end, once for all jobs of a sweep."""
    from rbpx.analyses.audit.remeasure import audit_runs

    open_filled(request.store)
    audited = audit_runs(request)
    return Outcome(request, list(audited.run_ids), list(audited.failures), found=list(audited.audits))


def plan(request: Request, words: Sequence[str]) -> Outcome:
    """What each cell of the grid would cost; printed at the end, once for all jobs of a sweep."""
    from rbpx.measure.plan.plan import plan_grid

    return Outcome(request, found=plan_grid(request))


def import_(request: Any, words: Sequence[str]) -> Outcome:
    """Bring other people's results into the store."""
    from rbpx.cli.exchange import import_one

    return import_one(request, words)


def _refresh(store: Store) -> None:
    """Bring the index up to date, unless the store may only be read."""
    from rbpx.store.index import refresh_index
    from rbpx.store.notice import notice

    if store.root.is_dir() and os.access(store.root, os.W_OK):
        try:
            refresh_index(store)
        except MeasureError as problem:  # what is asked is answered from the files
            notice(str(problem))


# ------------------------------------------------------------------------------------------------------ analyses


def analyse(request: Request, words: Sequence[str]) -> Outcome:
    """Any analysis of `study.ANALYSES`: done and printed at the end, once for all jobs of a sweep."""
    if request.output is not None and request.format is Format.table:
        verb = os.environ[VERB]
        raise RbpxError(f"{verb} prints its tables; to write its rows to {request.output}, add --format csv or json")
    open_filled(request.store)
    return Outcome(request)


def report(request: Request, words: Sequence[str]) -> Outcome:
    """A page of everything that the store says; made at the end, once for all jobs of a sweep."""
    from rbpx.report.output import check

    check(request)
    return Outcome(request)


def outcomes(request: Request, words: Sequence[str]) -> Outcome:
    """What passing and failing sequences tell of single tokens: those of the store, or the rows of a file."""
    if not words:
        return analyse(request, words)
    if len(words) > 1:
        raise RbpxError(f"outcomes takes one file, got {len(words)}: python -m rbpx outcomes FILE.csv")
    from rbpx.analyses.outcomes.analysis import analyse_file
    from rbpx.analyses.outcomes.recovery import records
    from rbpx.analyses.outcomes.table import show as show_outcomes
    from rbpx.display.tables import print_records

    _refuse_narrowing(request)
    found = analyse_file(Path(words[0]).expanduser(), request)
    if request.format is Format.table:
        show_outcomes([found])
    else:
        print_records(records(found), request.format)
    return Outcome()


def _refuse_narrowing(request: Request) -> None:
    """A file is taken whole; what narrows the store would be passed over in silence."""
    narrowed = {name: getattr(request, name) for name in ("model", "dataset", "protocol", "family", "source")}
    narrowed |= {"size": None if request.size == "all" else request.size}
    for name in (name for name, value in narrowed.items() if value is not None):
        raise RbpxError(f"{name}= narrows what the store holds, and outcomes FILE takes all rows of its file; drop it")


def sql(request: Request, words: Sequence[str]) -> Outcome:
    """Answer one question in SQL."""
    from rbpx.display.tables import print_table
    from rbpx.store.queries import ask_user, connect

    if len(words) != 1:
        raise RbpxError(f'sql takes one query in quotes, got {len(words)}: python -m rbpx sql "SELECT * FROM runs"')
    store = open_store(request.store)
    if not store.root.is_dir():
        raise RbpxError(f"store={request.store} does not exist; measure first, or name the store with --store DIR")
    _refresh(store)
    with connect(store) as connection:
        answer = ask_user(connection, words[0])
    print_table(answer, request.format, request.output)
    return Outcome(request)


def export(request: Request, words: Sequence[str]) -> Outcome:
    """Write a relation, or the answer to a query, to a file or to stdout."""
    from rbpx.cli import exchange

    return exchange.export(request, words)


def show(request: Request, words: Sequence[str]) -> Outcome:
    """Print where a run or a fit comes from."""
    store = open_filled(request.store)
    if len(words) != 1:
        raise RbpxError("show takes the id of one run or fit, as `sql` and --format json print them: rbpx show ID")
    from rbpx.store.integrity import sound_runs

    sound = sound_runs(store)
    asked = [c for c in store.records("cells") if words[0] in (c["run_id"], c["cell_key"])]
    found: list[Any] = [c | store.manifest(c["run_id"]) for c in asked if c["run_id"] in sound]
    found += [f | {"reproduced": _reproduced(f)} for f in store.records("fits") if f["fit_id"] == words[0]]
    from rbpx.store.imports import provenance_of

    imported = provenance_of(store, words[0])
    found += [] if imported is None else [imported]
    if not found:
        raise RbpxError(f"{words[0]} is no run_id, cell_key or fit_id in store={request.store}; see rbpx status")
    print(json.dumps(found[0] if len(found) == 1 else found, indent=2))
    return Outcome(request)


def _reproduced(fit: Record) -> Record | None:
    """The constants of a fit, fitted again from what it carries, and how far they are from those it says."""
    from rbpx.analyses.outcomes.law import reproduce_outcomes
    from rbpx.laws.power import reproduce

    if fit["alpha"] is None or not {"starts", "cells"} & set(fit["params"]):
        return None
    said = {"C": fit["C"], "alpha": fit["alpha"]}
    if "cells" in fit["params"]:
        again = reproduce_outcomes(fit["params"])
    else:
        again, said["E"] = reproduce(fit["params"]), fit["params"]["E"] or 0.0
    pairs = [(again[name], value) for name, value in said.items()]
    apart = max(abs(a - b) / max(abs(b), 1.0) for a, b in pairs if a is not None and b is not None)
    return {**again, "largest_relative_difference": apart}


def status(request: Request, words: Sequence[str]) -> Outcome:
    """What the store holds and what failed, or where the cells of a named grid stand; printed after the last job."""
    from rbpx.measure.offline import grid_offline
    from rbpx.store.cell_states import stand

    store = open_store(request.store)
    _refresh(store)
    if request.model is None or request.dataset is None:
        return Outcome(request)
    return Outcome(request, found=stand(grid_offline(request, store)[0], store))


def store(request: Request, words: Sequence[str]) -> Outcome:
    """Keep house: verify, merge, rebuild the index, drop what points nowhere, remove a run."""
    from rbpx.cli.upkeep import keep_house

    return keep_house(request, words)


def train(request: Any, words: Sequence[str]) -> Outcome:
    """Train a ladder of small models."""
    from rbpx.train.run import train_ladder

    train_ladder(request)
    return Outcome()


def completion(request: Request, words: Sequence[str]) -> Outcome:
    """Print what a shell evaluates to complete `rbpx`."""
    from rbpx.cli.completion import script

    if len(words) != 1:
        raise RbpxError(f"completion takes one shell, got {len(words)}: rbpx completion bash")
    print(script(words[0]))
    return Outcome()


JOBS: dict[str, Callable[[Any, Sequence[str]], Outcome]] = {
    "run": run,
    "record": record,
    "measure": measure,
    "audit": audit,
    "plan": plan,
    **dict.fromkeys(ANALYSES, analyse),
    "outcomes": outcomes,
    "report": report,
    "sql": sql,
    "import": import_,
    "export": export,
    "show": show,
    "status": status,
    "store": store,
    "train": train,
    "completion": completion,
}
