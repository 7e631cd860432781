"""Runs outside what the others allow: kept out of laws in size and tokens unless asked otherwise, and named."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import duckdb
import numpy as np

from rbpx.config.options import Outliers
from rbpx.config.request import Request
from rbpx.display.vocabulary import rough, spoken
from rbpx.errors import number_of
from rbpx.laws.surface.outliers import outliers
from rbpx.runs.group import Group
from rbpx.runs.points.surfaces import Outside, Trained, trained_quantities
from rbpx.runs.select.trainings import TrainingGroup
from rbpx.store.store import Record

_MOST: Final = 5  # that are named in sentences
_SEEN: Final = 0.001  # of p: below, it is said to be less
_COUNTS: Final = {True: "What follows counts it, by outliers=keep.", False: "outliers=keep counts what is left out."}


def tested_quantities(connection: duckdb.DuckDBPyConnection, group: TrainingGroup, request: Request) -> list[Trained]:
    """Every quantity that is asked for, without the runs that lie outside what the others allow, unless these are kept.

    The law of well-tuned runs (`over`) expects such runs, so nothing is tested for it.
    """
    quantities = trained_quantities(connection, group, request)
    return quantities if request.over != 1 else [_tested(each, request.outliers) for each in quantities]


def _tested(trained: Trained, wanted: Outliers) -> Trained:
    runs, keeps = trained.runs, wanted is Outliers.keep
    found = outliers(runs)
    if not found:
        return trained
    outside = []
    for each in found:
        at = max(np.flatnonzero(runs.group_N == each.run).tolist(), key=lambda at: runs.D_N[at])
        y = trained.sign * float(runs.y_N[at])
        outside.append(Outside(trained.members[at], float(runs.D_N[at]), y, each, runs.n_groups, keeps))
    trained = replace(trained, outside=tuple(outside))
    if keeps:
        return trained
    in_N = ~np.isin(runs.group_N, [each.run for each in found])
    members = tuple(trained.members[at] for at in np.flatnonzero(in_N))
    return replace(trained, members=members, runs=runs.only(in_N))


def said_of_outliers(quantities: Sequence[Trained]) -> Iterator[str]:
    """Which runs lie outside what the others allow, how far, whether they count, and what to look at."""
    for trained in quantities:
        n, shares = len(trained.outside), [trained.sign * each.outlier.share for each in trained.outside]
        if not n:
            continue
        named = [_named(*each) for each in zip(trained.outside[:_MOST], shares, strict=False)]
        named += [f"{n - _MOST} more"] if n > _MOST else []
        looks = ["diverged, was tuned, and had its decay"] if max(shares) > 0 else []
        looks += ["has the size, the tokens and the text that are stated"] if min(shares) < 0 else []
        yield (
            f"{trained.title}: {n} of {number_of(trained.outside[0].n_runs, 'run')} {'lies' if n == 1 else 'lie'} "
            f"outside what the others allow: {'; '.join(named)}. Look whether {'it' if n == 1 else 'each'} "
            f"{' and whether it '.join(looks)}. {_COUNTS[trained.outside[0].counts]}"
        )


def _named(each: Outside, share: float) -> str:
    side, rare = "above" if share > 0 else "below", f"= {rough(each.outlier.p)}"
    return (
        f"{spoken(each.member.non_embedding_params)} parameters on {spoken(each.D)} tokens, {abs(share):.1%} {side} "
        f"what they say ({rough(abs(each.outlier.in_sd))} standard deviations, p "
        f"{rare if each.outlier.p >= _SEEN else f'< {_SEEN:g}'})"
    )


def outlier_rows(group: Group, quantities: Sequence[Trained]) -> list[Record]:
    """A row for each run outside what the others allow, of kind outlier."""
    return [
        {"kind": "outlier", **group.names(), "law": trained.law, "k": trained.k, **each.row(trained.sign)}
        for trained in quantities
        for each in trained.outside
    ]
