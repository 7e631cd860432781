"""Which run a law along one axis misses, in words: laws whose status is one_run in, a sentence for each run out."""

from collections.abc import Iterable, Iterator

from rbpx.display.vocabulary import law_title, rough
from rbpx.laws.prediction.influence import farthest_off
from rbpx.runs.fits import Law
from rbpx.runs.group import labels_of


def said_of_one_run(laws: Iterable[Law]) -> Iterator[str]:
    """Of laws along one axis that one run lies off: which run it is, and how far off."""
    named: dict[str, list[str]] = {}
    for law in laws:
        off = farthest_off(law.fit.S, law.fit.y)
        if off is not None:
            side = "above" if off.share > 0 else "below"
            said = f"{law_title(law.law, law.k)} {abs(off.share):.1%} {side} ({rough(abs(off.in_sd))})"
            named.setdefault(labels_of(law.runs)[off.at], []).append(said)
    for run, offs in named.items():
        yield f"{run} lies off what the others say (in standard deviations): {', '.join(offs)}."
