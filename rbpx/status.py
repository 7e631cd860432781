"""What a fit has to say about itself: an outcome in, the remedy for it in plain words out."""

from enum import StrEnum

__all__ = ["Status"]


class Status(StrEnum):
    """The outcome of a fit. Every table and figure shows it beside the numbers it belongs to."""

    ok = "ok"
    too_few_sizes = "too_few_sizes"
    not_positive = "not_positive"
    sign_change = "sign_change"
    no_variation = "no_variation"
    power_law_limit = "power_law_limit"
    mid_ranks = "mid_ranks"
    not_converged = "not_converged"
    too_few_tokens = "too_few_tokens"
    never_crosses = "never_crosses"

    @property
    def remedy(self) -> str:
        """What to do about it, in one line."""
        return _REMEDY[self]


_REMEDY = {
    Status.ok: "Nothing to do.",
    Status.too_few_sizes: "A power law needs at least 3 sizes: measure more models of the family.",
    Status.not_positive: "A value is zero, negative or not a number: choose a smaller k or measure more tokens.",
    Status.sign_change: "The term changes its sign over the sizes, so no power law fits: read its values instead.",
    Status.no_variation: "The quantity is the same at every size: choose another k or sizes further apart.",
    Status.power_law_limit: "No lognormal fits, the best one is a power law: read beta and gamma, not mu and sigma.",
    Status.mid_ranks: "This fit needs whole ranks: choose ties=optimistic or ties=pessimistic.",
    Status.not_converged: "The search found no maximum: look at the counts, and do not use the numbers.",
    Status.too_few_tokens: "Fewer than 3 different ranks were seen: measure more tokens.",
    Status.never_crosses: "The share does not rise with size, so it reaches no level: choose a shorter window.",
}
