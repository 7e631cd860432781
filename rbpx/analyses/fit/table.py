"""The laws of size: fitted groups in, what each model scores and every law side by side out."""

import math
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape

from rbpx.analyses.fit.analysis import Laws
from rbpx.counts import number_of
from rbpx.display.along import LARGEST, counted, in_axis, place, place_heading, print_group_notes
from rbpx.display.fit_cells import constant, sizes_of
from rbpx.display.names import law_name, remedies, status_name
from rbpx.display.numbers import UNKNOWN, number, percent, span
from rbpx.display.spread import spread
from rbpx.display.tables import console, grid, put
from rbpx.groups.fits import Law
from rbpx.groups.group import Group, Run
from rbpx.laws.names import IMPORTED, Axis, Method
from rbpx.laws.verdict import SIGNIFICANT
from rbpx.status import Status


def show(results: Sequence[Laws]) -> None:
    """Print what each model scores, its rank distribution and its error-entropy, then every law side by side."""
    screen = console()
    for group in results:
        _print_models(screen, group)
    fitted = [laws for laws in results if laws.group.n_sizes >= 3]
    for laws in results:
        if laws not in fitted:
            runs = laws.group.runs
            names = ", ".join(run.size for run in runs)
            screen.print(
                f"{laws.group.title}: {number_of(laws.group.n_sizes, 'size')} ({names}); a law needs at least 3.",
                soft_wrap=True,
            )
    if not fitted:
        return
    methods = list(dict.fromkeys(law.method for laws in fitted for law in laws.laws))
    axis = fitted[0].group.axis
    columns, spare = (tuple(in_axis(column, axis) for column in each) for each in (_COLUMNS, _SPARE))
    table = grid(_heading(methods, axis), columns, spare=spare)
    table.columns[0].min_width, table.columns[0].max_width, table.columns[0].no_wrap = 16, 24, False
    table.columns[-1].justify = "left"
    table.columns[-1].min_width, table.columns[-1].max_width, table.columns[-1].no_wrap = 6, 12, False
    for laws in fitted:
        for method in methods:
            by = f", {method.value}" if len(methods) > 1 else ""
            table.add_part(f"{laws.group.title}{by}", [_row(law) for law in laws.laws if law.method is method])
    put(screen, table)
    screen.print(_footnote(fitted), soft_wrap=True, end="")
    print_group_notes(screen, [laws.group for laws in fitted])
    screen.print()


def _heading(methods: Sequence[Method], axis: Axis) -> str:
    how = {
        Method.ols: "y = C · S^-alpha, least squares of ln y on ln S",
        Method.weighted: "y = C · S^-alpha, weighted least squares of ln y on ln S",
        Method.offset: "y = E + C · S^-alpha, least squares of ln y",
        Method.robust: "y = C · S^-alpha, Huber's loss of ln y on ln S",
    }
    words = how[methods[0]] if len(methods) == 1 else "y = C · S^-alpha, and with an offset E"
    return f"Scaling laws{_AXES[axis]}: {in_axis(words, axis)}"


_AXES = {
    Axis.S: "",
    Axis.D: " along training tokens D",
    Axis.C: " along training FLOPs C",
    Axis.step: " along training steps",
}


_SPARE = ("C", "95 % of C", "sizes", "over S", "E", "95 % of R2", "sd models", "sd text")
_COLUMNS = (
    *("law", "alpha", "95 % interval", "sd text", "sd models", "C", "95 % of C", "E", "R2", "95 % of R2"),
    *("sizes", "over S", "backtest", "form", "status"),
)


def _row(law: Law) -> list[str]:
    fit, params = law.fit, law.fit.params
    return [
        f" {law_name(law.law, law.k)}",
        number(fit.alpha),
        span(fit.alpha_lo, fit.alpha_hi),
        number(params.get("alpha_text_sd")),
        number(params.get("alpha_models_sd")),
        *constant(fit),
        number(params.get("E")),
        number(fit.r2, 3),
        span(params.get("r2_lo"), params.get("r2_hi"), 3),
        *sizes_of(fit),
        percent(fit.backtest_error),
        UNKNOWN if law.choice is None else law.choice.form.value,
        status_name(fit.status),
    ]


def _footnote(results: Sequence[Laws]) -> str:
    laws = [law for each in results for law in each.laws]
    ties = ", ".join(dict.fromkeys(f"ties {each.group.ties.value}" for each in results))
    limits = [law.fit.params.get("limited_by") for law in laws]
    lines = [
        f"RBP_k = Pr(rank <= k), {ties}; y is -ln RBP_k, or nats. {_sources_of_error(results)} "
        f"Backtest: error of the largest {LARGEST[results[0].group.axis]}, predicted from the others. Form: whether "
        "the data call for an irreducible offset E; either: these data do not distinguish the two.",
    ]
    if any(limits):
        models, text = limits.count("models"), limits.count("text")
        lines.append(
            f"What would narrow the intervals: more models for {models} of these laws, more text for {text}."
            + (_of_text(laws) if text and models else "")
        )
    lines += _replicates(laws)
    stands = sum(law.fit.status is Status.ok for law in laws)
    if stands < len(laws):
        lines.append(f"Nothing here speaks against {stands} of these {len(laws)} laws; against the others:")
    return "\n".join([*lines, *remedies(law.fit.status for law in laws)]) + "\n"


def _replicates(laws: Sequence[Law]) -> list[str]:
    """What models of one size differ by, beside what the laws are off by; nothing where no size was trained twice."""
    tests = [test for law in laws if (test := law.fit.params.get("replicates")) is not None]
    if not tests:
        return []
    within, about = ([test[name] for test in tests] for name in ("sd_rest", "sd_about"))
    misfit = sum(test["p"] < SIGNIFICANT for test in tests)
    return [
        f"Models of one size and different seeds differ by {min(within):.2g} to {max(within):.2g} in ln y (standard "
        f"deviation), the laws are off by {min(about):.2g} to {max(about):.2g}: {misfit} of {len(tests)} laws by "
        "significantly more than that, which is misfit, not scatter."
    ]


def _sources_of_error(results: Sequence[Laws]) -> str:
    if not any(laws.group.is_measured for laws in results):
        return "Intervals include the scatter of the models about the law; document sampling is unknown."
    return (
        f"Intervals include document sampling ({results[0].resamples:,} resamples, the same for all sizes) and the "
        "scatter of the models about the law."
    )


def _of_text(laws: Sequence[Law]) -> str:
    names = dict.fromkeys(law_name(law.law, law.k) for law in laws if law.fit.params.get("limited_by") == "text")
    return f" Text: {', '.join(names)}."


def _print_models(screen: Console, result: Laws) -> None:
    group = result.group
    if group.is_measured:
        _print_measured(screen, result)
        return
    ks = [k for k in result.k_grid if any((k, 1) in run.observed for run in group.runs)][:5]
    points = number_of(len(group.runs), counted(group.axis))
    screen.print(f"[bold]{escape(group.title)}: imported, {points}[/bold]", soft_wrap=True)
    also = [name for name in IMPORTED if any(name in run.imported for run in group.runs)]
    has_ce = not also or any(run.cross_entropy_nats is not None for run in group.runs)
    columns = ["size", "S", *place_heading(group.axis), *(f"RBP_{k}" for k in ks), *(["CE"] if has_ce else [])]
    table = grid("", [*columns, *(name.replace("_", " ") for name in also)])
    for run in _shown(group):
        values = [number(run.observed.get((k, 1))) for k in ks]
        values += [number(run.cross_entropy_nats, 3)] if has_ce else []
        values += [number(run.imported.get(name), 3) for name in also]
        table.add_row(escape(run.size), _parameters(run), *place(run), *values)
    put(screen, table)


def _shown(group: Group) -> Sequence[Run]:
    """The runs that are listed: of the many along a training only some, spread over it."""
    return group.runs if group.axis is Axis.S else spread(group.runs, _MOST)


_MOST = 8


def _parameters(run: Run) -> str:
    S = run.non_embedding_params
    return f"{S:,}" if isinstance(S, int) else f"{S:,.0f}"


def _print_measured(screen: Console, result: Laws) -> None:
    group, first = result.group, result.group.first
    tokens = sorted({run.n_tokens or 0 for run in group.runs})
    counted = f"{tokens[0]:,}" + (f" to {tokens[-1]:,}" if len(tokens) > 1 else "")
    skipped = f", {first.n_skipped} shorter than 2 tokens skipped" if first.n_skipped else ""
    title = (
        f"{group.title}: {counted} tokens a model, {number_of(first.n_documents or 0, 'document')}{skipped}; "
        f"{first.protocol} protocol, {first.dtype}, text {str(first.text_hash)[:8]}"
    )
    screen.print(f"[bold]{escape(title)}[/bold]", soft_wrap=True)
    usual = [k for k in result.k_grid if k in (1, 10, 100)] or list(result.k_grid[:3])
    terms = [name for name in ("error_entropy", "self_alignment", "confidence") if name in result.evidence[0].measured]
    names = {"error_entropy": "H(P)", "self_alignment": "KL", "confidence": "-ln ΣS"}
    spare = [f"RBP_{k}" for k in result.k_grid if k not in usual]
    columns = [
        "size",
        "S",
        *place_heading(group.axis),
        *(f"RBP_{k}" for k in result.k_grid),
        "CE",
        *(names[term] for term in terms),
    ]
    table = grid("", columns, spare=spare)
    listed = _shown(group)
    for run, evidence in zip(group.runs, result.evidence, strict=True):
        if not any(run is each for each in listed):
            continue
        m = evidence.measured
        shares = [number(float(share)) for share in m["rbp"]]
        nats = [number(float(m[name]), 3) for name in ("cross_entropy", *terms)]
        table.add_row(escape(run.size), f"{run.non_embedding_params:,}", *place(run), *shares, *nats)
    put(screen, table)
    if result.evidence[0].paper is not None and group.axis is Axis.S:
        _print_ranks(screen, result)


def _print_ranks(screen: Console, result: Laws) -> None:
    columns = ["size", "mu", "sigma", "-ln RBP_1", "derived", "CE", "derived", "paper", "full (gamma)"]
    table = grid("Lognormal of the ranks: from 2 up (paper), of all (full); curves from paper", columns)
    at_1 = result.k_grid.index(1) if 1 in result.k_grid else None
    for run, evidence in zip(result.group.runs, result.evidence, strict=True):
        m, paper, full = evidence.measured, evidence.paper, evidence.full
        if paper is None or full is None:
            continue
        measured = None if at_1 is None or m["rbp"][at_1] == 0 else -math.log(m["rbp"][at_1])
        table.add_row(
            escape(run.size),
            number(paper.params["mu"], 2),
            number(paper.params["sigma"], 2),
            number(measured, 3),
            number(float(m["lognormal_rbp1"]), 3),
            number(float(m["cross_entropy"]), 3),
            number(float(m["lognormal_cross_entropy"]), 3),
            paper.status.label,
            f"{full.status.label} ({number(full.params.get('gamma_unconstrained'), 3)})",
        )
    put(screen, table)
