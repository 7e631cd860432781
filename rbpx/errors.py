"""Errors for users, in one line: what is wrong, with its value and place, and what to do next."""

from traceback import format_exception


class RbpxError(Exception):
    """A request that cannot be met; the command line prints it as one line and exits 2."""


class AbsentModelError(RbpxError):
    """A model or revision that does not exist, most likely a mistyped name; nothing of it is stored."""


class AbsentTextError(RbpxError):
    """A dataset whose file does not exist."""


class MeasureError(RbpxError):
    """A measurement that failed while running; it is recorded in `failures`, and the command exits 1."""


class NotHereError(MeasureError):
    """Something of the hub is not on this machine, and HF_HUB_OFFLINE forbids fetching it; `what` has no remedy."""

    def __init__(self, what: str, command: str) -> None:
        super().__init__(what, command)
        self.what = what

    def __str__(self) -> str:
        return self.fetched_by(self.args[1])

    def fetched_by(self, command: str) -> str:
        """The same error with another command."""
        return f"{self.what}; fetch it where there is a network: {command}"


def raise_stop_behind(problem: BaseException) -> None:
    """Raises the stop (Ctrl-C, a signal) that interrupted a library, if that then ended in an error of its own."""
    behind: BaseException | None = problem
    while behind is not None and not isinstance(behind, KeyboardInterrupt):
        behind = behind.__cause__ or behind.__context__
    if behind is not None:
        raise behind from None


class UnexpectedError(MeasureError):
    """An error that rbpx did not raise itself: of a model's code or a library, or a bug in rbpx."""

    traceback: str = ""

    @classmethod
    def of(cls, problem: Exception, what: str) -> "UnexpectedError":
        """One line for an error of any kind, beginning with what happened; keeps its traceback."""
        unexpected = cls(f"{what}: {first_line(problem)}")
        unexpected.traceback = "".join(format_exception(problem))
        return unexpected


def reason(problem: BaseException, most: int = 200) -> str:
    """An error's message on one line; if it has none, a phrase for its type."""
    of_its_kind = (type(problem).__doc__ or "no reason given").split("\n")[0].rstrip(".")
    return (" ".join(str(problem).split()) or of_its_kind)[:most]


def first_line(problem: Exception) -> str:
    """The type of an error and its first line, or two if it ends in a colon."""
    lines = [line.strip() for line in str(problem).split("\n") if line.strip()]
    n_lines = 2 if lines and lines[0].endswith(":") else 1
    return f"{type(problem).__name__}: {' '.join(lines[:n_lines])[:200] or reason(problem)}"


def number_of(n: int, noun: str, plural: str | None = None) -> str:
    """A count with its noun; `plural` is for plurals that do not end in s."""
    return f"{n:,} {noun if n == 1 else plural or f'{noun}s'}"
