"""The laws of size in the report: alpha with its interval, what ten times the size brings, the backtest."""

from rbpx.analyses.fit.analysis import Laws
from rbpx.analyses.fit.figure import figures
from rbpx.analyses.fit.headline import headline
from rbpx.display.chart.sheet import Cell, Sheet, decimal, entry, error, magnitude, named, sheet_of, span, state, whole
from rbpx.display.names import law_title
from rbpx.display.section import Section, Sources, doubts_of, interval, of_ten
from rbpx.groups.fits import Law
from rbpx.status import Status

__all__ = ["section", "sentences"]

_NOTE = (
    "y = C·S^−α (offset: E + C·S^−α). Intervals include document sampling and the scatter of the models. "
    "Backtest: error of the largest size, predicted from the others. Form: whether the data call for an offset E; "
    "either: these data do not distinguish the two."
)

_MORE = {"models": "more models rather than more text", "text": "more text rather than more models"}


def section(result: Laws, sources: Sources) -> Section:
    """Points, laws and their tables."""
    methods = list(dict.fromkeys(law.method.value for law in result.laws))
    doubts = doubts_of((_name(law, len(methods) > 1), law.fit.status) for law in result.laws)
    if result.group.n_sizes < 3:
        doubts = doubts[:1]  # all laws lack the same sizes
    return Section(
        "laws",
        "Scaling laws",
        tuple(sentences(result)),
        tuple(figures(result)),
        (_models(result), _laws(result, len(methods) > 1)),
        doubts,
    )


def sentences(result: Laws) -> list[str]:
    """The laws in words, RBP first."""
    runs = result.group.runs
    if result.group.n_sizes < 3:
        names = ", ".join(run.size for run in runs)
        too_few = f"There {'is 1 size' if len(runs) == 1 else f'are {len(runs)} sizes'} ({names}); a law needs three."
        return [*(_values(result, at) for at in range(len(runs))), too_few]
    shares, entropy = headline(result)
    lines = [_sentence(law) for law in (shares, entropy) if law is not None]
    tested = [law for law in (shares, entropy) if law is not None and law.fit.backtest_error is not None]
    if tested:
        errors = " and ".join(f"{_plain(law)} within {abs(law.fit.backtest_error or 0.0):.1%}" for law in tested)
        lines.append(f"Fitted without the largest model, {runs[-1].size}, the laws predict its {errors}.")
    limits = {_plain(law): str(law.fit.params.get("limited_by")) for law in (shares, entropy) if law is not None}
    advice = {name: _MORE[limit] for name, limit in limits.items() if limit in _MORE}
    if len(set(advice.values())) == 1 and len(advice) == len(limits):
        lines.append(f"What would narrow the intervals: {next(iter(advice.values()))}.")
    elif advice:
        by_law = "; ".join(f"of {name}: {more}" for name, more in advice.items())
        lines.append(f"What would narrow the interval {by_law}.")
    return lines


def _sentence(law: Law) -> str:
    """One law in words, which are those of its status."""
    fit, name = law.fit, _plain(law)
    subject = name[0].upper() + name[1:]
    alpha = fit.alpha or 0.0
    exponent = f"α = {interval(fit.alpha, fit.alpha_lo, fit.alpha_hi)}"
    turn = "falls" if alpha > 0 else "rises"
    if fit.status is Status.no_trend:
        return f"{subject}: no law here; {exponent} cannot be told from 0."
    if fit.status is Status.not_monotone:
        return f"{subject}: no law here; the values turn round between the sizes ({exponent})."
    if fit.status is Status.bends:
        return f"{subject} {turn} with size, but not as a power law: the points curve about it ({exponent})."
    r2 = "" if fit.r2 is None else f", R² = {fit.r2:.3f}"
    law_in_words = f"{subject} {turn} as S^−α with {exponent}{r2}: for a model ten times larger it is {of_ten(alpha)}"
    return law_in_words + (f"; but {fit.status.label}." if fit.status is not Status.ok else ".")


def _values(result: Laws, at: int) -> str:
    """RBP and cross-entropy of one run."""
    run, values = result.group.runs[at], []
    if result.evidence:
        values = [f"RBP_{k} = {result.evidence[at].measured['rbp'][n]:.4f}" for n, k in enumerate(result.k_grid[:3])]
    if run.cross_entropy_nats is not None:
        values.append(f"cross-entropy {run.cross_entropy_nats:.3f} nats")
    return f"{run.size}: {', '.join(values)}."


def _plain(law: Law) -> str:
    return "cross-entropy" if law.k is None else f"−ln RBP_{law.k}"


def _name(law: Law, by_method: bool) -> str:
    return law_title(law.law, law.k) + (f", {law.method.value}" if by_method else "")


def _models(result: Laws) -> Sheet:
    group = result.group
    ks = [k for k in result.k_grid if k in (1, 10, 100)] or list(result.k_grid[:3])
    rows = []
    for at, run in enumerate(group.runs):
        if result.evidence:
            shares = [decimal(float(result.evidence[at].measured["rbp"][result.k_grid.index(k)])) for k in ks]
        else:
            shares = [decimal(run.observed.get((k, 1))) for k in ks]
        row: list[Cell] = [named(run.size), whole(run.non_embedding_params), whole(run.n_tokens), *shares]
        rows.append([*row, decimal(run.cross_entropy_nats), named(" ".join(run.run_ids))])
    columns = [("size", "size"), ("S", "non_embedding_params"), ("tokens", "n_tokens")]
    columns += [(f"RBP_{k}", f"rbp_{k}") for k in ks]
    columns += [("CE, nats", "cross_entropy_nats"), ("run", "run_id")]
    return sheet_of("models", "What each model scores", columns, rows)


def _laws(result: Laws, by_method: bool) -> Sheet:
    rows = []
    for law in result.laws:
        fit = law.fit
        rows.append(
            [
                entry(_name(law, by_method), (law.law, law.k, law.method.value), is_number=False),
                decimal(fit.alpha),
                span(fit.alpha_lo, fit.alpha_hi),
                decimal(fit.r2),
                magnitude(fit.C),
                whole(fit.n_points),
                error(fit.backtest_error),
                named(None if law.choice is None else law.choice.form.value),
                state(fit.status),
            ]
        )
    columns = [("law", "law k method"), ("α", "alpha"), ("95 %", "alpha_lo alpha_hi"), ("R²", "r2"), ("C", "C")]
    columns += [("sizes", "n_points"), ("backtest", "backtest_error"), ("form", "form"), ("status", "status")]
    return sheet_of("laws", "Laws side by side", columns, rows, _NOTE)
