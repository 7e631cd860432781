"""Predictions in sentences: which law was predicted best, and what can be relied on."""

from collections.abc import Sequence

from rbpx.analyses.predict.analysis import Foresight, Foresights
from rbpx.analyses.predict.surface import SurfaceForesights
from rbpx.display.vocabulary import law_title
from rbpx.laws.surface.checks import mean_error
from rbpx.laws.verdict import FAR
from rbpx.status import Status


def sentences(results: Sequence[Foresights | SurfaceForesights]) -> list[str]:
    """How good the backtests are, and against which predictions something speaks."""
    return [said for of in results for said in (_of_sizes(of) if isinstance(of, Foresights) else _held_out(of))]


def name_of(foresight: Foresight) -> str:
    """The law of a prediction."""
    return law_title(foresight.law.law, foresight.law.k)


def _of_sizes(of: Foresights) -> list[str]:
    found = []
    tested = [law for law in of.answers if law.mean_error is not None]
    if tested:
        inside = [test.is_inside for law in tested for test in law.backtests if test.is_inside is not None]
        found.append(
            f"Fitted to the smallest sizes and compared with the larger ones, {name_of(tested[0])} was predicted best, "
            f"{tested[0].mean_error:.1%} off on average; the 95 % intervals over forms contained {sum(inside)} of "
            f"{len(inside)} measured values."
        )
    standing = [name_of(law) for law in of.answers if Status.ok in (each.status for each in law.predictions)]
    if tested and not standing:
        found.append("No law here can be relied on for a prediction; the reasons stand beside each.")
    elif len(standing) < len(of.answers):
        found.append(f"Nothing speaks against the predictions of {', '.join(standing)}; against the others it does.")
    far = [each.prediction for law in of.answers[:1] for each in law.predictions if each.prediction.beyond > FAR]
    if far:
        sizes = ", ".join(f"{each.S:.3g} ({each.beyond:.3g} times)" for each in far)
        found.append(
            f"S = {sizes} lies more than {FAR:.0f} times beyond the sizes: an extrapolation that no backtest covers."
        )
    return found


def _held_out(of: SurfaceForesights) -> list[str]:
    found = []
    for law in of.laws:
        error = mean_error(law.best.held_out)
        if error is not None:
            found.append(
                f"{law_title(law.trained.law, law.trained.k)}: the largest S, D and C, each predicted from the others "
                f"by {law.best.fit.form}, are {error:.1%} off on average."
            )
    return found
