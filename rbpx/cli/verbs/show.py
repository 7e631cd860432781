"""Print where one run or fit comes from.

Takes a run_id, cell_key or fit_id. A fit is fitted again from the data it carries, and the difference is shown.
"""

import json
from typing import TYPE_CHECKING, Any

from rbpx.cli.registry import Command, Verb
from rbpx.display.section import between
from rbpx.display.vocabulary import short
from rbpx.errors import RbpxError
from rbpx.files.escapes import out, say
from rbpx.spelling import typed

if TYPE_CHECKING:
    from rbpx.store.store import Record

VERB = Verb(
    order=340,
    theme="store",
    examples=("python -m rbpx show ID",),
    takes_words=True,
)


def perform(asked: Command) -> None:
    """Prints the record of a run, cell, fit or import; a fit is fitted again."""
    from rbpx.questions.ask import open_filled
    from rbpx.questions.render import with_status_label
    from rbpx.store.imports.storage import provenance_of
    from rbpx.store.records import MANIFESTS

    store = open_filled(asked.request.store)
    if len(asked.line.words) != 1:
        raise RbpxError(f"show takes the id of one run or fit, as `sql` prints them: {typed('show ID')}")
    (name,) = asked.line.words
    cells = [c for c in store.records("cells") if name in (c["run_id"], c["cell_key"])]
    records: list[Any] = [cell | run for cell in cells if (run := store.record(MANIFESTS, cell["run_id"]))]
    fits = [with_status_label(f) | {"reproduced": reproduced(f)} for f in store.records("fits") if f["fit_id"] == name]
    for fit in fits:
        say(_said_of_fit(fit))
    records += fits
    imported = provenance_of(store, name)
    records += [] if imported is None else [imported]
    if not records:
        raise RbpxError(f"{name} is not a run_id, cell_key or fit_id in store={store.name}; see {typed('status')}")
    print(json.dumps(records[0] if len(records) == 1 else records, indent=2), file=out())


def _said_of_fit(fit: "Record") -> str:
    at_k = "" if fit["k"] is None else f" at k = {fit['k']:,}"
    about = f"{fit['law']}{at_k} of {fit['family']} on {fit['dataset']}"
    alpha = f", alpha {between(fit['alpha'], fit['alpha_lo'], fit['alpha_hi'])}" if fit["alpha"] is not None else ""
    again = (fit["reproduced"] or {}).get("largest_relative_difference")
    differs = f"; fitted again its constants differ by {short(again)} at most" if again is not None else ""
    return f"fit {fit['fit_id']}: {about}{alpha}, {fit.get('status_word', fit['status'])}{differs}"


def reproduced(fit: "Record") -> "Record | None":
    """Fits a fit again from its own data, and returns the constants and how far they are from the recorded ones."""
    from rbpx.laws.counts.fit import reproduce_outcomes
    from rbpx.laws.power.law import reproduce
    from rbpx.runs.points.surfaces import METHOD, refitted

    if any(pin["sd"] for pin in (fit["params"].get("pins") or {}).values()):
        return None  # it combines many fits
    if fit["method"] == METHOD:
        surface, params = refitted(fit), fit["params"]
        stated = {"objective": params["objective"], **{name: ends[0] for name, ends in params["constants"].items()}}
        return None if surface is None else surface | _furthest(surface, stated)
    if fit["alpha"] is None or not {"residuals_ln", "cells"} & set(fit["params"]):
        return None
    stated = {"C": fit["C"], "alpha": fit["alpha"]}
    if "cells" in fit["params"]:
        again = reproduce_outcomes(fit["params"])
    else:
        again, stated["E"] = reproduce(fit["params"]), fit["params"]["E"] or 0.0
    return again | _furthest(again, stated)


def _furthest(again: "Record", stated: "Record") -> "Record":
    """The largest difference, relative for values above 1."""
    pairs = ((again[name], value) for name, value in stated.items() if None not in (again[name], value))
    return {"largest_relative_difference": max(abs(a - b) / max(abs(b), 1.0) for a, b in pairs)}
