"""A store in; for notebooks and scripts its tables, and every analysis of it by the name of its verb, out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from rbpx.analyses.answer import answer, asked_in_processes, open_filled
from rbpx.analyses.registry import analyses, analysis, question
from rbpx.api.answer import Answer
from rbpx.api.keywords import Keys, requests, written
from rbpx.cores import share_cores
from rbpx.errors import MeasureError
from rbpx.files.output import plain
from rbpx.store.bounded import SqlLimits
from rbpx.store.export import export
from rbpx.store.messages import collected_messages
from rbpx.store.queries import ask, ask_user, connect
from rbpx.store.remote import open_store
from rbpx.store.reread import read_again
from rbpx.store.store import Store

if TYPE_CHECKING:
    from typing import Unpack

    import pandas as pd
    import pyarrow as pa

    from rbpx.measure.results import Measured


def open_measurements(
    store: str | Path = "store", config_dir: str | Path | None = None, create: bool = False
) -> Measurements:
    """Open a store; `rbpx.open` is this function.

    It also sets, where the environment does not, how threads wait for each other (`rbpx.cores`), which torch reads when
    it is loaded.

    Args:
        store: its folder, or s3://BUCKET/PATH, of which the records are copied, and tables when they are read.
        config_dir: folder with model/NAME.yaml and dataset/NAME.yaml of your own, as --config-dir on the command line.
        create: whether to open a store that holds nothing yet, to measure into it.

    Raises:
        RbpxError: it holds nothing, and `create` is not set.
        MeasureError: object storage does not answer.
    """
    share_cores()
    if not create:
        open_filled(str(store))
    return Measurements(str(store), None if config_dir is None else Path(config_dir))


@dataclass(frozen=True)
class Measurements:
    """An open store. Nothing is kept in memory: each question sees what the store holds when it is asked.

    Every analysis takes the keys of its verb on the command line (`rbpx.Keys`), does what the verb does, keeps its fits
    in `fits` as the verb does, and returns an `Answer` in place of printing it.

    Attributes:
        store: its folder or URL.
        config_dir: folder with a user's own models and datasets.
    """

    store: str
    config_dir: Path | None = None

    def sql(self, query: str, sql_timeout_s: float | None = 60.0, sql_memory_mib: int | None = None) -> pa.Table:
        """The answer to one SELECT over the relations of the store, as an Arrow table; reading only.

        Args:
            query: one SELECT.
            sql_timeout_s: seconds after which it is stopped; None for no limit.
            sql_memory_mib: memory, MiB, that it and its answer may take each; None for half of the machine's.

        Raises:
            RbpxError: it is not a SELECT, DuckDB refuses it, or a limit was reached.
        """
        limits = SqlLimits(sql_timeout_s, sql_memory_mib)
        return self._ask(lambda connection: ask_user(connection, query, limits), limits)

    def frame(self, query: str, sql_timeout_s: float | None = 60.0, sql_memory_mib: int | None = None) -> pd.DataFrame:
        """As `sql`, as a pandas DataFrame."""
        frame: pd.DataFrame = self.sql(query, sql_timeout_s, sql_memory_mib).to_pandas()
        return frame

    def observations(self, k: int | Sequence[int] | None = None, ties: str = "pessimistic") -> pa.Table:
        """RBP_k of every run, measured and imported, as an Arrow table; `.to_pandas()` makes a DataFrame of it.

        Args:
            k: one or several; the default ones where none is given, as in the relation `observations`.
            ties: tie rule: pessimistic, optimistic or mid.

        Raises:
            RbpxError: the tie rule is unknown, or k is not a valid rank.
        """
        import pyarrow as pa

        (request,) = requests("fit", {"ties": ties} | ({} if k is None else {"k": k}), self.store)
        if k is None:
            everything = self._ask(lambda connection: ask_user(connection, "FROM observations ORDER BY ALL"))
            return everything.filter(pa.compute.equal(everything["ties"], ties))
        ks = request.k_listed()
        return self._ask(lambda c: pa.concat_tables([ask(c, "rbp_at", k=each, ties=ties) for each in ks]))

    # ------------------------------------------------------------------------------------------- what is no question

    def measure(self, **keys: Unpack[Keys]) -> Answer[Measured]:
        """Measure every cell of a grid that the store does not hold yet, as the verb does; nothing is printed.

        A model and a dataset have the defaults of the command line; lists of them are a sweep, which loads each model
        once. Its rows are the cells of the grid, held before or measured now, with their runs; a cell that failed is a
        row with its error.

        Raises:
            RbpxError: the request is wrong.
            MeasureError: a text could not be had, or each cell has failed.
        """
        from rbpx.api.measuring import measure

        asked = requests("measure", dict(keys), self.store, self.config_dir, primary="measure")
        with collected_messages() as messages:
            results, rows = measure(asked)
        return Answer("measure", tuple(results), tuple(rows), tuple(messages))

    def report(
        self,
        output: str | Path | None = None,
        format: Literal["html", "md", "tex", "svg", "pdf"] | None = None,
        **keys: Unpack[Keys],
    ) -> Path:
        """Write one page with the laws, figures and tables of the store, as the verb does.

        Args:
            output: the file, or for svg and pdf the folder; report.html if left out. A file that is not a report is
                not overwritten.
            format: html, md, tex, svg or pdf; by the name of the output if left out.
            keys: what narrows the report.

        Returns:
            Where it is.

        Raises:
            RbpxError: it cannot be written, or nothing in the store matches.
        """
        from rbpx.report.output import check, write_report

        told = {"output": None if output is None else str(output), "format": format}
        fixed = {name: value for name, value in told.items() if value is not None}
        asked = requests("report", dict(keys), self.store, self.config_dir, primary="analyse", fixed=fixed)
        for request in asked:
            check(request)
        narrowed = " ".join(f"{name}={written(value)}" for name, value in keys.items())
        with collected_messages():
            return read_again(self.store, lambda: write_report([(request, None) for request in asked], narrowed))

    def export(self, what: str, output: str | Path) -> Path:
        """Write a relation or the answer to a query to a file, as the verb does.

        Args:
            what: the name of a relation, or one SELECT.
            output: a file that ends in .csv, .json or .parquet.

        Returns:
            Where it is.

        Raises:
            RbpxError: there is no such relation, DuckDB refuses the query, or the file cannot be written.
        """
        read_again(self.store, lambda: export(self.store, what, str(output)))
        return Path(output).expanduser()

    def _ask(self, question: Any, limits: SqlLimits | None = None) -> Any:
        def answer() -> Any:
            with connect(self._opened(), limits=limits or SqlLimits()) as connection:
                return question(connection)

        return read_again(self.store, answer)

    def _opened(self) -> Store:
        return open_store(self.store)

    # ------------------------------------------------------------------------------------------------------- analyses

    if TYPE_CHECKING:  # at run time the methods come from the folders of the questions

        def __getattr__(self, verb: str) -> Ask: ...

    def _answer(self, verb: str, keys: Keys) -> Answer[Any]:
        """What a question finds, and its rows.

        Raises:
            MeasureError: what the store lacks for it could not be measured.
        """
        grids = [(request, None) for request in requests(verb, dict(keys), self.store, self.config_dir)]
        with collected_messages() as messages:
            measure = question(verb).measure
            failures = [] if measure is None else [each for request, _ in grids for each in measure(request).failures]
            for failure in failures[:1]:
                raise MeasureError(f"{failure.cell} failed: {failure.error}")
            with asked_in_processes([verb], grids[0][0]):
                found = read_again(self.store, lambda: answer(verb, grids))
        records = tuple({name: plain(value) for name, value in row.items()} for _, rows in found for row in rows)
        return Answer(verb, tuple(result for result, _ in found), records, tuple(messages))


class Ask(Protocol):
    """One question as a method: its keys in, its answer out."""

    def __call__(self, **keys: Unpack[Keys]) -> Answer[Any]:
        """Ask the store."""


def _method(verb: str) -> Callable[..., Answer[Any]]:
    """A question as a method of `Measurements`."""
    described = analysis(verb)

    def ask(self: Measurements, **keys: Unpack[Keys]) -> Answer[Any]:
        return self._answer(verb, keys)

    ask.__name__, ask.__qualname__ = verb, f"Measurements.{verb}"
    ask.__doc__ = f"{described.summary[:1].upper()}{described.summary[1:]}.\n\n{described.help}"
    return ask


for _verb, _described in analyses().items():
    if not _described.measures:
        setattr(Measurements, _verb, _method(_verb))
