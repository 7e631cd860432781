"""What a table says of a fitted law beside its exponent: its constant, the interval of that, and its sizes."""

from rbpx.display.numbers import magnitude_span, significant
from rbpx.laws.power import PowerLawFit


def constant(fit: PowerLawFit) -> list[str]:
    """C of a law, at S = 1, and its interval."""
    return [significant(fit.C, 4), magnitude_span(fit.params.get("C_lo"), fit.params.get("C_hi"))]


def sizes_of(fit: PowerLawFit) -> list[str]:
    """How many sizes a law is fitted to, and the smallest and largest S."""
    sizes = fit.params["S"]
    ends = [f"{end:.1e}".replace("e+0", "e").replace("e+", "e") for end in (min(sizes), max(sizes))]
    return [str(fit.n_points), "..".join(ends)]
