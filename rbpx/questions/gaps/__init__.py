"""How the gap between two datasets, or two slices of one, changes with size.

For every two texts that a family was measured on, fits L_A / L_B = G (S / S_ref)^delta, L being cross-entropy or -ln
RBP_k (arXiv 2510.24626). A is the harder text; delta < 0 means that the gap closes.

A gap closes or opens where its p, adjusted for all gaps of the request (Holm), is below 0.05. slices= compares tokens
of one text, each slice with the first: position (1-15, 16-63, 64-255, 256+), frequency (deciles of the scored tokens by
how often their id is scored, most frequent first), category or domain of items, or names with SQL conditions over
doc_id, position, token_id, text, frequency (a count), decile, n_tokens (of the document), category, domain, greater,
ties, logprob and rank. A single condition is compared with the remaining tokens. Write SQL strings with $$: text =
$$def$$. A condition on rank or logprob selects different tokens at each size; such a gap is marked `different tokens`.
"""

from rbpx.config.keys.laws import Along, Laws
from rbpx.config.keys.output import Drawn, Queried
from rbpx.config.keys.tasks import Slices
from rbpx.questions.registry import Analysis


class GapsKeys(Laws, Along, Slices, Queried, Drawn):
    """Keys of gaps."""


ANALYSIS = Analysis(
    place=140,
    theme="compare",
    examples=(
        "python -m rbpx gaps model=ladder",
        "python -m rbpx gaps dataset=pydoc slices=position",
        'python -m rbpx gaps dataset=pydoc slices=\'{early: "position < 64", late: "position >= 64"}\'',
        "python -m rbpx gaps dataset=pydoc slices='{digits: \"regexp_matches(text, $$^[0-9]+$$)\"}'",
    ),
    plain=(
        *("loss", "k", "source", "family", "dataset", "dataset_b", "slice_a", "slice_b", "variant", "revision"),
        *("ratio", "ratio_lo", "ratio_hi", "delta", "delta_lo", "delta_hi", "p", "p_adjusted", "verdict"),
        *("n_points", "status", "ties", "axis", "fit_id"),
    ),
    title="Gaps between texts",
    sizes=3,
    draws=True,
    across=True,
    lacking="gaps compares two texts, or slices of one, at 3 sizes of a family, and store={store} has none that were "
    "measured alike; measure another text, as dataset=pydoc",
)
