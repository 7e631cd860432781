"""Says which runs a law along one axis misses: one size that lies off, or the largest by their tokens."""

from collections.abc import Iterable, Iterator, Sequence

from rbpx.display.vocabulary import law_title, rough, the_largest
from rbpx.laws.prediction.influence import farthest_run
from rbpx.laws.prediction.warnings import n_smaller, n_unexpected_tokens
from rbpx.runs.fits import Law
from rbpx.runs.run import Run, labels_of


def said_of_one_run(laws: Iterable[Law]) -> Iterator[str]:
    """Which single run lies off the laws along one axis, and how far."""
    named: dict[str, list[str]] = {}
    for law in laws:
        off = farthest_run(law.fit.S, law.fit.y)
        if off is not None:
            side = "above" if off.share > 0 else "below"
            said = f"{law_title(law.law, law.k)} {abs(off.share):.1%} {side} ({rough(abs(off.in_sd))})"
            named.setdefault(labels_of(law.runs)[off.at], []).append(said)
    for run, offs in named.items():
        yield f"{run} lies off what the others say (in standard deviations): {', '.join(offs)}."


def said_of_tokens(runs: Sequence[Run]) -> str | None:
    """Which of the largest runs depart from the trend of tokens with size (no full stop)."""
    S = [float(run.non_embedding_params) for run in runs]
    n = n_unexpected_tokens(S, [run.training_tokens for run in runs])
    if not n:
        return None
    named = the_largest(labels_of(runs)[n_smaller(S, abs(n)) :])
    return f"{named} saw {'more' if n > 0 else 'fewer'} tokens than the smaller announce"
