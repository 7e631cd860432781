"""Solves what several laws need at the same time as one problem: generators that ask in, their results out.

What one law has to solve takes little less time than what thirty have, and a search of one law takes its time for a few
resamples that end late. So a law that needs a search is a generator, which yields each `Problem` and is sent its
solution, and the problems that several have at one time are solved as one.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Hashable, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Problem(ABC):
    """What many laws have to solve, and is solved for all of them at once."""

    @abstractmethod
    def kind(self) -> Hashable:
        """Problems of one class and one kind can be solved together."""

    @staticmethod
    @abstractmethod
    def solve(alike: Sequence[Any]) -> Sequence[Any]:
        """The solution of each."""


Searching = Generator[Problem, Any, T]
"""What yields problems, is sent the solution of each, and returns what it makes of them."""


def alone(searching: Searching[T]) -> T:
    """The result of one."""
    (result,) = together([searching])
    return result


def at_once(search: Callable[P, Searching[T]]) -> Callable[P, T]:
    """What finds the result of one at once, with the arguments of what searches for it."""

    @wraps(search)
    def find(*args: P.args, **options: P.kwargs) -> T:
        return alone(search(*args, **options))

    return find


def together(searching: Sequence[Searching[T]]) -> list[T]:
    """The results of several, side by side: the problems that they have at one time are solved as one."""
    results: dict[int, T] = {}
    asked: dict[int, Problem] = {}

    def advance(at: int, solution: Any) -> None:
        try:
            asked[at] = searching[at].send(solution)
        except StopIteration as end:
            results[at] = end.value

    for at in range(len(searching)):
        advance(at, None)
    while asked:
        alike: dict[Hashable, dict[int, Problem]] = {}
        for at, problem in asked.items():
            alike.setdefault((type(problem), problem.kind()), {})[at] = problem
        asked.clear()
        for problems in alike.values():
            solutions = next(iter(problems.values())).solve(list(problems.values()))
            for at, solution in zip(problems, solutions, strict=True):
                advance(at, solution)
    return [results[at] for at in range(len(searching))]
