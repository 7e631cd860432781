"""The laws of a group that stand first: those of -ln RBP at the smallest k, and of cross-entropy."""

from rbpx.analyses.fit.analysis import Laws
from rbpx.groups.fits import Law

__all__ = ["headline"]


def headline(result: Laws) -> tuple[Law | None, Law | None]:
    """The law of RBP at the smallest k and that of cross-entropy, each None where it has no numbers."""
    fitted = [law for law in result.laws if law.fit.alpha is not None and law.method is result.laws[0].method]
    shares = [law for law in fitted if law.law == "rbp"]
    entropy = [law for law in fitted if law.law == "cross_entropy"]
    return shares[0] if shares else None, entropy[0] if entropy else None
