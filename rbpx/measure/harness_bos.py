"""Says where protocol=harness counts a BOS that no text has."""

import logging
from collections.abc import Sequence

from rbpx.errors import number_of
from rbpx.store.store import Record, Store


def log_scored_bos(records: Sequence[Record], store: Store) -> None:
    """Say it in one line for new cells of one family and text, whose records these are."""
    for record in records:
        scored = store.manifest(record["run_id"]).get("scored_bos")
        if scored is not None:
            logging.getLogger(__name__).info(
                f"{record['family']} on {record['dataset']}: the {scored['text']} that the tokenizer puts before each "
                f"of {number_of(scored['texts'], 'text')} is scored too, as the harness does; model.bos=none scores "
                "texts alone"
            )
            return
