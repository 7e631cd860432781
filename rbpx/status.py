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
    at_bound = "at_bound"
    at_limit = "at_limit"
    no_variances = "no_variances"
    one_document = "one_document"
    not_known = "not_known"
    beyond_vocabulary = "beyond_vocabulary"
    never_crosses = "never_crosses"
    different_tokens = "different_tokens"
    one_outcome = "one_outcome"
    separated = "separated"
    one_length = "one_length"
    one_sided = "one_sided"
    too_short = "too_short"

    @property
    def label(self) -> str:
        """The status in words."""
        return self.value.replace("_", " ")

    @property
    def remedy(self) -> str:
        """What to do about it, in one line."""
        return _REMEDY[self]


_REMEDY = {
    Status.ok: "Nothing to do.",
    Status.too_few_sizes: "A power law needs 3 sizes (or k), 4 with an offset, 2 from outcomes: measure more models.",
    Status.not_positive: "A share of 0 or 1, or a value up to 0, has no law: take another k or window, or more text.",
    Status.sign_change: "The term changes its sign over the sizes, so no power law fits: read its values instead.",
    Status.no_variation: "The quantity is the same at every size: choose another k or sizes further apart.",
    Status.power_law_limit: "No lognormal fits, the best one is a power law: read beta and gamma, not mu and sigma.",
    Status.mid_ranks: "This fit needs whole ranks: choose ties=optimistic or ties=pessimistic.",
    Status.not_converged: "The search found no maximum: look at the counts, and do not use the numbers.",
    Status.too_few_tokens: "Fewer than 3 different ranks were seen: measure more tokens.",
    Status.at_bound: "The best offset is 0, these data want no irreducible part: read method=ols.",
    Status.at_limit: "The best parameter lies at the edge of its family, which is a simpler one there: read that one.",
    Status.no_variances: "Weights need documents to resample: measure more than one, or choose method=ols.",
    Status.one_document: "All tokens are of one document, so nothing is known of others: give more documents.",
    Status.not_known: "The quantity is not known for enough models: import or measure it.",
    Status.beyond_vocabulary: "k reaches the smallest vocabulary, where every token is a hit: choose a smaller k.",
    Status.never_crosses: "The share does not rise with size, so it reaches no level: choose a shorter window.",
    Status.different_tokens: "Other tokens at other sizes, so choice and size are mixed: choose by position or text.",
    Status.one_outcome: "All sequences pass, or all fail, so no law is told: take another N or k, or more sequences.",
    Status.separated: "Passes and failures are of different sizes, so any steep law fits: take another N or k.",
    Status.too_short: "No document has as many tokens as a sequence: take a shorter N.",
    Status.one_sided: "Fewer than 3 sizes have passes and failures both: take alpha as rough, or a shorter N.",
    Status.one_length: "One N cannot tell the correlation of hits from RBP: give outcomes of several N.",
}
