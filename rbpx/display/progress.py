"""Progress on standard error: bars on a terminal, plain lines on a pipe."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from threading import Lock
from types import TracebackType

from rich.markup import escape
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from rbpx.display.screen import Screen
from rbpx.display.vocabulary import in_bytes
from rbpx.display.vocabulary import time as spent
from rbpx.files.escapes import visible_line

_PLAIN_EVERY_S = 15.0


class GridProgress:
    """Shows cells done and left, tokens scored per second and the time left for the cell."""

    def __init__(self, title: str, n_cells: int, quiet: bool = False, number: int = 1, n_jobs: int | None = 1) -> None:
        """Starts with `n_cells` to do, as job `number` of `n_jobs`; all processes but the main one are `quiet`."""
        self._console = Screen(stderr=True, quiet=quiet)
        self._job = "" if n_jobs == 1 else f"job {number}" if n_jobs is None else f"job {number}/{n_jobs}"
        self._bars = None
        self._title, self._n_cells, self._done = title, n_cells, 0
        self._told = time.monotonic()
        if self._console.is_terminal and not quiet:
            self._bars = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=24),
                MofNCompleteColumn(),
                TextColumn("{task.fields[rate]}"),
                TimeRemainingColumn(),
                console=self._console,
                transient=True,
            )
            self._grid = self._bars.add_task(f"{_plain(title)}: cells", total=n_cells, rate="")

    def __enter__(self) -> "GridProgress":
        if self._bars is not None:
            self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bars is not None:
            self._bars.stop()

    @property
    def n_done(self) -> int:
        """Number of cells done, including failed ones."""
        return self._done

    def begin(self, what: str, n_tokens: int, processes: int = 1) -> Callable[[int], None]:
        """Announces a cell; returns a function to call with the number of tokens just scored."""
        started, printed, scored = time.monotonic(), time.monotonic(), 0
        bar: TaskID | None = None
        if self._bars is not None:
            bar = self._bars.add_task(f"  {_plain(what)}", total=n_tokens, rate="")

        def advance(n: int) -> None:
            nonlocal printed, scored
            scored = min(n_tokens, scored + n * processes)
            rate = scored / max(time.monotonic() - started, 1e-3)
            if self._bars is not None and bar is not None:
                self._bars.update(bar, completed=scored, rate=f"{rate:,.0f} tokens/s")
            elif time.monotonic() - printed > _PLAIN_EVERY_S and scored < n_tokens:
                printed = time.monotonic()
                left_s = (n_tokens - scored) / rate
                self._say(f"{self._place()} {what}: {scored / n_tokens:.0%}, {rate:,.0f} tokens/s, {left_s:.0f} s left")

        return advance

    def finish(self, text: str) -> None:
        """Announces how a cell ended."""
        self._done += 1
        if self._bars is not None:
            for task in self._bars.task_ids[1:]:
                self._bars.remove_task(task)
            self._bars.update(self._grid, completed=self._done)
        self._say(f"{self._place(done=True)} {text}")

    def tell(self, pace: str, cells: str) -> None:
        """Shows the progress of cells in other processes."""
        if self._bars is not None:
            self._bars.update(self._grid, rate=pace)
        elif time.monotonic() - self._told > _PLAIN_EVERY_S:
            self._told = time.monotonic()
            self._say(f"{self._place(done=True)} {pace}{cells and ': '}{cells}")

    def _say(self, text: str) -> None:
        self._console.print(visible_line(text), highlight=False, soft_wrap=True, markup=False)

    def _place(self, done: bool = False) -> str:
        cell = f"{self._done if done else self._done + 1}/{self._n_cells}"
        return f"[{', '.join(part for part in (self._job, cell) if part)}]"


def tell_loading(what: str, quiet: bool = False) -> Callable[[int, int | None, str], None]:
    """Announces that texts are loading; returns a function to call with amount, total and unit."""
    console = Screen(stderr=True, quiet=quiet)
    began = printed = time.monotonic()
    console.print(f"loading {what}", highlight=False, soft_wrap=True, markup=False)

    def tell(done: int, total: int | None, unit: str) -> None:
        nonlocal printed
        if time.monotonic() - printed > _PLAIN_EVERY_S and done != total:
            printed = time.monotonic()
            of = "" if total is None else f" of {total:,}"
            console.print(f"{what}: {done:,}{of} {unit}, {printed - began:.0f} s", highlight=False, soft_wrap=True)

    return tell


Advance = Callable[[float], None]
_WHOLE: ContextVar[tuple[Advance, float] | None] = ContextVar("whole", default=None)


@contextmanager
def share_of(advance: Advance, share: float) -> Iterator[None]:
    """Counts inside the block advance a part of another bar."""
    done = 0.0

    def advance_within(n: float) -> None:
        nonlocal done
        done += n
        advance(n)

    token = _WHOLE.set((advance_within, share))
    try:
        yield
    finally:
        _WHOLE.reset(token)
        advance(share - done)


@contextmanager
def counted(title: str, total: float, of_bytes: bool = False) -> Iterator[Advance]:
    """Shows a bar, for bytes with throughput and time left; yields a function that threads call with what they did."""
    whole = _WHOLE.get()
    if whole is not None:
        advance_whole, share = whole
        yield lambda n: advance_whole(share * n / total)
        return
    console, began, done, turn = Screen(stderr=True), time.monotonic(), 0.0, Lock()
    printed, amounts = began, (DownloadColumn(), TransferSpeedColumn()) if of_bytes else (MofNCompleteColumn(),)
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), *amounts, TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        bar = bars.add_task(_plain(title), total=round(total))

        def advance(n: float) -> None:
            nonlocal printed, done
            with turn:
                done += n
                bars.update(bar, completed=round(done))
                if console.is_terminal or time.monotonic() - printed < _PLAIN_EVERY_S or not 0 < done < total:
                    return
                printed = time.monotonic()
                rate = done / (printed - began)
                told = f"{done:,.0f} of {total:,.0f}"
                if of_bytes:
                    left = spent((total - done) / rate)
                    told = f"{done / total:.0%} of {in_bytes(total)}, {in_bytes(rate)}/s, {left} left"
                console.print(visible_line(f"{title}: {told}"), highlight=False, soft_wrap=True, markup=False)

        yield advance


downloading = partial(counted, of_bytes=True)


def _plain(text: str) -> str:
    return escape(visible_line(text))
