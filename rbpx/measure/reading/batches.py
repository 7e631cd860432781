"""Divides windows into batches of similar length, the longest first.

A causal model computes the same states for the same tokens, so a context that several choices share is read once in a
batch.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from rbpx.data.windows import Window

_MOST_PADDING = 0.05  # largest share of padding in a batch
# Overhead of a pass in tokens: measured with small models on a CPU; on a GPU estimated
# from some 150 launches of 10 microseconds and a million tokens/s.
PASS = {"cpu": 128, "cuda": 2048}
PAST = 8  # cached tokens with the memory of one that is read: keys and values of one layer at a time


def batch_windows(
    windows: Sequence[Window],
    tokens_per_batch: int,
    begun: int = 0,
    kind: Callable[[int], int] = lambda n_tokens: 0,
    device: str = "cpu",
) -> Iterator[list[Window]]:
    """Batches of windows, longest first, of at most `tokens_per_batch` padded tokens, or of one window.

    Shared tokens count once, and `PAST` times as many fit with cached beginnings. At most `_MOST_PADDING` of a batch is
    padding; of continuations of a shared beginning, which are often short, up to the overhead of a pass. `begun` tokens
    of each window were read before; windows of a batch have one `kind`, a class of numbers of tokens.
    """
    batch: list[Window] = []
    last, n_reads, n_tokens = b"", 0, 0
    allowed = PASS[device] if begun else 0
    for window in sorted(windows, key=longest_first):
        read = read_of(window)
        n_more = 1 if read is None or read != last else 0
        if batch:
            longest = len(batch[0].ids)
            n_padded, n_own = (n_reads + n_more) * (longest - begun), n_more * (len(window.ids) - begun)
            padding = n_padded - n_tokens - n_own
            too_much = n_padded > tokens_per_batch or (n_reads + n_more) * longest > PAST * tokens_per_batch
            differs = kind(batch[0].n_read) != kind(window.n_read)
            if too_much or differs or padding > max(_MOST_PADDING * n_padded, allowed):
                yield batch
                batch, n_reads, n_tokens, n_more = [], 0, 0, 1
        batch.append(window)
        last = b"" if read is None else read
        n_reads += n_more
        n_tokens += n_more * (len(window.ids) - begun)
    if batch:
        yield batch


def longest_first(window: Window) -> tuple[int, bytes, int, int]:
    """Sort key: longest first, choices of one token next to others with the same context."""
    return -len(window.ids), read_of(window) or b"", window.doc_id, window.start


def read_of(window: Window) -> bytes | None:
    """The tokens of a window's shared read; None where it reads all of its tokens by itself."""
    return window.ids[: window.n_read].tobytes() if window.ends_in_label else None


def distinct_reads(batch: Sequence[Window]) -> tuple[list[int], npt.NDArray[np.int64]]:
    """The first window of each distinct sequence that is read, and the index of that of each window."""
    if not any(window.ends_in_label for window in batch):
        return list(range(len(batch))), np.arange(len(batch))
    return distinct(window.ids[: window.n_read].tobytes() for window in batch)


def distinct(keys: Iterable[Hashable]) -> tuple[list[int], npt.NDArray[np.int64]]:
    """The index at which each distinct key first occurs, and for each key the index of its equal among these."""
    seen: dict[Hashable, int] = {}
    which = np.asarray([seen.setdefault(key, len(seen)) for key in keys], np.int64)
    return np.unique(which, return_index=True)[1].tolist(), which
