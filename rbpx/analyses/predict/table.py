"""Backtest and prediction: laws in order of their errors in; their backtests and predictions out."""

from collections.abc import Sequence

from rbpx.analyses.predict.analysis import Foreseen, Foresight, Foresights
from rbpx.analyses.predict.surface import SurfaceForesights
from rbpx.analyses.predict.surface_table import show_points
from rbpx.display.along import print_group_notes
from rbpx.display.names import law_name, status_name
from rbpx.display.numbers import UNKNOWN, number, percent, short, span
from rbpx.display.tables import console, grid, print_notes, put
from rbpx.laws.over_forms import COMBINED, Shape
from rbpx.laws.verdict import FAR


def show(results: Sequence[Foresights | SurfaceForesights]) -> None:
    """Print the laws ranked by the errors of their backtests, then their predictions; those in size and tokens last."""
    of_size = [each for each in results if isinstance(each, Foresights)]
    if of_size:
        _show_of_size(of_size)
    points = [each for each in results if isinstance(each, SurfaceForesights)]
    if points:
        show_points(points)


def _show_of_size(results: Sequence[Foresights]) -> None:
    screen = console()
    for foresights in results:
        _print_backtest(foresights)
        _print_predictions(foresights)
    print_notes(
        screen,
        "Combined: the prediction over forms (power law, with an offset, with a bend), weighted by evidence; the "
        "answer to take, with its 95 % interval for one new model on the same text. Weights: of the three forms, in "
        "percent. Beside it the law by each method. Backtest: fitted to the smallest sizes and compared with the "
        "larger ones; laws in order of their mean |error|; from n: error of the largest size, predicted from the n "
        "smallest. Inside: how many of the 95 % intervals contained the measured value.",
        (each.status for of in results for foresight in of.laws for each in foresight.predictions),
    )
    print_group_notes(screen, [foresights.group for foresights in results])


def _print_backtest(foresights: Foresights) -> None:
    sizes = foresights.group.runs
    left_out = list(range(1, min(3, max(len(sizes) - 3, 0)) + 1))
    columns = ["law", "by", "mean |error|", *(f"from {len(sizes) - n}" for n in left_out), "inside"]
    spare = ("alpha", "95 % of alpha", "R2")
    table = grid(f"{foresights.group.title}: backtest", [*columns, *spare], left=2, spare=spare)
    for foresight in foresights.laws:
        if not foresight.backtests and foresight.method != foresight.law.method.value:
            continue  # a form within the combined answer
        last = {b.n_fitted: b.error for b in foresight.backtests if b.S == sizes[-1].non_embedding_params}
        mean = foresight.mean_error
        fit = foresight.law.fit
        is_fit = foresight.method != COMBINED
        table.add_row(
            law_name(foresight.law.law, foresight.law.k),
            foresight.method,
            UNKNOWN if mean is None else percent(mean).lstrip("+"),
            *(percent(last.get(len(sizes) - n)) for n in left_out),
            inside_of(foresight),
            number(fit.alpha) if is_fit else "",
            span(fit.alpha_lo, fit.alpha_hi) if is_fit else "",
            number(fit.r2, 3) if is_fit else "",
        )
    put(console(), table)


def inside_of(foresight: Foresight) -> str:
    """How many of the intervals of its backtests contained the measured value, of how many."""
    held = [b.is_inside for b in foresight.backtests if b.is_inside is not None]
    return f"{sum(held)}/{len(held)}" if held else UNKNOWN


def _print_predictions(foresights: Foresights) -> None:
    methods = list(dict.fromkeys(each.law.method.value for each in foresights.laws))
    for at, S in enumerate(foresights.targets):
        size = f"{S:,.0f}" if S < 1e7 else f"{S:.3g}"
        table = grid(
            f"{foresights.group.title}: a new model of S = {size}{_distance(foresights, at)}",
            ["law", "combined", "95 %", "weights", *methods, "status"],
            spare=(*methods, "weights"),
        )
        for answer in foresights.answers:
            if not answer.predictions:
                continue
            beside = {each.method: each for each in foresights.laws if _is_same(each, answer)}
            combined = answer.predictions[at]
            table.add_row(
                law_name(answer.law.law, answer.law.k),
                short(combined.prediction.y),
                f"{short(combined.prediction.lo)}..{short(combined.prediction.hi)}",
                weights_of(answer),
                *(
                    _cell(beside[method].predictions[at : at + 1]) if method in beside else UNKNOWN
                    for method in methods
                ),
                status_name(combined.status),
            )
        put(console(), table)


def _distance(foresights: Foresights, at: int) -> str:
    beyond = next((f.predictions[at].prediction.beyond for f in foresights.laws if f.predictions), 1.0)
    if beyond == 1:
        return ""
    far = f", more than {FAR:.0f}: an extrapolation that no backtest covers" if beyond > FAR else ""
    return f" ({beyond:.3g} times outside the sizes{far})"


def _is_same(a: Foresight, b: Foresight) -> bool:
    return (a.law.law, a.law.k) == (b.law.law, b.law.k)


def _cell(foreseen: Sequence[Foreseen]) -> str:
    if not foreseen:
        return UNKNOWN
    prediction = foreseen[0].prediction
    return f"{short(prediction.y)} ({short(prediction.lo)}..{short(prediction.hi)})"


def weights_of(foresight: Foresight) -> str:
    """Weights of power law, offset and bend in percent."""
    weights = foresight.weights
    return UNKNOWN if weights is None else "/".join(f"{100 * weights.get(form, 0.0):.0f}" for form in Shape)
