"""The laws of size of one group, told: alpha with its interval, what a tenfold size brings, the backtest."""

from rbpx.analyses.fit import figure as drawn
from rbpx.analyses.fit.analysis import Laws
from rbpx.display.chart.sheet import Entry, Sheet, decimal, error, magnitude, named, span, state, whole
from rbpx.display.section import Section, Sources, doubts_of, interval, law_title, of_ten
from rbpx.groups.fits import Law

__all__ = ["headline", "section", "sentences"]

_NOTE = (
    "y = C·S^−α (offset: E + C·S^−α). Intervals hold the choice of documents and the scatter of the models. "
    "Backtest: error of the largest size, predicted from the others. Form: whether the data call for an offset E; "
    "either: not distinguishable with these data."
)

_MORE = {"models": "more models, rather than more text", "text": "more text, rather than more models"}
_BIASED = " An interval that leaves out its α is corrected for the bias of counted entropies, α itself is not."


def section(found: Laws, sources: Sources) -> Section:
    """Points, laws and their tables."""
    methods = list(dict.fromkeys(law.method.value for law in found.laws))
    fits = doubts_of((_name(law, len(methods) > 1), law.fit.status) for law in found.laws)
    if len(found.group.runs) < 3:
        fits = fits[:1]  # all laws lack the same sizes
    return Section(
        "laws",
        "Scaling laws",
        tuple(sentences(found)),
        tuple(drawn.figures(found)),
        (_models(found), _laws(found, len(methods) > 1)),
        fits,
    )


def headline(found: Laws) -> tuple[Law | None, Law | None]:
    """The law of RBP at the smallest k, and that of cross-entropy; None where there is none with numbers."""
    known = [law for law in found.laws if law.fit.alpha is not None and law.method is found.laws[0].method]
    shares = [law for law in known if law.law == "rbp"]
    entropy = [law for law in known if law.law == "cross_entropy"]
    return shares[0] if shares else None, entropy[0] if entropy else None


def sentences(found: Laws) -> list[str]:
    """What the laws say, RBP first."""
    runs = found.group.runs
    if len(runs) < 3:
        names = ", ".join(run.size for run in runs)
        there = f"There {'is 1 size' if len(runs) == 1 else f'are {len(runs)} sizes'} ({names}); a law needs three."
        return [*(_values(found, at) for at in range(len(runs))), there]
    shares, entropy = headline(found)
    said = []
    if shares is not None and shares.fit.alpha is not None:
        fit = shares.fit
        said.append(
            f"−ln RBP_{shares.k} falls as S^−α with α = {interval(fit.alpha, fit.alpha_lo, fit.alpha_hi)}, "
            f"R² = {fit.r2:.3f}: a model ten times larger has it {of_ten(fit.alpha or 0.0)}."
        )
    if entropy is not None and entropy.fit.alpha is not None:
        fit = entropy.fit
        said.append(
            f"Cross-entropy falls with α = {interval(fit.alpha, fit.alpha_lo, fit.alpha_hi)}, R² = {fit.r2:.3f}: "
            f"{of_ten(fit.alpha or 0.0)} at ten times the size."
        )
    tested = [law for law in (shares, entropy) if law is not None and law.fit.backtest_error is not None]
    if tested:
        errors = " and ".join(f"{_plain(law)} within {abs(law.fit.backtest_error or 0.0):.1%}" for law in tested)
        said.append(f"Fitted without the largest model, {runs[-1].size}, the laws predict its {errors}.")
    limits = {_plain(law): str(law.fit.params.get("limited_by")) for law in (shares, entropy) if law is not None}
    known = {name: _MORE[limit] for name, limit in limits.items() if limit in _MORE}
    if len(set(known.values())) == 1 and len(known) == len(limits):
        said.append(f"What would narrow the intervals: {next(iter(known.values()))}.")
    elif known:
        told = "; ".join(f"of {name}: {more}" for name, more in known.items())
        said.append(f"What would narrow the interval {told}.")
    return said


def _values(found: Laws, at: int) -> str:
    """RBP and cross-entropy of one run."""
    run, said = found.group.runs[at], []
    if found.evidence:
        said = [f"RBP_{k} = {found.evidence[at].measured['rbp'][n]:.4f}" for n, k in enumerate(found.k_grid[:3])]
    if run.cross_entropy_nats is not None:
        said.append(f"cross-entropy {run.cross_entropy_nats:.3f} nats")
    return f"{run.size}: {', '.join(said)}."


def _plain(law: Law) -> str:
    return "cross-entropy" if law.k is None else f"−ln RBP_{law.k}"


def _name(law: Law, by_method: bool) -> str:
    return law_title(law.law, law.k) + (f", {law.method.value}" if by_method else "")


def _models(found: Laws) -> Sheet:
    group = found.group
    shown = [k for k in found.k_grid if k in (1, 10, 100)] or list(found.k_grid[:3])
    rows = []
    for at, run in enumerate(group.runs):
        if found.evidence:
            shares = [decimal(float(found.evidence[at].measured["rbp"][found.k_grid.index(k)])) for k in shown]
        else:
            shares = [decimal(run.observed.get((k, 1))) for k in shown]
        row: list[Entry] = [named(run.size), whole(run.non_embedding_params), whole(run.n_tokens), *shares]
        rows.append([*row, decimal(run.cross_entropy_nats), named(" ".join(run.run_ids))])
    columns = [("size", "size"), ("S", "non_embedding_params"), ("tokens", "n_tokens")]
    columns += [(f"RBP_{k}", f"rbp_{k}") for k in shown]
    columns += [("CE, nats", "cross_entropy_nats"), ("run", "run_id")]
    return Sheet.of("models", "What each model does", columns, rows)


def _laws(found: Laws, by_method: bool) -> Sheet:
    rows = []
    for law in found.laws:
        fit = law.fit
        rows.append(
            [
                Entry(_name(law, by_method), (law.law, law.k, law.method.value), is_number=False),
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
    note = _NOTE + (_BIASED if any(_beside_interval(law) for law in found.laws) else "")
    return Sheet.of("laws", "Laws side by side", columns, rows, note)


def _beside_interval(law: Law) -> bool:
    alpha, lo, hi = law.fit.alpha, law.fit.alpha_lo, law.fit.alpha_hi
    return alpha is not None and lo is not None and hi is not None and not lo <= alpha <= hi
