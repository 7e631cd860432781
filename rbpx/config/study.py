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
        would_change: what measurement would change the answer.
        file: what its analyses read in place of the store, as FILE of their verbs; relative to the folder of studies.
        result: a SELECT over `found`, the rows of its analyses; `record` writes its answer into the file.
    """

    name: str | None = None
    question: str | None = None
    grid: str | None = None
    published: str | None = None
    would_change: str | None = None
    file: str | None = None
    result: str | None = None
