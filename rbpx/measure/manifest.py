"""The manifest of a run, whether rbpx or another engine measured it: protocol, model, text, cross-entropy."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from rbpx.config.grid import Cell
from rbpx.config.options import Bos
from rbpx.data.corpus import Document
from rbpx.data.windows import Window, ids_around
from rbpx.measure.protocol import ResolvedProtocol
from rbpx.measure.run_tables import Columns, cross_entropy_nats, text_facts
from rbpx.store.store import Record


def run_facts(
    run_id: str,
    cell: Cell,
    protocol: ResolvedProtocol[Any],
    windows: Sequence[Window],
    documents: Sequence[Document],
    columns: Columns,
    computed: Record,
    went: Record,
) -> Record:
    """The manifest of a run, in reading order.

    `computed` says how logits were computed (empty if unknown); `went` has device, time, throughput and versions.
    """
    model = protocol.loaded
    return {
        "run_id": run_id,
        "protocol": cell.protocol,
        "window": protocol.window,
        "stride": protocol.stride,
        "padding": protocol.padding.value,
        "bos": protocol.beginning,
        "dtype": cell.precision,
        **computed,
        "non_embedding_params": model.non_embedding_params,
        "active_params": model.active_params,
        "total_params": model.total_params,
        "vocab_size": model.vocab_size,
        **text_facts(windows, documents),
        "cross_entropy_nats": cross_entropy_nats(columns, documents),
        "text_hash": cell.text_hash,
        "tokenizer_hash": model.tokenizer_hash,
        "weights_hash": model.weights_hash,
        **_inner_padding(windows, protocol),
        **_scored_bos(windows, protocol),
        **went,
    }


def _inner_padding(windows: Sequence[Window], protocol: ResolvedProtocol[Any]) -> Record:
    """How often the text itself contains the padding token of the RBP paper's authors; empty if never.

    Their code masks that id wherever it stands (attention_mask = ids != pad); rbpx masks no token of the text.
    """
    padding = list(protocol.unscored)
    holding = [window for window in windows if padding and np.isin(window.ids, padding).any()]
    behind = [int(window.scored[np.isin(window.ids, padding).argmax() :].sum()) for window in holding]
    if not any(behind):
        return {}
    text = str(protocol.loaded.tokenizer.decode(padding))
    return {"inner_padding": {"text": text, "documents": sum(n > 0 for n in behind), "tokens": sum(behind)}}


def _scored_bos(windows: Sequence[Window], protocol: ResolvedProtocol[Any]) -> Record:
    """How many texts have a BOS that the harness scores; empty if none."""
    if not (protocol.harness and protocol.bos is Bos.tokenizer):
        return {}
    before, _ = ids_around(protocol.loaded.tokenizer)
    texts = [window for window in windows if window.start == 0 and window.scored[1 : 1 + len(before)].all()]
    n_texts = sum(before != [] and window.ids[1 : 1 + len(before)].tolist() == before for window in texts)
    return {} if n_texts == 0 else {"scored_bos": {"text": protocol.loaded.tokenizer.decode(before), "texts": n_texts}}
