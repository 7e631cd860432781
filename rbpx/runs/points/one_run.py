"""Which runs a law along one axis misses, in words: one size that lies off, or the largest by their tokens."""

from collections.abc import Iterable, Iterator, Sequence

from rbpx.display.vocabulary import law_title, rough, the_largest
from rbpx.laws.prediction.influence import farthest_run
from rbpx.laws.prediction.warnings import n_smaller, n_unexpected_tokens
from rbpx.runs.fits import Law
from rbpx.runs.group import Run, labels_of


def said_of_one_run(laws: Iterable[Law]) -> Iterator[str]:
    """Of laws along one axis that one run lies off: which run it is, and how far off."""
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
    """Which of the largest runs saw other tokens than the smaller ones announce, without a full stop; None if none."""
    S = [float(run.non_embedding_params) for run in runs]
    n = n_unexpected_tokens(S, [run.training_tokens for run in runs])
    if not n:
        return None
    named = the_largest(labels_of(runs)[n_smaller(S, abs(n)) :])
    return f"{named} saw {'more' if n > 0 else 'fewer'} tokens than the smaller announce"
