"""The description of a verb, the job that it is given, and the outcome of a job."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rbpx.cli.argv import CommandLine


@dataclass(frozen=True)
class Verb:
    """The description of a verb that is not a question, `VERB` in its file; nothing heavy is imported for it.

    Attributes:
        order: its place among the verbs; the questions stand at 100.
        theme: one of `THEMES`, under which the list of verbs has it.
        summary: what it does, for the list of verbs.
        help: the page of its `--help`.
        examples: commands that can be typed.
        primary: the file of conf/ that its request begins from.
        takes_words: whether it takes words beside key=value, as the query of sql.
        needs_store: whether it reads or writes a store.
        keys: what it can be asked beside the store; one with a dot stands here to be explained on its page.
        kind: returns the dataclass of its request, where that is not a `Request`.
        performs: whether it asks questions, whose keys it then has too.
    """

    order: int
    theme: str
    summary: str
    help: str
    examples: tuple[str, ...]
    primary: str = "analyse"
    takes_words: bool = False
    needs_store: bool = True
    keys: tuple[str, ...] = ()
    kind: Callable[[], type] | None = None
    performs: bool = False


@dataclass(frozen=True)
class Job:
    """What a verb is given to start with.

    Attributes:
        request: the composed request of this job of a sweep.
        line: the command line that all jobs share.
        alone: whether it has a process of its own, as under the launchers joblib and submitit, so that it cannot wait
            for the other jobs of its sweep.
        number: of this job in its sweep, from 1.
        n_jobs: of the sweep; None where its sweeper does not know yet how many it will start.
    """

    request: Any
    line: "CommandLine"
    alone: bool
    number: int = 1
    n_jobs: int | None = 1

    @property
    def words(self) -> tuple[str, ...]:
        """The verb's own words."""
        return self.line.words


@dataclass(frozen=True)
class Outcome:
    """What one job did.

    Attributes:
        request: what it was asked; None where that could not be composed.
        answer: what its verb's `start` returned.
        error: why it did nothing, None where it did something.
        status: exit status that the error stands for.
    """

    request: Any = None
    answer: Any = None
    error: str | None = None
    status: int = 0
