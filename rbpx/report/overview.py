"""All laws on one screen: fitted groups in; first numbers, a table at a glance, the paper's two tables, the runs, out.

Source of tables 1 and 2: RBP paper (arXiv 2510.20387); slope = -alpha.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rbpx.analyses.fit.analysis import Laws
from rbpx.analyses.fit.headline import headline
from rbpx.analyses.klaw.analysis import KLaws
from rbpx.analyses.regimes.analysis import Regimes
from rbpx.display.chart.sheet import Cell, Sheet, decimal, error, headed_by, named, sheet_of, span, whole
from rbpx.display.numbers import UNKNOWN, number, percent
from rbpx.display.numbers import span as spanned
from rbpx.groups.fits import Law
from rbpx.groups.group import Group, Run
from rbpx.groups.labels import labels_of, titles_of
from rbpx.status import Status

__all__ = ["Fact", "facts", "glance", "runs_sheet", "table_1", "table_2"]


@dataclass(frozen=True)
class Fact:
    """One number at the top of a group.

    Attributes:
        label: what it is.
        value: as people read it.
        beside: its interval, or what it means.
    """

    label: str
    value: str
    beside: str


def facts(laws: Laws, regimes: Regimes | None) -> tuple[Fact, ...]:
    """Exponents of RBP and cross-entropy, their backtest, and the largest k; none where there is no law."""
    entries = []
    for law in headline(laws):
        if law is not None:
            label = "α of cross-entropy" if law.k is None else f"α of −ln RBP_{law.k}"
            ends = spanned(law.fit.alpha_lo, law.fit.alpha_hi, 3).replace("..", " to ")
            doubt = "" if law.fit.status is Status.ok else f"; {law.fit.status.label}"
            entries.append(Fact(label, number(law.fit.alpha, 3), f"95 %: {ends}\nR² {number(law.fit.r2, 3)}{doubt}"))
    first = headline(laws)[0]
    if first is not None and first.fit.backtest_error is not None:
        runs = laws.group.runs
        beside = f"of −ln RBP_{first.k} at {runs[-1].size},\npredicted from {len(runs) - 1} smaller sizes"
        entries.append(Fact("error of the prediction", percent(first.fit.backtest_error), beside))
    if regimes is not None and regimes.regimes:
        reach = UNKNOWN if regimes.supported is None else f"k ≤ {regimes.supported:,}"
        entries.append(Fact("the law holds at", reach, _of_grid(regimes)))
    return tuple(entries)


def _of_grid(regimes: Regimes) -> str:
    last = regimes.regimes[-1].k
    return "every k of the grid" if regimes.supported == last else f"of k up to {last:,}"


def glance(laws: Sequence[Laws], regimes: Sequence[Regimes | None]) -> Sheet:
    """The main laws, a row for each group, with what is known of where they hold."""
    titles = titles_of([each.group for each in laws])
    rows = []
    for each, title, reach in zip(laws, titles, regimes, strict=True):
        group, (shares, entropy) = each.group, headline(each)
        row: list[Cell] = [named(title), whole(len(group.runs))]
        for law in (shares, entropy):
            row += _alpha(law)
        row.append(error(None if shares is None else shares.fit.backtest_error))
        rows.append([*row, whole(None if reach is None else reach.supported)])
    columns = [("models and text", "group"), ("sizes", "n_sizes"), ("α, RBP", "alpha_rbp")]
    columns += [("95 %", "alpha_rbp_lo alpha_rbp_hi"), ("R²", "r2_rbp"), ("α, CE", "alpha_ce")]
    columns += [("95 % ", "alpha_ce_lo alpha_ce_hi"), ("R² ", "r2_ce"), ("backtest", "backtest_error")]
    note = (
        "RBP at the smallest k, 1 by default. Backtest: its error at the largest size. Up to k: where that law holds."
    )
    return sheet_of("glance", "All laws at a glance", [*columns, ("up to k", "supported_k")], rows, note)


def _alpha(law: Law | None) -> list[Cell]:
    if law is None:
        return [decimal(None), span(None, None), decimal(None)]
    return [decimal(law.fit.alpha, 3), span(law.fit.alpha_lo, law.fit.alpha_hi, 3), decimal(law.fit.r2, 3)]


def table_1(results: Sequence[KLaws]) -> Sheet:
    """R2 and slope of -ln RBP_k against k, with a row for each model and a pair of columns for each text."""
    texts = titles_of([each.group for each in results], [each.group.title_of_text for each in results])
    models: dict[str, dict[tuple[Any, ...], Run]] = {}
    known = {}
    for each, text in zip(results, texts, strict=True):
        family = each.group.first.family
        for law in each.laws:
            models.setdefault(family, {}).setdefault(law.run.training, law.run)
            known[family, law.run.training, text] = law.fit
    rows = []
    for family, of_family in models.items():
        for training, label in zip(of_family, labels_of(list(of_family.values())), strict=True):
            row = [named(family), named(label)]
            for text in dict.fromkeys(texts):
                fit = known.get((family, training, text))
                row += [decimal(None if fit is None else fit.r2, 3), _slope(None if fit is None else fit.alpha)]
            rows.append(row)
    columns = [("family", "family"), ("size", "size")]
    columns += [pair for text in dict.fromkeys(texts) for pair in _pair(text)]
    return _spaced("table1", "Table 1: −ln RBP_k against k", columns, rows)


def table_2(results: Sequence[Laws]) -> Sheet:
    """R2 and slope of cross-entropy and -ln RBP_k against S: rows by text and quantity, pairs of columns by family."""
    fitted = [each for each in results if each.group.n_sizes >= 3]
    families = list(dict.fromkeys(each.group.first.family for each in fitted))
    groups = [each.group for each in fitted]
    texts = titles_of(groups, [group.title.removeprefix(f"{group.first.family} on ") for group in groups])
    known = {}
    for each, text in zip(fitted, texts, strict=True):
        for law in each.laws:
            if law.law in ("rbp", "cross_entropy") and law.method is each.laws[0].method:
                known[text, law.k, each.group.first.family] = law.fit
    ks = sorted({k for _, k, _ in known if k is not None})
    rows = []
    for text in dict.fromkeys(texts):
        for k in (None, *ks):
            if not any((text, k, family) in known for family in families):
                continue
            row = [named(text), named("CE" if k is None else f"k = {k}")]
            for family in families:
                fit = known.get((text, k, family))
                row += [decimal(None if fit is None else fit.r2, 3), _slope(None if fit is None else fit.alpha)]
            rows.append(row)
    columns = [("text", "dataset"), ("quantity", "quantity"), *(pair for family in families for pair in _pair(family))]
    return _spaced("table2", "Table 2: cross-entropy and −ln RBP_k against S", columns, rows)


def _pair(name: str) -> tuple[tuple[str, str], tuple[str, str]]:
    return (f"{name}: R²", f"{name}:r2"), (f"{name}: slope", f"{name}:slope")


def _spaced(name: str, title: str, columns: list[tuple[str, str]], rows: list[list[Cell]]) -> Sheet:
    headed = tuple(headed_by(heading, (label,)) for heading, label in columns)  # the name of a text may contain blanks
    return Sheet(name, title, headed, tuple(map(tuple, rows)), "Slope: −α of the line through logarithms.")


def _slope(alpha: float | None) -> Cell:
    return decimal(None if alpha is None else -alpha, 3)


def runs_sheet(groups: Sequence[Group]) -> Sheet:
    """The runs that the numbers come from."""
    rows = []
    for group in groups:
        for run in group.runs:
            row = [named(" ".join(run.run_ids)), named(run.family), named(run.size), whole(run.non_embedding_params)]
            row += [named(run.dataset), named(run.text_hash), named(run.protocol), named(run.dtype), named(run.source)]
            rows.append([*row, whole(run.n_documents), whole(run.n_tokens), decimal(run.cross_entropy_nats)])
    columns = [("run", "run_id"), ("family", "family"), ("size", "size"), ("S", "non_embedding_params")]
    columns += [("text", "dataset"), ("of hash", "text_hash"), ("protocol", "protocol"), ("dtype", "dtype")]
    columns += [("source", "source"), ("documents", "n_documents"), ("tokens", "n_tokens")]
    columns += [("CE, nats", "cross_entropy_nats")]
    return sheet_of("runs", "Runs", columns, rows, "python -m rbpx show RUN prints all that is known about one.")
