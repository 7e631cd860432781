"""The laws: one family of equations a module, numbers in, a fit with its status out."""

LAWS = (
    "rbp",
    "cross_entropy",
    "lognormal_rbp1",
    "lognormal_cross_entropy",
    "error_entropy",
    "self_alignment",
    "confidence",
)
