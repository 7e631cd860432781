"""A named study, as a file of experiments/ says it."""

from dataclasses import dataclass


@dataclass
class StudyConfig:
    """A named study (experiments/*.yaml).

    Attributes:
        name: of its file.
        question: what it asks.
        grid: what was measured where it was published, and what is measured here.
        published: what was published, with its source.
        result: a SELECT over `found`, the rows of its analyses: what `record` writes into its file.
    """

    name: str | None = None
    question: str | None = None
    grid: str | None = None
    published: str | None = None
    result: str | None = None
