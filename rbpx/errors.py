"""What a user is told when something goes wrong, in one line: what, with its value, where, and what to do next."""

from traceback import format_exception


class RbpxError(Exception):
    """A request that cannot be met; the command line prints it as one line and exits 2."""


class AbsentModelError(RbpxError):
    """A model or a revision that is nowhere, so most likely a name that was mistyped; nothing of it is kept."""


class AbsentTextError(RbpxError):
    """A dataset whose file is not there."""


class UntoldRanksError(RbpxError):
    """An engine did not tell ranks under the tie rule that is asked for."""


class MeasureError(RbpxError):
    """A measurement that failed while running; kept in `failures`, and the command exits 1."""


class NotHereError(MeasureError):
    """Something of the hub that is not on this machine, where HF_HUB_OFFLINE forbids to ask the hub for it.

    Attributes:
        what: that it is missing, without a remedy.
    """

    def __init__(self, what: str, command: str) -> None:
        """Say what is missing, and the command that fetches it."""
        super().__init__(what, command)
        self.what = what

    def __str__(self) -> str:
        """What is missing, and how it is fetched."""
        return self.fetched_by(self.args[1])

    def fetched_by(self, command: str) -> str:
        """The same with another command."""
        return f"{self.what}; fetch it where there is a network: {command}"


class UnexpectedError(MeasureError):
    """An error that rbpx did not raise itself: of a model's code, of a library, or a mistake in rbpx.

    Attributes:
        traceback: of the original error, in Python's words.
    """

    traceback: str = ""

    @classmethod
    def of(cls, problem: Exception, what: str) -> "UnexpectedError":
        """One line for an error of any kind, beginning with what happened; its traceback is kept."""
        unexpected = cls(f"{what}: {first_line(problem)}")
        unexpected.traceback = "".join(format_exception(problem))
        return unexpected


def reason(problem: BaseException, most: int = 200) -> str:
    """The message of an error on one line, cut to `most` characters; what Python says of its kind where it has none."""
    of_its_kind = (type(problem).__doc__ or "no reason given").split("\n")[0].rstrip(".")
    return (" ".join(str(problem).split()) or of_its_kind)[:most]


def first_line(problem: Exception) -> str:
    """The kind of a library's error and its first line, with the second where the first ends in a colon."""
    lines = [line.strip() for line in str(problem).split("\n") if line.strip()]
    n_lines = 2 if lines and lines[0].endswith(":") else 1
    return f"{type(problem).__name__}: {' '.join(lines[:n_lines])[:200] or reason(problem)}"


def number_of(n: int, noun: str, plural: str | None = None) -> str:
    """A count with its noun, in the plural unless there is exactly one; `plural` where it does not end in s."""
    return f"{n:,} {noun if n == 1 else plural or f'{noun}s'}"
