"""`shard=3/16`: one of the parts into which a grid is divided for several machines; `shard=16` is their number."""

import re
from dataclasses import dataclass
from typing import Any, Final

from rbpx.errors import RbpxError

_MOST: Final = 100_000  # parts of a grid


@dataclass(frozen=True)
class Shard:
    """A part of a grid.

    Attributes:
        number: of the part, from 1; None for all of them.
        n_shards: into which the grid is divided.
    """

    number: int | None
    n_shards: int

    def __str__(self) -> str:
        """As typed."""
        return str(self.n_shards) if self.number is None else f"{self.number}/{self.n_shards}"


def read_shard(value: Any) -> Shard | None:
    """The part that `shard=` names; None where it is not given.

    Raises:
        RbpxError: it is neither a number of parts nor one of them.
    """
    if value is None:
        return None
    written = re.fullmatch(r"(?:(\d+)/)?(\d+)", "" if isinstance(value, bool) else str(value))
    shard = None if written is None else Shard(None if written[1] is None else int(written[1]), int(written[2]))
    if (
        shard is None
        or not 1 <= shard.n_shards <= _MOST
        or (shard.number is not None and not 1 <= shard.number <= shard.n_shards)
    ):
        raise RbpxError(f"shard={value} is not a part of a grid of at most {_MOST:,}; the third of 16 is shard=3/16")
    return shard
