"""The scored tokens of one run as columns, in the order in which they are stored.

They are read from their file as they are: SQL would compare the run_id of each with that of the run, which takes as
long as all the rest.
"""

from collections.abc import Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.dataset

from rbpx.errors import DamageError, RbpxError, reason
from rbpx.store.lazy_files import take_problem
from rbpx.ties import Ties, rank_of

__all__ = ["offer_tokens", "ranks_under", "run_tokens", "untold"]

_TOKENS: Final[WeakKeyDictionary[duckdb.DuckDBPyConnection, Any]] = WeakKeyDictionary()
_NEEDED: Final = {Ties.pessimistic: ("ties",), Ties.optimistic: ("greater",), Ties.mid: ("greater", "ties")}


def offer_tokens(connection: duckdb.DuckDBPyConnection, tokens: Any) -> None:
    """Remember the dataset (or the empty table) that is the relation `tokens` of a connection."""
    _TOKENS[connection] = tokens


def run_tokens(connection: duckdb.DuckDBPyConnection, run_id: str, columns: Sequence[str]) -> pa.Table:
    """Columns of the tokens that laws are about (`true_tokens`): without those of wrong choices; no rows without a run.

    Raises:
        DamageError: the file of the run cannot be read.
        RbpxError: it cannot be fetched.
    """
    tokens = _TOKENS[connection]
    wanted = [*columns, "correct"]
    is_of_run = pyarrow.dataset.field("run_id") == run_id
    parts = [] if isinstance(tokens, pa.Table) else list(tokens.get_fragments(filter=is_of_run))
    try:
        # In a thread of its own Arrow reads no faster, as questions are asked on all cores.
        read = [part.to_table(schema=tokens.schema, columns=wanted, use_threads=False) for part in parts]
    except (OSError, pa.ArrowException, UnicodeDecodeError) as problem:
        damage = DamageError(f"tokens cannot be read: {reason(problem)}; rbpx store verify names the file")
        raise take_problem() or damage from None
    table = pa.concat_tables(read) if read else tokens.schema.empty_table().select(wanted)
    correct = table["correct"]
    if correct.null_count < len(correct):
        table = table.filter(correct.fill_null(True))
    return table.select(columns)


def ranks_under(tokens: pa.Table, ties: Ties) -> npt.NDArray[np.float64]:
    """The rank of each token, from its columns `greater` and `ties`.

    Raises:
        RbpxError: tokens of another engine lack a count that the rule needs.
    """
    if any(tokens[name].null_count for name in _NEEDED[ties]):
        raise untold(ties)
    # Without a count of greater logits `ties` are all that are not less, so none is left out.
    greater_T = tokens["greater"].fill_null(0).to_numpy()
    ties_T = 0 if ties is Ties.optimistic else tokens["ties"].to_numpy()
    return rank_of(greater_T, ties_T, ties)


def untold(ties: str) -> RbpxError:
    """The error to raise when a rank is asked for that an engine did not tell."""
    return RbpxError(
        f"a run has tokens of another engine that told no ranks with ties={ties}; see `engine` in python -m rbpx "
        "sql 'FROM runs', and ask with the rule of its ranks, or narrow the question to other runs"
    )
