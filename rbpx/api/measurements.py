"""A store in; for notebooks and scripts its tables, and every analysis of it by the name of its verb, out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rbpx.analyses.perform import find, open_filled
from rbpx.api.answer import Answer, FitAnswer
from rbpx.api.keywords import Keys, requests
from rbpx.files.output import plain
from rbpx.store import notice
from rbpx.store.queries import ask, ask_user, connect
from rbpx.store.remote import open_store
from rbpx.store.reread import read_again
from rbpx.store.store import Store

if TYPE_CHECKING:
    from typing import Unpack

    import pandas as pd
    import pyarrow as pa

    from rbpx.analyses.choices.analysis import Choices
    from rbpx.analyses.emergence.analysis import Emergences
    from rbpx.analyses.entropy.analysis import Entropies
    from rbpx.analyses.gaps.analysis import Gaps
    from rbpx.analyses.improve.analysis import Improvement
    from rbpx.analyses.klaw.analysis import KLaws
    from rbpx.analyses.outcomes.recovery import OutcomesFound
    from rbpx.analyses.predict.analysis import Foresights
    from rbpx.analyses.ranks.analysis import Ranks
    from rbpx.analyses.regimes.analysis import Regimes
    from rbpx.analyses.tokenwise.analysis import TokenwiseFound
    from rbpx.analyses.units.analysis import GroupUnits


def open_measurements(store: str | Path = "store", config_dir: str | Path | None = None) -> Measurements:
    """Open a store; `rbpx.open` is this function.

    Args:
        store: its folder, or s3://BUCKET/PATH, of which a copy is kept up to date in the user's cache.
        config_dir: folder with model/NAME.yaml and dataset/NAME.yaml of your own, as --config-dir on the command line.

    Raises:
        RbpxError: it holds nothing.
        MeasureError: object storage does not answer.
    """
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

    def sql(self, query: str) -> pa.Table:
        """The answer to one SELECT over the relations of the store, as an Arrow table; reading only.

        Raises:
            RbpxError: it is no SELECT, or DuckDB refuses it.
        """
        return self._ask(lambda connection: ask_user(connection, query))

    def frame(self, query: str) -> pd.DataFrame:
        """As `sql`, as a pandas DataFrame."""
        found: pd.DataFrame = self.sql(query).to_pandas()
        return found

    def observations(self, k: int | Sequence[int] | None = None, ties: str = "pessimistic") -> pa.Table:
        """RBP_k of every run, measured and imported, as an Arrow table; `.to_pandas()` makes a DataFrame of it.

        Args:
            k: one or several; the default ones where none is given, as in the relation `observations`.
            ties: tie rule: pessimistic, optimistic or mid.

        Raises:
            RbpxError: the tie rule is unknown, or k is no rank.
        """
        import pyarrow as pa

        (request,) = requests("fit", {"ties": ties} | ({} if k is None else {"k": k}), self.store)
        if k is None:
            everything = self._ask(lambda connection: ask_user(connection, "FROM observations ORDER BY ALL"))
            return everything.filter(pa.compute.equal(everything["ties"], ties))
        asked = request.k_listed()
        return self._ask(lambda c: pa.concat_tables([ask(c, "rbp_at", k=each, ties=ties) for each in asked]))

    def _ask(self, question: Any) -> Any:
        notice.begin()

        def answer() -> Any:
            with connect(self._opened()) as connection:
                return question(connection)

        return read_again(self.store, answer)

    def _opened(self) -> Store:
        return open_store(self.store)

    # ------------------------------------------------------------------------------------------------------- analyses

    def fit(self, **keys: Unpack[Keys]) -> FitAnswer:
        """Every law of size: -ln RBP_k, cross-entropy, those derived from ranks, and the error-entropy terms."""
        return FitAnswer("fit", *self._find("fit", keys))

    def klaw(self, **keys: Unpack[Keys]) -> Answer[KLaws]:
        """-ln RBP_k = C k^-alpha at fixed S, and what a larger k is worth in size."""
        return Answer("klaw", *self._find("klaw", keys))

    def regimes(self, **keys: Unpack[Keys]) -> Answer[Regimes]:
        """Up to which k the law stands, and the noise that ends it."""
        return Answer("regimes", *self._find("regimes", keys))

    def emergence(self, **keys: Unpack[Keys]) -> Answer[Emergences]:
        """How often N tokens in a row are right, measured and predicted."""
        return Answer("emergence", *self._find("emergence", keys))

    def gaps(self, **keys: Unpack[Keys]) -> Answer[Gaps]:
        """How the gap between two texts, or two slices of one, changes with size."""
        return Answer("gaps", *self._find("gaps", keys))

    def choices(self, **keys: Unpack[Keys]) -> Answer[Choices]:
        """What protocol, BOS, dtype and tie rule do to the same text."""
        return Answer("choices", *self._find("choices", keys))

    def ranks(self, **keys: Unpack[Keys]) -> Answer[Ranks]:
        """How ranks are distributed: the lognormal, its rivals, and the laws that follow."""
        return Answer("ranks", *self._find("ranks", keys))

    def entropy(self, **keys: Unpack[Keys]) -> Answer[Entropies]:
        """Cross-entropy as error-entropy, self-alignment and confidence."""
        return Answer("entropy", *self._find("entropy", keys))

    def units(self, **keys: Unpack[Keys]) -> Answer[GroupUnits]:
        """Bits per byte and rank/V, to compare families with different tokenizers."""
        return Answer("units", *self._find("units", keys))

    def improve(self, **keys: Unpack[Keys]) -> Answer[Improvement]:
        """Which tokens improve with size."""
        return Answer("improve", *self._find("improve", keys))

    def outcomes(self, **keys: Unpack[Keys]) -> Answer[OutcomesFound]:
        """What passing and failing sequences of the store tell of single tokens."""
        return Answer("outcomes", *self._find("outcomes", keys))

    def tokenwise(self, **keys: Unpack[Keys]) -> Answer[TokenwiseFound]:
        """Which tokens are right, learned from passes and failures alone."""
        return Answer("tokenwise", *self._find("tokenwise", keys))

    def predict(self, **keys: Unpack[Keys]) -> Answer[Foresights]:
        """What the laws say of other sizes, and how right they were."""
        return Answer("predict", *self._find("predict", keys))

    def _find(self, verb: str, keys: Keys) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The results and the rows of a verb."""
        notice.begin()
        asked = requests(verb, dict(keys), self.store, self.config_dir)
        results, records = read_again(self.store, lambda: find(verb, [(request, None) for request in asked]))
        return tuple(results), tuple({name: plain(value) for name, value in row.items()} for row in records)
