"""The description of a named study in a file of experiments/."""

from dataclasses import dataclass


@dataclass
class StudyConfig:
    """A named study (experiments/*.yaml).

    Attributes:
        name: the name of its file.
        question: the question it answers.
        grid: what was measured in the publication, and what is measured here.
        published: what was published, with its source.
        result: a SELECT over `found`, the rows of its analyses; `record` writes its answer into the file.
    """

    name: str | None = None
    question: str | None = None
    grid: str | None = None
    published: str | None = None
    result: str | None = None
