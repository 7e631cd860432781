"""Shows the laws in k: one for each model, with what a larger k is worth, and one for all k beside its rivals."""

from collections.abc import Iterator, Sequence
from typing import Final

from rbpx.display.chart.colours import MOST_SERIES
from rbpx.display.chart.figure import Figure, Scale, Undrawn, spread
from rbpx.display.chart.laws import law_figure
from rbpx.display.view import Table, View, decimal, place, share, state, text, whole, with_ends, written
from rbpx.display.vocabulary import number, rough, significant
from rbpx.laws.exchange import STEP
from rbpx.laws.in_k import FormInK, JointLaw
from rbpx.laws.intervals.estimate import Estimate
from rbpx.questions.klaw.analysis import KLaw, KLaws, analyse, keep
from rbpx.questions.klaw.words import FORMS, sentences
from rbpx.questions.question import each, of_parts, one_by_one
from rbpx.runs.origin import from_shares

LAWS: Final = View[KLaw](
    "laws",
    text("size", "size", lambda law: law.label),
    place(lambda law: law.run, spare=3),
    with_ends(
        "α_k", "alpha", lambda law: law.fit.exponent,
        means="interval over documents, where these are known, resampled at all k together, as hits at one k are "
        "hits at every larger k; where the law bends, α_k is that of the best line over these k",
    ),
    with_ends("C", "C", lambda law: law.fit.constant, lambda value: significant(value, 3), spare=4),
    decimal("R²", "r2", lambda law: law.fit.r2, 3),
    decimal(
        "neighbours", "residual_autocorrelation",
        lambda law: None if law.fit.bend is None else law.fit.bend.residual_autocorrelation, 2,
        means="correlation of the residuals of neighbouring k", spare=2,
    ),
    with_ends(
        "{x} times", "factor", lambda law: law.exchange, rough,
        means=f"the factor in {{x}} by which to do at k = 1 what this model does at k = {STEP}, "
        f"{STEP}^(α_k / α_{{x}}) with α_{{x}} of the law in {{x}} at k = 1; where the law bends it is local, from "
        f"k = 1 to {STEP} alone; – for the upper end: no {{x}} is known to suffice",
    ),
    written(
        "rate", "rate", lambda law: None if law.exchange is None else -law.exchange.rate,
        lambda value: number(value, 2), means="d ln {x} / d ln k at constant RBP", spare=1,
    ),
    state(lambda law: law.fit.status),
)  # fmt: skip
ONE_LAW: Final = View[tuple[str, Estimate]](
    "one-law", text("number", "name", lambda row: row[0]), with_ends("value", "value", lambda row: row[1])
)
RIVALS: Final = View[tuple[JointLaw, FormInK]](
    "joint",
    text("form", "form", lambda row: FORMS[row[1].form]),
    whole("parameters", "n_parameters", lambda row: row[1].n_parameters),
    decimal("AIC", "aic", lambda row: row[1].aic - min(form.aic for form in row[0].forms), 1),
    decimal(
        "BIC", "bic", lambda row: row[1].bic - min(form.bic for form in row[0].forms), 1,
        means="above the smallest, as AIC is; of a likelihood on this text in which the k of one size are correlated",
    ),
    share(
        "largest off by", "backtest_error", lambda row: row[1].backtest_error,
        means="error of the largest {x}, predicted from the smaller ones, root mean square over k",
    ),
)  # fmt: skip


@one_by_one
def tables(laws: KLaws) -> Iterator[Table]:
    """The laws of a group, then the one law for all k."""
    group, joint, x = laws.group, laws.joint, laws.group.axis.value
    ks = ", ".join(map(str, laws.k_grid))
    note = f"−ln RBP_k = C · k^−α_k, least squares of logarithms at k = {ks}; ties {group.ties.value}."
    yield LAWS.table(f"Laws in k: k = {STEP} against {x}", laws.laws, group.title, group.axis, note)
    if joint is not None:
        ks = f"k = {joint.of_range[0]:,} to {joint.of_range[-1]:,}"
        numbers = [("α", joint.alpha.exponent), ("κ", joint.kappa), ("α, more for each ln k", joint.drift)]
        numbers += [] if joint.bend is None else [("bend in ln k", joint.bend)]
        title = f"One law for all k, −ln RBP_k = C · k^−κ · {x}^−α, over {ks}"
        yield ONE_LAW.table(title, numbers, group.title)
        forms = [(joint, form) for form in joint.forms]
        yield RIVALS.table(f"One law for all k and its rivals, {ks}", forms, group.title, group.axis)


@one_by_one
def figures(result: KLaws, fit_ids: Sequence[str]) -> Iterator[Figure | Undrawn]:
    """Draw -ln RBP_k against k for up to seven models, each with its law (figure 9 of the RBP paper)."""
    fitted, title = [law for law in result.laws if law.fit.alpha is not None], "−ln RBP_k against k"
    if not fitted:
        yield Undrawn("k", title, "No size has −ln RBP_k at three values of k; ask for more: k='[1,3,10,30,100]'.")
        return
    chosen = spread(fitted, MOST_SERIES)
    slopes = " to ".join(f"{law.label} with slope {-(law.fit.alpha or 0):.3f}" for law in spread(chosen, 2))
    part = f" {len(chosen)} of {len(fitted)} sizes are drawn." if len(chosen) < len(fitted) else ""
    says = f"Logarithmic plot for {result.group.title}: falling lines, from {slopes}."
    words = (says, f"Lines: −ln RBP_k = C·k^−α in each model, by least squares.{part}")
    x, y = Scale("k", "k", log=True), Scale("neg_ln_rbp", "−ln RBP_k", log=True)
    laws, origin = [(law.label, law.fit) for law in chosen], from_shares(result.group, result.k_grid)
    yield law_figure("k", title, laws, x, y, words, origin, legend="size", band=False)


QUESTION = of_parts(each(analyse), keep, tables, sentences, figures)
