"""An open store for notebooks and scripts: its tables, and every analysis as a method named after its verb."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rbpx.api.answer import Answer
from rbpx.api.keywords import refuse_half_pairs, requests
from rbpx.api.questions import Questions
from rbpx.config.keys.output import Reported
from rbpx.config.request import Asking
from rbpx.cores import share_cores
from rbpx.questions.ask import open_filled
from rbpx.questions.registry import asking, report_keys
from rbpx.spelling import typed
from rbpx.store.export import export
from rbpx.store.messages import collected_messages
from rbpx.store.sql import SqlLimits, ask, ask_user, connect
from rbpx.store.store import Store

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


def open_measurements(
    store: str | Path = "store", config_dir: str | Path | None = None, create: bool = False
) -> Measurements:
    """Opens a store; `rbpx.open` is this function.

    `config_dir` has model/NAME.yaml and dataset/NAME.yaml of your own, as --config-dir on the command line. With
    `create` a store may hold nothing yet. Sets how threads wait for each other (`rbpx.cores`), which torch reads when
    it is loaded.

    Raises:
        RbpxError: the store holds nothing, and `create` is not set.
    """
    share_cores()
    refuse_half_pairs("store", store)
    if not create:
        open_filled(str(store))
    return Measurements(str(store), None if config_dir is None else Path(config_dir))


def measure(store: str | Path = "store", config_dir: str | Path | None = None, **keys: Any) -> Answer[Any]:
    """Measures what a store lacks of a grid: `rbpx.measure(model="ladder")`; see `Measurements.measure`."""
    return open_measurements(store, config_dir, create=True).measure(**keys)


@dataclass(frozen=True)
class Measurements(Questions):
    """An open store. Nothing is cached: each question reads what the store holds when it is asked.

    Every analysis takes the keys of its verb, which its signature lists. It does what the verb does, keeps its fits in
    `fits`, and returns an `Answer` instead of printing it.
    """

    def sql(self, query: str, sql_timeout_s: float | None = 60.0, sql_memory_mib: int | None = None) -> pa.Table:
        """Returns the answer to one read-only SELECT over the relations of the store, as an Arrow table.

        `sql_memory_mib` is what the query, and again its answer, may take, None half of the machine's memory.

        Raises:
            RbpxError: the query is not a SELECT, DuckDB refuses it, or it reached a limit.
        """
        refuse_half_pairs("query", query)
        limits = SqlLimits(sql_timeout_s, sql_memory_mib)
        return self._ask(lambda connection: ask_user(connection, query, limits), limits)

    def frame(self, query: str, sql_timeout_s: float | None = 60.0, sql_memory_mib: int | None = None) -> pd.DataFrame:
        """Returns the answer to one SELECT as a pandas DataFrame; see `sql`."""
        frame: pd.DataFrame = self.sql(query, sql_timeout_s, sql_memory_mib).to_pandas()
        return frame

    def observations(self, k: int | Sequence[int] | None = None, ties: str = "pessimistic") -> pa.Table:
        """Returns RBP_k of every run, measured and imported, as an Arrow table; `.to_pandas()` makes a DataFrame of it.

        k is one rank or several, by default those of the relation `observations`; ties are pessimistic, optimistic or
        mid.

        Raises:
            RbpxError: the tie rule is unknown, or k is not a valid rank.
        """
        import pyarrow as pa

        (request,) = requests(asking("fit"), {"ties": ties} | ({} if k is None else {"k": k}), self.store)
        if k is None:
            everything = self._ask(lambda connection: ask_user(connection, "FROM observations ORDER BY ALL"))
            return everything.filter(pa.compute.equal(everything["ties"], ties))
        ks = request.k.listed()
        return self._ask(lambda c: pa.concat_tables([ask(c, "rbp_at", k=each, ties=ties) for each in ks]))

    # -------------------------------------------------------------------------------------- verbs that ask no question

    def report(
        self,
        output: str | Path | None = None,
        format: Literal["html", "md", "tex", "svg", "pdf", "png"] | None = None,
        **keys: Any,
    ) -> Path:
        """Writes one page with the laws, figures and tables of the store, as the verb does, and returns its path.

        `output` is the file, or for figures the folder; report.html by default. A file that is not a report is not
        overwritten. The format is that of its suffix unless given; further keys narrow the report.

        Raises:
            RbpxError: the report cannot be written, or nothing in the store matches.
        """
        from rbpx.report.output import check, write_report

        told = {"output": None if output is None else str(output), "format": format}
        fixed = {name: value for name, value in told.items() if value is not None}
        asked = requests(Asking("report", Reported, report_keys()), keys, self.store, self.config_dir, fixed)
        for request in asked:
            check(request)
        grids, narrowed = [(request, None) for request in asked], typed(keys=keys)
        with collected_messages():
            return write_report(grids, narrowed)

    def export(self, what: str, output: str | Path) -> Path:
        """Writes a relation, or the answer to one SELECT, to a .csv, .json or .parquet file, and returns its path.

        Raises:
            RbpxError: there is no such relation, DuckDB refuses the query, or the file cannot be written.
        """
        export(self.store, what, str(output))
        return Path(output).expanduser()

    def _ask(self, question: Any, limits: SqlLimits | None = None) -> Any:
        with connect(Store(self.store), limits=limits or SqlLimits()) as connection:
            return question(connection)
